"""Off-policy estimates from arrays: estimators, intervals, diagnostics and a verdict that can say no."""

from preplay.estimators import _estimators, _magic, _marginal  # noqa: F401  (they register the estimators)
from preplay.estimators._batch import SessionBatch, may_bootstrap
from preplay.estimators._clustered import clustered_log_ratio
from preplay.estimators._collect import CollectionStep, collection_plan
from preplay.estimators._compare import (
    Comparison,
    Resampled,
    compare_policies,
    compare_resampled,
    holm,
    simultaneous_intervals,
)
from preplay.estimators._confidence_sequence import ConfidenceSequence, asymptotic_sequence
from preplay.estimators._cressie_read import WeightedSums, cressie_read_interval, cressie_read_value
from preplay.estimators._diagnostics import (
    ClipPoint,
    MassBalance,
    OnPolicyCheck,
    clip_grid,
    mass_balance,
    model_error,
    on_policy_check,
    pareto_k,
    tail_mass,
)
from preplay.estimators._distribution import ReturnDistribution
from preplay.estimators._estimators import TermsEstimator
from preplay.estimators._evaluate import evaluate_estimator
from preplay.estimators._fqe import Convergence, FQEConfig, FQEResult, fit_fqe
from preplay.estimators._fqe_inputs import FQEInputs, value_follows
from preplay.estimators._fqe_model import FQEModel
from preplay.estimators._intervals import (
    combine_errors,
    empirical_likelihood,
    hoeffding,
    maurer_pontil,
    student_t,
    weighted_bounds,
)
from preplay.estimators._loggers import logger_weights, starts_differ, weigh_loggers
from preplay.estimators._plot_data import (
    Curve,
    ForestRow,
    WeightHistogram,
    cdf_curve,
    clip_curve,
    ess_per_step,
    forest,
    reliability,
    weight_histogram,
)
from preplay.estimators._propensity import PropensityCheck, check_log_probs, require_propensities
from preplay.estimators._propensity_model import (
    Calibration,
    EstimatedPropensities,
    PropensityModel,
    calibration,
    estimate_propensities,
)
from preplay.estimators._protocol import Estimator, available, get_estimator, register
from preplay.estimators._results import Estimate, Interval
from preplay.estimators._selection import (
    normalised_regret_at_k,
    picked_at_k,
    safety_errors,
    sharpe_ratio_at_k,
    spearman,
    sum_regret_at_k,
    value_regret_at_k,
)
from preplay.estimators._sessions import SessionIndex, ShadowActions, align_shadow_actions, index_sessions
from preplay.estimators._shadow_file import ShadowFile, read_shadow_file
from preplay.estimators._support import SupportCoverage, support_coverage
from preplay.estimators._terms import Stats, Terms
from preplay.estimators._verdict import Evidence, Thresholds, Verdict

__all__ = [
    "Calibration",
    "ClipPoint",
    "CollectionStep",
    "Comparison",
    "ConfidenceSequence",
    "Convergence",
    "Curve",
    "Estimate",
    "EstimatedPropensities",
    "Estimator",
    "Evidence",
    "FQEConfig",
    "FQEInputs",
    "FQEModel",
    "FQEResult",
    "ForestRow",
    "Interval",
    "MassBalance",
    "OnPolicyCheck",
    "PropensityCheck",
    "PropensityModel",
    "Resampled",
    "ReturnDistribution",
    "SessionBatch",
    "SessionIndex",
    "ShadowActions",
    "ShadowFile",
    "Stats",
    "SupportCoverage",
    "Terms",
    "TermsEstimator",
    "Thresholds",
    "Verdict",
    "WeightHistogram",
    "WeightedSums",
    "align_shadow_actions",
    "asymptotic_sequence",
    "available",
    "calibration",
    "cdf_curve",
    "check_log_probs",
    "clip_curve",
    "clip_grid",
    "clustered_log_ratio",
    "collection_plan",
    "combine_errors",
    "compare_policies",
    "compare_resampled",
    "cressie_read_interval",
    "cressie_read_value",
    "empirical_likelihood",
    "ess_per_step",
    "estimate_propensities",
    "evaluate_estimator",
    "fit_fqe",
    "forest",
    "get_estimator",
    "hoeffding",
    "holm",
    "index_sessions",
    "logger_weights",
    "mass_balance",
    "maurer_pontil",
    "may_bootstrap",
    "model_error",
    "normalised_regret_at_k",
    "on_policy_check",
    "pareto_k",
    "picked_at_k",
    "read_shadow_file",
    "register",
    "reliability",
    "require_propensities",
    "safety_errors",
    "sharpe_ratio_at_k",
    "simultaneous_intervals",
    "spearman",
    "starts_differ",
    "student_t",
    "sum_regret_at_k",
    "support_coverage",
    "tail_mass",
    "value_follows",
    "value_regret_at_k",
    "weigh_loggers",
    "weight_histogram",
    "weighted_bounds",
]
