"""Training from the command line's point of view: a table of members, and clones of logged policies."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from preplay.artifacts import open_artifact
from preplay.embedding import CachedEncoder, encoder_config, load_embedded
from preplay.errors import PreplayError
from preplay.pipeline._config import PreplayConfig
from preplay.policies import fit_clone, save_clone
from preplay.seeding import numpy_rng
from preplay.world_model import Fidelity, train_ensemble

_ROWS: dict[str, Callable[[Fidelity], str]] = {
    "energy score of the next observation": lambda f: f"{f.energy_score:.3f}",
    "  the same, ignoring the condition": lambda f: f"{f.energy_score_marginal:.3f}",
    "cosine to the real next observation": lambda f: f"{f.cosine:.3f}",
    "generated / real variance": lambda f: f"{f.variance_ratio:.2f}",
    "effect of the condition (0: ignored)": lambda f: (
        "-" if f.condition_effect is None else f"{f.condition_effect:.2f}"
    ),
    "reward RMSE (of always the mean)": lambda f: f"{f.reward_rmse:.3f} ({f.reward_std:.3f})",
    "termination calibration error": lambda f: f"{f.termination_ece:.3f}",
    "drift after 1, 2, ... turns": lambda f: " ".join(f"{d:.2f}" for d in f.drift) or "-",
    "value of the logging policies, imagined": lambda f: f"{f.on_policy_value:+.3f}",
    "  the same, logged": lambda f: f"{f.logged_value:+.3f} ± {f.logged_value_error:.3f}",
}


def train_models(
    embedded: str | Path,
    folder: Path,
    config: PreplayConfig,
    *,
    members: int | None = None,
    without: tuple[str, ...] = (),
    console: Console,
) -> list[Path]:
    """Train the ensemble and print how faithful each member is on held-out sessions."""
    count = members or config.members
    ready: dict[str, Fidelity] = {}

    def show(path: Path, fidelity: Fidelity) -> None:
        ready[path.name] = fidelity
        status.update(f"Training world models: {len(ready)} of {count} ready")

    with console.status(f"Training world models: 0 of {count} ready") as status:
        paths = train_ensemble(
            embedded,
            folder,
            config.world_model,
            members=count,
            seed=config.seed,
            without=without,
            on_member=show,
        )
    console.print(_table(ready))
    return paths


def clone_policy(
    embedded: str | Path, policy: str, output: Path, *, sessions: int | None = None, seed: int = 0
) -> int:
    """Fit and save a clone of a logged policy; returns how many of its sessions were used."""
    data = load_embedded(embedded)
    mine = np.flatnonzero(data.session_policy == policy)
    if not len(mine):
        known = ", ".join(np.unique(data.session_policy))
        raise PreplayError(f"the logs hold no policy {policy!r}.", fix=f"Logged policies: {known}.")
    if sessions and sessions < len(mine):
        mine = numpy_rng(seed, "clone sessions").choice(mine, sessions, replace=False)
    keep = np.isin(np.arange(len(data.session_policy)), mine)
    config = encoder_config(open_artifact(embedded, "embedded"))
    encoder = CachedEncoder(config, data.bank, expect=data.fingerprint)
    save_clone(fit_clone(data.select_sessions(keep), encoder, policy), output)
    return len(mine)


def _table(fidelity: dict[str, Fidelity]) -> Table:
    table = Table(title="World models on held-out sessions")
    table.add_column("measure")
    for name in sorted(fidelity):
        table.add_column(name, justify="right")
    for label, text in _ROWS.items():
        table.add_row(label, *(text(fidelity[name]) for name in sorted(fidelity)))
    return table
