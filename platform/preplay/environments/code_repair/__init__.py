"""Small Python tasks with a real grader: agents of several qualities propose repairs, a sandbox runs them."""

from preplay.environments.code_repair._candidates import (
    FAULT_KINDS,
    HACKS,
    KINDS,
    RIGHT,
    SUBTLE,
    Candidate,
    draw_candidate,
)
from preplay.environments.code_repair._evidence import EVIDENCE, gather_evidence, visible_inputs
from preplay.environments.code_repair._generator import GENERATORS, Generator, generator
from preplay.environments.code_repair._grader import Grade, Grader
from preplay.environments.code_repair._logs import (
    Behaviour,
    count_tokens,
    first_candidate,
    log_sessions,
    noisy_expert,
    random_candidate,
)
from preplay.environments.code_repair._sandbox import (
    Isolation,
    Job,
    JobResult,
    Sandbox,
    SandboxConfig,
    run_jobs,
)
from preplay.environments.code_repair._session import (
    Judge,
    Judgement,
    Session,
    SessionConfig,
    StepResult,
    judge_solved,
)
from preplay.environments.code_repair._subtle import subtle_faults
from preplay.environments.code_repair._task import Task
from preplay.environments.code_repair._tasks import all_tasks, split_tasks
from preplay.environments.code_repair._trajectories import write_trajectories

__all__ = [
    "EVIDENCE",
    "FAULT_KINDS",
    "GENERATORS",
    "HACKS",
    "KINDS",
    "RIGHT",
    "SUBTLE",
    "Behaviour",
    "Candidate",
    "Generator",
    "Grade",
    "Grader",
    "Isolation",
    "Job",
    "JobResult",
    "Judge",
    "Judgement",
    "Sandbox",
    "SandboxConfig",
    "Session",
    "SessionConfig",
    "StepResult",
    "Task",
    "all_tasks",
    "count_tokens",
    "draw_candidate",
    "first_candidate",
    "gather_evidence",
    "generator",
    "judge_solved",
    "log_sessions",
    "noisy_expert",
    "random_candidate",
    "run_jobs",
    "split_tasks",
    "subtle_faults",
    "visible_inputs",
    "write_trajectories",
]
