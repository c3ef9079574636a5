"""Times one kernel to tell a device that wants small sizes from one that wants large ones."""

from __future__ import annotations

from collections.abc import Callable

from perfmodel.recipes.recipe import TagFilter

MOST_SECONDS = 0.5e-3


def needs_small_sizes(seconds_of: Callable[[TagFilter], float]) -> bool:
    """Returns True if multiplying two matrices of 512 x 512 takes more than `MOST_SECONDS`, as on a CPU of a few
    cores."""
    return seconds_of(["matmul_sq", "tiled_prefetch:True", "n:512"]) > MOST_SECONDS
