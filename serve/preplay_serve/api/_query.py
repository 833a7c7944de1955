"""Query parameters that a route does not have, or that stand twice, are refused: they would go unnoticed."""

from collections import Counter

from fastapi import Request

from preplay_serve.api._errors import Refusal


async def known_query(request: Request) -> None:
    """Dependency of the routes.

    Raises:
        Refusal: 422 with the name of the first.
    """
    if not request.query_params:
        return
    given = Counter(name for name, _ in request.query_params.multi_items())
    name, count = given.most_common(1)[0]
    if count > 1:
        raise Refusal(422, f"The query parameter {_shown(name)!r} stands there {count} times.", field="query")
    route = request.scope["route"]
    documented = request.app.openapi()["paths"][route.path][request.method.lower()].get("parameters", [])
    known = {parameter["name"] for parameter in documented if parameter["in"] == "query"}
    if stray := sorted(set(given) - known):
        raise Refusal(422, f"There is no query parameter {_shown(stray[0])!r} here.", field="query")


def _shown(name: str) -> str:
    return name[:64].encode("utf-8", "replace").decode()
