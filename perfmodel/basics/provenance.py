"""Lists the versions that decide what is run and how it is counted, and so took part in a result."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from perfmodel.basics.version import VERSION

PACKAGES = ("loopy", "islpy-barvinok", "pyopencl")


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Returns versions by package, perfmodel's too; what is not installed is left out."""
    found = {"perfmodel": VERSION}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
