"""Holds programs of families that no recipe knows, to judge a calibration by; what they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import loopy as lp
import numpy as np


def make(
    domain: str, statements: str, arrays: Mapping[str, str], dtype: str = "float32", assume: str = "n >= 1"
) -> Any:
    given = [
        lp.GlobalArg(name, np.int32 if name == "p" else np.dtype(dtype), shape=shape, is_input=name != "o")
        for names, shape in arrays.items()
        for name in names.split()
    ]
    return lp.make_kernel(
        domain, statements, [*given, lp.ValueArg("n", np.int32)], assumptions=assume, lang_version=(2018, 2)
    )


def line(program: Any, lsize: int = 256) -> Any:
    return lp.split_iname(program, "i", lsize, outer_tag="g.0", inner_tag="l.0")


def plane(program: Any, width: int = 16, height: int = 16) -> Any:
    program = lp.split_iname(program, "j", width, outer_tag="g.0", inner_tag="l.0")
    return lp.split_iname(program, "i", height, outer_tag="g.1", inner_tag="l.1")
