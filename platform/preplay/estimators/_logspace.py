"""Sums of weights far outside the range of floats: kept as ``mantissa · exp(scale)``."""

from dataclasses import dataclass

import numpy as np

LOG_MAX = float(np.log(np.finfo(np.float64).max))


@dataclass(frozen=True)
class ScaledSum:
    """Signed sums ``mantissa · exp(scale)``, elementwise over arrays of equal shape. Zero has any scale."""

    scale: np.ndarray
    mantissa: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray | float) -> "ScaledSum":
        """Plain numbers."""
        mantissa = np.asarray(values, np.float64)
        return cls(np.zeros_like(mantissa), mantissa)

    def __add__(self, other: "ScaledSum") -> "ScaledSum":
        scale = np.maximum(self.scale, other.scale)
        return ScaledSum(scale, self._at(scale) + other._at(scale))

    def padded(self, size: int) -> "ScaledSum":
        """Followed by zeros up to ``size`` elements."""
        more = size - len(self.scale)
        return ScaledSum(
            np.concatenate([self.scale, np.full(more, -np.inf)]),
            np.concatenate([self.mantissa, np.zeros(more)]),
        )

    def total(self) -> "ScaledSum":
        """Sum over the elements."""
        scale = self.scale.max()
        return ScaledSum(scale, self._at(scale).sum())

    def over(self, log_divisor: np.ndarray | float) -> np.ndarray:
        """Divided by ``exp(log_divisor)``, as plain numbers; NaN where a float cannot hold the result."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            log_size = np.log(np.abs(self.mantissa)) + self.scale - log_divisor
            size = np.sign(self.mantissa) * np.exp(log_size)
            direct = self.mantissa * np.exp(self.scale - log_divisor)
        # the direct product is exact to the last bit wherever its factor is an ordinary number
        result = np.where(np.isfinite(direct) & (np.abs(direct) > 1e-300), direct, size)
        result = np.where(self.mantissa == 0, 0.0, result)
        return np.where(np.isfinite(result) & ~np.isneginf(log_divisor), result, np.nan)

    def log_abs(self) -> np.ndarray:
        """Logarithm of the absolute value."""
        with np.errstate(divide="ignore"):
            return np.log(np.abs(self.mantissa)) + self.scale

    def _at(self, scale: np.ndarray) -> np.ndarray:
        return self.mantissa * exp_below(self.scale, scale)


def exp_below(log_values: np.ndarray, top: np.ndarray | float) -> np.ndarray:
    """``exp(log_values − top)`` for values at most ``top``, where −inf − −inf counts as weight 0."""
    with np.errstate(invalid="ignore"):
        return np.exp(log_values - np.where(np.isneginf(top), 0.0, top))


def pad_last(values: np.ndarray, size: int) -> np.ndarray:
    """Repeat the last element up to ``size``: an ended session keeps its last cumulative weight."""
    return np.concatenate([values, np.full(size - len(values), values[-1])])
