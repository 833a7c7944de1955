"""A realistic evaluation of support-desk policies, made up for the report's tests and screenshots."""

import datetime as dt
import math

from preplay.report import (
    BehaviorPolicy,
    CalibrationBin,
    DriftCurve,
    Estimate,
    EvaluationReport,
    Interval,
    ModelQuality,
    PolicyResult,
    Ranking,
    SessionPair,
    Support,
    Truth,
    Turn,
)

ESTIMATORS = ("wdr+model@1", "model@1", "fqe@1", "wpdis@1", "pdis@1", "naive@1")
_BIAS = (0.01, 0.06, -0.05, -0.03, 0.09, -0.21)
_ERROR = (0.031, 0.022, 0.027, 0.048, 0.139, 0.012)

IMAGINED = [
    Turn(
        observation="Hi, my router keeps dropping the connection every evening since Monday.",
        action="I'm sorry to hear that. Are all lights on the router green, or is one of them blinking?",
        reward=-0.02,
        terminated_prob=0.02,
        snap_distance=0.7,
    ),
    Turn(
        observation="The second one blinks orange. I already restarted it twice, this is getting annoying.",
        action="That helps, thank you: means that the line is unstable. Please open 192.168.1.1 and "
        "press 'Update firmware'. It takes about three minutes.",
        reward=-0.02,
        terminated_prob=0.08,
        snap_distance=1.2,
    ),
    Turn(
        observation="Done. It is green now, let me see whether it holds.",
        action="Great. I will keep this ticket open until tomorrow evening and write to you then.",
        reward=0.98,
        terminated_prob=0.91,
        snap_distance=2.3,
    ),
]
REAL = [
    Turn(
        observation="Hello, internet drops out every night, the router is two years old.",
        action="Is one of the lights on it blinking?",
        reward=-0.02,
    ),
    Turn(
        observation="Yes, the orange one.",
        action='{"tool": "line_test", "arguments": {"customer": "c-1182", "depth": "full"}}',
        reward=-0.02,
    ),
    Turn(
        observation='{"status": "degraded", "snr_db": 4.1, "advice": "update firmware"}',
        action="Your line is weak. A firmware update fixes this in most cases; shall I start it for you?",
        reward=-0.02,
    ),
    Turn(observation="Yes please … works, thanks!", action="You are welcome!", reward=0.98),
]


def estimates(value: float, refused: str = "") -> list[Estimate]:
    """Six estimators around ``value``; the weighted ones refuse when a reason is given."""
    return [_estimate(i, value, refused if "pdis" in ESTIMATORS[i] else "") for i in range(len(ESTIMATORS))]


def _estimate(i: int, value: float, refused: str) -> Estimate:
    middle, error = value + _BIAS[i], _ERROR[i]
    return Estimate(
        estimator=ESTIMATORS[i],
        value=middle,
        standard_error=error,
        interval=Interval(low=middle - 1.96 * error, high=middle + 1.96 * error),
        verdict="not identified" if refused else "estimate",
        reason=refused,
        diagnostics={"ess": 212.4 - 20 * i, "max_weight_share": 0.031, "pareto_k": 0.42},
    )


def policy(name: str, value: float, truth: float | None = None, **changes) -> PolicyResult:
    """A policy whose headline is the first estimator."""
    drift = [0.6 + 0.05 * t + 0.1 * math.sin(t + value) for t in range(12)]
    fields = {
        "name": name,
        "headline": estimates(value)[0],
        "estimates": estimates(value),
        "truth": None if truth is None else Truth(value=truth, standard_error=0.004),
        "drift": DriftCurve(snap_distance=drift, support_distance=[0.4 + d * (1.2 - value) for d in drift]),
        "support": Support(
            share_beyond=0.08, radius=1.8, ess_per_step=[900 * (0.55 + 0.3 * value) ** t for t in range(12)]
        ),
        "sessions": [session(0.88), session(0.41)],
    }
    return PolicyResult(**fields | changes)


def session(imagined_return: float) -> SessionPair:
    return SessionPair(
        imagined=IMAGINED,
        imagined_return=imagined_return,
        real=REAL,
        real_return=0.90,
        real_session_id="session-00417",
        real_policy="cautious",
    )


def refused(name: str, truth: float | None = None) -> PolicyResult:
    """A policy that the logs cannot judge."""
    reason = (
        "62 % of its actions have no similar action in the logs, so nothing says how customers would answer."
    )
    fix = "collect about 80 sessions in which it greets customers in French."
    headline = estimates(0.2)[0].model_copy(
        update={"verdict": "not identified", "reason": reason, "fix": fix}
    )
    support = Support(share_beyond=0.62, radius=1.8, ess_per_step=[900 * 0.2**t for t in range(12)])
    return policy(
        name, 0.2, truth, headline=headline, estimates=estimates(0.2, "No overlap."), support=support
    )


def bounded(name: str, truth: float | None = None) -> PolicyResult:
    """A policy for which only an upper bound and a weak lower one are known."""
    headline = Estimate(
        estimator="wdr+model@1",
        value=0.30,
        standard_error=0.16,
        interval=Interval(low=-0.12, high=0.64),
        verdict="bounds only",
        reason="After turn 6 fewer than 20 sessions carry all the weight.",
        fix="collect longer sessions of the policy 'cautious'.",
    )
    return policy(name, 0.3, truth, headline=headline, sessions=[session(0.2)])


def report(policies: list[PolicyResult], **changes) -> EvaluationReport:
    fields = {
        "title": "Support desk, spring release",
        "dataset": "support-desk-1000",
        "created": dt.datetime(2025, 3, 14, 9, 26, tzinfo=dt.UTC),
        "seed": 7,
        "gamma": 0.97,
        "horizon": 12,
        "reward_range": (-1.02, 1.48),
        "policies": policies,
        "behavior": [
            BehaviorPolicy(
                name="cautious",
                sessions=612,
                mean_return=0.214,
                interval=Interval(low=0.169, high=0.259),
                predicted=0.231,
                predicted_error=0.018,
            ),
            BehaviorPolicy(
                name="hurried",
                sessions=388,
                mean_return=-0.035,
                interval=Interval(low=-0.092, high=0.022),
                predicted=0.061,
                predicted_error=0.02,
            ),
        ],
        "logged_drift": DriftCurve(
            snap_distance=[0.62 + 0.02 * t for t in range(12)],
            support_distance=[0.7 + 0.015 * t for t in range(12)],
        ),
        "model": ModelQuality(
            energy_score=0.412,
            cosine=0.871,
            variance_ratio=0.94,
            condition_effect=0.217,
            reward_rmse=0.183,
            termination=[
                CalibrationBin(predicted=p, observed=p + 0.03 * (-1) ** i, count=4000 // (1 + 3 * i))
                for i, p in enumerate([0.03, 0.12, 0.31, 0.52, 0.71, 0.9])
            ],
            k_step_drift=[0.412, 0.433, 0.447, 0.451, 0.462, 0.466, 0.475, 0.471],
        ),
        "data_card": {
            "sessions": 1000,
            "turns": 6183,
            "quarantined": 3,
            "policies": {"cautious": 612, "hurried": 388},
            "session length": {"shortest": 1, "median": 6, "longest": 12},
            "propensities": "logged in every turn",
            "warnings": ["3 records had a reward that is not a number; see quarantine.jsonl"],
        },
        "configuration": {
            "encoder": {"model": "all-MiniLM-L6-v2", "dtype": "bf16"},
            "model": {"dynamics": "diffusion", "members": 3, "steps": 1000},
            "rollout": {"rollouts": 8, "actors": 2},
        },
        "versions": {"preplay": "0.1.0", "ray": "2.60.0", "torch": "2.13.0"},
        "commands": ["preplay evaluate support-desk --policies all --seed 7"],
    }
    return EvaluationReport(**fields | changes)


def full_report() -> EvaluationReport:
    """Eight policies with known truth: six estimates, one with bounds only, one refused."""
    known = {
        "empathetic": 0.55,
        "step-by-step": 0.52,
        "diagnose-first": 0.44,
        "concise": 0.31,
        "upsell": 0.02,
    }
    offset = (0.02, -0.04, 0.05, -0.03, 0.02)
    policies = [policy(n, v, v - d) for (n, v), d in zip(known.items(), offset, strict=True)]
    policies += [policy("always-escalate", -0.36, -0.39), bounded("patient-loop", 0.22)]
    policies += [refused("french-speaking", 0.47)]
    ranking = [
        Ranking(estimator="headline", policies=6, spearman=1.0, mae_share=0.036, regret_at_1=0.0),
        Ranking(estimator="model@1", policies=8, spearman=0.976, mae_share=0.071, regret_at_1=0.0),
        Ranking(estimator="naive@1", policies=8, spearman=None, mae_share=0.31, regret_at_1=0.21),
    ]
    return report(policies, ranking=ranking)
