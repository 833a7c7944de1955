"""Column names that flat logs use for the Turn's fields; everything else goes to extras."""

from functools import lru_cache
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


def split_fields(record: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The record's known fields under the Turn's names, and what is left over.

    Where several names of one field are there, the first one known to ``ALIASES`` is read and the others
    are left over: nothing is lost.
    """
    known, left = plan_fields(tuple(record))
    return {field: record[name] for field, name in known}, {name: record[name] for name in left}


@lru_cache(maxsize=1024)
def plan_fields(names: tuple[str, ...]) -> tuple[list[tuple[str, str]], list[str]]:
    """Pairs of field and name, and the names left over; worked out once per set of names."""
    known = []
    for field, aliases in ALIASES.items():
        name = next((alias for alias in aliases if alias in names), None)
        if name is not None:
            known.append((field, name))
    taken = {name for _, name in known}
    return known, [name for name in names if name not in taken]
