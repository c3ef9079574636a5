"""Notes what a kernel's arguments are set to, without keeping anything alive that the program lets go."""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class GivenBuffer:
    """A memory object; `life` ends with the Python object that stands for it, None for images."""

    address: int
    n_bytes: int
    flags: int
    life: weakref.ref[_Life] | None

    @property
    def is_alive(self) -> bool:
        return self.life is not None and self.life() is not None


@dataclass(frozen=True)
class GivenBytes:
    """A value: a number, a vector or a struct."""

    data: bytes


@dataclass(frozen=True)
class GivenLocal:
    n_bytes: int


@dataclass(frozen=True)
class GivenSvm:
    """Shared virtual memory, of `n_bytes` where pyopencl knows."""

    address: int
    n_bytes: int | None


@dataclass(frozen=True)
class GivenNull:
    """A null pointer."""


@dataclass(frozen=True)
class GivenOther:
    """Anything else, such as a sampler, by its type's name; or nothing known, with the reason."""

    what: str


Given: TypeAlias = GivenBuffer | GivenBytes | GivenLocal | GivenSvm | GivenNull | GivenOther
UNSET = GivenOther("set before the interception began, or by a call that failed")

_LIFE = "_perfmodel_life"


class _Life:
    """Lies in a buffer's own attributes and goes with it; pyopencl's objects have no weak references themselves."""

    __slots__ = ("__weakref__",)


def given(argument: Any) -> Given:
    """Notes what pyopencl's ``Kernel.set_arg`` was given."""
    import pyopencl as cl  # which may not load

    if argument is None:
        return GivenNull()
    if isinstance(argument, cl.Image):
        return GivenOther("Image")
    if isinstance(argument, cl.MemoryObjectHolder):
        life = argument.__dict__.setdefault(_LIFE, _Life())
        return GivenBuffer(argument.int_ptr, argument.size, argument.flags, weakref.ref(life))
    if isinstance(argument, cl.LocalMemory):
        return GivenLocal(argument.size)
    if hasattr(cl, "SVMPointer") and isinstance(argument, cl.SVMPointer):
        return GivenSvm(argument.svm_ptr, argument.size)
    try:
        return GivenBytes(memoryview(argument).tobytes())
    except TypeError:
        return GivenOther(type(argument).__name__)


# The ways in which pyopencl sets arguments: how each tells which ones, and to what.

Pairs: TypeAlias = Iterable[tuple[int, Given]]


def _buf_multi(flat: tuple[Any, ...]) -> Pairs:
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return [(index, GivenBytes(memoryview(arg).tobytes())) for index, arg in pairs]


def _buf_pack_multi(flat: tuple[Any, ...]) -> Pairs:
    triples = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    return [(index, GivenBytes(struct.pack(kind, value))) for index, kind, value in triples]


SETTERS: Mapping[str, Callable[..., Pairs]] = {
    "set_arg": lambda arg_index, arg: [(arg_index, given(arg))],
    "_set_arg_svm": lambda arg_index, arg: [(arg_index, given(arg))],
    "_set_arg_null": lambda arg_index: [(arg_index, GivenNull())],
    "_set_arg_buf": lambda arg_index, arg: [(arg_index, GivenBytes(memoryview(arg).tobytes()))],
    "_set_arg_multi": lambda flat: [(place, given(arg)) for place, arg in zip(flat[::2], flat[1::2], strict=True)],
    "_set_arg_buf_multi": _buf_multi,
    "_set_arg_buf_pack_multi": _buf_pack_multi,
}
"""Methods to which the generated code of ``Kernel.set_args`` and ``Kernel.__call__`` comes down."""
