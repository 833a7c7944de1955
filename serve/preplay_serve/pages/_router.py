"""The two routers: pages that need the scope ``read``, and what everybody may load."""

from fastapi import APIRouter

from preplay_serve.pages import _assets, _decisions, _evaluations, _login, _registry


def pages_router() -> APIRouter:
    """Every page; each reads ``request.app.state.store``."""
    router = APIRouter(include_in_schema=False)
    for module in (_evaluations, _decisions, _registry):
        router.include_router(module.router)
    return router


def public_router() -> APIRouter:
    """The page to sign in, and style sheets and scripts."""
    router = APIRouter(include_in_schema=False)
    for module in (_login, _assets):
        router.include_router(module.router)
    return router
