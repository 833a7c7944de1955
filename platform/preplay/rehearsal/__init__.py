"""Rehearsal before acting: when to imagine, what, from where, how far, and what it is used for."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
