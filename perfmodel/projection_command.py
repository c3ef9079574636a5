"""The commands ``project`` and ``characterize``: devices ranked for a kernel, and a device's profile measured."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perfmodel.command_options import source_options, tag_options

if TYPE_CHECKING:
    from perfmodel.kernel import Kernel

Command = Callable[[Callable[[Any], None], str, str, str], argparse.ArgumentParser]
Described = Callable[[argparse.Namespace], Sequence[tuple["Kernel", Mapping[str, Any]]]]


def add(command: Command, described: Described) -> None:
    """Registers both with the command line.

    Args:
        command: adds one, by what runs it, its name, summary and example.
        described: the kernels that a command's tags select, with what their arrays hold.
    """
    added = command(
        lambda parsed: _project(parsed, described),
        "project",
        "rank devices for kernels: emulate one work-group, and project its time to each device's profile",
        "perfmodel project blur.cl --global n,n --local 16,16 --arg n=1024 --arg image=n*n --arg out=n*n "
        "--devices H200,C2050",
    )
    tag_options(added, "+")
    added.add_argument(
        "--devices",
        metavar="A,B,…",
        help="names or files of profiles, files of calibrations, MODEL@DEVICE (default: all profiles that are shipped)",
    )
    added.add_argument("--transfers", action="store_true", help="with copies of inputs to the device and outputs back")
    added.add_argument("--json", action="store_true", help="print one JSON document instead")
    source_options(added)
    added = command(
        _characterize,
        "characterize",
        "measure what a device is capable of, for projections to it",
        "perfmodel characterize gpu --out my-gpu.json",
    )
    added.add_argument("device", metavar="DEVICE", help="key, part of the name, 'gpu' or 'cpu'")
    added.add_argument("--out", default="profile.json", help="file to write (default: %(default)s)")
    added.add_argument("--name", default="", help="of the profile (default: the device's)")
    added.add_argument("--store", help="SQLite file that keeps every time (default: beside --out)")
    added.add_argument("--protocol", default="quick", help="unified, perflex or quick (default: %(default)s)")


def study_options(parser: argparse.ArgumentParser) -> None:
    """What studies of several devices take besides; recipes have no use for it."""
    group = parser.add_argument_group("for studies of several devices, such as projection")
    group.add_argument(
        "--devices", metavar="A,B,…", help="keys, names, cpu/2 for a part (default: all here and all of the store)"
    )
    group.add_argument("--measure-only", action="store_true", help="only put times into the store")


def _project(parsed: argparse.Namespace, described: Described) -> None:
    from perfmodel.device_choice import choose_device
    from perfmodel.device_profile import DeviceProfile

    devices = parsed.devices.split(",") if parsed.devices else DeviceProfile.names()
    choices = [
        choose_device(kernel, list(filter(None, devices)), contents or None, parsed.transfers)
        for kernel, contents in described(parsed)
    ]
    if parsed.json:
        documents = [choice.as_json() for choice in choices]
        print(documents[0] if len(documents) == 1 else f"[{','.join(documents)}]")
    else:
        print("\n\n".join(map(str, choices)))


def _characterize(parsed: argparse.Namespace) -> None:
    from perfmodel.characterization import characterize

    parsed.store = parsed.store or os.path.splitext(parsed.out)[0] + ".sqlite"  # noqa: PTH122
    profile = characterize(
        parsed.device,
        name=parsed.name,
        store=parsed.store,
        protocol=parsed.protocol,
        tell=lambda message: print(f"{message} …", flush=True),
    )
    profile.save(parsed.out)
    print(f"written to {parsed.out}")
