"""Embedding of logged texts on Ray Data: every distinct text once, kept in a cache that all runs share."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
