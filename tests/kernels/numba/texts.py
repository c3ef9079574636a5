"""Compiles the kernels of `tests.kernels.numba.sources` and keeps their PTX, for tests without Numba: ``python -m
tests.kernels.numba.texts``."""

from __future__ import annotations

from pathlib import Path

from perfmodel import Kernel
from tests.kernels.numba.cases import CASES
from tests.ptx.stored_kernels import store

PATH = Path(__file__).with_name("texts.json.xz")


def kernel_of(title: str) -> Kernel:
    """Returns a case's kernel as Numba compiles it now."""
    from tests.kernels.numba import sources

    case = CASES[title]
    return Kernel.from_numba(getattr(sources, title), case.grid, case.block, case.arguments, shared=case.shared)


if __name__ == "__main__":
    store(PATH, {title: kernel_of(title) for title in CASES})
