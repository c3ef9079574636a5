"""The commands ``project`` and ``characterize`` rank devices for a kernel, and measure a device's profile."""

from __future__ import annotations

import argparse

from perfmodel.cli.commands import printing
from perfmodel.cli.commands.selection import check_writable, store_beside, with_contents
from perfmodel.cli.options import (
    Command,
    counting_options,
    defaults_from_project_file,
    device_option,
    json_option,
    protocol_option,
)


def add(command: Command) -> None:
    added = command(
        _project,
        "project",
        "perfmodel project blur.cl --global n,n --local 16,16 --arg n=1024 --arg image=n*n --arg out=n*n "
        "--device H200,C2050",
    )
    counting_options(added, "+")
    added.add_argument(
        "--device",
        metavar="A,B,…",
        help="names or files of profiles, files of calibrations, MODEL@DEVICE (default: all profiles that are shipped)",
    )
    added.add_argument("--transfers", action="store_true", help="with copies of inputs to the device and outputs back")
    added.add_argument("--dispatch", action="store_true", help="with what the host waits until the launch begins")
    json_option(added)
    added = command(
        _characterize,
        "characterize",
        "perfmodel characterize --device gpu --out my-gpu.json",
    )
    device_option(added)
    added.add_argument("--out", default="profile.json", help="file to write (default: %(default)s)")
    added.add_argument("--name", default="", help="of the profile (default: the device's)")
    added.add_argument("--store", help="SQLite file that keeps every time (default: beside --out)")
    protocol_option(added, "quick")
    json_option(added)
    defaults_from_project_file(added, "device", "store", "protocol")


def study_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of studies of several devices; recipes have no use for them."""
    group = parser.add_argument_group("for studies of several devices, such as projection")
    group.add_argument("--measure-only", action="store_true", help="only put times into the store")


def _project(parsed: argparse.Namespace) -> None:
    from perfmodel.projection.device_choice import choose_device  # keeps start-up quick
    from perfmodel.projection.device_profile import DeviceProfile

    devices = parsed.device.split(",") if parsed.device else DeviceProfile.names()
    choices = [
        choose_device(kernel, list(filter(None, devices)), contents or None, parsed.transfers, parsed.dispatch)
        for kernel, contents in with_contents(parsed)
    ]
    printing.found(
        parsed,
        lambda: printing.only([choice.as_json() for choice in choices]),
        lambda: "\n\n".join(map(str, choices)),
    )


def _characterize(parsed: argparse.Namespace) -> None:
    from perfmodel.projection.characterization import characterize  # keeps start-up quick

    check_writable(parsed.out)
    parsed.store = parsed.store or store_beside(parsed.out)
    profile = characterize(
        parsed.device,
        name=parsed.name,
        store=parsed.store,
        protocol=parsed.protocol or "quick",
        tell=printing.teller(parsed),
    )
    profile.save(parsed.out)
    named = {"written": parsed.out, "store": parsed.store}
    printing.found(parsed, lambda: named | {"profile": profile.as_json()}, lambda: f"written to {parsed.out}")
