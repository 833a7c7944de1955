"""Spans from OTLP JSON, from the SDK's JSON and from flat exports, in one shape."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from preplay.logs.readers._common import dict_or_empty, list_or_empty


@dataclass(frozen=True, slots=True)
class Span:
    """One span; attributes are flat, nested ones also under their dotted names."""

    key: str
    name: str
    trace_id: str
    start: Any
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    failed: bool
    raw: dict[str, Any]


def spans_of(record: dict[str, Any]) -> Iterator[Span]:
    """The spans of one JSON record: an OTLP export, or a single span."""
    groups = record.get("resourceSpans", record.get("resource_spans"))
    if groups is None:
        yield _span(record, "", {})
        return
    for i, group in enumerate(map(dict_or_empty, list_or_empty(groups))):
        resource = attributes_of(dict_or_empty(group.get("resource")).get("attributes"))
        scopes = group.get("scopeSpans", group.get("scope_spans", group.get("instrumentationLibrarySpans")))
        for j, scope in enumerate(map(dict_or_empty, list_or_empty(scopes))):
            for k, span in enumerate(list_or_empty(scope.get("spans"))):
                yield _span(dict_or_empty(span), f"spans/{i}/{j}/{k}", resource)


def _span(raw: dict[str, Any], key: str, resource: dict[str, Any]) -> Span:
    context = dict_or_empty(raw.get("context"))
    trace = _first(raw, "traceId", "trace_id") or _first(context, "trace_id", "traceId")
    events = [
        (str(e.get("name")), attributes_of(e.get("attributes")) | _body(e))
        for e in map(dict_or_empty, list_or_empty(raw.get("events")))
    ]
    status = dict_or_empty(raw.get("status"))
    code = status.get("code", status.get("status_code", raw.get("status_code")))
    attributes = attributes_of(raw.get("attributes"))
    if resource:
        attributes["resource"] = resource
    return Span(
        key=key,
        name=str(raw.get("name")),
        trace_id=str(trace),
        start=_first(raw, "startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"),
        attributes=attributes,
        events=events,
        failed=code in (2, "STATUS_CODE_ERROR", "ERROR", "Error"),
        raw=raw,
    )


def _body(event: dict[str, Any]) -> dict[str, Any]:
    body = event.get("body")
    return body if isinstance(body, dict) else {}


def _first(raw: dict[str, Any], *names: str) -> Any:
    return next((raw[n] for n in names if raw.get(n) is not None), None)


def attributes_of(raw: Any) -> dict[str, Any]:
    """Attributes from OTLP's list of keys and typed values, or from a (nested) object."""
    if isinstance(raw, list):
        pairs = [kv for kv in raw if isinstance(kv, dict) and isinstance(kv.get("key"), str)]
        return {kv["key"]: _value(kv.get("value")) for kv in pairs}
    flat: dict[str, Any] = {}
    for name, value in dict_or_empty(raw).items():
        flat[name] = value
        _flatten(name, value, flat)
    return flat


def _value(raw: Any) -> Any:
    if not isinstance(raw, dict) or len(raw) != 1:
        return raw
    kind, value = next(iter(raw.items()))
    if kind in ("arrayValue", "array_value"):
        return [_value(v) for v in list_or_empty(dict_or_empty(value).get("values"))]
    if kind in ("kvlistValue", "kvlist_value"):
        return attributes_of(list_or_empty(dict_or_empty(value).get("values")))
    if kind in ("intValue", "int_value") and isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    return value


def _flatten(prefix: str, value: Any, flat: dict[str, Any]) -> None:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        flat.setdefault(f"{prefix}.{name}", item)
        _flatten(f"{prefix}.{name}", item, flat)


def indexed(attributes: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """``prefix.0.role``, ``prefix.0.calls.1.name`` … as a list of nested objects, lists by index."""
    tree: dict[str, Any] = {}
    for name, value in attributes.items():
        if name.startswith(prefix + ".") and not isinstance(value, dict | list):
            _plant(tree, name[len(prefix) + 1 :].split("."), value)
    grown = _lists(tree)
    return [item for item in grown if isinstance(item, dict)] if isinstance(grown, list) else []


def _plant(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        inner = tree.setdefault(part, {})
        if not isinstance(inner, dict):  # a value where another key needs a branch
            return
        tree = inner
    tree.setdefault(path[-1], value)


def _lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if tree and all(k.isdecimal() for k in tree):
        return [_lists(tree[k]) for k in sorted(tree, key=int)]
    return {k: _lists(v) for k, v in tree.items()}
