"""Selects the kernels that a command's tags name: of generators, of a user's Python file, of a ``.cl`` file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.cli.commands import printing

if TYPE_CHECKING:
    from perfmodel.kernels.kernel import Kernel


def selected(tags: Sequence[str], device: str | None = None) -> list[Kernel]:
    """Returns the kernels that tags select, of generators or of Python files.

    Args:
        device: for which sizes given as ``auto`` are chosen.
    """
    from perfmodel.kernels.kernel_file import is_kernel_file, kernels_from_files

    if any(map(is_kernel_file, tags)):
        return kernels_from_files(tags)
    if source := next((tag for tag in tags if tag.endswith(".cl")), None):
        raise KernelError(
            f"this command can't say how {source} is launched; make it a kernel of a Python file by "
            "perfmodel.Kernel.from_opencl, and give FILE.py:NAME"
        )
    from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection

    return KernelCollection(ALL_GENERATORS).generate_kernels(tags, device)


def described(parsed: argparse.Namespace) -> list[Kernel]:
    """Returns the kernels that a command's tags select, or the one of a ``.cl`` file."""
    return [kernel for kernel, _ in with_contents(parsed)]


def with_contents(parsed: argparse.Namespace) -> list[tuple[Kernel, Mapping[str, Any]]]:
    """Returns the kernels of a command, each with what its arrays hold, as far as that is said."""
    if not any(tag.endswith(".cl") for tag in parsed.tags):
        return [(kernel, {}) for kernel in selected(parsed.tags)]
    from perfmodel.cli.opencl_command import source_kernel

    if len(parsed.tags) > 1:
        raise KernelError(f"give a source file alone, and what {parsed.tags[1]!r} says by --arg NAME=VALUE")
    return [source_kernel(parsed.tags[0], parsed)]


def lists_a_file(parsed: argparse.Namespace) -> bool:
    """Returns True after printing a kernel file's definitions, if the tags are such a file without a name."""
    if len(parsed.tags) != 1 or not parsed.tags[0].endswith(".py"):
        return False
    from perfmodel.kernels.kernel_file import definitions

    (file,) = parsed.tags
    found = definitions(file)
    if not found:
        raise KernelError(
            f"{file} defines no kernel; give it a Loopy program, a perfmodel.Kernel, or a function that returns one"
        )
    if parsed.json:
        printing.document({"file": file, "definitions": found})
    else:
        print("\n".join(f"{file}:{name}: {kind}" for name, kind in found.items()))
    return True


def kernel_data(kernel: Kernel) -> dict[str, Any]:
    """Returns the fields that name a kernel in JSON documents."""
    return {"kernel": kernel.name, "variant": kernel.variant, "sizes": kernel.sizes}


def check_writable(path: str) -> None:
    """Refuses a file that can't be written before anything is measured for it."""
    folder = os.path.dirname(path) or "."  # noqa: PTH120
    is_folder = os.path.isdir(folder) and os.access(folder, os.W_OK)  # noqa: PTH112
    if not path or os.path.isdir(path) or not is_folder:  # noqa: PTH112
        raise PerfmodelError(f"--out {path!r} cannot be written; give a file in a folder that is there")


def store_beside(path: str) -> str:
    """Returns the store that keeps what is measured for a file, where none is named."""
    return os.path.splitext(path)[0] + ".sqlite"  # noqa: PTH122
