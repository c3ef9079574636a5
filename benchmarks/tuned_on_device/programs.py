"""Chooses programs of the tuned product, and says how they are measured."""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd

from benchmarks import tuned_product
from benchmarks.published.space import load
from benchmarks.published.spaces import SPACES
from benchmarks.tuned_product import Configuration
from perfmodel.device import Device
from perfmodel.measuring.protocol import Protocol
from perfmodel.measuring.store import Measurement, Store

NAMES = ("MWG", "NWG", "KWG", "MDIMC", "NDIMC", "MDIMA", "NDIMB", "KWI", "VWM", "VWN", "SA", "SB")
PROTOCOL = Protocol("tuned", trials=20, dropped=2, statistic="min", budget_s=0.2, min_trials=1)
"""Launches of more than a tenth of a second are run three times, so that hundreds of programs take minutes."""

Values = tuple[int, ...]


def values(configuration: Configuration) -> Values:
    """Returns the values of a configuration's program, of which those that do nothing are made the same."""
    own = SPACES["gemm"].idle(dict(configuration))
    return tuple(own[name] for name in NAMES)


def configuration(of: Values) -> Configuration:
    return dict(zip(NAMES, of, strict=True))


def by_chance(count: int, seed: int) -> list[Values]:
    """Returns so many of all 9,180 programs."""
    every = list(dict.fromkeys(map(values, tuned_product.space())))
    return random.Random(seed).sample(every, min(count, len(every)))


def published_times(folder: Path, count: int, seed: int) -> pd.DataFrame:
    """Returns the times of so many programs that every published device has run: a row a program, a column a device."""
    published = load(folder, SPACES)
    every = published.seconds.groupby(published.programs.to_numpy()).median().dropna()
    rows = random.Random(seed).sample(every.index.tolist(), min(count, len(every)))
    found = every.loc[rows]
    found.index = pd.Index([values(published.configuration(row)) for row in rows], tupleize_cols=False)
    return found


def measured(store: Store, device: Device, side: int) -> dict[Values, Measurement]:
    """Returns what a store has of programs at this side on a device."""
    return {
        tuple(int(row.tags[name]) for name in NAMES): row
        for row in store
        if set(NAMES) <= set(row.tags)
        and row.sizes.get("m") == side
        and row.device["key"] == device.key
        and row.protocol["name"] == PROTOCOL.name
    }
