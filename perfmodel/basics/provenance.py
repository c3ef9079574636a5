"""Lists the versions that decide what is run and how it is counted, and so took part in a result."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from perfmodel.basics.version import VERSION


def versions() -> dict[str, str]:
    """Returns versions by package; what is not installed is left out."""
    found = {"perfmodel": VERSION}
    for package in ("loopy", "islpy-barvinok", "pyopencl"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
