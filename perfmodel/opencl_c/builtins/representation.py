"""Values of OpenCL C are held in numpy as this module says, with what all built-ins need of that.

A scalar is an array of one element per work-item (a lane), or a numpy scalar if it is the same for all of them. A
vector has an axis of components in front: ``(width, lanes)``, or ``(width, 1)`` if it is the same for all. So numpy's
broadcasting does the right thing nearly everywhere; what would turn numpy scalars into arrays of no axes goes through
the functions here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from perfmodel.opencl_c.types import Pointer, Type, Vector, element_of

Form: TypeAlias = Callable[..., Any]
"""A form is a function of values."""
Builder: TypeAlias = Callable[[Type, tuple[Type, ...]], Form]
"""A builder makes the form of a built-in for the type of its result and those of its arguments."""
DType: TypeAlias = np.dtype[Any]


def dtype_of(type_: Type) -> DType:
    """Returns what numpy calls the elements of a scalar, vector or pointer."""
    return np.dtype(np.int64) if isinstance(type_, Pointer) else element_of(type_).numpy


def signed(dtype: DType) -> DType:
    """Returns the signed integer of the same size."""
    return np.dtype(f"i{dtype.itemsize}")


def unsigned(dtype: DType) -> DType:
    """Returns the unsigned integer of the same size."""
    return np.dtype(f"u{dtype.itemsize}")


def bits_of(dtype: DType) -> int:
    return 8 * dtype.itemsize


def choose(condition: Any, then: Any, otherwise: Any) -> Any:
    """Chooses as `np.where` does, but keeps numpy scalars; both choices must have one dtype."""
    return np.where(condition, then, otherwise)[()]


def of_lanes(row: Any) -> Any:
    """Returns a scalar from one row of a vector, or a sum of components: a numpy scalar if all lanes share it."""
    return row[0] if row.shape[0] == 1 else row


def truth(form: Form, result: Type) -> Form:
    """Makes a test answer as OpenCL C wants: 0 or 1 for scalars, 0 or -1 for vectors."""
    dtype = dtype_of(result)
    if isinstance(result, Vector):
        return lambda *values: np.negative(form(*values).astype(dtype))
    return lambda *values: form(*values).astype(dtype)


def always(form: Form) -> Builder:
    """Makes a builder of a form that is the same for all types."""
    return lambda result, arguments: form
