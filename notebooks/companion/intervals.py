"""Means of repeated measurements and their 95% intervals."""

from typing import NamedTuple

import numpy as np

__all__ = ["CONFIDENCE", "Interval", "interval"]

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A mean and its 95% interval; arrays for several means."""

    mean: float | np.ndarray
    low: float | np.ndarray
    high: float | np.ndarray


def interval(values):
    """Mean of repeated measurements, (n_repetitions, ...), and its 95% interval from Student's t
    distribution; NaN with any NaN, and a NaN interval for one measurement."""
    from scipy.stats import t

    values = np.asarray(values, dtype=float)
    n = len(values)
    if n == 0:
        raise ValueError("values is empty: an interval needs at least one measurement")
    mean = values.mean(axis=0)
    half = np.full_like(mean, np.nan)
    if n > 1:
        half = t.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
    answer = Interval(mean, mean - half, mean + half)
    return answer if np.ndim(mean) else Interval(*map(float, answer))
