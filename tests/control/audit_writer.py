"""A process that appends decisions to an audit log and says which are safe; one of them is killed by its test."""

from multiprocessing.connection import Connection

from preplay.control import AuditLog, Decision
from preplay.critics import DecisionState


def write(folder: str, session: str, count: int, said: Connection) -> None:
    """Append ``count`` decisions with their outcomes; report each once it is written."""
    log = AuditLog(folder, session=session)
    for number in range(count):
        name = f"{session}-{number}"
        decision = Decision(name, "chosen", "a", 0, (0.5,), 0.5, ())
        log.append_decisions([(DecisionState("t", "ö😀", number), ["a"])], [decision])
        log.append_outcome(name, float(number), True)
        said.send(name)
    said.close()
