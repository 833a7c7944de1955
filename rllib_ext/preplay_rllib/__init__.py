"""Rehearsal for RLlib: algorithms that mix real with imagined experience. Change one import and train.

What it exports is listed in ``__init__.pyi`` and imported when it is first asked for: RLlib takes seconds, which no
other command of ``preplay`` should wait for.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
