"""Small decision problems with known answers, as decisions with one-hot features."""

import numpy as np

from preplay.critics import ChunkBank, Decisions, EncodedPools


def tabular(rows, states: int, actions: int) -> Decisions:
    """Decisions of single-decision sessions: rows of (state, action, reward, following row or -1, terminated).

    Every pool holds all actions, in order.
    """
    n = len(rows)
    state = np.eye(states, dtype=np.float32)[[r[0] for r in rows]]
    features = np.concatenate([np.kron(s[None], np.eye(actions, dtype=np.float32)) for s in state])
    return Decisions(
        pools=EncodedPools(
            state=state,
            features=features,
            offsets=np.arange(n + 1) * actions,
            text=np.arange(n * actions),
            chunks=ChunkBank(np.zeros((n * actions, 1, 0), np.float32), np.ones((n * actions, 1), bool)),
            state_embedding=np.zeros((n, 0), np.float32),
        ),
        chosen=np.arange(n) * actions + [r[1] for r in rows],
        reward=np.array([[float(r[2])] for r in rows]),
        success=np.array([r[2] > 0 for r in rows]),
        following=np.array([r[3] for r in rows]),
        terminated=np.array([r[4] for r in rows]),
        truncated=np.zeros(n, bool),
        session=np.arange(n),
        group=np.array([f"task {i % 7}" for i in range(n)], object),
    )
