"""Measures a device profile: microbenchmarks of the catalogue at several occupancies (Panwar et al., section IV-B)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.basics.errors import MeasurementError, PerfmodelError, PerfmodelWarning
from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection
from perfmodel.device import Device
from perfmodel.device.device import find_device
from perfmodel.device.occupancy import OccupancyLimits, limits_of_device
from perfmodel.kernels.kernel import Kernel
from perfmodel.measuring.campaign import protocol_called
from perfmodel.measuring.isolation.reference import DISTURBED
from perfmodel.measuring.protocol import NOISY
from perfmodel.measuring.store import Store, looked_into
from perfmodel.modelling.calibration import Model
from perfmodel.modelling.feature_table import measure
from perfmodel.projection.device_profile import RESIDUAL_STD, Curve, DeviceProfile, Transfer
from perfmodel.vocabulary.named_features import feature

OUTPUT = "f_cl_wall_time"
GROUP = 256
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Occupancies that throughput is measured at."""
OPERATIONS = {
    "float32": ("madd", {"div": "div", "special": "exp"}),
    "float64": ("madd", {"div": "div", "special": "exp"}),
    "int32": ("madd", {"div": "div"}),
    "int64": ("madd", {"div": "div"}),
}
"""The operation of each type that stands for all fast ones, and those that stand for slow kinds."""
CPU_LANES, CPU_LINE, CPU_GROUPS = 16, 64, 16
"""Lanes of a vector; bytes of a cache line; work-groups for each compute unit, among which they are shared out."""
NVIDIA_SECTOR = 32
CACHED_BYTES = tuple(2**power for power in (14, 16, 18, 20, 22, 24, 25, 26))
"""Bytes of arrays, of which some fit into caches that others don't."""
MARGIN = 1.02
"""A curve of throughput is followed as long as it rises by more than this factor."""


class CharacterizationWarning(PerfmodelWarning):
    """Warns of a device profile that other programs may have spoilt."""


@dataclass(frozen=True)
class _Sizes:
    """Holds how large microbenchmarks are on a kind of device.

    Attributes:
        n_bytes: of an array in global memory, beyond all caches.
        rounds: of arithmetic, an eighth of it for slow operations. accesses: rounds of local memory.
        groups: work-groups of two empty launches.
        copied: elements of a small and a large copy.
    """

    n_bytes: int
    rounds: int
    accesses: int
    groups: tuple[int, int]
    copied: tuple[int, int]


SIZES = {
    "gpu": _Sizes(n_bytes=2**29, rounds=64, accesses=512, groups=(2**12, 2**20), copied=(2**10, 2**26)),
    "cpu": _Sizes(n_bytes=2**28, rounds=512, accesses=512, groups=(2**4, 2**14), copied=(2**10, 2**24)),
}


def characterize(
    device: Device | str | None = None,
    *,
    name: str = "",
    store: Store | str | None = None,
    protocol: str = "quick",
    tell: Callable[[str], None] = lambda message: None,
) -> DeviceProfile:
    """Measures a device's profile.

    Args:
        name: of the profile; the device's own if left out.
        store: keeps every time, so that a measurement which was interrupted goes on.
        tell: is given a line before each step.

    Raises:
        DeviceError, MeasurementError, StoreError: as their names say.
    """
    protocol_called(protocol)
    with looked_into(store) as known:
        found = find_device(device, known.devices())
    if not isinstance(store, Store):
        with Store(store) as opened:
            return characterize(found, name=name, store=opened, protocol=protocol, tell=tell)
    bench = _Microbenchmarks(found)
    tell(f"measuring {len(bench.kernels)} microbenchmarks on {found.key}")
    bench.measure(store, protocol)
    if bench.doubtful:
        warnings.warn(bench.doubt(), CharacterizationWarning, stacklevel=2)
    return bench.profile(name or found.name)


class _Microbenchmarks:
    """Holds the microbenchmarks of one device: kernels by what they are for, and their times."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.kind = "cpu" if device.kind == "cpu" else "gpu"
        self.limits = None if self.kind == "cpu" else _limits(device)
        self.items = 0 if self.kind == "cpu" else self._resident()
        self.sizes = SIZES[self.kind]
        self.collection = KernelCollection(ALL_GENERATORS)
        self.kernels: dict[tuple[Any, ...], Kernel] = {}
        self.times: dict[tuple[Any, ...], float] = {}
        self.doubtful = 0
        self._launches()
        self._global_memory()
        self._caches()
        self._local_memory()
        self._instructions()
        self._transfers()

    def _resident(self) -> int:
        if self.limits is not None:
            return self.limits.waves * self.limits.wave_sizes[0]
        return 2048

    # --- kernels

    def add(self, key: tuple[Any, ...], tags: str) -> None:
        self.kernels[key] = self.collection.generate_kernels(tags.split(), self.device)[0]

    @property
    def words(self) -> dict[int, str]:
        return {4: "float32", **({8: "float64"} if self.device.double_precision else {})}

    @property
    def shares(self) -> tuple[float, ...]:
        """The occupancies to measure at; a CPU has only one, as each compute unit does one work-group after the
        other."""
        return SHARES if self.kind == "gpu" else (1.0,)

    def launched(self, share: float) -> int:
        """Returns the work-items of a launch that fills so large a share of the device, in whole work-groups."""
        groups = self.items / GROUP if self.items else CPU_GROUPS
        return GROUP * max(1, round(share * self.device.compute_units * groups))

    def _launches(self) -> None:
        for groups in (1, *self.sizes.groups):
            self.add(("launch", groups), f"launch lsize_0:{GROUP} groups:{groups}")

    def _global_memory(self) -> None:
        """Adds kernels that read global memory: a GPU's by work-groups that stay, so that the occupancy is theirs; a
        CPU's as kernels have it."""
        for word, dtype in self.words.items():
            if self.kind == "cpu":
                n = self.sizes.n_bytes // 4 // word
                for direction, loads in (("load", 4), ("store", 0)):
                    tags = f"global_copy dtype:{dtype} stride:1 loads:{loads} lsize_0:{GROUP} n:{n}"
                    self.add((direction, word, 1.0), tags)
                continue
            for share in self.shares:
                items = self.launched(share)
                iterations = max(2, self.sizes.n_bytes // word // items)
                for direction in ("load", "store"):
                    self.add(
                        (direction, word, share),
                        f"access_pattern dtype:{dtype} direction:{direction} arrays:1 lstride_0:1 lstride_1:0 "
                        f"gstride_0:tile gstride_1:0 loopstride:n lsize_0:{GROUP} lsize_1:1 n:{items} m:{iterations}",
                    )

    def _caches(self) -> None:
        """Adds kernels that read cached bytes: all work-groups of a CPU read the same few, one after the other; a GPU's
        would find them in too near a cache."""
        for n_bytes in CACHED_BYTES if self.kind == "cpu" else ():
            iterations = n_bytes // (4 * GROUP)
            items = max(self.launched(1.0), min(2**17, self.sizes.n_bytes // 16 // iterations) // GROUP * GROUP)
            self.add(
                ("cached", n_bytes),
                f"access_pattern dtype:float32 direction:load arrays:1 lstride_0:1 lstride_1:0 gstride_0:0 gstride_1:0 "
                f"loopstride:{GROUP} lsize_0:{GROUP} lsize_1:1 n:{items} m:{iterations}",
            )

    def _local_memory(self) -> None:
        for share in self.shares:
            tags = f"local_access dtype:float32 direction:load lstride_0:1 lsize_0:{GROUP}"
            self.add(("local", share), f"{tags} n:{self.launched(share)} m:{self.sizes.accesses}")

    def _instructions(self) -> None:
        # On a GPU two work-groups for each that is resident at a time.
        items = (2 if self.kind == "gpu" else 1) * self.launched(1.0)
        for dtype, (fast, slow) in OPERATIONS.items():
            if dtype == "float64" and not self.device.double_precision:
                continue
            for kind, op in {"": fast, **slow}.items():
                rounds = self.sizes.rounds // (8 if kind else 1)
                self.add(
                    ("op", f"{dtype}_{kind}".rstrip("_")),
                    f"throughput dtype:{dtype} op:{op} accumulators:32 lsize_0:{GROUP} n:{items} m:{rounds}",
                )

    def _transfers(self) -> None:
        for n in self.sizes.copied:
            for loads in (0, 1):
                self.add(
                    ("kernel", loads, n), f"global_copy dtype:float32 stride:1 loads:{loads} lsize_0:{GROUP} n:{n}"
                )
                self.kernels["copied", loads, n] = self.kernels["kernel", loads, n].with_transfers()

    # --- times

    def measure(self, store: Store, protocol: str) -> None:
        """Measures all kernels, or raises MeasurementError for one that has no time."""
        table = measure(
            list(self.kernels.values()), Model(OUTPUT, "p_time"), device=self.device, store=store, protocol=protocol
        )
        for key, seconds, flags in zip(self.kernels, table[OUTPUT], table["flags"], strict=True):
            if not np.isfinite(seconds):
                raise MeasurementError(
                    f"{self.kernels[key]!r} has no time on {self.device.key} ({', '.join(flags)}); measure on the "
                    "device, or give a store that has it"
                )
            self.times[key] = float(seconds)
        self.doubtful = sum(bool({NOISY, DISTURBED} & set(flags)) for flags in table["flags"])

    # --- what follows from them

    def profile(self, name: str) -> DeviceProfile:
        few, many = self.sizes.groups
        group = max(0.0, self.times["launch", many] - self.times["launch", few]) / (many - few)
        # A single work-group may be done by the thread that waits for it, without waking others.
        launch = max(self.times["launch", 1], self.times["launch", few] - few * group)
        limits = self.limits
        occupancy = ""
        if limits is not None:
            occupancy = f"cc:{limits.name.split()[-1]}" if not limits.is_amd else f"arch:{limits.name}"
        return DeviceProfile(
            name=name,
            kind=self.kind,
            source=f"measured by perfmodel characterize on {self.device.name}, driver {self.device.driver}",
            compute_units=self.device.compute_units,
            subgroup_size=self._subgroup_size(),
            transaction_bytes=CPU_LINE if self.kind == "cpu" or (limits and limits.is_amd) else NVIDIA_SECTOR,
            banks=0 if self.kind == "cpu" else 32,
            instructions=self._rates(),
            global_read={word: self._curve("load", word) for word in self.words},
            global_write={word: self._curve("store", word) for word in self.words},
            local=self._rising(
                [(share, self._per_second(("local", share), "f_mem_bytes_local")) for share in self.shares]
            ),
            launch_s=launch,
            group_s=group,
            **self._copies(),
            key=self.device.key,
            clock_mhz=self.device.clock_mhz,
            resident_items=self.items,
            occupancy=occupancy,
            residual_std=RESIDUAL_STD[self.kind],
            cached=self._cached(),
            notes=(self.doubt(),) if self.doubtful else (),
        )

    def doubt(self) -> str:
        """Returns a sentence of doubt for those who use the profile; empty if there is none."""
        return (
            f"{self.doubtful} of {len(self.kernels)} microbenchmarks were noisy or disturbed by other programs; "
            "measure again with a new store while nothing else runs"
        )

    def _subgroup_size(self) -> int:
        if self.kind == "cpu":
            return CPU_LANES
        return self.device.sub_group_size or (self.limits.wave_sizes[0] if self.limits else 32)

    def _net(self, key: tuple[Any, ...]) -> float:
        """Returns a kernel's seconds without the launch, but at least a tenth of them."""
        return max(self.times[key] - self.times["launch", 1], self.times[key] / 10)

    def _per_second(self, key: tuple[Any, ...], name: str) -> float:
        return feature(name).eval(self.kernels[key]) / self._net(key)

    def _curve(self, direction: str, word: int) -> Curve:
        if self.kind == "cpu":
            stored = feature("f_mem_bytes_global_store").eval(self.kernels["store", word, 1.0])
            storing = self._net(("store", word, 1.0))
            if direction == "store":
                return ((1.0, stored / storing),)
            # The sums that are loaded are stored as well, but that costs as much by itself.
            loading = max(self._net(("load", word, 1.0)) - storing, self._net(("load", word, 1.0)) / 10)
            return ((1.0, feature("f_mem_bytes_global_load").eval(self.kernels["load", word, 1.0]) / loading),)
        return self._rising(
            [
                (share, self._per_second((direction, word, share), f"f_mem_bytes_global_{direction}"))
                for share in self.shares
            ]
        )

    @staticmethod
    def _rising(points: Sequence[tuple[float, float]]) -> Curve:
        """Returns a curve that never falls with occupancy: where a measured one does, caches or chance have helped
        before."""
        found: list[tuple[float, float]] = []
        best = max(throughput for _, throughput in points)
        for share, throughput in points:
            most = max(throughput, found[-1][1] if found else 0.0)
            found.append((share, most))
            if most * MARGIN >= best:  # what is reached stays
                found += [] if share == 1 else [(1.0, best)]
                break
        return tuple(found)

    def _cached(self) -> Curve:
        """Returns the throughput of caches over that of the largest array; levels about as fast as the next are left
        out."""
        if self.kind == "gpu":
            return ()
        rates = [self._per_second(("cached", n_bytes), "f_mem_bytes_global_load") for n_bytes in CACHED_BYTES]
        beyond = dict(self._curve("load", 4))[1.0]
        factors = [max(rate / beyond, 1.0) for rate in rates]
        # What fits into a cache is read no slower than what does not.
        falling = [max(factors[place:]) for place in range(len(factors))]
        pairs = list(zip(map(float, CACHED_BYTES), falling, strict=True))
        return tuple(
            pair
            for pair, after in zip(pairs, [*falling[1:], 1.0], strict=True)
            if pair[1] > 1.1 * after or (pair[1] > 1.1 and pair is pairs[-1])
        )

    def _rates(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for key in self.kernels:
            if key[0] == "op":
                dtype, _, _kind = key[1].partition("_")
                found[key[1]] = self._per_second(key, f"f_op_{dtype}")
        return found

    def _copies(self) -> Mapping[str, Any]:
        """Returns each direction's bandwidth and latency, from a small and a large copy without the kernel's own
        time."""
        small, large = self.sizes.copied
        both, back = (
            [max(self.times["copied", loads, n] - self.times["kernel", loads, n], 1e-9) for n in (small, large)]
            for loads in (1, 0)
        )
        there = [max(two - one, 1e-9) for two, one in zip(both, back, strict=True)]
        return {"to_device": _line(there, (small, large)), "from_device": _line(back, (small, large))}


def _line(seconds: Sequence[float], elements: Sequence[int]) -> Transfer:
    n_bytes = [4 * n for n in elements]
    slope = max((seconds[1] - seconds[0]) / (n_bytes[1] - n_bytes[0]), 1e-13)
    return Transfer(1 / slope, max(0.0, seconds[0] - slope * n_bytes[0]))


def _limits(device: Device) -> OccupancyLimits | None:
    """Returns a device's occupancy limits; None where the driver does not tell which are its."""
    if not device.is_here:
        return None
    try:
        return limits_of_device(device)
    except PerfmodelError:
        return None
