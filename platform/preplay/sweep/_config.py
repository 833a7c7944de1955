"""A sweep as one YAML file: what is trained on what, what is searched and how, and what comes out."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from preplay.embedding import EncoderConfig
from preplay.sweep._space import Space, ordered


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DataConfig(_Strict):
    """Where the data come from: a path, or sessions that the sweep simulates by itself.

    Args:
        path: An embedded dataset (world_model, fqe) or a dataset with candidates (critics); a path or a URI.
        generate: A known environment: ``support_desk`` for world models and FQE, ``code_repair`` for critics.
        sessions: Sessions to simulate.
        seed: Seed of the simulation.
        encoder: Embeds simulated sessions.
        folds: Parts of the sessions or tasks for cross-fitted figures.
    """

    path: str | None = None
    generate: Literal["support_desk", "code_repair"] | None = None
    sessions: int = Field(default=400, ge=10)
    seed: int = 0
    encoder: EncoderConfig = EncoderConfig()
    folds: int = Field(default=3, ge=2)

    @model_validator(mode="after")
    def _one_source(self) -> "DataConfig":
        if (self.path is None) == (self.generate is None):
            raise ValueError("give either path or generate")
        return self


class SearcherConfig(_Strict):
    """How configurations are proposed.

    Args:
        kind: ``tpe`` (Optuna; several metrics make it multi-objective), ``random``, or ``grid`` of all choices.
        trials: Configurations at most; except in a grid the first one is ``base`` alone.
        startup: Random configurations before TPE starts to learn.
        lag: Configuration n is proposed from what configurations up to n - lag showed, and from nothing else. So a
            sweep is the same on one worker or on a hundred; set it to the number of trials that run side by side.
    """

    kind: Literal["tpe", "random", "grid"] = "tpe"
    trials: int = Field(default=16, ge=1)
    startup: int = Field(default=6, ge=1)
    lag: int = Field(default=4, ge=1)


class SchedulerConfig(_Strict):
    """Which trials go on after a part of their training.

    Args:
        kind: ``asha`` (successive halving in the order of the trials' numbers, so that timing decides nothing),
            ``hyperband`` and ``pbt`` (Ray's), or ``none``.
        budget: Units of the full training; a unit is a share 1 / budget of the steps.
        first: Units before the first stage ends; with ``none``, a first as large as the budget makes it the only one.
        reduction: One in so many trials goes on behind a stage, and the next stage ends at so many times its units.
        perturb_every: PBT: units between perturbations.
    """

    kind: Literal["none", "asha", "hyperband", "pbt"] = "asha"
    budget: int = Field(default=9, ge=1)
    first: int = Field(default=1, ge=1)
    reduction: int = Field(default=3, ge=2)
    perturb_every: int = Field(default=1, ge=1)

    @property
    def stages(self) -> tuple[int, ...]:
        """Units at which a trial reports, ascending; the last is the budget."""
        if self.kind in ("none", "asha"):
            found, unit = [], self.first
            while unit < self.budget:
                found.append(unit)
                unit *= self.reduction
            return (*found, self.budget)
        step = self.perturb_every if self.kind == "pbt" else 1
        return (*range(step, self.budget, step), self.budget)


class MetricConfig(_Strict):
    """A figure to optimise; see the trainable for what it measures."""

    name: str
    mode: Literal["min", "max"] = "min"


class ResourcesConfig(_Strict):
    """What a trial books on the cluster; fractions share a CPU or GPU."""

    cpu: float = Field(default=1.0, gt=0)
    gpu: float = Field(default=0.0, ge=0)


class StopConfig(_Strict):
    """When the sweep ends before all trials are done.

    Args:
        minutes: Wall time after which nothing new starts; None: no limit.
        target: Value of the first metric at which the sweep is content; None: none.
        failures: Failed trials after which the sweep gives up: something is wrong with all of them.
    """

    minutes: float | None = Field(default=None, gt=0)
    target: float | None = None
    failures: int = Field(default=10, ge=1)


class EnsembleConfig(_Strict):
    """What is made of the best trials.

    Args:
        size: Members at most; a member that does not lower the validation error of the average is left out.
        candidates: Best trials that members are chosen among, greedily (Caruana et al. 2004).
        effort: Steps of the final training as a multiple of a trial's full training.
        name: The artifact is published as the next version of this name; by default the sweep's name.
    """

    size: int = Field(default=3, ge=0)
    candidates: int = Field(default=8, ge=1)
    effort: float = Field(default=1.0, gt=0)
    name: str | None = None


class SweepConfig(_Strict):
    """A whole sweep.

    Args:
        name: Names the output folder and, unless said otherwise, the ensemble.
        trainable: What a trial trains: ``world_model``, ``critic_iql``, ``critic_cql``, ``fqe``, or one that another
            package brings (``rehearsal_minigrid``).
        base: Fields of the trainable's configuration that all trials share, nested as in its own YAML.
        data: What it is trained on; None for trainables that make their own experience.
        space: Searched fields by dotted path.
        metrics: The first one steers the scheduler and chooses the best; more than one need ``searcher.kind: tpe``
            or ``random`` and no scheduler.
        retries: Times that a failed trial is started again from its last stage before it is given up.
        storage: Folder or fsspec URI of sweeps; all nodes must reach it.
        loggers: Ray's own callbacks to add.
        seed: Of everything: proposals, training, splits.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    trainable: str
    base: dict[str, Any] = {}
    data: DataConfig | None = None
    space: Space = Field(min_length=1)
    searcher: SearcherConfig = SearcherConfig()
    scheduler: SchedulerConfig = SchedulerConfig()
    metrics: tuple[MetricConfig, ...] = Field(min_length=1)
    resources: ResourcesConfig = ResourcesConfig()
    retries: int = Field(default=2, ge=0)
    stop: StopConfig = StopConfig()
    ensemble: EnsembleConfig = EnsembleConfig()
    storage: str = "runs/sweeps"
    loggers: tuple[Literal["tensorboard", "mlflow"], ...] = ()
    seed: int = 0

    @model_validator(mode="after")
    def _fits_together(self) -> "SweepConfig":
        ordered(self.space)
        if self.searcher.kind == "grid" and (n := [k for k, p in self.space.items() if p.choice is None]):
            raise ValueError(f"a grid needs choices, but {n[0]!r} is a range")
        if self.scheduler.kind == "pbt" and (
            self.searcher.kind != "random" or any(p.when for p in self.space.values())
        ):
            raise ValueError("PBT needs searcher random, and fields without conditions")
        if len(self.metrics) > 1 and (self.searcher.kind == "grid" or self.scheduler.kind != "none"):
            raise ValueError("several metrics need searcher tpe or random, and scheduler none")
        return self

    @property
    def metric(self) -> MetricConfig:
        """The first metric."""
        return self.metrics[0]

    @property
    def out(self) -> str:
        """Folder of this sweep."""
        return f"{self.storage.rstrip('/')}/{self.name}"
