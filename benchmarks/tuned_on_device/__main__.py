"""Times a tuned matrix product on a device, and judges predictions, published times and searches by that.

    python -m benchmarks.tuned_on_device measure times.sqlite --device gpu --published FOLDER
    python -m benchmarks.tuned_on_device judge times.sqlite --published FOLDER
    python -m benchmarks.tuned_on_device live times.sqlite --device gpu

`measure` times 500 of the 9,180 programs by chance, and 200 that published devices have run
(`benchmarks.published`); the same command goes on where it ended. `judge` needs no device, nor does `live` once it was
run: both print what the store, and what lies beside it, tells.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

from benchmarks import tuned_product
from benchmarks.tuned_on_device import judging, live
from benchmarks.tuned_on_device.building import nothing_built
from benchmarks.tuned_on_device.measuring import building_times, kernel, measure
from benchmarks.tuned_on_device.programs import by_chance, measured, published_times
from perfmodel.device import find_device
from perfmodel.measuring.store import Store
from perfmodel.modelling.calibration import calibration_called


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuned_on_device", description="a tuned product, live")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, told in (
        ("measure", "time programs into the store"),
        ("judge", "compare predictions and published times with the store's"),
        ("live", "search for a fast program on the device, and beside it by the store's times"),
    ):
        added = commands.add_parser(name, help=told)
        added.add_argument("store", type=Path)
        added.add_argument("--device", help="that measures; judge and live: whose times are meant (default: the only)")
        added.add_argument("--side", type=int, default=tuned_product.SIDE)
        added.add_argument("--sample", type=int, default=500, help="programs by chance (default: 500)")
        added.add_argument("--seed", type=int, default=1)
        added.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that build, or predict")
        if name != "live":
            added.add_argument("--published", type=Path, help="folder of the tuned space with published times")
            added.add_argument("--published-sample", type=int, default=200, help="programs of it (default: 200)")
        if name == "measure":
            added.add_argument("--budget", type=float, default=300.0, help="seconds of measuring (default: 300)")
        else:
            added.add_argument("--calibration", default="gpu@h200")
    searching = commands.choices["live"]
    searching.add_argument("--batch", type=int, default=1, help="programs asked for at a time (default: 1)")
    searching.add_argument("--seeds", type=int, default=20, help="of each of Kernel Tuner's strategies (default: 20)")
    parsed = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = by_chance(parsed.sample, parsed.seed)
    if parsed.command == "measure":
        measure_all(parsed, chosen)
    elif parsed.command == "judge":
        judge(parsed, chosen)
    else:
        search(parsed, chosen)


def measure_all(parsed: argparse.Namespace, chosen: list[tuple[int, ...]]) -> None:
    programs = dict.fromkeys(chosen)
    if parsed.published:
        programs |= dict.fromkeys(published_times(parsed.published, parsed.published_sample, parsed.seed).index)
    with nothing_built():
        device = find_device(parsed.device)
        measure(list(programs), device, parsed.side, parsed.store, parsed.jobs, parsed.budget)


def judge(parsed: argparse.Namespace, chosen: list[tuple[int, ...]]) -> None:
    with Store(parsed.store, read_only=True) as store:
        device = find_device(parsed.device, store.devices())
        rows = measured(store, device, parsed.side)
    times = {each: row.seconds for each, row in rows.items()}
    own = {each: times[each] for each in chosen if each in times}
    print(
        f"{len(own)} of {len(chosen)} programs by chance on {device.name}, side {parsed.side}, {parsed.calibration}:\n"
    )
    calibration = calibration_called(parsed.calibration)
    shown, refused = judging.predictions(own, lambda each: kernel(each, parsed.side), calibration, parsed.jobs)
    print(shown, *refused, sep="\n")
    if parsed.published:
        published = published_times(parsed.published, parsed.published_sample, parsed.seed)
        print(f"\n{judging.likeness(times, published)}")


def search(parsed: argparse.Namespace, chosen: list[tuple[int, ...]]) -> None:
    with Store(parsed.store, read_only=True) as store:
        device = find_device(parsed.device, store.devices())
        every = measured(store, device, parsed.side)
    rows = {each: every[each] for each in chosen if each in every}
    file = parsed.store.with_name(f"{parsed.store.name.split('.')[0]}.live.json")
    own = live.kept(file)
    if own is None and device.is_here:
        calibration = calibration_called(parsed.calibration)
        own = live.live(rows, parsed.side, device.key, calibration, parsed.jobs, parsed.batch)
        live.saved(own, file)
    others = live.simulated(rows, building_times(parsed.store), parsed.seeds)
    print(f"within 3 % of the best of {len(rows)} programs on {device.name}; of {parsed.seeds} seeds the median:\n")
    print(live.table(own, others))


if __name__ == "__main__":
    main()
