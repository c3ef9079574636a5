"""Runs a search on a device: what a tuner asks for is measured into a store, and told."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic

from perfmodel.basics.errors import MeasurementError
from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.measuring.campaign import FAILED, UNMEASURED, Campaign, ProcessLimits
from perfmodel.measuring.protocol import Protocol
from perfmodel.measuring.store import Store
from perfmodel.tuning.pruning import C
from perfmodel.tuning.tuner import Tuner


@dataclass(frozen=True)
class Step(Generic[C]):
    """Holds what became of one configuration of a search.

    Attributes:
        seconds: as measured; infinite where it failed.
        failure: why; empty where it did not.
        key: of the measurement in the store.
        is_new: whether it was measured now; the store had it otherwise.
        after_s: seconds since the search began.
    """

    config: C
    seconds: float
    failure: str
    key: str
    is_new: bool
    after_s: float


def search(
    tuner: Tuner[C],
    kernel: Callable[[C], Kernel],
    device: Device,
    store: Store,
    *,
    protocol: Protocol | str = "quick",
    batch: int = 1,
    evaluations: int | None = None,
    budget_s: float | None = None,
    limits: ProcessLimits | None = None,
) -> Iterator[Step[C]]:
    """Yields each configuration as it is measured, until the tuner is done or a limit is reached.

    What the store has is not measured again, so that a search that was interrupted goes on where it ended.

    Args:
        kernel: gives the kernel of a configuration.
        batch: so many are asked for at a time.
        evaluations: no more configurations than that, those of the store included.
        budget_s: no further batch once so many seconds went by; there is one at least.

    Raises:
        MeasurementError: if the device is lost; what was measured until then is stored.
    """
    started = time.monotonic()
    known = {*store.keys(), *store.failures()}
    while not tuner.is_done:
        taken, spent = len(tuner.measured), time.monotonic() - started
        left = math.inf if evaluations is None else evaluations - taken
        if left <= 0 or (taken and budget_s is not None and spent > budget_s):
            return
        asked = tuner.ask(int(min(batch, left)))
        campaign = Campaign(map(kernel, asked), [device], protocol=protocol, store=store, limits=limits)
        (found,) = campaign.run(progress=False).devices
        for config, result in zip(asked, found.results, strict=True):
            if UNMEASURED & set(result.flags):
                raise MeasurementError(found.stopped or f"measuring on {device.key} was given up; run again to go on")
            tuner.tell(config, result.seconds)
            failure = next((flag[len(FAILED) + 2 :] for flag in result.flags if flag.startswith(FAILED)), "")
            seconds = math.inf if math.isnan(result.seconds) else result.seconds
            yield Step(
                config=config,
                seconds=seconds,
                failure=failure,
                key=result.key,
                is_new=result.key not in known,
                after_s=time.monotonic() - started,
            )
            known.add(result.key)
