"""InterCode's SQL questions executed on sqlite3, with pools of what the seven logged models did."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
