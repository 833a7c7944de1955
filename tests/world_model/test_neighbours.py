"""Retrieval against the definition: the row at the smallest distance, in units of the typical distance."""

import torch

from preplay.world_model._neighbours import QUERY_CHUNK, NearestRows


def fitted(rows: torch.Tensor) -> NearestRows:
    nearest = NearestRows(*rows.shape)
    nearest.fit(rows)
    return nearest


def test_finds_the_nearest_row_of_every_query_across_chunks():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(300, 5, generator=generator)
    queries = torch.randn(2 * QUERY_CHUNK + 7, 5, generator=generator)
    nearest = fitted(rows)
    index, distance = nearest(queries)
    exact = torch.cdist(queries.double(), rows.double())
    assert torch.equal(index, exact.argmin(-1))
    torch.testing.assert_close(distance.double() * nearest.unit, exact.amin(-1), rtol=1e-4, atol=1e-5)


def test_distances_are_in_units_of_the_typical_one():
    """Rows at 0, 1, 3 and 7: distances to the nearest other are 1, 1, 2, 4, their (lower) median 1."""
    index, distance = fitted(torch.tensor([[0.0], [1.0], [3.0], [7.0]]))(torch.tensor([[5.5]]))
    assert index.tolist() == [3]
    assert distance.tolist() == [1.5]
