"""Times kernels that stand for published spaces on a device, and judges predictions by these times.

    python -m benchmarks.spaces_on_device measure times.sqlite --device gpu --published FOLDER [FOLDER ...]
    python -m benchmarks.spaces_on_device judge times.sqlite [--calibration gpu@h200]

A space's published times (`benchmarks.published`) are of other sources than ours, on other devices. On a device that is
calibrated, predictions of ours can be judged for themselves, before they are carried over. `measure` times some
programs of each folder's space by chance, which are built side by side; the same command goes on where it ended.
`judge` needs neither a device nor a folder: the store has the configurations, and programs are counted by their source,
as `perfmodel.tune` does it.
"""

from __future__ import annotations

import argparse
import os
import random
import warnings
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import perfmodel as pm
from benchmarks.published.space import load
from benchmarks.published.spaces import SPACES
from benchmarks.tuned_on_device.building import built, nothing_built
from benchmarks.tuned_on_device.judging import predictions
from benchmarks.tuned_on_device.programs import PROTOCOL
from perfmodel.basics.side_by_side import side_by_side
from perfmodel.device import find_device
from perfmodel.measuring.campaign import Campaign
from perfmodel.measuring.store import Measurement, Store
from perfmodel.modelling.calibration import calibration_called

Program = tuple[tuple[str, int], ...]


def chosen(folder: Path, count: int, seed: int, jobs: int) -> list[pm.Kernel]:
    """Returns the kernels of so many programs of a folder's space, which are made side by side."""
    published = load(folder, SPACES)
    rows = random.Random(seed).sample(published.distinct, min(count, len(published.distinct)))
    return side_by_side(published.kernel, rows, jobs)


def measured(store: Iterable[Measurement]) -> dict[str, dict[Program, float]]:
    """Returns the seconds of each space's programs that a store has."""
    found: dict[str, dict[Program, float]] = {}
    for row in store:
        for space in SPACES.values():
            if space.parameters == set(row.tags):
                program = tuple(sorted((name, int(value)) for name, value in row.tags.items()))
                found.setdefault(space.name, {})[program] = row.seconds
    return found


def _stand_in(space: str, program: Program) -> pm.Kernel:
    return SPACES[space].kernel(dict(program))


def main() -> None:
    parser = argparse.ArgumentParser(description="times kernels that stand for published spaces")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("measure", "judge"):
        added = commands.add_parser(name)
        added.add_argument("store", type=Path)
        added.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that build, or predict")
    measuring, judging = commands.choices["measure"], commands.choices["judge"]
    measuring.add_argument("--device", help="that measures")
    measuring.add_argument("--published", type=Path, nargs="+", required=True, help="folders of tuned spaces")
    measuring.add_argument("--sample", type=int, default=120, help="programs of each (default: 120)")
    measuring.add_argument("--seed", type=int, default=1)
    measuring.add_argument("--budget", type=float, default=300.0, help="seconds of measuring (default: 300)")
    judging.add_argument("--calibration", default="gpu@h200")
    parsed = parser.parse_args()
    warnings.simplefilter("ignore")
    if parsed.command == "measure":
        of_folders = [chosen(folder, parsed.sample, parsed.seed, parsed.jobs) for folder in parsed.published]
        kernels = [kernel for each in of_folders for kernel in each]
        print(f"{len(kernels)} kernels", flush=True)
        with nothing_built():
            device = find_device(parsed.device)
            built([kernel.launch() for kernel in kernels], device, parsed.jobs)
            print("built", flush=True)
            campaign = Campaign(kernels, [device], protocol=PROTOCOL, store=parsed.store)
            print(campaign.run(budget_s=parsed.budget))
        return
    calibration = calibration_called(parsed.calibration)
    with Store(parsed.store, read_only=True) as store:
        times = measured(store)
    for name, of_programs in times.items():
        shown, refused = predictions(of_programs, partial(_stand_in, name), calibration, parsed.jobs)
        print(f"{name}: {len(of_programs)} programs, {parsed.calibration}\n", shown, *refused, "", sep="\n")


if __name__ == "__main__":
    main()
