"""The command ``verify`` compares kernels with numpy."""

from __future__ import annotations

import argparse

from perfmodel.basics.errors import KernelError
from perfmodel.cli import completion
from perfmodel.cli.commands import printing
from perfmodel.cli.options import Command, device_option, json_option


def add(command: Command) -> None:
    added = command(
        _verify,
        "verify",
        "perfmodel verify matmul_sq --device cpu",
    )
    names = added.add_argument(
        "generators", nargs="*", metavar="GENERATOR", help="families to check, or FILE.py of your own (default: all)"
    )
    completion.complete(names, "families")
    device_option(added)
    json_option(added)


def _verify(parsed: argparse.Namespace) -> None:
    from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection  # keeps start-up quick
    from perfmodel.collection.own_files import own_files
    from perfmodel.collection.verification import verify_family
    from perfmodel.device import find_device
    from perfmodel.kernels.source_words import is_source

    words = parsed.generators
    if source := next((word for word in words if is_source(word)), None):
        raise KernelError(
            f"verify compares with a generator's numpy reference, which {source} has not; name a generator"
        )
    own = own_files(words)
    if own.kernels:
        raise KernelError(
            f"verify compares with a generator's numpy reference, which {own.kernels[0].name} has not; name a generator"
        )
    collection = KernelCollection([*ALL_GENERATORS, *own.generators])
    generators = [collection.generator(name) for name in own.tags or collection.generators]
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
