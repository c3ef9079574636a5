"""The command ``improve`` proposes changes of a kernel, predicts and verifies them, and measures the best few."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from perfmodel.basics import files
from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.cli.commands import printing
from perfmodel.cli.commands.predicting import loaded, shipped_option
from perfmodel.cli.commands.selection import check_writable
from perfmodel.cli.options import Command, calibration_option, counting_options, json_option


def add(command: Command) -> None:
    added = command(
        _improve,
        "improve",
        "perfmodel improve --device h200 matmul.py:product n=1024",
    )
    calibration_option(added, "left out with --device")
    counting_options(added, "*")
    shipped_option(added)
    added.add_argument(
        "--most", type=int, default=40, metavar="N", help="changed kernels to predict, at most (default: %(default)s)"
    )
    added.add_argument(
        "--measure",
        type=int,
        default=3,
        metavar="N",
        help="how many of the best are measured, if the device is on this machine (default: %(default)s)",
    )
    added.add_argument("--store", help="SQLite file that keeps measured times (default: none)")
    added.add_argument("--out", metavar="FILE.cl", help="write the OpenCL C of the best one")
    json_option(added)


def _improve(parsed: argparse.Namespace) -> None:
    from perfmodel.tuning.improving.improve_kernel import improved  # keeps start-up quick

    if parsed.out is not None:
        check_writable(parsed.out)
    calibration, kernels = loaded(parsed)
    if len(kernels) != 1:
        raise KernelError(
            f"improve takes one kernel, and the words select {len(kernels)}; choose by more tags or sizes"
        )
    (kernel,) = kernels
    found = improved(
        kernel, _maker(parsed.tags), calibration, parsed.most, parsed.measure, None, parsed.store, progress=None
    )
    printing.found(parsed, found.as_json, found.__str__)
    if parsed.out is not None:
        try:
            files.write(parsed.out, found.best.launch().source)
        except OSError as error:
            raise PerfmodelError(f"--out {parsed.out!r} cannot be written ({error.strerror})") from error


def _maker(words: list[str]) -> Callable[..., Any] | None:
    """Returns the function of a user's file that the words name, if that is what they name."""
    from perfmodel.kernels import kernel_file  # keeps start-up quick

    named = [kernel_file.split(word) for word in words if kernel_file.is_kernel_file(word)]
    return kernel_file.maker_called(*named[0]) if len(named) == 1 else None
