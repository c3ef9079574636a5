"""Counts kept on disk, by everything that they follow from: counting takes a hundred times as long as reading."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from perfmodel.basics.disk_cache import DiskCache, is_on
from perfmodel.basics.errors import CountingError, DecidedByDataError, OutOfBudgetError, UnknownAddressError
from perfmodel.basics.provenance import versions
from perfmodel.counting.counts import KernelCounts
from perfmodel.counting.serialization import from_data, to_data
from perfmodel.counting.usual_budget import USUAL

ENTRIES = DiskCache("counts", most=16384)
"""Counts are some 20 kB each: those of all kernels that a model of any kernel is made and judged with have room."""
PACKAGES = ("loopy", "islpy", "islpy-barvinok", "pymbolic")
"""The packages that count programs, beside perfmodel itself."""
REFUSALS = {kind.__name__: kind for kind in (CountingError, OutOfBudgetError, DecidedByDataError, UnknownAddressError)}


def cached_counts(
    program: Callable[[], Any],
    statistics: Mapping[str, float],
    subgroup_size: int | None,
    compute: Callable[[], KernelCounts],
    budget: float = USUAL,
) -> KernelCounts:
    """Returns the counts of a program, from the disk, or else computed and written there; so are refusals.

    It is no error if a program can't be known again.

    Args:
        program: gives what the program is known by, as JSON can write it; TypeError where there is no such thing.
        budget: see `perfmodel.counting.budget`; with another one, there may be other counts.

    Raises:
        CountingError: as `compute` does, or did.
    """

    def counted() -> KernelCounts | CountingError:
        try:
            return compute()
        except CountingError as error:
            return error

    try:
        known = json.dumps(program()) if is_on() else ""
    except TypeError:  # an object in the program, such as a preamble generator, that Loopy cannot hash
        return compute()
    key = [VERSIONS, known, sorted(statistics.items()), subgroup_size, budget]
    found = ENTRIES.kept(key, counted, read=_read, plain=_plain)
    if isinstance(found, CountingError):
        raise found
    return found


def loopy_key(translation_unit: Any) -> str:
    """Returns the text by which a Loopy program is known."""
    from loopy.tools import LoopyKeyBuilder  # slow to import, and only Loopy's programs need it

    return str(LoopyKeyBuilder()(_ordered(translation_unit)))


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


def _read(data: Any) -> KernelCounts | CountingError:
    if isinstance(data, dict) and data.keys() == {"refused", "kind"}:
        return REFUSALS.get(data["kind"], CountingError)(str(data["refused"]))
    return from_data(data)


def _plain(found: KernelCounts | CountingError) -> Any:
    if isinstance(found, CountingError):
        return {"refused": str(found), "kind": type(found).__name__}
    return to_data(found)
