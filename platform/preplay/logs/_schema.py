"""The Turn: one decision of the agent, one Parquet row. Every reader maps its format onto this schema."""

import pyarrow as pa

SCHEMA_VERSION = "1"

TURN_SCHEMA = pa.schema(
    [
        pa.field("session_id", pa.string(), nullable=False),
        pa.field("turn", pa.int32(), nullable=False),
        pa.field("policy", pa.string(), nullable=False),
        pa.field("task", pa.string()),
        pa.field("observation", pa.string(), nullable=False),
        pa.field("action", pa.string(), nullable=False),
        pa.field("proposed_action", pa.string()),
        pa.field("reward", pa.float64(), nullable=False),
        pa.field("next_observation", pa.string(), nullable=False),
        pa.field("terminated", pa.bool_(), nullable=False),
        pa.field("truncated", pa.bool_(), nullable=False),
        pa.field("behavior_logprob", pa.float64()),
        pa.field("tokens", pa.int64()),
        pa.field("cost", pa.float64()),
        pa.field("latency_s", pa.float64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("extras", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("record_hash", pa.string(), nullable=False),
    ],
    metadata={"preplay.schema": "turn", "preplay.schema_version": SCHEMA_VERSION},
)
"""Arrow schema of a Turn.

============== =========== ========================================================================
field          type        meaning
============== =========== ========================================================================
session_id     str         one conversation or episode
turn           int32       position in the session, from 0 without gaps
policy         str         who acted
task           str?        instruction or system prompt, constant within the session
observation    str         what the agent newly saw before it acted
action         str         what was executed; several tool calls stay one ordered JSON block
proposed_action str?       what the agent proposed before the harness changed it
reward         float64     reward of this turn
next_observation str       what the agent saw after it acted (never lost, not even on the last turn)
terminated     bool        the session ended by itself here: no value follows
truncated      bool        the session was cut here (horizon, time-out): value would have followed
behavior_logprob float64?  log-probability of ``action`` under the logging policy, at most 0
tokens, cost, latency_s    int64?, float64? (account currency), float64? (seconds)
timestamp      timestamp?  when the agent acted, UTC
extras         str         JSON object: everything else the record held
source         str         ``file:line`` (or ``file#key``) of the record
record_hash    str         SHA-256 of the raw record
============== =========== ========================================================================
"""
