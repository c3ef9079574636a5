"""Counts kept on disk, by everything that they follow from: counting takes a hundred times as long as reading.

An entry is one file: the SHA-256 of its text, and the text. ``PERFMODEL_NO_CACHE=1`` switches the cache off.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import platformdirs

from perfmodel.basics import files
from perfmodel.basics.errors import CountingError, DecidedByDataError, OutOfBudgetError
from perfmodel.basics.provenance import versions
from perfmodel.counting.counts import KernelCounts
from perfmodel.counting.serialization import from_data, to_data
from perfmodel.counting.usual_budget import USUAL

MOST_ENTRIES = 16384
"""So many counts are kept, some 20 kB each: those of all kernels that a model of any kernel is made and judged with."""
PACKAGES = ("loopy", "islpy", "islpy-barvinok", "pymbolic")
"""The packages that count programs, beside perfmodel itself."""
REFUSALS = {kind.__name__: kind for kind in (CountingError, OutOfBudgetError, DecidedByDataError)}


def cached_counts(
    program: Callable[[], Any],
    statistics: Mapping[str, float],
    subgroup_size: int | None,
    compute: Callable[[], KernelCounts],
    budget: float = USUAL,
) -> KernelCounts:
    """Returns the counts of a program, from the disk, or else computed and written there; so are refusals.

    A damaged entry is replaced. It is no error if a folder can't be written, or a program can't be known again.

    Args:
        program: gives what the program is known by, as JSON can write it; TypeError where there is no such thing.
        budget: see `perfmodel.counting.budget`; with another one, there may be other counts.

    Raises:
        CountingError: as `compute` does, or did.
    """
    if os.environ.get("PERFMODEL_NO_CACHE") == "1":
        return compute()
    try:
        path = folder() / f"{_key(program(), statistics, subgroup_size, budget)}.json"
    except TypeError:  # an object in the program, such as a preamble generator, that Loopy cannot hash
        return compute()
    try:
        found = _read(path)
    except (OSError, ValueError, RecursionError):  # absent or damaged
        try:
            found = compute()
        except CountingError as error:
            found = error
        _write(path, found)
    if isinstance(found, CountingError):
        raise found
    return found


def folder() -> Path:
    """Returns the folder that holds the entries."""
    return platformdirs.user_cache_path("perfmodel", appauthor=False) / "counts"


def loopy_key(translation_unit: Any) -> str:
    """Returns the text by which a Loopy program is known."""
    from loopy.tools import LoopyKeyBuilder  # slow to import, and only Loopy's programs need it

    return str(LoopyKeyBuilder()(_ordered(translation_unit)))


def _key(program: Any, statistics: Mapping[str, float], subgroup_size: int | None, budget: float) -> str:
    parts = [VERSIONS, program, sorted(statistics.items()), subgroup_size, budget]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _ordered(translation_unit: Any) -> Any:
    """Returns the same program with the sizes of its domains sorted by name; Loopy's order differs by process."""
    import islpy  # slow to import, as Loopy is

    kernel = translation_unit.default_entrypoint

    def ordered(domain: Any) -> Any:
        names = sorted(domain.get_var_names(islpy.dim_type.param))
        return domain.align_params(islpy.Space.create_from_names(islpy.DEFAULT_CONTEXT, set=[], params=names).params())

    domains = [ordered(domain) for domain in kernel.domains]
    return translation_unit.with_kernel(kernel.copy(domains=domains, assumptions=ordered(kernel.assumptions)))


def _versions() -> list[Any]:
    """Returns everything but the program that counts depend on: versions, and the content of perfmodel's own
    modules."""
    own = hashlib.sha256()
    here = Path(__file__).parent
    for source in sorted([*here.rglob("*.py"), *(here.parent / "opencl_c").rglob("*.py")]):
        own.update(source.read_bytes())
    return [own.hexdigest(), versions(PACKAGES), _built()]


def _built() -> list[int]:
    """Returns the sizes of islpy's compiled modules, which tell whether it was built with barvinok: importing it to
    ask takes longer than reading counts."""
    found = importlib.util.find_spec("islpy")
    folders = found.submodule_search_locations if found else None
    return sorted(path.stat().st_size for folder in folders or () for path in Path(folder).glob("_isl*"))


# Once and now, so that it is the code that this process runs.
VERSIONS = _versions()


def _prune(entries: Path) -> None:
    """Removes the oldest half of too many entries: those of former versions are never asked for again.

    What is there is counted once, and then with what this process writes: looking at all of them takes longer than
    counting a small kernel.
    """
    _number[entries] = _number[entries] + 1 if entries in _number else len(list(entries.glob("*.json")))
    if _number[entries] > MOST_ENTRIES:
        found = sorted(entries.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in found[: len(found) // 2]:
            path.unlink(missing_ok=True)
        _number[entries] = len(found) - len(found) // 2


_number: dict[Path, int] = {}
"""The number of entries in each folder, but for those that other processes wrote meanwhile."""


def _read(path: Path) -> KernelCounts | CountingError:
    digest, _, text = path.read_bytes().partition(b"\n")
    if hashlib.sha256(text).hexdigest().encode() != digest:
        raise ValueError(f"{path} is damaged")
    data = json.loads(text)
    if isinstance(data, dict) and data.keys() == {"refused", "kind"}:
        return REFUSALS.get(data["kind"], CountingError)(str(data["refused"]))
    return from_data(data)


def _write(path: Path, found: KernelCounts | CountingError) -> None:
    if isinstance(found, CountingError):
        data: dict[str, Any] = {"refused": str(found), "kind": type(found).__name__}
    else:
        data = to_data(found)
    text = json.dumps(data, separators=(",", ":")).encode()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, hashlib.sha256(text).hexdigest().encode() + b"\n" + text)
        _prune(path.parent)
