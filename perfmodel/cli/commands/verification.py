"""The command ``verify`` compares kernels with numpy."""

from __future__ import annotations

import argparse

from perfmodel.cli import completion
from perfmodel.cli.commands import printing
from perfmodel.cli.options import Command, device_option, json_option


def add(command: Command) -> None:
    added = command(
        _verify,
        "verify",
        "run every variant of families of kernels on small sizes, and compare with their numpy references",
        "perfmodel verify matmul_sq --device cpu",
    )
    names = added.add_argument("generators", nargs="*", metavar="GENERATOR", help="families to check (default: all)")
    completion.complete(names, completion.generators)
    device_option(added)
    json_option(added)


def _verify(parsed: argparse.Namespace) -> None:
    from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection
    from perfmodel.collection.verification import verify_family
    from perfmodel.device import find_device

    collection = KernelCollection(ALL_GENERATORS)
    generators = [collection.generator(name) for name in parsed.generators or collection.generators]
    device = find_device(parsed.device)
    kernels: dict[str, int] = {}
    with printing.only_document(parsed):
        print(f"device {device.key}: {device.name}")
        for generator in generators:
            kernels[generator.name] = verify_family(generator, device)
            print(f"{generator.name}: {kernels[generator.name]} kernels equal their reference", flush=True)
        print(f"{sum(kernels.values())} kernels in all")
    if parsed.json:
        printing.document({"device": device.key, "kernels": sum(kernels.values()), "by_generator": kernels})
