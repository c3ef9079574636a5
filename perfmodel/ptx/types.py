"""Types of PTX's registers and instructions, with numpy's types for their values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Type:
    """A fundamental type.

    Attributes:
        kind: ``s``, ``u``, ``b``, ``f`` or ``p`` (a predicate).
        bits: of one value.
        lanes: two for packed halves and short whole numbers (``f16x2``, ``s16x2``).
        form: of floats that numpy lacks: ``bf16``, ``e4m3``, ``e5m2`` or ``tf32``.
    """

    name: str
    kind: str
    bits: int
    lanes: int = 1
    form: str = ""

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The type that its values are computed in; a packed type's, that of one of its lanes."""
        if self.kind == "p":
            return np.dtype(bool)
        if self.form:
            return np.dtype(np.float32 if self.form == "tf32" else np.float64)
        letter = {"s": "i", "u": "u", "b": "u", "f": "f"}[self.kind]
        return np.dtype(f"{letter}{self.bits // self.lanes // 8}")

    @cached_property
    def raw(self) -> np.dtype[Any]:
        """The type of the bits that a register of this width holds."""
        return np.dtype(bool) if self.kind == "p" else np.dtype(f"u{max(self.bits // 8, 1)}")

    @property
    def is_coded(self) -> bool:
        """True where values are not the bits of a register seen as numpy's type: packed ones, and narrow floats."""
        return self.lanes == 2 or self.form not in ("", "tf32")

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @cached_property
    def dtype(self) -> str:
        """The name that features have for it: bits without a sign count as whole numbers with one."""
        if self.form:
            return _NARROW[self.form]
        letter = {"s": "int", "b": "int", "u": "uint", "f": "float", "p": "bool"}[self.kind]
        return f"{letter}{self.bits // self.lanes}"


_NARROW = {"bf16": "bfloat16", "tf32": "tfloat32", "e4m3": "float8", "e5m2": "float8"}


def _all() -> dict[str, Type]:
    found = {f"{kind}{bits}": Type(f"{kind}{bits}", kind, bits) for kind in "sub" for bits in (8, 16, 32, 64)}
    found |= {f"f{bits}": Type(f"f{bits}", "f", bits) for bits in (16, 32, 64)}
    found |= {
        "bf16": Type(name="bf16", kind="f", bits=16, lanes=1, form="bf16"),
        "bf16x2": Type(name="bf16x2", kind="f", bits=32, lanes=2, form="bf16"),
    }
    found |= {f"{name}x2": Type(name=f"{name}x2", kind="f", bits=16, lanes=2, form=name) for name in ("e4m3", "e5m2")}
    found |= {name: Type(name=name, kind="f", bits=8, lanes=1, form=name) for name in ("e4m3", "e5m2")}
    found |= {f"{kind}16x2": Type(f"{kind}16x2", kind, 32, 2) for kind in "suf"}
    found["tf32"] = Type(name="tf32", kind="f", bits=32, lanes=1, form="tf32")
    return {**found, "pred": Type("pred", "p", 1)}


TYPES = _all()
"""The types that are read, by their names; floats of 4 and 6 bits and 128 bits are not."""
PREDICATE = TYPES["pred"]
