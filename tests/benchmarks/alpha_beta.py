"""α and B of a link, fitted to measured times of a collective, and how well they foretell others.

The model is comm_sim's: `t_formula(key, n, S, α, B)`, which is linear in α and 1/B. Errors are
relative, so that a microsecond counts as much at 1 KB as a millisecond does at 1 GB.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from comm_sim import LinkSpec, t_formula

#: Seconds foretold for an array of so many bytes.
Model = Callable[[float], float]


@dataclass(frozen=True)
class Foretold:
    """What a model that was fitted to half of the sizes says of the other half.

    Attributes:
        words: the model's parameters.
        links: the same as numbers.
        seconds: foretold, for each size.
        errors: foretold ÷ measured − 1, for each size.
        median, largest: of the errors' amounts at the sizes that were not fitted.
    """

    words: str
    links: tuple[LinkSpec, ...]
    seconds: list[float]
    errors: list[float]
    median: float
    largest: float


def fit(key: str, n: int, sizes: Sequence[int], seconds: Sequence[float]) -> LinkSpec:
    """The α ≥ 0 and B of the least sum of squared relative errors.

    Args:
        key: the collective's formula, a key of `t_formula`.
        n: ranks.
        sizes: bytes of the whole array, S.
        seconds: measured.
    """
    of_alpha = np.array([t_formula(key, n, size, 1.0, math.inf) for size in sizes])
    of_slope = np.array([t_formula(key, n, size, 0.0, 1.0) for size in sizes])
    columns = np.stack([of_alpha, of_slope], axis=1) / np.asarray(seconds)[:, None]
    scale = np.linalg.norm(columns, axis=0)
    alpha, slope = np.linalg.lstsq(columns / scale, np.ones(len(columns)), rcond=None)[0] / scale
    if alpha < 0:
        alpha, slope = 0.0, columns[:, 1].sum() / (columns[:, 1] ** 2).sum()
    if slope <= 0:
        alpha, slope = columns[:, 0].sum() / (columns[:, 0] ** 2).sum(), 0.0
    return LinkSpec(float(alpha), 1 / float(slope) if slope else math.inf)


def fit_two(
    key: str, n: int, sizes: Sequence[int], seconds: Sequence[float], least: int = 3
) -> tuple[float, LinkSpec, LinkSpec]:
    """Two regimes, as of two protocols: a size, and the fits below and from there on.

    Of all borders with at least so many sizes on each side, that of the least squared errors.
    """

    def squares(link: LinkSpec, part: slice) -> float:
        pairs = zip(sizes[part], seconds[part], strict=True)
        return sum((t_formula(key, n, s, link.alpha, link.bw) / t - 1) ** 2 for s, t in pairs)

    found = []
    for border in range(least, len(sizes) - least + 1):
        parts = slice(0, border), slice(border, len(sizes))
        links = [fit(key, n, sizes[part], seconds[part]) for part in parts]
        total = sum(squares(link, part) for link, part in zip(links, parts, strict=True))
        found.append((total, math.sqrt(sizes[border - 1] * sizes[border]), *links))
    if not found:
        raise ValueError(f"{len(sizes)} sizes are too few for two regimes of {least}")
    _, border, below, above = min(found, key=lambda candidate: candidate[0])
    return border, below, above


def foretell(
    model: Model,
    words: str,
    links: tuple[LinkSpec, ...],
    sizes: Sequence[int],
    seconds: Sequence[float],
) -> Foretold:
    """Compares a model, fitted to every second size from the first on, with what was measured."""
    said = [model(size) for size in sizes]
    errors = [s / t - 1 for s, t in zip(said, seconds, strict=True)]
    amounts = [abs(error) for error in errors[1::2]]
    return Foretold(words, links, said, errors, statistics.median(amounts), max(amounts))


def plain(key: str, n: int, sizes: Sequence[int], seconds: Sequence[float]) -> Foretold:
    """One α and one B, fitted to every second size, beginning with the first."""
    link = fit(key, n, sizes[::2], seconds[::2])

    def model(size: float) -> float:
        return t_formula(key, n, size, link.alpha, link.bw)

    words = f"α = {link.alpha * 1e6:.2f} µs, B = {link.bw / 1e9:.1f} GB/s"
    return foretell(model, words, (link,), sizes, seconds)


def two_regimes(key: str, n: int, sizes: Sequence[int], seconds: Sequence[float]) -> Foretold:
    """An α and a B for short arrays and others for long ones, fitted to every second size."""
    border, below, above = fit_two(key, n, sizes[::2], seconds[::2])

    def model(size: float) -> float:
        link = below if size < border else above
        return t_formula(key, n, size, link.alpha, link.bw)

    words = (
        f"below {border / 1e6:.3g} MB α = {below.alpha * 1e6:.2f} µs, B = {below.bw / 1e9:.1f} "
        f"GB/s; above α = {above.alpha * 1e6:.2f} µs, B = {above.bw / 1e9:.1f} GB/s"
    )
    return foretell(model, words, (below, above), sizes, seconds)
