"""Sweeps: world models, critics and estimators tuned across a Ray cluster, and the ensembles that come out."""

from preplay.sweep._config import (
    DataConfig,
    EnsembleConfig,
    MetricConfig,
    ResourcesConfig,
    SchedulerConfig,
    SearcherConfig,
    StopConfig,
    SweepConfig,
)
from preplay.sweep._members import Member, Product, train_members
from preplay.sweep._read import check_sweep, read_sweep
from preplay.sweep._records import SweepResult, TrialRecord, pareto_front, read_result
from preplay.sweep._report import render_sweep
from preplay.sweep._run import run_sweep
from preplay.sweep._select import Selection, nearly_best, select_diverse
from preplay.sweep._space import Parameter, grid, suggest
from preplay.sweep._stages import CommonFiles
from preplay.sweep._storage import check_storage
from preplay.sweep._trainable import Job, Outcome, Prepared, Trainable, get_trainable

__all__ = [
    "CommonFiles",
    "DataConfig",
    "EnsembleConfig",
    "Job",
    "Member",
    "MetricConfig",
    "Outcome",
    "Parameter",
    "Prepared",
    "Product",
    "ResourcesConfig",
    "SchedulerConfig",
    "SearcherConfig",
    "Selection",
    "StopConfig",
    "SweepConfig",
    "SweepResult",
    "Trainable",
    "TrialRecord",
    "check_storage",
    "check_sweep",
    "get_trainable",
    "grid",
    "nearly_best",
    "pareto_front",
    "read_result",
    "read_sweep",
    "render_sweep",
    "run_sweep",
    "select_diverse",
    "suggest",
    "train_members",
]
