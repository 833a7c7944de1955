"""The imagined turn: one row of what rollouts leave behind."""

import pyarrow as pa

_TEXT = pa.dictionary(pa.int32(), pa.string())
IMAGINED_SCHEMA = pa.schema(
    [
        pa.field("member", pa.int32(), nullable=False),
        pa.field("initial", pa.int32(), nullable=False),
        pa.field("rollout", pa.int32(), nullable=False),
        pa.field("step", pa.int32(), nullable=False),
        pa.field("turn", pa.int32(), nullable=False),
        pa.field("observation", _TEXT, nullable=False),
        pa.field("action", _TEXT, nullable=False),
        pa.field("reward", pa.float64(), nullable=False),
        pa.field("terminated_prob", pa.float64(), nullable=False),
        pa.field("survival", pa.float64(), nullable=False),
        pa.field("snap_distance", pa.float32(), nullable=False),
        pa.field("support_distance", pa.float32(), nullable=False),
    ],
    metadata={"preplay.schema": "imagined_turn", "preplay.schema_version": "1"},
)
"""Arrow schema of an imagined turn.

================ =============================================================================================
field            meaning
================ =============================================================================================
member           ensemble member that imagined it
initial, rollout the session: which initial state, which of its N rollouts
step, turn       0, 1, ... in the rollout; position in the session (differs when it started mid-session)
observation      what the policy saw; ``action`` what it did
reward           expected reward of the turn
terminated_prob  probability that the session ends by itself with this turn
survival         probability that the session is still running before this turn
snap_distance    of the *next* observation, ``support_distance`` of (state, action): see ``Transition``
================ =============================================================================================
"""
