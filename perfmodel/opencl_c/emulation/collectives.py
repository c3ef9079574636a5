"""Work-items of a group or sub-group exchange values here, those that are active: a row of a table for each team."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.opencl_c.emulation.lanes import Integers, Layout, Mask, Values

_Table = NDArray[Any]

_WORDS, _BITS = 4, 32
"""A ballot has so many words of so many bits."""


def _logical(ufunc: np.ufunc) -> Callable[..., _Table]:
    def join(values: _Table, accumulates: bool) -> _Table:
        joined = ufunc.accumulate(values != 0, axis=-1) if accumulates else ufunc.reduce(values != 0, axis=-1)
        return np.asarray(joined).astype(values.dtype)

    return join


def _plain(ufunc: np.ufunc) -> Callable[..., _Table]:
    def join(values: _Table, accumulates: bool) -> _Table:
        whole = ufunc.accumulate if accumulates else ufunc.reduce
        return np.asarray(whole(values, axis=-1)).astype(values.dtype)  # numpy's sums of short numbers are wider

    return join


_JOINS: Mapping[str, Callable[..., _Table]] = {
    "add": _plain(np.add),
    "mul": _plain(np.multiply),
    "min": _plain(np.minimum),
    "max": _plain(np.maximum),
    "and": _plain(np.bitwise_and),
    "or": _plain(np.bitwise_or),
    "xor": _plain(np.bitwise_xor),
    "logical_and": _logical(np.logical_and),
    "logical_or": _logical(np.logical_or),
    "logical_xor": _logical(np.logical_xor),
}


def _nothing(by: str, dtype: np.dtype[Any]) -> Any:
    """Returns the value that joins with any other to that one."""
    if by in ("min", "max"):
        if dtype.kind == "f":
            return dtype.type(np.inf if by == "min" else -np.inf)
        limits = np.iinfo(dtype)
        return dtype.type(limits.max if by == "min" else limits.min)
    if by == "and":
        return np.invert(dtype.type(0))
    return dtype.type(1 if by in ("mul", "logical_and") else 0)


class Teams:
    """Teams are the groups or sub-groups of a batch, with the active lanes of each.

    Attributes:
        size: places of a team. team, at: of each lane, its team and its place there. count: of all teams.
        is_active: by team and place.
    """

    def __init__(self, layout: Layout, mask: Mask, size: int) -> None:
        self.layout, self.size = layout, size
        of_group = -(-layout.items // size)
        self.team, self.at = layout.group_of * of_group + layout.local_of // size, layout.local_of % size
        self.count = layout.groups * of_group
        self.is_active = self.spread(mask.bits, False)

    def spread(self, value: Values, rest: Any) -> _Table:
        """Returns values of lanes by team and place, vectors with their components in front."""
        value = np.asarray(value)
        lanes = np.broadcast_to(value, (*value.shape[:-1], self.layout.lanes) if value.ndim else (self.layout.lanes,))
        table = np.full((*lanes.shape[:-1], self.count, self.size), rest, lanes.dtype)
        table[..., self.team, self.at] = lanes
        return table

    def gathered(self, table: _Table) -> Values:
        """Returns each lane's value of a table."""
        return table[..., self.team, self.at]

    def taken(self, value: Values, places: Values) -> Values:
        """Returns for each lane the value of its team's lane at some place; its own where there is none."""
        places = np.broadcast_to(np.asarray(places).astype(np.int64), (self.layout.lanes,))
        is_inside = (places >= 0) & (places < self.size)
        table = self.spread(value, 0)
        return table[..., self.team, np.where(is_inside, places, self.at)]

    def joined(self, value: Values, by: str, accumulates: bool = False, clusters: int = 0) -> _Table:
        """Returns the active lanes' values joined, by team and place."""
        value = np.asarray(value)
        table = self.spread(value, 0)
        table = np.where(self.is_active, table, _nothing(by, table.dtype))
        if accumulates:
            return _JOINS[by](table, True)
        width = clusters or self.size
        parted = table.reshape(*table.shape[:-1], self.size // width, width)
        whole = _JOINS[by](parted, False)
        return np.repeat(whole, width, axis=-1)

    def first(self) -> Integers:
        """Returns the place of each team's first active lane."""
        return np.asarray(self.is_active.argmax(axis=1))


def collective(teams: Teams, operation: str, by: str, dtype: np.dtype[Any], *operands: Values) -> Values:
    """Returns what every active lane gets; numbers of others mean nothing."""
    result = np.asarray(_OPERATIONS[operation](teams, by, *operands))
    return np.broadcast_to(result.astype(dtype), (*result.shape[:-1], teams.layout.lanes))


# --- operations


def _reduce(teams: Teams, by: str, value: Values) -> Values:
    return teams.gathered(teams.joined(value, by))


def _inclusive(teams: Teams, by: str, value: Values) -> Values:
    return teams.gathered(teams.joined(value, by, accumulates=True))


def _exclusive(teams: Teams, by: str, value: Values) -> Values:
    table = teams.joined(value, by, accumulates=True)
    first = np.full_like(table[..., :1], _nothing(by, table.dtype))
    return teams.gathered(np.concatenate([first, table[..., :-1]], axis=-1))


def _clustered(teams: Teams, by: str, value: Values, clusters: Values) -> Values:
    return teams.gathered(teams.joined(value, by, clusters=min(int(np.ravel(clusters)[0]), teams.size)))


def _all(teams: Teams, by: str, value: Values) -> Values:
    return teams.gathered(teams.joined((np.asarray(value) != 0).astype(np.int32), "and"))


def _any(teams: Teams, by: str, value: Values) -> Values:
    return teams.gathered(teams.joined((np.asarray(value) != 0).astype(np.int32), "or"))


def _all_equal(teams: Teams, by: str, value: Values) -> Values:
    return _all(teams, by, np.asarray(value) == _broadcast_first(teams, by, value))


def _elect(teams: Teams, by: str) -> Values:
    return teams.at == teams.first()[teams.team]


def _broadcast(teams: Teams, by: str, value: Values, *ids: Values) -> Values:
    """Takes the value of one work-item: of a sub-group by its number, of a group by its ids along the axes."""
    place: Any = 0
    before = 1
    for number, size in zip(ids, (*teams.layout.local_size, 1), strict=False):
        place, before = place + np.asarray(number).astype(np.int64) * before, before * size
    return teams.taken(value, place)


def _broadcast_first(teams: Teams, by: str, value: Values) -> Values:
    return teams.taken(value, teams.first()[teams.team])


def _shuffle(teams: Teams, by: str, value: Values, place: Values) -> Values:
    return teams.taken(value, place)


def _shuffle_xor(teams: Teams, by: str, value: Values, places: Values) -> Values:
    return teams.taken(value, teams.at ^ np.asarray(places).astype(np.int64))


def _shuffle_up(teams: Teams, by: str, value: Values, by_places: Values) -> Values:
    return teams.taken(value, teams.at - np.asarray(by_places).astype(np.int64))


def _shuffle_down(teams: Teams, by: str, value: Values, by_places: Values) -> Values:
    return teams.taken(value, teams.at + np.asarray(by_places).astype(np.int64))


def _two_up(teams: Teams, by: str, previous: Values, current: Values, by_places: Values) -> Values:
    place = teams.at - np.asarray(by_places).astype(np.int64)
    return np.where(place < 0, teams.taken(previous, place + teams.size), teams.taken(current, place))


def _two_down(teams: Teams, by: str, current: Values, following: Values, by_places: Values) -> Values:
    place = teams.at + np.asarray(by_places).astype(np.int64)
    return np.where(place >= teams.size, teams.taken(following, place - teams.size), teams.taken(current, place))


def _rotate(teams: Teams, by: str, value: Values, by_places: Values, clusters: Values = None) -> Values:
    width = teams.size if clusters is None else np.asarray(clusters).astype(np.int64)
    own = teams.at // width * width
    return teams.taken(value, own + (teams.at - own + np.asarray(by_places).astype(np.int64)) % width)


def _words(bits: _Table) -> Values:
    """Returns the four words of a ballot, by lane, of bits by lane and place."""
    places = np.zeros((len(bits), _WORDS * _BITS), np.uint64)
    places[:, : bits.shape[1]] = bits[:, : _WORDS * _BITS]
    weights = np.uint64(1) << np.arange(_BITS, dtype=np.uint64)
    return (places.reshape(-1, _WORDS, _BITS) * weights).sum(axis=2).astype(np.uint32).T


def _bits(teams: Teams, ballot: Values) -> _Table:
    """Returns the bits of a ballot by lane and place, those of places that the team has."""
    words = np.broadcast_to(ballot, (_WORDS, teams.layout.lanes)).T
    bits = words[:, :, np.newaxis] >> np.arange(_BITS, dtype=np.uint32) & 1
    found = np.zeros((teams.layout.lanes, teams.size), bool)
    all_bits = bits.reshape(len(words), -1)[:, : teams.size]
    found[:, : all_bits.shape[1]] = all_bits
    return found


def _ballot(teams: Teams, by: str, value: Values) -> Values:
    said = teams.spread(np.asarray(value) != 0, False) & teams.is_active
    return _words(said[teams.team])


def _inverse_ballot(teams: Teams, by: str, ballot: Values) -> Values:
    return _bits(teams, ballot)[np.arange(teams.layout.lanes), teams.at]


def _bit_extract(teams: Teams, by: str, ballot: Values, place: Values) -> Values:
    places = np.broadcast_to(np.asarray(place).astype(np.int64), (teams.layout.lanes,)) % teams.size
    return _bits(teams, ballot)[np.arange(teams.layout.lanes), places]


def _bit_count(teams: Teams, by: str, ballot: Values) -> Values:
    return _bits(teams, ballot).sum(axis=1)


def _bits_up_to(teams: Teams, by: str, ballot: Values) -> Values:
    return (_bits(teams, ballot) & (np.arange(teams.size) <= teams.at[:, np.newaxis])).sum(axis=1)


def _bits_before(teams: Teams, by: str, ballot: Values) -> Values:
    return (_bits(teams, ballot) & (np.arange(teams.size) < teams.at[:, np.newaxis])).sum(axis=1)


def _lowest(teams: Teams, by: str, ballot: Values) -> Values:
    return _bits(teams, ballot).argmax(axis=1)


def _highest(teams: Teams, by: str, ballot: Values) -> Values:
    return teams.size - 1 - _bits(teams, ballot)[:, ::-1].argmax(axis=1)


def _mask(compare: np.ufunc) -> Callable[..., Values]:
    return lambda teams, by: _words(compare(np.arange(teams.size), teams.at[:, np.newaxis]))


_OPERATIONS: Mapping[str, Callable[..., Values]] = {
    "reduce": _reduce,
    "scan_inclusive": _inclusive,
    "scan_exclusive": _exclusive,
    "clustered_reduce": _clustered,
    "all": _all,
    "any": _any,
    "all_equal": _all_equal,
    "elect": _elect,
    "broadcast": _broadcast,
    "broadcast_first": _broadcast_first,
    "shuffle": _shuffle,
    "shuffle_xor": _shuffle_xor,
    "shuffle_up": _shuffle_up,
    "shuffle_down": _shuffle_down,
    "intel_shuffle": _shuffle,
    "intel_shuffle_xor": _shuffle_xor,
    "intel_shuffle_up": _two_up,
    "intel_shuffle_down": _two_down,
    "rotate": _rotate,
    "clustered_rotate": _rotate,
    "ballot": _ballot,
    "inverse_ballot": _inverse_ballot,
    "ballot_bit_extract": _bit_extract,
    "ballot_bit_count": _bit_count,
    "ballot_inclusive_scan": _bits_up_to,
    "ballot_exclusive_scan": _bits_before,
    "ballot_find_lsb": _lowest,
    "ballot_find_msb": _highest,
    "mask_eq": _mask(np.equal),
    "mask_ge": _mask(np.greater_equal),
    "mask_gt": _mask(np.greater),
    "mask_le": _mask(np.less_equal),
    "mask_lt": _mask(np.less),
}
