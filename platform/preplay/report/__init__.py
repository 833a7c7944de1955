"""What an evaluation found, for people: ``result.json``, one self-contained page, a table and a sentence."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
