"""Pages to look at: evaluations, the decision log, models and datasets. Rendered here, readable without scripts.

They show what the store holds. Scripts add only live progress, the session picker and a question before cancelling.
"""

from preplay_serve.pages._router import pages_router, public_router

__all__ = ["pages_router", "public_router"]
