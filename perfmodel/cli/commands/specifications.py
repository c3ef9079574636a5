"""The command ``device`` shows what is known of devices that need not be here, and describes others."""

from __future__ import annotations

import argparse

from perfmodel.basics.errors import DeviceError
from perfmodel.cli.commands import printing
from perfmodel.cli.options import Command, json_option, subcommands

NOTE = "--device KEY predicts for each, by the calibration of a device of its kind that was measured"


def add(command: Command) -> None:
    subcommand = subcommands(command, "device", "show a100")
    added = subcommand(_show, "show", "show a device's facts, with where each comes from", "a100")
    added.add_argument("device", metavar="DEVICE", help="key, name, or file of 'perfmodel device new'")
    json_option(added)
    added = subcommand(
        _new,
        "new",
        "describe a device by a few numbers; its architecture's facts stand for all others",
        "mine.json --architecture ada units=60 clock=2.4e9 dram_bandwidth=5e11 l2_bytes=4e7",
    )
    added.add_argument("file", metavar="FILE.json", help="where it goes; --device FILE.json then predicts for it")
    added.add_argument(
        "facts",
        nargs="+",
        metavar="FACT=NUMBER",
        help="units (compute units, of a processor cores), clock (Hz), dram_bandwidth (B/s), l2_bytes (of a processor "
        "l3_bytes), and any others that 'perfmodel device show' lists",
    )
    added.add_argument(
        "--architecture", required=True, metavar="NAME", help="as 'perfmodel devices --known' lists them"
    )
    json_option(added)


def known(parsed: argparse.Namespace) -> None:
    """Prints the devices that come along with their specification."""
    from perfmodel.basics.tables import grid  # keeps start-up quick
    from perfmodel.device.facts import known_devices, shown

    found = known_devices()
    lines = [
        [
            each.key,
            each.name.partition(",")[0],
            each.architecture,
            f"{each['units']:.0f}",
            shown("clock", each.kind, each["clock"]),
            shown("dram_bandwidth", each.kind, each["dram_bandwidth"]),
        ]
        for each in found
    ]
    printing.found(
        parsed,
        lambda: {"known": [each.as_json() for each in found]},
        lambda: f"{grid(['key', 'name', 'architecture', 'units', 'clock', 'memory'], lines)}\n\n{NOTE}",
    )


def _show(parsed: argparse.Namespace) -> None:
    from perfmodel.device.facts import device_facts  # keeps start-up quick

    found = device_facts(parsed.device)
    printing.found(parsed, found.as_json, found.__str__)


def _new(parsed: argparse.Namespace) -> None:
    from perfmodel.device.facts import new_device  # keeps start-up quick

    if not parsed.file.endswith(".json"):
        raise DeviceError(f"{parsed.file!r} is no name for a description of a device; give one that ends in .json")
    facts = dict(map(_fact, parsed.facts))
    found = new_device(
        parsed.file.removesuffix(".json").replace("\\", "/").split("/")[-1], parsed.architecture, **facts
    )
    found.save(parsed.file)
    printing.found(parsed, found.as_json, found.__str__)


def _fact(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise DeviceError(f"{text!r} is no fact; write NAME=NUMBER, as in units=60") from None
