"""Compiles the kernels of `tests.kernels.triton.sources` and keeps their PTX, for tests without Triton: ``python -m
tests.kernels.triton.texts``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from perfmodel import Kernel
from perfmodel.kernels.arguments import Array
from tests.kernels.triton.case import Case, Narrow
from tests.kernels.triton.cases import CASES
from tests.ptx.stored_kernels import store

PATH = Path(__file__).with_name("texts.json.xz")


def kernel_of(case: Case) -> Kernel:
    """Returns a case's kernel as Triton compiles it now."""
    import triton.language as tl

    from tests.kernels.triton import sources

    known = {**vars(sources), **{f"tl.{name}": getattr(tl, name) for name in ("float32", "int32")}, "None": None}
    arguments: dict[str, Any] = {}
    for name, value in case.arguments.items():
        if isinstance(value, Narrow):
            arguments[name] = Array(name, value.type, value.bits.size)
        elif isinstance(value, np.ndarray):
            is_narrow = case.type and value.dtype.kind == "u"
            arguments[name] = Array(name, case.type if is_narrow else value.dtype.name, value.size)
        else:
            arguments[name] = value
    functions = {name: known[function] for name, function in case.functions.items()}
    fn = getattr(sources, case.function)
    return Kernel.from_triton(fn, case.grid, arguments, target=case.target, **case.constants, **functions)


if __name__ == "__main__":
    store(PATH, {title: kernel_of(case) for title, case in CASES.items()})
