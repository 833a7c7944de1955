"""Talk to a preplay server from Python: decisions for a live agent, evaluations of policies (``preplay[serve]``)."""

from preplay.client._client import Client
from preplay.client._errors import ServerError
from preplay.client._records import ArtifactInfo, Decision, Evaluation, PartialEstimate, Progress

__all__ = [
    "ArtifactInfo",
    "Client",
    "Decision",
    "Evaluation",
    "PartialEstimate",
    "Progress",
    "ServerError",
]
