"""Prometheus metrics of this replica, and of the store that all replicas share."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from preplay_serve.store import Store

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counters of one replica, in a registry of their own."""

    def __init__(self):
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "preplay_requests", "Answered requests", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "preplay_request_seconds",
            "Time to the answer",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.decisions = Counter(
            "preplay_decisions", "Decisions made", ["model", "decision"], registry=self.registry
        )
        self.rejected = Counter(
            "preplay_rejected", "Requests sent away under load", ["reason"], registry=self.registry
        )
        self.pending = Gauge(
            "preplay_scores_pending", "Decisions being worked on or waiting", registry=self.registry
        )
        self.streams = Gauge("preplay_event_streams", "Open streams of events", registry=self.registry)
        self._evaluations = Gauge(
            "preplay_evaluations", "Evaluations in the store", ["status"], registry=self.registry
        )

    def text(self, store: Store) -> bytes:
        """Everything in Prometheus' text format."""
        self._evaluations.clear()
        for status, count in store.evaluations.count().items():
            self._evaluations.labels(status).set(count)
        return generate_latest(self.registry)
