"""A realistic evaluation of support-desk policies, made up for the report's tests and screenshots."""

import datetime as dt
import math

from preplay.actions import AdapterShares
from preplay.backtest import BacktestReport, Bounds, Collect, EstimatorScore, PolicyBacktest, Skill
from preplay.backtest import Support as BacktestSupport
from preplay.estimators import Estimate, Interval
from preplay.report import (
    BehaviorPolicy,
    CalibrationBin,
    ClippedValue,
    Difference,
    DriftCurve,
    EvaluationReport,
    ModelQuality,
    PolicyResult,
    Propensities,
    Ranking,
    ReturnCurve,
    SessionPair,
    Support,
    Truth,
    Turn,
    Weights,
)

ESTIMATORS = ("wdr+model/1", "model/1", "fqe/1", "wpdis/1", "pdis/1", "naive/1")
_BIAS = (0.01, 0.06, -0.05, -0.03, 0.09, -0.21)
_ERROR = (0.031, 0.022, 0.027, 0.048, 0.139, 0.012)

IMAGINED = [
    Turn(
        observation="Hi, my router keeps dropping the connection every evening since Monday.",
        action="I'm sorry to hear that. Are all lights on the router green, or is one of them blinking?",
        reward=-0.02,
        terminated_prob=0.02,
        snap_distance=0.7,
        support_distance=0.6,
    ),
    Turn(
        observation="The second one blinks orange. I already restarted it twice, this is getting annoying.",
        action="That helps, thank you: it means that the line is unstable. Please open 192.168.1.1 and "
        "press 'Update firmware'. It takes about three minutes.",
        reward=-0.02,
        terminated_prob=0.08,
        snap_distance=1.2,
        support_distance=0.9,
    ),
    Turn(
        observation="Done. It is green now, let me see whether it holds.",
        action="Great. I will keep this ticket open until tomorrow evening and write to you then.",
        reward=0.98,
        terminated_prob=0.91,
        snap_distance=2.3,
        support_distance=2.1,
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


def interval(low: float, high: float) -> Interval:
    return Interval(low=low, high=high, level=0.95, method="bootstrap")


GOOD = {"verdict": "estimate", "reason": "212 effective sessions carry the estimate."}
WEAK = {
    "verdict": "bounds only",
    "reason": "Only 12.3 of 1000 sessions carry the weight.",
    "fix": "Collect sessions of the target policy, or of one closer to it.",
}
REFUSED = {
    "verdict": "not identified",
    "reason": "62 % of its actions have no similar action in the logs, so nothing says what they lead to.",
    "fix": "Collect about 80 sessions in which it greets customers in French.",
}


def estimate(name: str, estimator: str, value: float, error: float, verdict: dict = GOOD) -> Estimate:
    """An estimate with a normal interval."""
    return Estimate(
        policy=name,
        estimator=estimator,
        value=value,
        standard_error=error,
        interval=interval(value - 1.96 * error, value + 1.96 * error),
        n_sessions=1000,
        n_turns=6183,
        diagnostics={"ess_min": 212.4, "max_weight_share": 0.031, "log_max_weight": 2.17},
        **verdict,
    )


def estimates(name: str, value: float, weighted: dict = GOOD) -> list[Estimate]:
    """Six estimators around ``value``; ``weighted`` is the verdict of those that rest on importance weights."""
    rows = zip(ESTIMATORS, _BIAS, _ERROR, strict=True)
    return [estimate(name, e, value + b, s, weighted if "pdis" in e else GOOD) for e, b, s in rows]


def policy(name: str, value: float, truth: float | None = None, **changes) -> PolicyResult:
    """A policy whose headline is the first estimator."""
    drift = [0.6 + 0.05 * t + 0.1 * math.sin(t + value) for t in range(12)]
    fields = {
        "name": name,
        "headline": estimates(name, value)[0],
        "estimates": estimates(name, value),
        "truth": None if truth is None else Truth(value=truth, standard_error=0.004),
        "drift": DriftCurve(snap_distance=drift, support_distance=[0.4 + d * (1.2 - value) for d in drift]),
        "support": Support(
            share_beyond=0.08,
            radius=1.8,
            ess_per_step=[1 + 900 * (0.7 + 0.3 * value) ** t for t in range(12)],
        ),
        "weights": weights(value),
        "returns": returns(value),
        "value_fit": 0.8 + 0.1 * value,
        "sessions": [session(0.88), session(0.41)],
    }
    return PolicyResult(**fields | changes)


def weights(value: float) -> Weights:
    """870 sessions with weights from 0.01 to 10^1.58 = 38, 130 with none; clipping moves the value a little."""
    clips = (1.0, 10.0, 100.0, math.inf)
    return Weights(
        log10_edges=[-2.0, -1.0, 0.0, 1.0, 1.58],
        counts=[110, 420, 300, 40],
        zero_weights=130,
        clips=[
            ClippedValue(clip=c, value=value + 0.01 - 0.04 / c, clipped_share=0.2 / c if c < 100 else 0.0)
            for c in clips
        ],
        clip_estimator="model.wdr/1",
    )


def returns(value: float) -> ReturnCurve:
    """A normal distribution of returns around ``value``."""
    x = [round(-1.0 + 0.05 * i, 2) for i in range(51)]
    cdf = [0.5 * (1 + math.erf((v - value) / 0.5)) for v in x]
    return ReturnCurve(
        x=x, cdf=cdf, low=[max(0.0, y - 0.06) for y in cdf], high=[min(1.0, y + 0.06) for y in cdf]
    )


def difference(better: str, other: str, by: float, reach: float, p: float) -> Difference:
    """A difference whose interval for all pairs at once reaches ``reach`` to both sides."""
    return Difference(
        better=better,
        other=other,
        difference=by,
        standard_error=reach / 3,
        interval=interval(by - 0.65 * reach, by + 0.65 * reach),
        simultaneous=interval(by - reach, by + reach),
        p_value=p / 3,
        adjusted_p_value=p,
    )


PROPENSITIES = Propensities(
    clusters=8,
    ece=0.031,
    brier=0.42,
    base_brier=0.84,
    reliability=[
        CalibrationBin(predicted=0.05, observed=0.04, count=3100),
        CalibrationBin(predicted=0.35, observed=0.39, count=400),
        CalibrationBin(predicted=0.65, observed=0.62, count=260),
        CalibrationBin(predicted=0.92, observed=0.95, count=180),
    ],
)


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
    return policy(
        name,
        0.2,
        truth,
        headline=estimate(name, ESTIMATORS[0], 0.2135, 0.03, REFUSED),
        estimates=estimates(name, 0.2, REFUSED),
        support=Support(share_beyond=0.62, radius=1.8, ess_per_step=[1 + 900 * 0.2**t for t in range(12)]),
    )


def bounded(name: str, truth: float | None = None) -> PolicyResult:
    """A policy whose weights rest on few sessions."""
    headline = estimate(name, ESTIMATORS[0], 0.26, 0.19, WEAK)
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
                interval=interval(0.169, 0.259),
                predicted=0.231,
                predicted_error=0.018,
            ),
            BehaviorPolicy(
                name="hurried",
                sessions=388,
                mean_return=-0.035,
                interval=interval(-0.092, 0.022),
                predicted=0.131,
                predicted_error=0.02,
            ),
        ],
        "logged_returns": ReturnCurve(x=returns(0).x, cdf=returns(0.12).cdf),
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


def left_out(name: str, logged: float, verdict: str = "estimate") -> PolicyBacktest:
    """A logged policy, predicted from the others."""
    return PolicyBacktest(
        policy=name,
        logged=logged,
        predicted=logged + 0.04,
        bounds=Bounds(low=logged - 0.06, high=logged + 0.14, error=0.05),
        candidate="results/boosting",
        fold_logged=[logged, None],
        fold_predicted=[logged + 0.03, None],
        fold_bounds=[
            Bounds(low=logged - 0.1, high=logged + 0.2, error=0.08),
            Bounds(low=0, high=1, error=math.inf),
        ],
        support=BacktestSupport(
            unsupported=0.4, first_actions=0.7, outcomes=0.1, missing=[Skill(what=name, share=0.2, support=1)]
        ),
        verdict=verdict,
        reason=f"40% of what it does is done by no logged policy (limit 35%). {name}",
    )


def backtested(names: list[str]) -> BacktestReport:
    """A backtest over logged policies of these names."""
    chosen = EstimatorScore(
        estimator="chosen (nested)", pooled=4.0, worst=9.0, fold=5.0, spearman=0.5, spearman_low=-1,
        spearman_high=1, regret=0.0,
    )  # fmt: skip
    verdicts = ("estimate", "not identified")
    return BacktestReport(
        policies=[left_out(name, 0.2 + 0.1 * i, verdicts[i % 2]) for i, name in enumerate(names)],
        scores=[chosen], chosen=chosen, coverage=0.92, width=18.0, pooled_coverage=1.0, pooled_width=15.0,
        refused=len(names) // 2, limits={"unsupported": 0.35}, level=0.95, gamma=0.97,
        collect=[Collect(what=names[0], share=0.2, policy=names[0], support=1)],
        families=AdapterShares(shares={"sql": 1.0}, looked_at=10), notes=[names[0]], tried=8,
    )  # fmt: skip


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&{{ 7 * 191 }}<!--"


def hostile_report() -> EvaluationReport:
    """Markup, scripts and words without an end wherever a text from a log can stand."""
    turn = Turn(observation=HOSTILE, action=HOSTILE * 20 + "x" * 900, reward=1.0, snap_distance=9.0)
    pair = SessionPair(imagined=[turn], real=[turn], real_session_id=HOSTILE + "x" * 90, real_policy=HOSTILE)
    return report(
        [policy(HOSTILE, 0.4, sessions=[pair], structured=left_out(HOSTILE, 0.4)), refused("x" * 90, 0.3)],
        backtests=[backtested([HOSTILE, "x" * 90])],
        title=HOSTILE + "x" * 90,
        dataset=HOSTILE + "x" * 90,
        differences=[difference(HOSTILE, "x" * 90, 0.1, 0.2, 0.5)],
        behavior=[BehaviorPolicy(name=HOSTILE + "x" * 90, sessions=3, mean_return=0.1)],
        data_card={HOSTILE: [HOSTILE, {HOSTILE: HOSTILE + "x" * 90}]},
        configuration={HOSTILE: HOSTILE},
        versions={HOSTILE: HOSTILE},
        commands=[HOSTILE + "x" * 90],
    )


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
        Ranking(estimator="headline", policies=6, spearman=0.943, mae_share=0.036, regret_at_1=0.032),
        *(
            Ranking(estimator=e, policies=8, spearman=1 - abs(b), mae_share=abs(b), regret_at_1=0.032)
            for e, b in zip(ESTIMATORS, _BIAS, strict=True)
        ),
    ]
    judged = [*known, "always-escalate"]
    values = [*known.values(), -0.36]
    pairs = [(i, j) for i in range(len(judged)) for j in range(i + 1, len(judged))]
    differences = [
        difference(judged[i], judged[j], values[i] - values[j], 0.06, 0.4 if j - i == 1 and j < 2 else 0.0004)
        for i, j in pairs
    ]
    return report(policies, ranking=ranking, differences=differences, propensities=PROPENSITIES)
