"""A critic in the driver's seat: choose, stop, fall back or ask - and learn from what came of it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
