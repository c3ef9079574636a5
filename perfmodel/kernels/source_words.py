"""A command's word may name a file of kernels' source, and a kernel in it: ``blur.cl``, ``scale.cu:scale<float>``."""

from __future__ import annotations

from pathlib import Path

from perfmodel.basics.files import check_file

CUDA = (".cu", ".cuh", ".hip", ".ptx")
SOURCES = (".cl", *CUDA)
"""The endings of files with kernels' source: OpenCL C, CUDA C++, HIP and PTX."""
ARRAY_WORDS = "random:DTYPE:SIZE or random:DTYPE:SIZE:LOW:HIGH; zeros:DTYPE:SIZE; SIZE alone; FILE.npy"
"""Words that an array argument may be given as; see `perfmodel.kernels.array_contents`."""


def is_source(argument: str) -> bool:
    """Returns True if a command's argument names a file of kernels' source, or a kernel in it."""
    return split(argument)[0].endswith(SOURCES)


def is_cuda(argument: str) -> bool:
    """Returns True if a command's argument names a file of CUDA C++, HIP or PTX, or a kernel in it."""
    return split(argument)[0].endswith(CUDA)


def source_text(path: Path) -> str:
    """Returns what a file of source holds, as compilers take it: UTF-8, also with its mark, or Latin-1 in comments.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no text.
    """
    check_file(path)
    content = path.read_bytes()
    if b"\0" in content:
        raise ValueError(f"{path} is no text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def split(argument: str) -> tuple[str, str]:
    """Returns the path of a ``FILE.cl:KERNEL`` and the kernel's name; the name is empty where there is none."""
    for ending in SOURCES:
        path, mark, name = argument.partition(f"{ending}:")
        if mark and name:
            return path + ending, name
    return argument, ""
