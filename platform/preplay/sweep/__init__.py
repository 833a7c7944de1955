"""Sweeps: world models, critics and estimators tuned across a Ray cluster, and the ensembles that come out."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
