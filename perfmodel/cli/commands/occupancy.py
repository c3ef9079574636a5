"""The command ``occupancy`` says how full a device is, for given numbers or kernels."""

from __future__ import annotations

import argparse
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.basics import files
from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.cli.commands import printing
from perfmodel.cli.commands.selection import kernel_data, selected
from perfmodel.cli.options import Command, defaults_from_project_file, json_option, kernel_options

if TYPE_CHECKING:
    from perfmodel.device import Device
    from perfmodel.kernels.kernel import Kernel

EXAMPLE = "perfmodel occupancy --compute-capability 8.6 --block 320 --registers 10 --shared 1024"


def add(command: Command) -> None:
    added = command(run, "occupancy", EXAMPLE)
    kernel_options(added, "*", with_cuda=False)
    which = added.add_mutually_exclusive_group()
    which.add_argument("--compute-capability", metavar="X.Y", help="of an NVIDIA device: 8.6")
    which.add_argument("--arch", metavar="NAME", help="of an AMD device: gfx90a, gfx1030; or gcn, rdna2, cdna3 …")
    which.add_argument("--device", help="one of this machine (default: the best one)")
    added.add_argument("--grid", metavar="N,…", help="of a FILE.cu: blocks by axis, such as '(n+255)/256'")
    added.add_argument("--block", metavar="N", help="threads of a block (of kernels: their own; of a FILE.cu: by axis)")
    added.add_argument(
        "--registers", type=int, metavar="N", help="of a thread (of kernels: the driver's, or estimated)"
    )
    added.add_argument(
        "--shared",
        metavar="BYTES",
        help="shared memory of a block (of kernels: their own; of a FILE.cu: what the launch adds; else 0)",
    )
    added.add_argument("--scalar-registers", type=int, default=0, metavar="N", help="of a wavefront, on GCN and CDNA")
    added.add_argument("--wave-size", type=int, metavar="N", help="64 for kernels of RDNA that are compiled so")
    added.add_argument(
        "--out", metavar="FOLDER", help="write curves over block size, registers and shared memory there"
    )
    json_option(added)
    defaults_from_project_file(added, "device")


def run(parsed: argparse.Namespace) -> None:
    """Prints the occupancy, and writes its curves.

    Raises:
        PerfmodelError: for numbers that are missing, a device without limits, or a launch that none can do.
    """
    from perfmodel.device import find_device  # keeps start-up quick
    from perfmodel.device.occupancy import limits_of, limits_of_device, occupancy

    _share_options(parsed)
    is_named = parsed.compute_capability or parsed.arch
    device = None if is_named else find_device(parsed.device)
    limits = limits_of(parsed.compute_capability, parsed.arch) if device is None else limits_of_device(device)
    kernels: list[Kernel | None] = [*selected(parsed, parsed.device)] if parsed.tags else [None]
    if parsed.out and len(kernels) > 1:
        raise KernelError(f"--out draws the curves of one kernel, and {len(kernels)} are selected; choose by more tags")
    documents, texts = [], []
    for kernel in kernels:
        numbers, told = _given(parsed) if kernel is None else _demand(kernel, parsed, device)
        found = occupancy(
            limits=limits,
            block=numbers["block"],
            registers=numbers["registers"],
            shared=numbers["shared"],
            scalar_registers=parsed.scalar_registers,
            wave_size=parsed.wave_size,
        )
        written = [str(path) for path in (_written(found, parsed.out) if parsed.out else [])]
        named = kernel_data(kernel) if kernel else {}
        documents.append(named | found.as_json() | {"source": told, "curves": written})
        lines = [f"{kernel.label}\n"] if kernel and len(kernels) > 1 else []
        lines += [str(found), *([f"\nregisters and shared memory: {told}"] if kernel else [])]
        texts.append("\n".join([*lines, *(f"written: {path}" for path in written)]))
    printing.found(parsed, lambda: printing.only(documents), lambda: "\n\n\n".join(texts))


def _share_options(parsed: argparse.Namespace) -> None:
    """Gives the options that blocks of a number and kernels of CUDA share to whom they are for."""
    from perfmodel.kernels.source_words import is_cuda  # keeps start-up quick

    if any(map(is_cuda, parsed.tags)):
        parsed.block_size, parsed.shared_bytes = parsed.block, parsed.shared
        parsed.block = parsed.shared = None
        return
    for name in ("block", "shared"):
        if (text := getattr(parsed, name)) is not None:
            if not text.isdecimal():
                raise KernelError(f"--{name} {text!r} is no whole number; give one")
            setattr(parsed, name, int(text))


_SOURCES = {
    "driver": "from the driver",
    "assembler": "from NVIDIA's assembler",
    "estimate": "estimated from the source",
}


def _given(parsed: argparse.Namespace) -> tuple[dict[str, int], str]:
    for name in ("block", "registers"):
        if getattr(parsed, name) is None:
            raise KernelError(f"occupancy needs --{name}, or kernels: tags, FILE.py:NAME, FILE.cl or FILE.cu")
    return {"block": parsed.block, "registers": parsed.registers, "shared": parsed.shared or 0}, "given"


def _demand(kernel: Kernel, parsed: argparse.Namespace, device: Device | None) -> tuple[dict[str, int], str]:
    """Returns the numbers that options give, completed by the kernel's, and the source of its registers."""
    from perfmodel.kernels.resources import resources  # keeps start-up quick

    taken = resources(kernel, device)
    told = _SOURCES[taken.source]
    registers = parsed.registers or taken.registers
    if registers is None:
        registers, told = resources(kernel).registers, "registers estimated from the source, as the driver tells none"
    elif parsed.registers:
        told = f"{parsed.registers} registers as given, the rest {told}"
    assert registers is not None
    return {
        "block": parsed.block or prod(kernel.launch().local_size),
        "registers": registers,
        "shared": taken.local_bytes if parsed.shared is None else parsed.shared,
    }, told


def _written(found: Any, folder: str) -> list[Path]:
    from perfmodel.report.occupancy_plots import curves, plotted  # keeps start-up quick

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
