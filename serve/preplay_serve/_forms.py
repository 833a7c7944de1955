"""What the pages and the routes behind their forms agree on."""

import hashlib
import hmac

COOKIE = "preplay_token"


def local_path(target: str) -> str:
    """The target when it is a path of this server, else the front page.

    >>> local_path("/decisions?page=2"), local_path("//elsewhere.example"), local_path("/\\\\elsewhere.example")
    ('/decisions?page=2', '/', '/')
    """
    safe = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if safe else "/"


def form_key(cookie: str, purpose: str) -> str:
    """A field that only a page made for this cookie can hold, so that no other site can send its forms.

    Without a cookie it protects nothing: then the server answers to its own machine, and checks ``Origin``.
    """
    return hmac.new(cookie.encode("utf-8", "surrogatepass"), purpose.encode(), hashlib.sha256).hexdigest()
