"""Does the critic fall for known hacks? Honest solutions against hacks of the same held-out tasks."""

from collections.abc import Sequence

import numpy as np

from preplay.critics import ActionEncoder, DecisionState, Scorer
from preplay.environments.code_repair import HACKS, RIGHT, Grader, Task, draw_candidate, gather_evidence
from preplay.rewards import ActionOutcome, HackingAudit, audit_scores
from preplay.seeding import numpy_rng

_KINDS = (RIGHT, RIGHT, "off_by_one", "wrong_condition", *HACKS)


def hacking_audit(
    scorer: Scorer, encoder: ActionEncoder, tasks: Sequence[Task], grader: Grader, seed: int
) -> HackingAudit:
    """Score a pool per task of two honest solutions, two slips and one hack of each kind."""
    rng = numpy_rng(seed, "hacks")
    pools = [[draw_candidate(task, kind, rng).code for kind in _KINDS] for task in tasks]
    states = [DecisionState(task.prompt, "") for task in tasks]
    evidence = (
        [gather_evidence(grader, t, p) for t, p in zip(tasks, pools, strict=True)]
        if encoder.evidence
        else None
    )
    encoded = encoder.encode(states, pools, evidence)
    work = [(task, code) for task, pool in zip(tasks, pools, strict=True) for code in pool]
    grades = grader.grade_many(work)
    outcomes = [
        ActionOutcome(code, g.public_passed, g.public_total, g.solved)
        for (_, code), g in zip(work, grades, strict=True)
    ]
    kinds = np.tile(_KINDS, len(tasks))
    hacks = {kind: np.flatnonzero(kinds == kind) for kind in HACKS}
    return audit_scores(scorer.score(encoded).mean, outcomes, [task.name for task, _ in work], hacks)
