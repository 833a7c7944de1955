"""First-order effect of each session on an estimate: for standard errors, t and empirical-likelihood intervals."""

import numpy as np

from preplay.estimators._logspace import exp_below
from preplay.estimators._terms import Terms


def influence_of_terms(terms: Terms) -> np.ndarray:
    """ψ_i in session order, float64 [S], mean 0; NaN where the estimate is undefined.

    For ``Σ_t N_t / D_t`` the delta method gives ``ψ_i = n Σ_t (γ^t w_it x_it − w_it N_t / D_t) / D_t``,
    where a session that has ended still takes part with its last weight.
    """
    n = len(terms.base)
    base = terms.base - terms.base.mean()
    if terms.normaliser == "count":
        values = terms.session_values()
        return values - values.mean()
    stats, layout = terms.stats, terms.layout
    ratios = stats.numerator.over(stats.log_weights)
    share = exp_below(terms.log_weight, np.repeat(stats.log_weights, layout.alive))
    centred = np.repeat(terms.factors, layout.alive) * terms.x - np.repeat(ratios, layout.alive)
    alive = layout.session_sums(share * centred, np.ones(layout.n_steps))
    ended = np.empty(n)
    ended[layout.order] = _after_end(terms, ratios)
    return base + n * (alive - ended)


def _after_end(terms: Terms, ratios: np.ndarray) -> np.ndarray:
    """Σ_{t ≥ length} w_last/D_t · N_t/D_t per session, in layout order."""
    layout, log_weights = terms.layout, terms.stats.log_weights
    result = np.zeros(len(layout.order))
    shortest = layout.lengths[-1]
    for t in range(shortest, layout.n_steps):
        ended = slice(layout.alive[t], None)
        result[ended] += exp_below(terms.last_log_weight[ended], log_weights[t]) * ratios[t]
    return result
