"""Verifies on a device that kernels compute what a numpy reference says, or another kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import GeneratorError, KernelError, PerfmodelError
from perfmodel.collection.collection import KernelCollection
from perfmodel.collection.kernel_generator import TOLERANCES, KernelGenerator
from perfmodel.device import Device
from perfmodel.device.buffers import random_values
from perfmodel.kernels.arguments import Array, Scalar, scalars_of
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.protocol import run_launch

SEED = 7
"""Begins the random data of every run, so that one that fails can be run again."""
GUARD = 1024


def small_variants(generator: KernelGenerator) -> Iterator[tuple[dict[str, str], list[dict[str, int]]]]:
    """Yields every variant of a family, by its `checks`: all values of its choices, with sizes that are quick to check.

    No program is made, which may take Loopy a tenth of a second: so few of many variants are chosen quickly.

    Raises:
        TagError: for checks that are no filters, or select nothing.
    """
    collection = KernelCollection([generator])
    if not generator.checks or isinstance(generator.checks, str) or any(isinstance(c, str) for c in generator.checks):
        raise GeneratorError(
            f"checks of generator {generator.name!r} are no filters with small sizes; write a tuple of tuples, such as "
            'checks = (("n:64",),), a comma behind each filter'
        )
    for check in generator.checks:
        given = {tag.partition(":")[0] for tag in check}
        # "All work-groups" and the like would multiply the rest; a family's checks name those that differ.
        every = [f"{tag.name}:*" for tag in generator.tags if not tag.is_open and tag.name not in given]
        yield from collection.selected([generator.name, *every, *check])


def small_kernels(generator: KernelGenerator) -> Iterator[Kernel]:
    """Yields the kernels of `small_variants`.

    Raises:
        TagError: as `small_variants`.
    """
    for variant, sizes in small_variants(generator):
        yield from generator.made(variant, sizes)


def verify_family(generator: KernelGenerator, device: Device) -> int:
    """Verifies every variant of a family that the device can run; returns the number of these kernels.

    Raises:
        KernelError: for the first kernel that differs from its reference, or does not run.
    """
    number = 0
    for kernel in small_kernels(generator):
        if can_run(kernel, device):
            verify(generator, kernel, device)
            number += 1
    return number


def can_run(kernel: Kernel, device: Device) -> bool:
    """Returns True if the device has the kernel's types, and allows groups as large."""
    launch = kernel.launch()
    numbers: list[Array | Scalar] = [
        *launch.arrays(),
        *(scalar for argument in launch.arguments for scalar in scalars_of(argument)),
    ]
    types = {kernel.tags.get("dtype"), *(number.dtype for number in numbers)}
    return (
        (device.half_precision or "float16" not in types)
        and (device.double_precision or "float64" not in types)
        and math.prod(launch.local_size) <= device.max_work_group_size
    )


def verify(generator: KernelGenerator, kernel: Kernel, device: Device) -> None:
    """Runs a kernel once, on random data, and compares every array that it writes with the reference.

    All arrays may differ only where the reference says, and not beyond their ends. What a kernel writes before an
    array's start is not seen.

    Raises:
        KernelError: for the first array that differs, with the index; and as `run_launch`.
        TagError: if the generator fails to give inputs or a reference.
    """
    launch = kernel.launch()
    arrays = _arrays(generator, "inputs", kernel, np.random.default_rng(SEED))
    before = {name: values.copy() for name, values in arrays.items()}
    expected = _arrays(generator, "reference", kernel, before)
    found = _run_guarded(launch, device, arrays)
    written = {a.name for a in launch.arrays() if a.is_output}
    for name, values in found.items():
        if name not in written and values.tobytes() != arrays[name].tobytes():
            raise KernelError(f"{kernel!r} writes {name!r}, which is not declared as an output; declare it as one")
    if set(expected) != written:
        raise KernelError(
            f"{kernel!r} writes {sorted(written)}, and its reference {sorted(expected)}; mend one of them"
        )
    for name, values in expected.items():
        tolerance = generator.tolerance(kernel, found[name].dtype.name)
        _compare(repr(kernel), name, found[name], values.ravel(), tolerance)


def verify_against(original: Launch, launch: Launch, device: Device) -> None:
    """Runs two launches once on the same random data, and compares every array that the first one writes.

    Raises:
        KernelError: for the first array that differs, with the index; for other arguments; and as `run_launch`.
    """
    random = np.random.default_rng(SEED)
    taken, given = ({a.name: (a.size, a.dtype) for a in each.arrays()} for each in (original, launch))
    name = repr(launch.kernel_name)
    if taken != given:
        raise KernelError(f"kernel {name} has other arrays than the original; give both the same")
    arrays = {name: random_values(random, str(dtype), size) for name, (size, dtype) in taken.items()}
    expected, found = (_run_guarded(each, device, arrays) for each in (original, launch))
    for array, values in expected.items():
        _compare(
            f"kernel {name}", array, found[array], values, TOLERANCES.get(found[array].dtype.name, 0), "the original"
        )


def _arrays(generator: KernelGenerator, method: str, kernel: Kernel, argument: Any) -> dict[str, NDArray[Any]]:
    """Returns what a generator's method gives, as arrays of numbers by name."""
    try:
        given = getattr(generator, method)(kernel, argument)
        found = {str(name): np.asarray(values) for name, values in given.items()}
    except PerfmodelError:
        raise
    except Exception as error:
        raise GeneratorError(
            f"generator {generator.name!r} failed in {method}(…) of {kernel!r} with {type(error).__name__}: {error}; "
            "return a dictionary of arrays by name"
        ) from error
    for name, values in found.items():
        if values.dtype.kind not in "biufc":
            raise GeneratorError(
                f"{method}(…) of generator {generator.name!r} gives {name!r} as {values.dtype}; return numbers"
            )
    return found


def _run_guarded(launch: Launch, device: Device, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Returns all arrays after the run; each has elements behind its end that no work-item may write."""
    longer = tuple(
        replace(a, extent=a.size + GUARD, is_output=True) if isinstance(a, Array) else a for a in launch.arguments
    )
    guarded = {n: np.concatenate([values.ravel(), np.full(GUARD, 77, values.dtype)]) for n, values in arrays.items()}
    found = run_launch(replace(launch, arguments=longer), device, guarded)
    for name, values in found.items():
        if np.any(values[-GUARD:] != 77):
            raise KernelError(f"kernel {launch.kernel_name!r} writes beyond the end of {name!r}; check its bounds")
    return {name: values.ravel()[:-GUARD] for name, values in found.items()}


def _compare(
    kernel: str, name: str, found: NDArray[Any], expected: NDArray[Any], tolerance: float, than: str = ""
) -> None:
    """Compares an array with what is expected: by a reference that may be wrong itself, or `than` another kernel's."""
    of, remedy = (than, "") if than else ("its reference", "; mend one of them")
    if found.shape != expected.shape:
        raise KernelError(
            f"{name!r} of {kernel} has {found.size} elements, {of} {expected.size}; mend one "
            "(arrays are given to a reference flat, so reshape those of several axes)"
        )
    with np.errstate(invalid="ignore"):
        limit = tolerance * np.maximum(np.abs(expected), 1e-3 * np.max(np.abs(expected), initial=0))
        wrong = ~(np.abs(found.astype(expected.dtype) - expected) <= limit)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise KernelError(
            f"{kernel} computes {name}[{place}] = {found[place]!s}, {of} {expected[place]!s} "
            f"({int(wrong.sum())} of {wrong.size} elements differ){remedy}"
        )
