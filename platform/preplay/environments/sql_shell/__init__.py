"""InterCode's SQL questions executed on sqlite3, with pools of what the seven logged models did."""

from preplay.environments.sql_shell._grounding import GROUNDING, grounding
from preplay.environments.sql_shell._knowledge import Known, SeenStep, known_without, schema_knowledge
from preplay.environments.sql_shell._names import QueryNames, query_names
from preplay.environments.sql_shell._pools import LoggedModels, Moment, QuestionPool, SqlPools
from preplay.environments.sql_shell._relay import Relay, RelayStep, log_relays
from preplay.environments.sql_shell._shell import QueryResult, Question, SqlShell, same_rows

__all__ = [
    "GROUNDING",
    "Known",
    "LoggedModels",
    "Moment",
    "QueryNames",
    "QueryResult",
    "Question",
    "QuestionPool",
    "Relay",
    "RelayStep",
    "SeenStep",
    "SqlPools",
    "SqlShell",
    "grounding",
    "known_without",
    "log_relays",
    "query_names",
    "same_rows",
    "schema_knowledge",
]
