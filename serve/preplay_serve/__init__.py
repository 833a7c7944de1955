"""The served product on Ray Serve: scores of candidates, evaluations of policies, and pages to look at.

What it exports is listed in ``__init__.pyi`` and imported when it is first asked for, so that the command line starts
at once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
