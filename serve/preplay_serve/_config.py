"""How the server is set up: where things are, and what a request may ask for."""

import os
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from preplay.embedding import EncoderConfig
from preplay.errors import PreplayError
from preplay.policies import ChatConfig


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Limits(_Settings):
    """What one request, and one token, may take.

    Args:
        body_bytes: Largest request body; all headers together may have ``header_bytes``.
        depth: Deepest nesting of a JSON body.
        candidates: Candidates of one decision.
        text_characters: Longest task, observation or candidate.
        body_timeout_s: For the whole body to arrive.
        score_timeout_s: For a decision, waiting included.
        concurrent_scores: Decisions that a replica works on or keeps waiting; the next is sent away with 503.
        requests_per_second: Per token and replica; a burst may be ten times that.
        queued_evaluations: Of one token; the next is sent away with 429.
        event_streams: Open streams of events per replica.
    """

    body_bytes: int = Field(default=2**20, ge=1024)
    header_bytes: int = Field(default=32_768, ge=1024)
    depth: int = Field(default=16, ge=2)
    candidates: int = Field(default=64, ge=1, le=1024)
    text_characters: int = Field(default=100_000, ge=1)
    body_timeout_s: float = Field(default=10, gt=0)
    score_timeout_s: float = Field(default=10, gt=0)
    concurrent_scores: int = Field(default=256, ge=1)
    requests_per_second: float = Field(default=200, gt=0)
    queued_evaluations: int = Field(default=20, ge=1)
    event_streams: int = Field(default=64, ge=1)


class ControllerSettings(_Settings):
    """When a critic acts by itself; see ``preplay.control.ControllerConfig``."""

    threshold: float | None = None
    caution: float = 0.0
    max_distance: float | None = None
    abstain: Literal["fallback", "review"] = "fallback"
    fallback: str | None = None


class ScoringSettings(_Settings):
    """How decisions are made.

    Args:
        batch: Decisions in one pass at most.
        wait_s: How long a lone decision waits for others; whatever came during a pass is batched anyway.
        loaded_models: Critics that a replica keeps loaded.
        remembered_texts: Embeddings that a replica keeps.
        controllers: By the critic's name; ``*`` is for all others.
        keep_texts: Whether decisions are stored with their texts, which retraining needs.
        keep_days: Decisions older than this are deleted; none by default.
        keep_decisions: Of more decisions than this the oldest are deleted; none by default.
        poll_s: How often replicas look for a newly published critic.
        min_replicas: Replicas at the least, and at the most ``max_replicas``.
        replica_cpus: CPUs booked per replica.
    """

    batch: int = Field(default=64, ge=1)
    wait_s: float = Field(default=0.0, ge=0)
    loaded_models: int = Field(default=4, ge=1)
    remembered_texts: int = Field(default=50_000, ge=1)
    controllers: dict[str, ControllerSettings] = Field(default_factory=dict)
    keep_texts: bool = True
    keep_days: float | None = Field(default=None, gt=0)
    keep_decisions: int | None = Field(default=None, ge=1)
    poll_s: float = Field(default=1.0, gt=0)
    min_replicas: int = Field(default=1, ge=1)
    max_replicas: int = Field(default=4, ge=1)
    replica_cpus: float = Field(default=0.2, gt=0)


class EvaluationSettings(_Settings):
    """How evaluations are run.

    Args:
        concurrency: At once; by default one per four CPUs of the cluster.
        lease_s: After so long without a word from its runner an evaluation is taken over by another.
        poll_s: How often the runner looks for work and cancellations.
        attempts: Starts before an evaluation whose workers keep dying is given up.
        longest_s: How long one may run before it is ended as failed.
        environments: Known environments that requests may name.
        python: Policies that requests may name as ``python:NAME``: NAME to ``module:attribute``.
        endpoints: Language models that requests may name as ``endpoint:NAME``; keys never come from a request.
        endpoint_hosts: Hosts that endpoints may live on.
        truth_sessions: Sessions played per policy where the environment is known.
    """

    concurrency: int | None = Field(default=None, ge=1)
    lease_s: float = Field(default=15, gt=0)
    poll_s: float = Field(default=0.5, gt=0)
    attempts: int = Field(default=5, ge=1)
    longest_s: float = Field(default=6 * 3600, gt=0)
    environments: tuple[str, ...] = ("support_desk", "support_desk_long")
    python: dict[str, str] = Field(default_factory=dict)
    endpoints: dict[str, ChatConfig] = Field(default_factory=dict)
    endpoint_hosts: tuple[str, ...] = ()
    truth_sessions: int = Field(default=20_000, ge=1)


class ServerConfig(_Settings):
    """The whole server.

    Args:
        models: Folder in which critics, world models and clones are found.
        data: Folder in which embedded datasets are found; ``models`` by default.
        state: Folder of everything the server writes.
        database: SQLAlchemy URL; an SQLite file in ``state`` by default.
        cache: Folder of the embedding cache.
        encoder: Sentence encoder of critics that need one; precision and length follow the critic.
        allow_anonymous: Without any token, let everyone in. Only for a server that listens on loopback.
        secure_cookies: Set when the pages are reached by HTTPS.
        log_texts: Put texts of requests into the log.
    """

    models: str = "runs"
    data: str | None = None
    state: str = "runs/serve"
    database: str | None = None
    cache: str | None = None
    encoder: EncoderConfig = EncoderConfig()
    limits: Limits = Limits()
    scoring: ScoringSettings = ScoringSettings()
    evaluations: EvaluationSettings = EvaluationSettings()
    allow_anonymous: bool = False
    secure_cookies: bool = False
    log_texts: bool = False

    @field_validator("models", "data", "state", "cache")
    @classmethod
    def _absolute(cls, folder: str | None) -> str | None:
        """Replicas and workers may run in another folder."""
        return folder if folder is None or "://" in folder else str(Path(folder).absolute())

    @property
    def database_url(self) -> str:
        """Where the store is."""
        return self.database or f"sqlite:///{self.state}/preplay.db"

    @property
    def data_root(self) -> Path:
        """Folder of the datasets."""
        return Path(self.data or self.models)

    @property
    def cache_root(self) -> Path:
        """Folder of the embedding cache."""
        default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "preplay"
        return Path(self.cache) if self.cache else default

    def evaluation_folder(self, evaluation_id: str) -> Path:
        """Where an evaluation keeps its imagined sessions and its report."""
        return Path(self.state) / "evaluations" / evaluation_id

    def check_endpoints(self) -> None:
        """Refuse endpoints on hosts that are not allowed."""
        for name, endpoint in self.evaluations.endpoints.items():
            host = urlsplit(endpoint.url).hostname or ""
            if host not in self.evaluations.endpoint_hosts:
                raise PreplayError(
                    f"endpoint {name!r} is on {host!r}, which is not an allowed host.",
                    where="evaluations.endpoints",
                    fix="Add the host to evaluations.endpoint_hosts.",
                )


def load_server_config(file: Path | None = None, **changes: str | None) -> ServerConfig:
    """The defaults, changed by a YAML file and by what is not None.

    Raises:
        PreplayError: With the field when the YAML is wrong; unknown keys are refused.
    """
    try:
        content = yaml.safe_load(file.read_text()) or {} if file else {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PreplayError(f"cannot be read as YAML: {error}", where=str(file)) from error
    content |= {key: value for key, value in changes.items() if value is not None}
    try:
        return ServerConfig.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise PreplayError(f"{first['msg']}.", where=".".join(map(str, first["loc"]))) from error
