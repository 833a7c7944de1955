"""What is known about one action of a coding agent once it was graded."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ActionOutcome:
    """One graded piece of code; every reward term is a function of this and nothing else.

    Args:
        code: The Python source that the agent wants to be executed.
        public_passed: Public tests that it passed.
        public_total: Public tests there are.
        solved: All tests passed, the hidden ones too.
        reference_lines: Lines that are not blank of a good solution; None where nobody knows.
    """

    code: str
    public_passed: int = 0
    public_total: int = 0
    solved: bool = False
    reference_lines: int | None = None

    def __post_init__(self):
        if not 0 <= self.public_passed <= self.public_total:
            raise ValueError(f"{self.public_passed} of {self.public_total} public tests passed")


def code_lines(code: str) -> int:
    """Lines that are not blank."""
    return sum(bool(line.strip()) for line in code.splitlines())
