"""All tasks, and their split: critics are trained on some tasks and judged on others, never on the same."""

from preplay.environments.code_repair._task import Task
from preplay.environments.code_repair._tasks_lists import LISTS
from preplay.environments.code_repair._tasks_numbers import NUMBERS
from preplay.environments.code_repair._tasks_texts import TEXTS
from preplay.seeding import numpy_rng


def all_tasks() -> list[Task]:
    """Every task, sorted by name."""
    return sorted([*NUMBERS.tasks, *LISTS.tasks, *TEXTS.tasks], key=lambda task: task.name)


def split_tasks(seed: int, held_out: float = 0.5) -> tuple[list[Task], list[Task]]:
    """Tasks to learn from and tasks to be judged on, drawn by seed."""
    tasks = all_tasks()
    order = numpy_rng(seed, "tasks").permutation(len(tasks))
    cut = round(len(tasks) * (1 - held_out))
    return [tasks[i] for i in order[:cut]], [tasks[i] for i in order[cut:]]
