"""Off-policy estimates from arrays: estimators, intervals, diagnostics and a verdict that can say no."""

from preplay.estimators import _estimators as _built_in  # noqa: F401  (registers the estimators)
from preplay.estimators._batch import SessionBatch, may_bootstrap
from preplay.estimators._evaluate import evaluate_estimator
from preplay.estimators._fqe import Convergence, FQEConfig, FQEInputs, FQEModel, FQEResult, fit_fqe
from preplay.estimators._protocol import Estimator, available, get_estimator, register
from preplay.estimators._results import Estimate, Interval
from preplay.estimators._terms import Stats, Terms
from preplay.estimators._verdict import Verdict

__all__ = [
    "Convergence",
    "Estimate",
    "Estimator",
    "FQEConfig",
    "FQEInputs",
    "FQEModel",
    "FQEResult",
    "Interval",
    "SessionBatch",
    "Stats",
    "Terms",
    "Verdict",
    "available",
    "evaluate_estimator",
    "fit_fqe",
    "get_estimator",
    "may_bootstrap",
    "register",
]
