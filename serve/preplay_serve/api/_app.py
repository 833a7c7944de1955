"""The FastAPI application: plain ASGI, so that it runs in a Serve replica, under uvicorn and in tests alike."""

from importlib.metadata import version

from fastapi import Depends, FastAPI
from starlette.types import ASGIApp

from preplay_serve.api import _evaluations, _info, _score, _session
from preplay_serve.api._auth import Doorkeeper, require_page
from preplay_serve.api._errors import add_error_handlers
from preplay_serve.api._guard import Guard
from preplay_serve.api._query import known_query
from preplay_serve.api._service import Service
from preplay_serve.pages import pages_router, public_router

_ABOUT = (
    "Scores of candidate actions, and evaluations of policies that never ran. Errors have one shape: `error.code` for"
    " programs, `error.message` and `error.fix` for people. Answers 429 and 503 carry `Retry-After`."
)


def create_app(service: Service) -> ASGIApp:
    """The whole HTTP side of a server."""
    return Guard(create_routes(service), service.config.limits, service.metrics)


def create_routes(service: Service) -> FastAPI:
    """The routes, without the guard around them."""
    app = FastAPI(
        title="preplay", version=version("preplay"), description=_ABOUT, docs_url=None, redoc_url=None
    )
    app.state.service, app.state.store = service, service.store
    app.state.doorkeeper = Doorkeeper(service.store, service.config.limits.requests_per_second)
    add_error_handlers(app)
    for module in (_score, _evaluations, _info):
        app.include_router(module.router, dependencies=[Depends(known_query)])
    app.include_router(_session.router)
    app.include_router(public_router())
    app.include_router(pages_router(), dependencies=[Depends(require_page())])
    return app
