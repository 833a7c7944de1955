"""Backtests on the user's own logs: each logged policy left out, predicted from the others, and compared."""

from preplay.backtest._baselines import BASELINES
from preplay.backtest._categorical import CategoricalModel, additive, clone_table, fit_categorical
from preplay.backtest._cells import Cells, make_cells
from preplay.backtest._config import BacktestConfig
from preplay.backtest._describe import action_notes
from preplay.backtest._estimate import AskedActions, estimate_actions, estimate_policy
from preplay.backtest._features import Features, Representation
from preplay.backtest._intervals import calibrated, combine_labelled, error_draws
from preplay.backtest._judge import FEW_POLICIES
from preplay.backtest._leaks import Leaks, find_leaks
from preplay.backtest._predict import ACTIONS_ONLY, MEAN_OF_ACTIONS, candidates, predict
from preplay.backtest._problem import Problem, make_problem
from preplay.backtest._rates import Learner, make_learner
from preplay.backtest._report import BacktestReport, Bounds, Collect, EstimatorScore, PolicyBacktest
from preplay.backtest._run import NESTED, backtest
from preplay.backtest._scores import score
from preplay.backtest._support import Skill, Support, calibrate_limits, measure_support
from preplay.backtest._value import ended_value, survival_value
from preplay.backtest._view import Prediction, View

__all__ = [
    "ACTIONS_ONLY",
    "BASELINES",
    "FEW_POLICIES",
    "MEAN_OF_ACTIONS",
    "NESTED",
    "AskedActions",
    "BacktestConfig",
    "BacktestReport",
    "Bounds",
    "CategoricalModel",
    "Cells",
    "Collect",
    "EstimatorScore",
    "Features",
    "Leaks",
    "Learner",
    "PolicyBacktest",
    "Prediction",
    "Problem",
    "Representation",
    "Skill",
    "Support",
    "View",
    "action_notes",
    "additive",
    "backtest",
    "calibrate_limits",
    "calibrated",
    "candidates",
    "clone_table",
    "combine_labelled",
    "ended_value",
    "error_draws",
    "estimate_actions",
    "estimate_policy",
    "find_leaks",
    "fit_categorical",
    "make_cells",
    "make_learner",
    "make_problem",
    "measure_support",
    "predict",
    "score",
    "survival_value",
]
