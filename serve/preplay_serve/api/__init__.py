"""The HTTP interface: ``create_app(Service(...))`` is the whole server as an ASGI application."""

from preplay_serve.api._app import create_app, create_routes
from preplay_serve.api._errors import Problem
from preplay_serve.api._evaluations import EvaluationAnswer
from preplay_serve.api._score import Outcome, ScoreAnswer, ScoreRequest, State
from preplay_serve.api._service import Service

__all__ = [
    "EvaluationAnswer",
    "Outcome",
    "Problem",
    "ScoreAnswer",
    "ScoreRequest",
    "Service",
    "State",
    "create_app",
    "create_routes",
]
