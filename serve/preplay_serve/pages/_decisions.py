"""The decision log: what the critics chose, why, and what came of it."""

import datetime as dt
from dataclasses import dataclass, field
from typing import get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from preplay_serve.pages._render import missing, page, store_of
from preplay_serve.store import DecisionFilter, DecisionRecord, Store

router = APIRouter(include_in_schema=False)
PAGE = 25
FIELDS = ("model", "decision", "outcome", "text", "session_id", "since", "until")
KINDS: tuple[str, ...] = get_args(DecisionRecord.model_fields["decision"].annotation)
OUTCOMES = {"known": True, "open": False}
LONGEST = 200
"""Characters of a filter; more is not searched for."""


@dataclass
class Asked:
    """The filters as they were typed, what they mean, and what is wrong with them."""

    typed: dict[str, str]
    number: int
    where: DecisionFilter = field(default_factory=DecisionFilter)
    errors: dict[str, str] = field(default_factory=dict)

    def link(self, number: int) -> str:
        """The address of another page of the same list."""
        given = {name: value for name, value in self.typed.items() if value}
        return f"/decisions?{urlencode(given | {'page': number})}"


@router.get("/decisions")
def decisions(request: Request) -> HTMLResponse:
    """The newest first, filtered."""
    store, asked = store_of(request), read_filters(request.query_params)
    total = store.decisions.count(asked.where)
    pages = max(1, -(-total // PAGE))
    number = min(asked.number, pages)
    return page(
        request,
        "decisions.html.j2",
        status=400 if asked.errors else 200,
        asked=asked,
        rows=store.decisions.recent(asked.where, limit=PAGE, offset=(number - 1) * PAGE),
        total=total,
        number=number,
        pages=pages,
        models=_models(store, asked.where.model),
        kinds=KINDS,
        outcomes=OUTCOMES,
        score_width=score_width,
    )


@router.get("/decisions/{decision_id}")
def decision(request: Request, decision_id: str) -> HTMLResponse:
    """One decision in full."""
    found = store_of(request).decisions.get(decision_id)
    if found is None:
        return missing(request, "decision")
    return page(request, "decision.html.j2", record=found, score_width=score_width)


def read_filters(given) -> Asked:
    """What a query asks for; a part that makes no sense is named and left out."""
    typed = {name: str(given.get(name, "")).strip()[:LONGEST] for name in FIELDS}
    asked = Asked(typed, _page_number(str(given.get("page", "1"))))
    if typed["decision"] not in ("", *KINDS):
        asked.errors["decision"] = f"Choose one of {', '.join(KINDS)}."
    if typed["outcome"] not in ("", *OUTCOMES):
        asked.errors["outcome"] = f"Choose one of {', '.join(OUTCOMES)}."
    asked.where = DecisionFilter.model_validate(
        {
            **{name: typed[name] or None for name in ("model", "session_id", "text")},
            "decision": typed["decision"] if typed["decision"] in KINDS else None,
            "has_outcome": OUTCOMES.get(typed["outcome"]),
            "since": _day(typed["since"], "since", asked.errors),
            "until": _day(typed["until"], "until", asked.errors, after=True),
        }
    )
    return asked


def score_width(record: DecisionRecord, score: float) -> float:
    """Length of a score's bar in percent: from the lowest to the highest candidate, never quite nothing."""
    known = [s for s in record.content.scores if s is not None]
    low, span = min(known), max(known) - min(known)
    return round(100 if not span else 4 + 96 * (score - low) / span, 1)


def _page_number(text: str) -> int:
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 8 else 1


def _day(text: str, name: str, errors: dict[str, str], *, after: bool = False) -> dt.datetime | None:
    """Start of a day (UTC), of the next one for an end that includes its day."""
    if not text:
        return None
    try:
        day = dt.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=dt.UTC)
        return day + dt.timedelta(days=1) if after else day
    except (ValueError, OverflowError):
        errors[name] = "Write a day as 2026-05-31."
        return None


def _models(store: Store, chosen: str | None) -> list[str]:
    """Names of the critics that ever were in service, and the one asked for."""
    known = {record.name for record in store.artifacts.list("critic", current_only=False)}
    return sorted(known | ({chosen} if chosen else set()))
