"""Whether a family's kernels compute on a device what its numpy reference says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.collection import KernelCollection, KernelGenerator
from perfmodel.errors import KernelError
from perfmodel.measurement import ArrayArgument, Launch, run_launch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfmodel.device import Device
    from perfmodel.kernel import Kernel

GUARD = 1024
# Relative to the largest value of an output: sums of a few hundred terms in another order than numpy's, and functions
# that a driver rounds more coarsely.
TOLERANCES = {"float16": 2e-2, "float32": 3e-5, "float64": 1e-12}


def small_kernels(generator: KernelGenerator) -> Iterator[Kernel]:
    """Every variant of a family, by its `checks`: all values of its choices, at sizes that are quick to check."""
    collection = KernelCollection([generator])
    for check in generator.checks:
        given = {tag.partition(":")[0] for tag in check}
        # "All work-groups" and the like would multiply the rest; a family's checks name those that differ.
        every = [f"{tag.name}:*" for tag in generator.tags if not tag.is_open and tag.name not in given]
        yield from collection.generate_kernels([generator.name, *every, *check])


def verify_family(generator: KernelGenerator, device: Device) -> int:
    """Verifies every variant of a family that the device can run, and says how many kernels these were.

    Raises:
        KernelError: for the first kernel that differs from its reference, or does not run.
    """
    number = 0
    for kernel in small_kernels(generator):
        if kernel.tags.get("dtype") == "float16" and not device.half_precision:
            continue
        verify(generator, kernel, device)
        number += 1
    return number


def verify(generator: KernelGenerator, kernel: Kernel, device: Device, seed: int = 7) -> None:
    """Runs a kernel once, on random data, and compares every array that it writes with the reference.

    Raises:
        KernelError: for the first array that differs, with the place; and as `run_launch`.
    """
    launch = kernel.launch()
    arrays = dict(generator.inputs(kernel, np.random.default_rng(seed)))
    before = {name: values.copy() for name, values in arrays.items()}
    expected = generator.reference(kernel, before)
    found = _run_guarded(launch, device, arrays)
    written = {a.name for a in launch.arrays() if a.is_output}
    if set(expected) != written:
        raise KernelError(
            f"{kernel!r} writes {sorted(written)}, and its reference {sorted(expected)}; mend one of them"
        )
    for name, values in expected.items():
        _compare(kernel, name, found[name].ravel(), np.asarray(values).ravel())


def _run_guarded(launch: Launch, device: Device, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The kernel's outputs; each array has elements behind its end that no work-item may write."""
    longer = tuple(replace(a, size=a.size + GUARD) if isinstance(a, ArrayArgument) else a for a in launch.arguments)
    guarded = {name: np.concatenate([values, np.full(GUARD, 77, values.dtype)]) for name, values in arrays.items()}
    found = run_launch(replace(launch, arguments=longer), device, guarded)
    for name, values in found.items():
        if np.any(values[-GUARD:] != 77):
            raise KernelError(f"kernel {launch.kernel_name!r} writes beyond the end of {name!r}; check its bounds")
    return {name: values[:-GUARD] for name, values in found.items()}


def _compare(kernel: Kernel, name: str, found: NDArray[Any], expected: NDArray[Any]) -> None:
    if found.shape != expected.shape:
        raise KernelError(f"{name!r} of {kernel!r} has {found.size} elements, its reference {expected.size}; mend one")
    with np.errstate(invalid="ignore"):
        limit = TOLERANCES.get(found.dtype.name, 0) * np.maximum(
            np.abs(expected), 1e-3 * np.max(np.abs(expected), initial=0)
        )
        wrong = ~(np.abs(found.astype(expected.dtype) - expected) <= limit)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise KernelError(
            f"{kernel!r} computes {name}[{place}] = {found[place]!s}, its reference {expected[place]!s} "
            f"({int(wrong.sum())} of {wrong.size} elements differ); mend one of them"
        )
