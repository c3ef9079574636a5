"""One argument of a recorded launch: what it was set to, and what is known of its contents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import PerfmodelWarning
from perfmodel.interception.contents import Contents, is_read
from perfmodel.interception.given import Given, GivenBuffer, GivenBytes, GivenLocal, GivenNull, GivenOther, GivenSvm
from perfmodel.opencl_c.types import Pointer, Record, Scalar, Type, Vector, element_of, numpy_type

WRITTEN = "the kernel only writes it"


class InterceptionWarning(PerfmodelWarning):
    """Warns of a launch of which less is known than was asked for."""


@dataclass(frozen=True, eq=False, repr=False)
class LaunchArgument:
    """An argument as it was given to a launch.

    Attributes:
        name, type: as the source declares it; ``#0``, ``#1`` … and empty where there is no source.
        kind: ``array``, ``scalar`` (also vectors and structs), ``local``, ``svm``, ``null`` or ``unknown``.
        dtype: of an array's elements or of the scalar, numpy's name of it; None for what has none or is not known.
        n_bytes: of the array, the value or the local memory; None where it is not known.
        value: of a scalar, an array of a vector's numbers, or a struct as numpy's record; else bytes.
        problem: why there are no contents of an array, or what is not known of another argument.
    """

    name: str
    kind: str
    type: str = ""
    dtype: str | None = None
    n_bytes: int | None = None
    value: Any = None
    problem: str = ""
    _contents: Contents | None = None

    @property
    def contents(self) -> NDArray[Any] | None:
        """Returns a copy of the array from before the launch; None if there is none, see `problem`."""
        if self._contents is None:
            return None
        return _as(self._contents.data, self.dtype)

    def __repr__(self) -> str:
        shown = {"array": f"{self.n_bytes} bytes", "svm": "shared virtual memory", "local": f"{self.n_bytes} bytes"}
        return f"{self.type} {self.name} = {shown.get(self.kind, self.problem or self.value)}".strip()


def argument_of(name: str, type_: Type | None, given: Given, contents: Mapping[int, Contents | str]) -> LaunchArgument:
    """Returns an argument as it was given, with the name and the type that the source declares."""
    shown = "" if type_ is None else str(type_)
    target = type_.target if isinstance(type_, Pointer) else type_
    dtype = element_of(target).dtype if isinstance(target, Scalar | Vector) else None
    match given:
        case GivenBuffer():
            kept = contents.get(given.address, "contents were not asked for")
            if not is_read(given):
                kept = WRITTEN
            problem = kept if isinstance(kept, str) else ""
            found = kept if isinstance(kept, Contents) else None
            return LaunchArgument(
                name=name,
                kind="array",
                type=shown,
                dtype=dtype,
                n_bytes=given.n_bytes,
                value=None,
                problem=problem,
                _contents=found,
            )
        case GivenBytes():
            return LaunchArgument(
                name=name,
                kind="scalar",
                type=shown,
                dtype=dtype,
                n_bytes=len(given.data),
                value=_value(given.data, type_),
            )
        case GivenLocal():
            return LaunchArgument(name=name, kind="local", type=shown, dtype=dtype, n_bytes=given.n_bytes)
        case GivenSvm():
            reason = "it is shared virtual memory"
            return LaunchArgument(
                name=name,
                kind="svm",
                type=shown,
                dtype=dtype,
                n_bytes=given.n_bytes,
                value=given.address,
                problem=reason,
            )
        case GivenNull():
            return LaunchArgument(name=name, kind="null", type=shown, dtype=dtype, n_bytes=0)
        case GivenOther():
            return LaunchArgument(name=name, kind="unknown", type=shown, dtype=dtype, problem=given.what)


def _value(data: bytes, type_: Type | None) -> Any:
    if isinstance(type_, Scalar | Vector) and len(data) == type_.size:
        numbers = np.frombuffer(data, element_of(type_).numpy)
        return numbers[0] if isinstance(type_, Scalar) else numbers[: type_.width]
    if isinstance(type_, Record) and len(data) == type_.size:
        return np.frombuffer(data, numpy_type(type_))[0]
    return data


def _as(data: NDArray[np.uint8], dtype: str | None) -> NDArray[Any]:
    """Returns the bytes as numbers, without what is left over at the end."""
    if dtype is None:
        return data
    size = np.dtype(dtype).itemsize
    return data[: len(data) // size * size].view(dtype)
