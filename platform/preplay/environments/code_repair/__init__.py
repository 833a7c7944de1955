"""Small Python tasks with a real grader: agents of several qualities propose repairs, a sandbox runs them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
