"""Looks up names that a shell completes, without importing a catalogue, as a key press must not wait for it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfmodel.basics import registry
from perfmodel.cli import tag_values
from perfmodel.kernels.source_words import SOURCES
from perfmodel.modelling.shipped import shipped_files

DEVICES = ("cpu", "gpu", "all")
"""Words for devices; the drivers are asked for keys only where none of these, and no shipped one, is meant."""
ENTRY = tag_values.ENTRY
FEATURE = re.compile(r"""["'](f_[a-z][^"'\s]*[^"'\s_])["']""")
TAG = re.compile(
    r'^(?:    tags = .*|\s+|[A-Z_]+ = )?.*?\b(?:choice|number|size|Tag|_\w+)\(\s*"([a-z]\w*)"', re.MULTILINE
)


def devices(prefix: str, **_: Any) -> list[str]:
    """Returns words for devices, and keys of devices."""
    cheap = {*DEVICES, *(path.stem.partition("@")[2] for path in shipped_files())}
    if fitting := sorted(word for word in cheap if word.startswith(prefix)):
        return fitting
    from perfmodel.device import devices  # keeps other completions quick

    return sorted(device.key for device in devices())


def generators(**_: Any) -> list[str]:
    """Returns families of kernels, without those of installed packages, which would have to be imported."""
    return sorted({name for text in _modules("generators") for name in ENTRY.findall(text)})


def families(prefix: str, **_: Any) -> list[str]:
    """Returns families of kernels, files that may define some, and folders."""
    return [*generators(), *_files(prefix, (".py",))]


def tags(prefix: str, parsed_args: Any = None, **_: Any) -> list[str]:
    """Returns families, their tags with a colon behind, files of kernels, and folders; behind a tag, its values."""
    if values := tag_values.completed(prefix, _words(parsed_args)):
        return values
    texts = [
        *_modules("generators"),
        (Path(__file__).parents[1] / "collection" / "tags.py").read_text(encoding="utf-8"),
    ]
    names = sorted({name for text in texts for name in TAG.findall(text)} | {"lsizes"})
    return [*generators(), *(f"{name}:" for name in names), *_files(prefix, (".py", *SOURCES))]


def feature_words(prefix: str, **_: Any) -> list[str]:
    """Returns the words that stand first in names of features, then names that begin so, as far as sources show."""
    return sorted({name for text in _modules("features") for name in FEATURE.findall(text) if name.startswith(prefix)})


def python_files(prefix: str, **_: Any) -> list[str]:
    """Returns Python files and folders."""
    return _files(prefix, (".py",))


def recipes(**_: Any) -> list[str]:
    """Returns the names of recipes and studies."""
    return sorted({name for text in _modules("models") for name in ENTRY.findall(text)})


def calibrations(prefix: str, **_: Any) -> list[str]:
    """Returns shipped calibrations, and files that may be one."""
    return [*(path.stem for path in shipped_files()), *_files(prefix, (".json",))]


def _words(parsed: Any) -> list[str]:
    """Returns the words of selections that stand on the command line already."""
    found = [getattr(parsed, name, None) or [] for name in ("tags", "measurements", "evaluation", "kernels")]
    return [word for words in found for each in words for word in (each if isinstance(each, list) else [each])]


def _modules(catalogue: str) -> Iterator[str]:
    """Yields the source of each module of a catalogue."""
    for folder in registry.folders(catalogue):
        for path in folder.glob("*.py"):
            yield path.read_text(encoding="utf-8")


def _files(prefix: str, endings: tuple[str, ...]) -> list[str]:
    """Returns files with these endings, and folders, that a path may go on with."""
    folder, begin = os.path.split(prefix)
    try:
        there = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except OSError:
        return []
    chosen = [each for each in there if each.name.startswith(begin) and (begin or not each.name.startswith("."))]
    paths = [(os.path.join(folder, each.name), each) for each in chosen]  # noqa: PTH118
    return [f"{path}/" if each.is_dir() else path for path, each in paths if each.is_dir() or path.endswith(endings)]
