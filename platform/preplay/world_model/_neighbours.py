"""Retrieval: the nearest logged row of a query, with distances in units of what is typical among logged rows."""

import torch
from torch import Tensor, nn

CALIBRATION_ROWS = 1000
QUERY_CHUNK = 128  # its scores stay in a core's cache, which makes a search twice as fast


class NearestRows(nn.Module):
    """Nearest of N stored rows by Euclidean distance, one matrix product per query batch."""

    rows: Tensor
    half_norm: Tensor
    unit: Tensor

    def __init__(self, count: int, size: int):
        super().__init__()
        self.register_buffer("rows", torch.zeros(count, size))
        self.register_buffer("half_norm", torch.zeros(count))
        self.register_buffer("unit", torch.ones(()))

    def fit(self, rows: Tensor) -> None:
        """Store float32 [N, size] and measure the typical distance between a row and its nearest other."""
        self.rows = rows.contiguous()
        self.half_norm = 0.5 * rows.square().sum(-1)
        self.unit = self._typical_distance(rows)

    def forward(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Index int64 [B] of the nearest row and its distance float32 [B] in typical distances."""
        chunks = queries.split(QUERY_CHUNK)
        indices = torch.cat([_argmax(torch.addmm(self.half_norm, c, self.rows.T, beta=-1)) for c in chunks])
        distance = (queries - self.rows[indices]).square().sum(-1).sqrt()
        return indices, distance / self.unit

    def _typical_distance(self, rows: Tensor) -> Tensor:
        """Median distance to the nearest different row, over an even sample of the distinct rows."""
        distinct = torch.unique(rows, dim=0)
        if len(distinct) < 2:
            return torch.ones((), device=rows.device)
        sample = distinct[:: max(1, len(distinct) // CALIBRATION_ROWS)]
        distances = torch.cdist(sample, distinct)
        distances[distances < 1e-6] = torch.inf
        nearest = distances.amin(-1)
        finite = nearest[nearest.isfinite()]
        return finite.median() if len(finite) else torch.ones((), device=rows.device)


def _argmax(scores: Tensor) -> Tensor:
    """Column of each row's maximum, int64 [B]; on a CPU by NumPy, whose argmax is vectorised and torch's is not."""
    if scores.device.type == "cpu":
        return torch.from_numpy(scores.numpy().argmax(-1))
    return scores.argmax(-1)
