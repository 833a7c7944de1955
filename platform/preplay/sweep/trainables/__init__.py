"""What preplay can sweep: world models, critics, fitted Q evaluation, and rehearsal where it is installed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
