"""The command ``occupancy`` says how full a device is, for given numbers or a kernel of a ``.cl`` file."""

from __future__ import annotations

import argparse
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.basics import files
from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.cli.commands import printing
from perfmodel.cli.options import Command, defaults_from_project_file, json_option, source_options

if TYPE_CHECKING:
    from perfmodel.device import Device

SUMMARY = "how many work-groups a GPU's multiprocessor holds at a time, and which resource decides"
EXAMPLE = "perfmodel occupancy --compute-capability 8.6 --block 320 --registers 10 --shared 1024"


def add(command: Command) -> None:
    added = command(run, "occupancy", SUMMARY, EXAMPLE)
    added.add_argument("tags", nargs="*", metavar="FILE.cl", help="the kernel of a file, instead of numbers")
    which = added.add_mutually_exclusive_group()
    which.add_argument("--compute-capability", metavar="X.Y", help="of an NVIDIA device: 8.6")
    which.add_argument("--arch", metavar="NAME", help="of an AMD device: gfx90a, gfx1030; or gcn, rdna2, cdna3 …")
    which.add_argument("--device", help="one of this machine (default: the best one)")
    added.add_argument("--block", type=int, metavar="N", help="threads of a block (of FILE.cl: from --local)")
    added.add_argument(
        "--registers", type=int, metavar="N", help="of a thread (of FILE.cl: the driver's, or estimated)"
    )
    added.add_argument(
        "--shared", type=int, metavar="BYTES", help="shared memory of a block (of FILE.cl: its own; else 0)"
    )
    added.add_argument("--scalar-registers", type=int, default=0, metavar="N", help="of a wavefront, on GCN and CDNA")
    added.add_argument("--wave-size", type=int, metavar="N", help="64 for kernels of RDNA that are compiled so")
    added.add_argument(
        "--out", metavar="FOLDER", help="write curves over block size, registers and shared memory there"
    )
    json_option(added)
    defaults_from_project_file(added, "device")
    source_options(added)


def run(parsed: argparse.Namespace) -> None:
    """Prints the occupancy, and writes its curves.

    Raises:
        PerfmodelError: for numbers that are missing, a device without limits, or a launch that none can do.
    """
    from perfmodel.device import find_device
    from perfmodel.device.occupancy import limits_of, limits_of_device, occupancy

    is_named = parsed.compute_capability or parsed.arch
    device = None if is_named else find_device(parsed.device)
    limits = limits_of(parsed.compute_capability, parsed.arch) if device is None else limits_of_device(device)
    numbers, told = _of_source(parsed, device) if parsed.tags else _given(parsed)
    found = occupancy(
        limits=limits,
        block=numbers["block"],
        registers=numbers["registers"],
        shared=numbers["shared"],
        scalar_registers=parsed.scalar_registers,
        wave_size=parsed.wave_size,
    )
    written = _written(found, parsed.out) if parsed.out else []
    if parsed.json:
        more = {"source": told, "curves": [str(path) for path in written]}
        printing.document(found.as_json() | more)
        return
    print(found)
    if told != "given":
        print(f"\nregisters and shared memory: {told}")
    for path in written:
        print(f"written: {path}")


def _given(parsed: argparse.Namespace) -> tuple[dict[str, int], str]:
    for name in ("block", "registers"):
        if getattr(parsed, name) is None:
            raise KernelError(f"occupancy needs --{name}, or a kernel's FILE.cl with --global and --local")
    return {"block": parsed.block, "registers": parsed.registers, "shared": parsed.shared or 0}, "given"


def _of_source(parsed: argparse.Namespace, device: Device | None) -> tuple[dict[str, int], str]:
    """Returns the numbers that options give, completed by the kernel of the file, and the source of its registers."""
    from perfmodel.cli.opencl_command import source_kernel
    from perfmodel.kernels.resources import resources

    if len(parsed.tags) > 1 or not parsed.tags[0].endswith(".cl"):
        raise KernelError(f"occupancy is of one FILE.cl, not of {' '.join(parsed.tags)!r}; give that alone")
    kernel, _ = source_kernel(parsed.tags[0], parsed)
    taken = resources(kernel, device)
    told = "from the driver" if taken.source == "driver" else "estimated from the source"
    registers = parsed.registers or taken.registers
    if registers is None:
        registers, told = resources(kernel).registers, "registers estimated from the source, as the driver tells none"
    elif parsed.registers:
        told = f"{parsed.registers} registers as given, the rest {told}"
    assert registers is not None
    sizes = kernel.bind({})
    return {
        "block": parsed.block or prod(int(extent(sizes)) for extent in kernel.counts.local_size),
        "registers": registers,
        "shared": taken.local_bytes if parsed.shared is None else parsed.shared,
    }, told


def _written(found: Any, folder: str) -> list[Path]:
    from perfmodel.report.occupancy_plots import curves, plotted

    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        paths = []
        for curve in curves(found):
            path = target / f"occupancy-{curve.name}.png"
            files.write(path, plotted(curve, found))
            paths.append(path)
    except OSError as error:
        raise PerfmodelError(f"folder {folder} cannot be written ({error.strerror}); give another --out") from error
    return paths
