"""Published models: what there is, how each came about, and in what two of them differ."""

from preplay.models._registry import Difference, PublishedModel, differences, load_manifest, published_models

__all__ = ["Difference", "PublishedModel", "differences", "load_manifest", "published_models"]
