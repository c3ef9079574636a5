"""Reads the words of a filter that name a user's own Python files: their kernels, and their generators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from perfmodel.basics import registry
from perfmodel.basics.errors import KernelError
from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import parted
from perfmodel.kernels import kernel_file
from perfmodel.kernels.kernel import Kernel


@dataclass(frozen=True)
class OwnFiles:
    """Holds what the Python files among a filter's words give.

    Attributes:
        kernels: those of ``FILE.py:NAME``, at every combination of the ``size:values`` beside them.
        generators: those of ``FILE.py`` and ``FILE.py:CLASS``, which join the collection.
        tags: the other words, and the names of these generators where the words select them.
    """

    kernels: tuple[Kernel, ...]
    generators: tuple[KernelGenerator, ...]
    tags: tuple[str, ...]


def own_files(words: Sequence[str]) -> OwnFiles:
    """Returns what the Python files among these words give, and the other words.

    A file alone stands for all of its generators, unless a generator is named beside it.

    Raises:
        KernelError: for a file that cannot be run, a name that is neither kernel nor generator, kernels and generators
            together, or a wrong size.
    """
    named = [kernel_file.split(word) for word in words if kernel_file.is_kernel_file(word)]
    tags = [word for word in words if not kernel_file.is_kernel_file(word)]
    modules = {path: kernel_file.loaded(path) for path, _ in dict.fromkeys(named)}
    families = {path: generators_of(module) for path, module in modules.items()}
    kernels: list[Kernel] = []
    joined: list[KernelGenerator] = []
    chosen: list[KernelGenerator] = []
    for path, name in named:
        own = families[path]
        joined += own.values()
        if name in own:
            chosen.append(own[name])
        elif name or not own:
            kernels.append(kernel_file.kernel_called(modules[path], Path(path), name))
    if kernels and (chosen or not all(name for _, name in named)):
        raise KernelError(f"{', '.join(words)} are kernels and generators; give either")
    if kernels:
        points = kernel_file.size_points(tags, ":")
        return OwnFiles(tuple(kernel.at(**point) for kernel in kernels for point in points), (), ())
    if not chosen and all(parted(tag)[1] for tag in tags):
        chosen = joined
    names = dict.fromkeys(generator.name for generator in chosen)
    return OwnFiles((), tuple({id(each): each for each in joined}.values()), (*names, *tags))


def generators_of(module: ModuleType) -> dict[str, KernelGenerator]:
    """Returns the generators that a loaded file defines: its instances, and one of each other class.

    Raises:
        PerfmodelError: for a class that lacks something, or cannot be made without arguments.
    """
    found = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, KernelGenerator) and not name.startswith("_")
    }
    made = {type(generator) for generator in found.values()}
    base: type[KernelGenerator] = KernelGenerator  # type: ignore[type-abstract]  # of which subclasses are looked for
    classes = [cls for cls in registry.classes(module, base) if cls not in made]
    return found | {cls.__name__: registry.entry_of(cls, "generators") for cls in classes}


def definitions(path: str) -> tuple[dict[str, str], list[KernelGenerator]]:
    """Returns what a file defines, each name with what it is, and its generators.

    Raises:
        KernelError: for a file that cannot be run, or has neither kernel nor generator.
    """
    module = kernel_file.loaded(path)
    generators = generators_of(module)
    found = kernel_file.definitions(module) | {name: f"generator {each.name}" for name, each in generators.items()}
    if not found:
        raise KernelError(
            f"{path} defines no kernel; give it a Loopy program, a perfmodel.Kernel, a function that returns one, or a "
            "KernelGenerator"
        )
    return found, list(generators.values())
