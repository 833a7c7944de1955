"""A support desk with known dynamics: issue, stage, patience and trust hidden behind natural language.

Rewards: resolved +1, sale +0.5, churn -1, and -0.02 a turn. A session terminates when it is resolved or the
customer leaves, and is truncated at the horizon.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
