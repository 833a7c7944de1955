"""An embedded dataset for world models and FQE: the user's, or sessions simulated here."""

from pathlib import Path

from preplay.artifacts import open_artifact
from preplay.embedding import EmbeddedTurns, embed_dataset, load_embedded
from preplay.pipeline import write_logs
from preplay.sweep._config import DataConfig


def embedded_data(data: DataConfig, folder: Path, cache: Path) -> tuple[EmbeddedTurns, str, dict[str, str]]:
    """The dataset, where it is, and its content hash; simulated data are kept in ``folder``."""
    uri = data.path or str(folder / "embedded")
    if data.generate:
        write_logs(folder / "dataset", sessions=data.sessions, seed=data.seed, environment=data.generate)
        if not (folder / "embedded" / "manifest.json").exists():
            embed_dataset(folder / "dataset", uri, data.encoder, cache_dir=cache)
    inputs = {"embedded": open_artifact(uri, "embedded").manifest.content_hash}
    return load_embedded(uri), uri, inputs
