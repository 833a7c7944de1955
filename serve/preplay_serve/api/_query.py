"""Query parameters that a route does not have are refused: a mistyped filter would go unnoticed."""

from fastapi import Request

from preplay_serve.api._errors import Refusal


async def known_query(request: Request) -> None:
    """Dependency of the routes.

    Raises:
        Refusal: 422 with the name of the first that is not documented.
    """
    if not request.query_params:
        return
    route = request.scope["route"]
    documented = request.app.openapi()["paths"][route.path][request.method.lower()].get("parameters", [])
    known = {parameter["name"] for parameter in documented if parameter["in"] == "query"}
    if stray := sorted(set(request.query_params) - known):
        name = stray[0][:64].encode("utf-8", "replace").decode()
        raise Refusal(422, f"There is no query parameter {name!r} here.", field="query")
