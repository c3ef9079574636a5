"""Selects the kernels that a command's words name: of generators, of a user's Python files, of ``.cl`` files.

Every command goes this way, so that whatever one of them takes, the others take as well.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.cli.commands import printing
from perfmodel.cli.options import SOURCE_OPTIONS

if TYPE_CHECKING:
    from perfmodel.kernels.kernel import Kernel

Chosen = tuple["Kernel", Mapping[str, Any]]
"""A kernel, and what its arrays hold, as far as that is said."""


def selected(parsed: argparse.Namespace, device: str | None = None, at_sizes: bool = True) -> list[Kernel]:
    """Returns the kernels that a command's words select, to be counted.

    Args:
        device: for which sizes given as ``auto`` are chosen.
        at_sizes: whether kernels are at the sizes of ``--at``.
    """
    from perfmodel.cli.opencl_command import countable  # keeps start-up quick

    (kernels,) = selected_sets(parsed, [parsed.tags], device, at_sizes)
    return [countable(kernel, parsed) for kernel in kernels]


def with_contents(parsed: argparse.Namespace) -> list[Chosen]:
    """Returns the kernels that a command's words select, each with what its arrays hold, as far as that is said."""
    from perfmodel.cli.opencl_command import contents  # keeps start-up quick

    (kernels,) = selected_sets(parsed, [parsed.tags])
    return [(kernel, contents(kernel, parsed)) for kernel in kernels]


def sets_to_measure(
    parsed: argparse.Namespace, sets: Sequence[Sequence[str]], device: str | None = None
) -> list[list[Kernel]]:
    """Returns the kernels of several selections of one command, to be measured.

    Raises:
        KernelError: where options say what arrays hold, as kernels are measured with random numbers.
    """
    found = selected_sets(parsed, sets, device)
    for kernel in (kernel for kernels in found for kernel in kernels):
        check_measurable(kernel, parsed)
    return found


def check_measurable(kernel: Kernel, parsed: argparse.Namespace) -> None:
    """Refuses contents of arrays that options say of a kernel to be measured, which is with random numbers."""
    from perfmodel.cli.opencl_command import contents  # keeps start-up quick

    if given := contents(kernel, parsed):
        raise KernelError(
            f"--arg {next(iter(given))} says what an array holds, and kernels are measured with random numbers; "
            "give its SIZE alone"
        )


def selected_sets(
    parsed: argparse.Namespace, sets: Sequence[Sequence[str]], device: str | None = None, at_sizes: bool = True
) -> list[list[Kernel]]:
    """Returns the kernels of each of several selections, which share the options of ``.cl`` files; see `selected`."""
    from perfmodel.cli.opencl_command import check_arguments, with_budget  # keeps start-up quick
    from perfmodel.kernels.source_words import is_source
    from perfmodel.kernels.telling_apart import told_apart

    _check_launch_options(parsed, [word for words in sets for word in words if is_source(word)])
    shared = len(sets) > 1
    found = [[with_budget(kernel, parsed) for kernel in _selected(words, parsed, device, shared)] for words in sets]
    together = [kernel for kernels in found for kernel in kernels]
    if len(together) > 1:
        check_arguments(together, parsed)
    return [told_apart(_at(kernels, parsed.at) if at_sizes else kernels) for kernels in found]


def _selected(words: Sequence[str], parsed: argparse.Namespace, device: str | None, shared: bool) -> list[Kernel]:
    from perfmodel.cli.opencl_command import source_kernels, with_arguments  # keeps start-up quick
    from perfmodel.collection.own_files import own_files
    from perfmodel.kernels.kernel_file import is_kernel_file, size_points
    from perfmodel.kernels.source_words import is_source

    sources = [word for word in words if is_source(word)]
    if not sources:
        from perfmodel.collection.collection import select_kernels  # sources need no generators

        kernels = select_kernels(words, device)
        return [with_arguments(kernel, parsed, shared or len(kernels) > 1) for kernel in kernels]
    files = [word for word in words if is_kernel_file(word)]
    points = size_points([word for word in words if word not in (*sources, *files)], ":")
    own = own_files(files)
    if own.generators:
        raise KernelError(f"{', '.join([*files, *sources])} are kernels and generators; give either")
    ours = iter(source_kernels(sources, parsed, shared or bool(files)))
    theirs = iter([with_arguments(kernel, parsed, True) for kernel in own.kernels])
    kernels = [next(ours if word in sources else theirs) for word in words if word in (*sources, *files)]
    return [kernel.at(**point) for kernel in kernels for point in points]


def _at(kernels: Sequence[Kernel], pairs: Sequence[str] | None) -> list[Kernel]:
    """Returns the kernels at all combinations of the sizes that ``--at`` gives, each once; as they are without."""
    from perfmodel.kernels.kernel_file import size_points  # keeps start-up quick

    if not pairs:
        return list(kernels)
    points = size_points(pairs, "=")
    moved = [kernel.at(**point) for kernel in kernels for point in points]
    return list({(kernel, kernel.label): kernel for kernel in moved}.values())


def _check_launch_options(parsed: argparse.Namespace, sources: Sequence[str]) -> None:
    """Refuses options that say how a source file is launched where there is none."""
    for name, option in SOURCE_OPTIONS.items():
        if getattr(parsed, name) and not sources:
            raise KernelError(f"{option} says how a FILE.cl is launched, or a FILE.cu, and there is none; leave it out")


def lists_a_file(parsed: argparse.Namespace, with_generators: bool = False) -> bool:
    """Returns True after printing what a file without a name defines, if that is what the words are.

    Args:
        with_generators: whether a file of generators is listed as well, with their tags, rather than selecting all of
            their kernels.
    """
    if len(parsed.tags) != 1 or not parsed.tags[0].endswith(".py"):
        return False
    from perfmodel.collection.own_files import definitions  # keeps start-up quick
    from perfmodel.report import kernel_list

    (file,) = parsed.tags
    found, generators = definitions(file)
    if generators and not with_generators:
        return False
    listed, text = (kernel_list.as_json(generators), kernel_list.as_text(generators)) if generators else ({}, "")
    lines = [f"{file}:{name}: {kind}" for name, kind in found.items()] + [f"\n{text}"] * bool(text)
    printing.found(parsed, lambda: {"file": file, "definitions": found, **listed}, lambda: "\n".join(lines))
    return True


def lists_a_source(parsed: argparse.Namespace) -> bool:
    """Returns True after printing the kernels of a file of source of whose launch nothing is said."""
    from perfmodel.kernels.source_words import CUDA, SOURCES  # keeps start-up quick

    said = (parsed.global_size, parsed.local_size, parsed.grid, parsed.block_size)
    if len(parsed.tags) != 1 or not parsed.tags[0].endswith(SOURCES) or any(said):
        return False
    (file,) = parsed.tags
    if file.endswith(CUDA):
        from perfmodel.cli.cuda_command import kernels_of  # keeps start-up quick
    else:
        from perfmodel.cli.opencl_command import kernels_of  # keeps start-up quick
    found = kernels_of(file, parsed)
    lines = [f"{file}:{name}: {kind}" for name, kind in found.items()]
    printing.found(parsed, lambda: {"file": file, "definitions": found}, lambda: "\n".join(lines))
    return True


def kernel_data(kernel: Kernel) -> dict[str, Any]:
    """Returns the fields that name a kernel in JSON documents."""
    return {"kernel": kernel.name, "variant": kernel.variant, "sizes": kernel.sizes}


def check_writable(path: str, option: str = "--out") -> None:
    """Refuses a file that can't be written before anything is measured for it."""
    folder = os.path.dirname(path) or "."  # noqa: PTH120
    is_folder = os.path.isdir(folder) and os.access(folder, os.W_OK)  # noqa: PTH112
    if not path or os.path.isdir(path) or not is_folder:  # noqa: PTH112
        raise PerfmodelError(
            f"{option} {path!r} cannot be written; give a file in a folder that is there, and that you may write"
        )


def store_beside(path: str) -> str:
    """Returns the store that keeps what is measured for a file, where none is named."""
    return os.path.splitext(path)[0] + ".sqlite"  # noqa: PTH122
