"""Small problems whose answers are known by hand; shared by tests and benchmarks of the estimators."""

import numpy as np

from preplay.estimators import SessionBatch

TWO = {
    "gamma": 0.99,
    "offsets": np.array([0, 4, 7]),
    "reward": np.array([1.0, -1, 1, 1, -1, -1, -1]),
    "pi_b": np.array([0.9, 0.7, 0.66, 0.7, 0.54, 0.9, 0.5]),
    "pi_e": np.array([1, 0.07, 0.89, 1, 0.75, 0.9, 0.2]),
    "v": np.array([0.8, -1, 0.5, 0.4, -2, -1, -0.5]),
    "q": np.array([0.7, -3, 0.5, 0.6, -3, -2, -0.8]),
}
"""Two sessions of 4 and 3 turns; the data of offline_rl_ope's tests."""


def two_sessions() -> SessionBatch:
    log_ratio = np.log(TWO["pi_e"] / TWO["pi_b"])
    return SessionBatch(
        TWO["offsets"], TWO["reward"], TWO["gamma"], log_ratio=log_ratio, q=TWO["q"], v=TWO["v"]
    )


def stop_go(n: int, rng: np.random.Generator, p_log: float = 0.5, p_target: float = 0.9) -> SessionBatch:
    """Step 0: stop (ends, r = 0) or go; after go one forced step with r = 1. V_e = p_target, V_b = p_log."""
    go = rng.random(n) < p_log
    lengths = np.where(go, 2, 1)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    reward, log_ratio = np.zeros(offsets[-1]), np.zeros(offsets[-1])
    reward[offsets[1:][go] - 1] = 1.0
    log_ratio[offsets[:-1]] = np.where(go, np.log(p_target / p_log), np.log((1 - p_target) / (1 - p_log)))
    q = np.zeros(offsets[-1])
    return SessionBatch(offsets, reward, 1.0, log_ratio=log_ratio, q=q, v=q)


def model_fail(n: int, rng: np.random.Generator) -> SessionBatch:
    """Thomas & Brunskill 2016: a1 → +1, a2 → −1 after one aliased step. V_e = −0.76, V_b = +0.76."""
    a1 = rng.random(n) < 0.88
    reward, log_ratio = np.zeros((n, 2)), np.zeros((n, 2))
    reward[:, 1] = np.where(a1, 1, -1)
    log_ratio[:, 0] = np.where(a1, np.log(0.12 / 0.88), np.log(0.88 / 0.12))
    # a tabular model of the aliased states sees the logged mean return everywhere
    q = np.full(2 * n, reward[:, 1].mean())
    return SessionBatch(
        np.arange(0, 2 * n + 1, 2), reward.ravel(), 1.0, log_ratio=log_ratio.ravel(), q=q, v=q
    )


def model_win(n: int, rng: np.random.Generator, horizon: int = 20, target: float = 0.27) -> SessionBatch:
    """Thomas & Brunskill 2016: s1 –a1→ s2 w.p. .4 else s3, a2 the reverse; +1 into s2, −1 into s3, then back.

    π_b(a1) = .73. Q̂ and V̂ come from a model fitted on the log. For the paper's target .27 and horizon 20:
    V_e = +0.92 and V_b = −0.92.
    """
    visits = horizon // 2
    a1 = rng.random((n, visits)) < 0.73
    win = rng.random((n, visits)) < np.where(a1, 0.4, 0.6)
    reward = np.zeros((n, horizon))
    reward[:, 0::2] = np.where(win, 1.0, -1.0)
    log_ratio = np.zeros((n, horizon))
    log_ratio[:, 0::2] = np.where(a1, np.log(target / 0.73), np.log((1 - target) / 0.27))
    mean = {a: reward[:, 0::2][a1 == a].mean() for a in (True, False)}
    per_visit = target * mean[True] + (1 - target) * mean[False]
    left = visits - np.arange(visits)
    v, q = np.zeros((n, horizon)), np.zeros((n, horizon))
    v[:, 0::2] = left * per_visit
    q[:, 0::2] = np.where(a1, mean[True], mean[False]) + (left - 1) * per_visit
    v[:, 1::2] = q[:, 1::2] = (left - 1) * per_visit
    return SessionBatch(
        np.arange(0, n * horizon + 1, horizon),
        reward.ravel(),
        1.0,
        log_ratio=log_ratio.ravel(),
        q=q.ravel(),
        v=v.ravel(),
    )


def graph(
    n: int,
    rng: np.random.Generator,
    *,
    steps: int = 4,
    slip: bool = False,
    sparse: bool = False,
    p_log: float = 0.6,
    p_target: float = 0.8,
    gamma: float = 0.98,
) -> SessionBatch:
    """COBS's Graph: each step goes up (+1) with a0, down (−1) with a1; slip .25 swaps; sparse pays at the end."""
    a0 = rng.random((n, steps)) < p_log
    up = a0 ^ (slip & (rng.random((n, steps)) < 0.25))
    reward = np.where(up, 1.0, -1.0)
    if sparse:
        reward[:, :-1] = 0
    log_ratio = np.where(a0, np.log(p_target / p_log), np.log((1 - p_target) / (1 - p_log)))
    offsets = np.arange(0, n * steps + 1, steps)
    return SessionBatch(offsets, reward.ravel(), gamma, log_ratio=log_ratio.ravel())


def graph_value(*, steps: int, slip: bool, sparse: bool, p: float = 0.8, gamma: float = 0.98) -> float:
    """f·Σ γ^t (dense) or f·γ^(T−1) (sparse) with f = (2p − 1)·(.5 if slip else 1)."""
    f = (2 * p - 1) * (0.5 if slip else 1)
    return f * (gamma ** (steps - 1) if sparse else sum(gamma**t for t in range(steps)))


def random_batch(rng: np.random.Generator, n: int, longest: int, spread: float = 0.5) -> SessionBatch:
    """Sessions of 1 … ``longest`` turns with arbitrary arrays, some of them cut."""
    lengths = rng.integers(1, longest + 1, n)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = offsets[-1]
    return SessionBatch(
        offsets,
        rng.normal(size=rows),
        0.95,
        log_ratio=rng.normal(size=rows) * spread,
        q=rng.normal(size=rows),
        v=rng.normal(size=rows),
        bootstrap=rng.normal(size=n),
        truncated=rng.random(n) < 0.3,
    )
