"""Pages to look at: evaluations, the decision log, models and datasets. Rendered here, readable without scripts.

They show what the store holds and change nothing. Scripts add only live progress, the session picker and a cancel
button.
"""

from preplay_serve.pages._router import pages_router, public_router

__all__ = ["pages_router", "public_router"]
