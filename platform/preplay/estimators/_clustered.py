"""Weights of clustered actions: two texts that say the same thing count as the same action.

Saito & Joachims 2022 (MIPS). Sound when the outcome depends on the action only through its cluster.

Shapes: R turns, K actions sampled from the target per turn, C clusters.
"""

import numpy as np

from preplay.errors import PreplayError


def clustered_log_ratio(
    cluster: np.ndarray,
    target_samples: np.ndarray,
    behaviour_log_prob: np.ndarray,
    n_clusters: int,
    *,
    prior: float = 0.5,
) -> np.ndarray:
    """log π_e(c|s) − log π_b(c|s) of the logged action's cluster c, float64 [R].

    Args:
        cluster: int [R], cluster of the logged action.
        target_samples: int [R, K], clusters of actions sampled from the target policy in the same state.
        behaviour_log_prob: float64 [R], log-probability of ``cluster`` under the logging policy.
        n_clusters: C.
        prior: Pseudo-samples added in all, spread evenly over the clusters: K samples do not prove a zero.
            With 0 a cluster that was never sampled has ratio 0.
    """
    cluster, samples = np.asarray(cluster), np.asarray(target_samples)
    if samples.ndim != 2 or len(samples) != len(cluster):
        raise PreplayError(f"target_samples must be [{len(cluster)}, K], not {samples.shape}.")
    if max(cluster.max(), samples.max()) >= n_clusters:
        raise PreplayError(f"a cluster number reaches past the {n_clusters} clusters.")
    hits = (samples == cluster[:, None]).sum(1)
    with np.errstate(divide="ignore"):
        target = np.log((hits + prior / n_clusters) / (samples.shape[1] + prior))
    return target - behaviour_log_prob
