"""Backtests on the user's own logs: each logged policy left out, predicted from the others, and compared."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
