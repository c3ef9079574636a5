"""Defines what a feature is, and how a name becomes one."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from math import prod
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics import registry
from perfmodel.basics.errors import CountingError, FeatureError, PerfmodelError, nearest
from perfmodel.basics.notebook import table, titled
from perfmodel.counting.counts import KernelCounts
from perfmodel.counting.evaluation import Block, blockwise
from perfmodel.counting.recording import Recording, UnrecordableError
from perfmodel.device import OPENCL
from perfmodel.kernels.kernel import Kernel, as_kernel
from perfmodel.vocabulary.feature_name import FeatureName, Word, parse_name

_Said = TypeVar("_Said")


@runtime_checkable
class Feature(Protocol):
    """Any object that gives one number for one kernel."""

    def eval(self, knl: Kernel) -> float: ...


class _Named(ABC):
    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _repr_html_(self) -> str:
        told = (inspect.getdoc(type(self)) or "").split("\n\n")[0]
        rows = [["family", summary_of(self.name)], ["unit", getattr(self, "unit", "s")], ["means", told]]
        return titled(self.name, "", table(["", ""], [row for row in rows if row[1]]))


class CountedFeature(_Named):
    """A feature that follows from a kernel's symbolic counts, so that it is known for whole arrays of sizes.

    Attributes:
        unit: what one of it is, for reports: ``operation``, ``access`` …
        subgroup_size: work-items of the sub-groups whose executions it needs, if any.
    """

    unit: str
    subgroup_size: int | None = None

    def __init__(self, name: FeatureName) -> None:
        self.name = name.text

    @abstractmethod
    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Returns the feature at the sizes: an array that broadcasts against them."""

    def eval(self, knl: Kernel) -> float:
        knl = as_kernel(knl)
        bound = knl.bind({})
        return float(self.values(knl.counts_for(self.subgroup_size), bound))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CountedFeature):
            return NotImplemented
        return type(self) is type(other) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class MeasuredFeature(_Named):
    """A feature that only a run on a device can give; models have it as their output."""

    @abstractmethod
    def select_device(self, default: Any = None, stored: Iterable[Any] = (), runtime: str = OPENCL) -> Any:
        """Returns the device that the name asks for, or the default (a device, a selector, or None for the best).

        Args:
            stored: devices known from measurements, for a name or selector that means none of this machine.
            runtime: what runs the kernels, see `perfmodel.device.find_device`.
        """

    @abstractmethod
    def eval(self, knl: Kernel) -> float: ...


class FeatureFamily(ABC):
    """One family of feature names: everything that starts with `prefix`."""

    prefix: tuple[str, ...]
    summary: str
    examples: tuple[str, ...]

    @property
    def name(self) -> str:
        return "f_" + "_".join(self.prefix)

    @abstractmethod
    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> Feature:
        """Returns the feature of this name; `words` are those behind the prefix. Raises FeatureError."""

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        """Yields names that may matter for a kernel with these counts, coarse ones first; a search drops what is 0 for
        all."""
        return self.examples


class SingleFamily(FeatureFamily):
    """A family of one feature, to whose name no words are added.

    Attributes:
        kind: its class, which is made with the name alone.
    """

    kind: Callable[[FeatureName], Feature]

    @property
    def examples(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.name,)

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> Feature:
        if words:
            raise unknown_word(name, words[0], ("nothing more",))
        return type(self).kind(name)


_registered: dict[str, Feature] = {}


def register(name: str, feature: Feature) -> None:
    """Makes `name` mean `feature` in every model string of this process.

    Raises:
        FeatureError: if the name is no feature name, is taken, or the object has no `eval`.
    """
    parse_name(name)
    _check(name, feature)
    if name in _registered or any(parse_name(name).starts_with(f.prefix) for f in families()):
        raise FeatureError(f"feature name {name!r} is taken; choose another")
    _registered[name] = feature


def families() -> tuple[FeatureFamily, ...]:
    """Returns every family of features found, perfmodel's own and those of installed packages."""
    return registry.entries("features", FeatureFamily)


def candidates(counts: KernelCounts) -> dict[str, Feature]:
    """Returns every feature that may explain the time of a kernel with these counts, by name: of all families, and
    registered.

    What a family offers but does not understand itself, as a function that is none of its kinds, is left out.
    """
    found = dict(_registered)
    for family in families():
        for name in family.candidates(counts):
            with suppress(FeatureError):
                found[name] = feature(name)
    return {name: f for name, f in found.items() if not isinstance(f, MeasuredFeature)}


def feature(name: str, custom: Mapping[str, Feature] | None = None) -> Feature:
    """Returns the feature that a name means.

    Args:
        custom: features of one model, by name; they come before all others.

    Raises:
        FeatureError: for a name that no family understands, with the nearest known one.
    """
    if not isinstance(name, str):
        raise FeatureError(f"{name!r:.40} is no feature's name; give a text, such as 'f_op_float32_madd'")
    for own in (custom or {}, _registered):
        if name in own:
            _check(name, own[name])
            return own[name]
    return _from_families(name, families())


def _check(name: str, found: object) -> None:
    if isinstance(found, type) or not callable(getattr(found, "eval", None)):
        raise FeatureError(f"{found!r} cannot be feature {name!r}; give an object that has a method eval(knl)")


@lru_cache(maxsize=1024)
def _from_families(text: str, known_families: tuple[FeatureFamily, ...]) -> Feature:
    name, family = parse_name(text), family_of(text)
    if family is None:
        known = [family.name for family in known_families] + list(_registered)
        keys = [w.key for w in name.words]
        beginnings = (text, *("f_" + "_".join(keys[:count]) for count in (3, 2, 1)))
        hint = next(filter(None, (nearest(beginning, known) for beginning in beginnings)), "")
        raise FeatureError(f"no feature family knows {text!r}; families are {', '.join(sorted(known))}{hint}")
    return family.parse(name, name.after(family.prefix))


def family_of(text: str) -> FeatureFamily | None:
    """Returns the family that understands a feature's name; None for a name of somebody's own."""
    if text in _registered:
        return None
    name = parse_name(text)
    fitting = [family for family in families() if name.starts_with(family.prefix)]
    return max(fitting, key=lambda family: len(family.prefix), default=None)


def evaluate(found: Feature, kernel: Kernel, bound: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Evaluates a feature of one kernel at arrays of sizes (as `Kernel.bind` gives them): an array of their common
    shape."""
    return evaluate_all({"": found}, kernel, bound)[""]


def evaluate_all(
    features: Mapping[str, Feature], kernel: Kernel, bound: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[np.float64]]:
    """Evaluates several features as `evaluate` does each; counts that they share are evaluated only once."""
    counted = counted_functions(features, kernel, bound)
    values = dict(zip(counted, blockwise(list(counted.values()), bound), strict=True))
    left = {name: found for name, found in features.items() if name not in values}
    if left and (shape := np.broadcast_shapes(*map(np.shape, bound.values()))):
        values |= _size_by_size(left, kernel, bound, shape)
    elif left:
        here = kernel.at(**{name: int(size) for name, size in bound.items()})
        values |= {name: np.array(number(found, here, name)) for name, found in left.items()}
    return {name: values[name] for name in features}


def _size_by_size(
    features: Mapping[str, Feature], kernel: Kernel, bound: Mapping[str, NDArray[Any]], shape: tuple[int, ...]
) -> dict[str, NDArray[np.float64]]:
    """Evaluates features at one size after the other, each of which is counted once for all of them."""
    flat = {name: np.broadcast_to(size, shape).ravel() for name, size in bound.items()}
    rows = [evaluate_all(features, kernel, {name: size[i] for name, size in flat.items()}) for i in range(prod(shape))]
    return {name: np.array([row[name] for row in rows], float).reshape(shape) for name in features}


def counted_functions(
    features: Mapping[str, Feature], kernel: Kernel, bound: Mapping[str, NDArray[Any]]
) -> dict[str, Callable[[Block], NDArray[np.float64]]]:
    """Returns those features as functions of blocks of these sizes that are known for all of them at once."""
    found = {name: f for name, f in features.items() if isinstance(f, CountedFeature)}
    counts_of = _subgroup_sizes(found.values())
    if any(np.ndim(size) for size in bound.values()):
        counts = _of_all_sizes(kernel, bound, set(counts_of.values()))
        if counts is None:
            return {}
    else:
        here = kernel.at(**{name: int(size) for name, size in bound.items()})
        counts = {size: here.counts_for(size) for size in counts_of.values()}
    return {name: partial(f.values, counts[counts_of[f.subgroup_size]]) for name, f in found.items()}


def recorded(
    features: Mapping[str, Feature], kernel: Kernel, recording: Recording, constant: Mapping[str, int]
) -> dict[str, Any]:
    """Records several features of a kernel's sizes, whose values don't matter but for those that are constant.

    Raises:
        UnrecordableError: for what is better known at single sizes, or is more than arithmetic.
    """
    found = {name: f for name, f in features.items() if isinstance(f, CountedFeature)}
    if len(found) < len(features):
        raise UnrecordableError("a feature that is not counted")
    counts = {}
    for asked, size in _subgroup_sizes(found.values()).items():
        general = _general_counts(kernel, constant, size)
        if general is None:
            raise UnrecordableError("counts that are better known at single sizes")
        counts[asked] = general
    return {name: f.values(counts[f.subgroup_size], recording) for name, f in found.items()}


def is_idle(features: Mapping[str, Feature], kernel: Kernel, constant: Mapping[str, int]) -> bool:
    """Returns whether a kernel that features were recorded of neither computes nor accesses anything."""
    sizes = _subgroup_sizes(f for f in features.values() if isinstance(f, CountedFeature)).values()
    found = (_general_counts(kernel, constant, size) for size in sizes)
    return not any(counts is None or counts.operations or counts.accesses for counts in found)


def _subgroup_sizes(features: Iterable[CountedFeature]) -> dict[int | None, int | None]:
    """Returns the sub-groups' size of the counts that features are evaluated of, by the size that they ask for."""
    asked = {f.subgroup_size for f in features}
    # Counts with sub-groups of one size have all that counts without sub-groups have.
    only = next(iter(asked - {None}), None) if len(asked) == 2 and None in asked else None
    return {size: only if size is None else size for size in asked}


def _of_all_sizes(
    kernel: Kernel, bound: Mapping[str, NDArray[Any]], subgroup_sizes: Collection[int | None]
) -> dict[int | None, KernelCounts] | None:
    """Returns counts that hold for arrays of sizes; None where sizes are better looked at one by one."""
    if any(np.any(size < 0) for size in bound.values()):  # for which there are none in general
        return None
    first = {name: int(np.asarray(size).flat[0]) for name, size in bound.items() if np.size(size)}
    same = {name: number for name, number in first.items() if np.all(bound[name] == number)}
    found = {size: _general_counts(kernel.at(**first), same, size) for size in subgroup_sizes}
    known = {size: counts for size, counts in found.items() if counts is not None}
    return known if len(known) == len(found) else None


def _general_counts(kernel: Kernel, constant: Mapping[str, int], subgroup_size: int | None) -> KernelCounts | None:
    """Returns counts for all values of the sizes, or else of those that are not constant; None where there are none,
    or where those at the kernel's own sizes, taken as an example of others, know more places.

    Counts with some sizes as numbers make more of what is no affine function of all of them, but see no rows of arrays
    whose lengths these are: their footprints have to be those at the kernel's own sizes.
    """
    for numbers in ({}, constant) if constant else ({},):
        if not numbers and kernel.is_only_known_here(subgroup_size):
            continue
        with suppress(CountingError):
            general = kernel.counts_at(numbers, subgroup_size)
            if not (numbers or general.unknown_addresses):
                return general
            here, sizes = kernel.counts_for(subgroup_size), kernel.sizes
            knows_all = here.unknown_addresses >= general.unknown_addresses
            if knows_all and here.footprints_at(sizes) == general.footprints_at(sizes):
                return general
    return None


def number(found: Feature, kernel: Kernel, name: str = "") -> float:
    """Returns a feature of one kernel as a number; an error names it as the model does.

    Raises:
        FeatureError: for a user's feature that fails or gives no number, with the feature and the kernel.
    """
    feature = f"feature {name!r} ({type(found).__name__})" if name else f"feature {found!r}"
    try:
        value = found.eval(kernel)
    except PerfmodelError:
        raise
    except Exception as error:
        raise FeatureError(f"{feature} fails for {kernel!r} ({type(error).__name__}: {error})") from error
    if isinstance(value, bool | str) or np.ndim(value) or not isinstance(value, int | float | np.number | np.ndarray):
        raise FeatureError(f"{feature} gives {value!r} for {kernel!r}; its eval has to return one number")
    return float(value)


def by_role(
    name: FeatureName, words: Iterable[Word], read: Callable[[FeatureName, Word], tuple[str, _Said]]
) -> dict[str, _Said]:
    """Returns what the words of a name say, by the role that `read` finds each to play; none may play the same."""
    found: dict[str, _Said] = {}
    for word in words:
        role, said = read(name, word)
        if role in found:
            raise FeatureError(
                f"feature {name.text!r} gives its {role.replace('_', ' ')} twice; leave one out", word.offset
            )
        found[role] = said
    return found


def only_word(name: FeatureName, words: tuple[Word, ...], known: Collection[str], examples: Sequence[str]) -> str:
    """Returns the only word behind a family's prefix, which says which of several numbers is meant.

    Raises:
        FeatureError: there is none, or there are several, or it is not known.
    """
    if len(words) != 1:
        raise FeatureError(f"feature {name.text!r} names no number; write one of {', '.join(examples)}")
    if words[0].key not in known or words[0].condition is not None:
        raise unknown_word(name, words[0], tuple(known))
    return words[0].key


def unknown_word(name: FeatureName, word: Word, known: tuple[str, ...]) -> FeatureError:
    """Returns the error for a word that a family does not have, or does not allow there."""
    if word.key in known:
        problem = "takes no" if (word.condition or "").strip() else "needs a"
        return FeatureError(f"the word {word.key!r} of feature {name.text!r} {problem} condition", word.offset)
    return FeatureError(
        f"feature {name.text!r} has the unknown word {word.key!r}{nearest(word.key, known)}"
        f" (known: {', '.join(known)})",
        word.offset,
    )


def summary_of(name: str) -> str:
    """Returns what the family of a feature counts; empty for a feature of somebody's own."""
    try:
        family = family_of(name)
    except FeatureError:
        return ""
    return family.summary if family else ""
