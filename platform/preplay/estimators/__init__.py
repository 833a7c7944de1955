"""Off-policy estimates from arrays: estimators, intervals, diagnostics and a verdict that can say no."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
