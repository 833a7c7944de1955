"""Critics learned from logged decisions: IQL, CQL, AWR and BC on pools of candidates, and the plain classifier."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
