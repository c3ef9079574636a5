"""The commands ``devices``, ``features`` and ``kernels`` list what there is."""

from __future__ import annotations

import argparse
import inspect
from typing import TYPE_CHECKING, Any

from perfmodel.basics.tables import grid, wrapped
from perfmodel.cli.commands import printing, specifications
from perfmodel.cli.commands.selection import lists_a_file, lists_a_source, selected
from perfmodel.cli.completion import complete
from perfmodel.cli.options import Command, device_option, json_option, kernel_options

if TYPE_CHECKING:
    from perfmodel.device import Device
    from perfmodel.vocabulary.named_features import FeatureFamily


def add(command: Command) -> None:
    added = command(_devices, "devices", "perfmodel devices")
    added.add_argument(
        "--known", action="store_true", help="list those whose specification comes along, wherever they are"
    )
    json_option(added)
    added = command(_features, "features", "perfmodel features f_op")
    complete(
        added.add_argument(
            "name", nargs="?", metavar="FEATURE", help="a family or a feature, such as f_op_float32_madd"
        ),
        "feature_words",
    )
    json_option(added)
    added = command(
        _kernels,
        "kernels",
        "perfmodel kernels matmul_sq n:512",
    )
    kernel_options(added, "*")
    json_option(added)
    device_option(added, "for which sizes given as auto are chosen (default: the best one)")


def _devices(parsed: argparse.Namespace) -> None:
    from perfmodel.device import devices, driver_faults, find_device  # keeps start-up quick

    if parsed.known:
        specifications.known(parsed)
        return
    found, faults = devices(), driver_faults()
    if parsed.json:
        shown = [{"library": str(f.library), "source": str(f.source), "reason": str(f.reason)} for f in faults]
        printing.document({"devices": [_data(device) for device in found], "driver_faults": shown})
    else:
        if found:
            printing.text(lambda: _table(found))
        for fault in faults:
            print(f"driver {fault.library} ({fault.source}): {fault.reason}")
    if not found:
        find_device()  # says what to do


def _data(device: Device) -> dict[str, Any]:
    """Returns a device's fingerprint, with units in its names."""
    units = {
        "clock_mhz": ("clock_hz", 10**6),
        "global_memory": ("global_memory_bytes", 1),
        "max_allocation": ("max_allocation_bytes", 1),
        "local_memory": ("local_memory_bytes", 1),
    }
    values = device.fingerprint()
    for name, (with_unit, scale) in units.items():
        values[with_unit] = scale * values.pop(name)
    return values | {"clock_hz": values["clock_hz"] or None}


def _table(found: list[Device]) -> str:
    lines = [
        [
            d.key,
            str(d.compute_units),
            f"{d.clock_mhz} MHz" if d.clock_mhz else "-",
            f"{d.local_memory // 1024} KiB",
            f"{d.global_memory / 2**30:.1f} GiB",
        ]
        for d in found
    ]
    called = [wrapped(f"{d.key}: {d.name}, {d.platform} {d.driver}") for d in found]
    return "\n".join([grid(["key", "units", "clock", "local", "global"], lines), "", *called])


def _features(parsed: argparse.Namespace) -> None:
    from perfmodel.vocabulary.named_features import families  # keeps start-up quick

    chosen = [_family(parsed.name)] if parsed.name else list(families())
    listed = [{"name": f.name, "summary": f.summary, "examples": list(f.examples)} for f in chosen]
    lines = [line for f in chosen for line in (f"{f.name}: {f.summary}", *(f"    {each}" for each in f.examples))]
    told = [f"\n{_told(parsed.name, chosen[0])}"] if parsed.name else []
    printing.found(parsed, lambda: {"families": listed}, lambda: "\n".join([wrapped("\n".join(lines)), *told]))


def _family(name: str) -> FeatureFamily:
    """Returns the family of a feature, or the one of this name.

    Raises:
        FeatureError: for a name that no family understands, or one of another's that is registered.
    """
    from perfmodel.basics.errors import FeatureError  # keeps start-up quick
    from perfmodel.vocabulary.named_features import families, family_of, feature

    for family in families():
        if family.name == name:
            return family
    feature(name)
    found = family_of(name)
    if found is None:
        raise FeatureError(f"{name!r} is a feature of your own, which no family describes; see where it is registered")
    return found


def _told(name: str, family: FeatureFamily) -> str:
    """Returns what is known of a feature, or of the first example of its family, where a family is named."""
    from perfmodel.vocabulary.named_features import feature  # keeps start-up quick

    found = feature(family.examples[0] if name == family.name else name)
    paragraphs = (inspect.getdoc(type(found)) or "").replace("``", "'").split("\n\n")
    text = "\n\n".join(wrapped(" ".join(each.split())) for each in paragraphs)
    unit = getattr(found, "unit", None)
    return "\n\n".join([text, *([f"in a model, its parameter is in s/{unit}"] if unit else [])])


def _kernels(parsed: argparse.Namespace) -> None:
    if lists_a_file(parsed, with_generators=True) or lists_a_source(parsed):
        return
    from perfmodel.collection.collection import ALL_GENERATORS  # keeps start-up quick
    from perfmodel.collection.own_files import own_files
    from perfmodel.kernels.kernel_file import is_kernel_file
    from perfmodel.report.kernel_list import as_json, as_text

    if parsed.device and "device" not in parsed.from_project_file:  # whose device may be on another machine
        from perfmodel.device import find_device

        find_device(parsed.device)
    kernels = selected(parsed, parsed.device) if parsed.tags else None
    if parsed.json:
        names = {kernel.name for kernel in kernels or ()}
        generators = [*ALL_GENERATORS, *own_files(list(filter(is_kernel_file, parsed.tags))).generators]
        printing.document(as_json([g for g in generators if kernels is None or g.name in names], kernels))
    elif kernels is None:
        print(wrapped(as_text(ALL_GENERATORS)))
    else:
        named = [generator for generator in ALL_GENERATORS if generator.name in parsed.tags]
        described = [wrapped(as_text(named)), ""] if len(named) == len(parsed.tags) else []
        print("\n".join([*described, *(kernel.label for kernel in kernels)]))
