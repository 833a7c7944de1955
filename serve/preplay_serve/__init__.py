"""The served product on Ray Serve: scores of candidates, evaluations of policies, and pages to look at."""

from preplay_serve.store import Store, open_store

__all__ = ["Store", "open_store"]
