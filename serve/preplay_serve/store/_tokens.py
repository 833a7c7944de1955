"""Bearer tokens: 256 random bits, kept as a hash only, each with its scopes."""

import hashlib
import hmac
import secrets
import time
from typing import Literal, get_args

from pydantic import AwareDatetime
from sqlalchemy import Engine, Row, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from preplay.errors import PreplayError
from preplay_serve.store._records import Record, moment
from preplay_serve.store._tables import tokens as table

Scope = Literal["read", "score", "evaluate", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
_PREFIX = "preplay"


class TokenRecord(Record):
    """A token without its secret."""

    id: str
    name: str
    scopes: frozenset[Scope]
    created: AwareDatetime
    revoked: AwareDatetime | None = None

    def allows(self, scope: Scope) -> bool:
        """Whether it may do this; ``admin`` may do everything."""
        return scope in self.scopes or "admin" in self.scopes


class Tokens:
    """The tokens of one database."""

    def __init__(self, engine: Engine):
        self._engine = engine

    def create(self, name: str, scopes: frozenset[Scope]) -> str:
        """Make a token and return it; it cannot be read again."""
        if not scopes or not scopes <= set(SCOPES):
            raise PreplayError(
                f"scopes {sorted(scopes)} are not known.", fix=f"There are: {', '.join(SCOPES)}."
            )
        key, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        values = {
            "id": key, "name": name, "secret_sha256": _hash(secret),
            "scopes": ",".join(sorted(scopes)), "created": time.time(),
        }  # fmt: skip
        try:
            with self._engine.begin() as db:
                db.execute(insert(table).values(values))
        except IntegrityError as error:
            raise PreplayError(
                f"there is a token named {name!r} already.", fix="Choose another name."
            ) from error
        return f"{_PREFIX}_{key}_{secret}"

    def check(self, token: str) -> TokenRecord | None:
        """The token's record when it is known, right and not revoked."""
        prefix, _, rest = token.partition("_")
        key, _, secret = rest.partition("_")
        with self._engine.connect() as db:
            row = db.execute(select(table).where(table.c.id == key)).first()
        expected = row.secret_sha256 if row else "0" * 64  # the same work whether the id is known or not
        right = hmac.compare_digest(_hash(secret), expected)
        return _record(row) if row and right and prefix == _PREFIX and row.revoked is None else None

    def list(self) -> list[TokenRecord]:
        """All tokens, the oldest first."""
        with self._engine.connect() as db:
            return [_record(row) for row in db.execute(select(table).order_by(table.c.created))]

    def any_active(self) -> bool:
        """Whether any token can be used."""
        query = select(func.count()).select_from(table).where(table.c.revoked.is_(None))
        with self._engine.connect() as db:
            return db.execute(query).scalar_one() > 0

    def revoke(self, name: str) -> None:
        """End a token.

        Raises:
            PreplayError: When no token has this name.
        """
        query = (
            update(table).where(table.c.name == name, table.c.revoked.is_(None)).values(revoked=time.time())
        )
        with self._engine.begin() as db:
            if db.execute(query).rowcount == 0:
                raise PreplayError(f"there is no active token named {name!r}.")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _record(row: Row) -> TokenRecord:
    created = moment(row.created)
    assert created is not None
    scopes = frozenset(row.scopes.split(","))
    return TokenRecord.model_validate(
        {"id": row.id, "name": row.name, "scopes": scopes, "created": created, "revoked": moment(row.revoked)}
    )
