"""A data card for the terminal."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from preplay.logs._card import DataCard, Spread


def render_card(card: DataCard) -> RenderableType:
    """Facts, policies and warnings as one rich renderable."""
    warnings = [Text(f"! {warning}", style="yellow") for warning in card.warnings]
    return Group(_facts(card), _policies(card), *warnings)


def _facts(card: DataCard) -> Table:
    table = Table(title="Data card", show_header=False, title_justify="left")
    for name, value in _fact_rows(card):
        table.add_row(name, value)
    return table


def _fact_rows(card: DataCard) -> list[tuple[str, str]]:
    p = card.propensities
    propensity = (
        "none" if p.smallest is None else f"{p.present:.0%} of turns, {p.smallest:.3g} to {p.largest:.3g}"
    )
    records = ", ".join(f"{count:,} {kind}" for kind, count in card.records.items())
    return [
        ("sessions", f"{card.sessions:,}"),
        ("turns", f"{card.turns:,}"),
        ("turns per session", _spread(card.turns_per_session)),
        ("reward per turn", f"{_spread(card.rewards)} ({card.nonzero_rewards:.1%} not 0)"),
        ("return", _spread(card.returns)),
        ("propensities", propensity),
        ("terminated / truncated", f"{card.terminated:,} / {card.truncated:,}"),
        ("equal sessions", f"{card.duplicate_sessions:,}"),
        *((f"{name}, characters", _spread(spread)) for name, spread in card.text_lengths.items()),
        ("language", card.language or "unclear"),
        ("formats", ", ".join(f"{name} ({count} files)" for name, count in card.formats.items()) or "–"),
        ("records", records or "–"),
    ]


def _spread(s: Spread) -> str:
    return f"{s.min:.4g} … {s.max:.4g}, mean {s.mean:.4g}, median {s.median:.4g}"


def _policies(card: DataCard) -> Table:
    table = Table(title="Policies", title_justify="left")
    table.add_column("policy")
    for name in ("sessions", "turns", "mean return"):
        table.add_column(name, justify="right")
    for p in card.policies:
        table.add_row(p.policy, f"{p.sessions:,}", f"{p.turns:,}", f"{p.mean_return:.4f}")
    return table
