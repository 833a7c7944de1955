"""Column names that flat logs use for the Turn's fields; everything else goes to extras."""

from typing import Any

ALIASES = {
    "session_id": ("session_id", "episode_id", "conversation_id", "trajectory_id", "eps_id"),
    "turn": ("turn", "turn_id", "step", "step_id", "timestep", "t"),
    "policy": ("policy", "policy_id", "agent", "model"),
    "task": ("task", "instruction", "system_prompt"),
    "state": ("state",),
    "next_state": ("next_state",),
    "observation": ("observation", "obs"),
    "next_observation": ("next_observation", "next_obs", "new_obs"),
    "action": ("action", "actions"),
    "proposed_action": ("proposed_action",),
    "reward": ("reward", "rewards"),
    "terminated": ("terminated", "terminal", "terminateds", "done"),
    "truncated": ("truncated", "truncateds"),
    "behavior_logprob": ("behavior_logprob", "action_logprob", "action_logp", "logprob", "log_prob"),
    "action_prob": ("action_prob", "behavior_prob", "propensity"),
    "tokens": ("tokens",),
    "cost": ("cost",),
    "latency_s": ("latency_s",),
    "timestamp": ("timestamp",),
    "extras": ("extras",),
}


def split_fields(
    record: dict[str, Any], aliases: dict[str, tuple[str, ...]] = ALIASES
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The record's known fields under the Turn's names, and what is left over.

    Where several names of one field are there, the first one known to ``aliases`` is read and the others
    are left over: nothing is lost.
    """
    values, left = {}, dict(record)
    for field, names in aliases.items():
        for name in names:
            if name in left:
                values[field] = left.pop(name)
                break
    return values, left
