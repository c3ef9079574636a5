"""Words say what an array argument holds: ``random:float32:n*n``, ``zeros:int32:64``, ``values.npy``, ``n*n``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.basics.errors import KernelError
from perfmodel.kernels.source_words import ARRAY_WORDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perfmodel.kernels.arguments import Image


@dataclass(frozen=True)
class ArrayContents:
    """Holds what is said of an array argument.

    Attributes:
        extent: how many, as an expression over the sizes: numbers of type `dtype`, or elements of the argument where
            that is None.
        kind: ``random``, ``zeros`` or ``file``; "" if only the extent is said.
        bounds: of random numbers: from the first up to, but without, the second; empty for the usual ones.
        array: what a file holds.
        image: the image that it is, for a texture or surface.
    """

    extent: str
    dtype: np.dtype[Any] | None = None
    kind: str = ""
    bounds: tuple[float, ...] = ()
    array: NDArray[Any] | None = None
    image: Image | None = None

    def elements(self, item_bytes: int) -> str:
        """Returns the extent in elements of the argument, of so many bytes each."""
        if self.array is not None:
            return str(-(-self.array.nbytes // item_bytes))
        if self.dtype is None or self.dtype.itemsize == item_bytes:
            return self.extent
        return f"(({self.extent}) * {self.dtype.itemsize} + {item_bytes - 1}) // {item_bytes}"


UNSAID = ArrayContents("")
"""Nothing is said of what an array holds."""


def whole_numbers(random: np.random.Generator, bounds: Sequence[float], shape: Any) -> NDArray[Any]:
    """Returns random whole numbers from the first bound up to, but without, the second."""
    import numpy as np  # slow to import

    low, high = (int(each) for each in bounds)
    if high <= 2**63:
        return np.asarray(random.integers(low, high, shape, np.int64))
    return np.asarray(random.integers(max(low, 0), min(high, 2**64), shape, np.uint64))


def said_of_array(what: str, text: str, folder: Path = Path()) -> ArrayContents:
    """Returns what a text says of an array.

    Args:
        what: the array, for errors.
        folder: where a file lies.

    Raises:
        KernelError: for what is not understood, and for a file that cannot be read.
    """
    import numpy as np  # slow to import

    kind, *parts = text.split(":")
    if kind == "image":
        from perfmodel.kernels.image_words import texture  # slow to import

        image = texture(what, text)
        return ArrayContents(extent=str(image.extent), dtype=np.dtype(image.dtype), image=image)
    if kind in ("random", "zeros"):
        if len(parts) not in ((2, 4) if kind == "random" else (2,)):
            raise KernelError(f"{what}={text} is not understood; write {ARRAY_WORDS}")
        bounds = tuple(float(number_said(what, bound)) for bound in parts[2:])
        return ArrayContents(extent=parts[1], dtype=_dtype(what, text, parts[0]), kind=kind, bounds=bounds)
    if text.endswith(".npy"):
        try:
            array = np.load(folder / text, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise KernelError(f"{what}: {text} cannot be read; give a file that numpy.save wrote") from error
        if not isinstance(array, np.ndarray) or not array.size:
            raise KernelError(f"{what}: {text} holds no array; give a file that numpy.save wrote")
        return ArrayContents(extent=str(array.size), dtype=array.dtype, kind="file", array=array)
    if ":" in text or not text.strip():
        raise KernelError(f"{what}={text} is not understood; write {ARRAY_WORDS}")
    return ArrayContents(text)


def _dtype(what: str, text: str, name: str) -> np.dtype[Any]:
    import numpy as np  # slow to import

    try:
        dtype = np.dtype(name)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "biuf":
        raise KernelError(f"{what}={text}: {name!r} is no type of numbers; write float32 …")
    return dtype


def number_said(what: str, text: str) -> int | float:
    """Returns the number that a text is, whole ones also by their base (``0x10``).

    Raises:
        KernelError: for what is none.
    """
    with suppress(ValueError):
        return int(text, 0)
    try:
        return float(text)
    except ValueError as error:
        raise KernelError(f"{what}={text} is no number; write one, such as 1024 or 0.5") from error
