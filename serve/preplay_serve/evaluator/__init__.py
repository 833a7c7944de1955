"""Evaluations as Ray tasks: taken from the store fairly, watched, cancelled, and taken up again after a kill."""

from preplay_serve.evaluator._execute import execute
from preplay_serve.evaluator._runner import Runner

__all__ = ["Runner", "execute"]
