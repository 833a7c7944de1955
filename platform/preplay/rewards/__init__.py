"""Rewards of coding agents: composable terms, danger found by syntax tree, and an audit against reward hacking."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
