"""The project file, ``perfmodel.toml``: defaults of the command line for one project."""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

from perfmodel.basics.errors import PerfmodelError, PerfmodelWarning, nearest

NAME = "perfmodel.toml"
SECTION = "defaults"
LARGEST = 2**16
"""Bytes that a project file may have."""
PATHS = ("calibration", "load", "store")
KEYS = ("calibration", "device", "load", "protocol", "store")


def fill(parsed: argparse.Namespace) -> None:
    """Gives options that were left out the values of the project file.

    Which ones is in ``project_defaults``: the file's key by the option's name. PERFMODEL_DEVICE comes before the
    file's device. The options that were given a value are in ``from_project_file``.

    Raises:
        PerfmodelError: the file can't be read, or something in it is not known.
    """
    parsed.from_project_file = []
    wanted = {**getattr(parsed, "project_defaults", {}), **({"load": "load"} if hasattr(parsed, "load") else {})}
    path = found(Path.cwd()) if wanted else None
    if path is None:
        return
    defaults = read(path)
    if os.environ.get("PERFMODEL_DEVICE"):
        defaults.pop("device", None)
    for option, key in wanted.items():
        if getattr(parsed, option) is None and key in defaults:
            setattr(parsed, option, defaults[key])
            parsed.from_project_file.append(option)


def found(folder: Path) -> Path | None:
    """Returns the file of this folder or of the nearest one above it; none beyond a Git repository or the home folder.

    As Git's safe.directory, only one that is the user's own, in a folder of their own; under sudo, of who called it.
    """
    for each in (folder, *folder.parents):
        path = each / NAME
        if path.is_file():
            if stranger := next((one for one in (each, path) if one.stat().st_uid not in _own_ids()), None):
                what = "its folder" if stranger == each else "it"
                warnings.warn(
                    f"{os.path.relpath(path)} is passed over, as {what} belongs to another user; copy it to a folder "
                    "of your own, or give its values as options",
                    PerfmodelWarning,
                    stacklevel=2,
                )
                return None
            return path
        if (each / ".git").exists() or each == Path.home():
            return None
    return None


def _own_ids() -> set[int]:
    """Returns the user's id; also that of who became root by sudo."""
    caller = os.environ.get("SUDO_UID", "")
    own = os.geteuid()
    return {own, int(caller)} if own == 0 and caller.isdecimal() else {own}


def read(path: Path) -> dict[str, Any]:
    """Returns the defaults that a file holds; paths as they are from the working folder.

    Raises:
        PerfmodelError: naming the file, the culprit and the nearest known key.
    """
    import tomllib  # keeps start-up quick

    from perfmodel.basics import json_values

    shown = os.path.relpath(path)
    try:
        content = tomllib.loads(json_values.read_bytes(path, LARGEST).decode())
    except OSError as error:
        raise PerfmodelError(f"{shown} cannot be read ({error.strerror}); make it readable or remove it") from error
    except (ValueError, RecursionError) as error:
        raise PerfmodelError(
            f'{shown} is no TOML ({error}); write lines such as device = "gpu" under [defaults]'
        ) from error
    for name in content:
        if name != SECTION:
            beneath = f"; put {', '.join(KEYS)} under [{SECTION}]"
            remedy = beneath if name in KEYS else nearest(name, (SECTION,)) or beneath
            raise PerfmodelError(f"{shown} has an unknown section or key {name!r}{remedy}")
    defaults = content.get(SECTION, {})
    if not isinstance(defaults, dict):
        raise PerfmodelError(f'{shown}: {SECTION!r} is no section; write [{SECTION}] and below it device = "gpu"')
    for key, value in defaults.items():
        _check(shown, key, value)
    beside = {key: _beside(path, value) for key, value in defaults.items() if key in PATHS and not _comes_along(value)}
    return defaults | beside


def _comes_along(value: str | list[str]) -> bool:
    """Returns True for the name of a calibration that comes along, such as ``@h200``, and False for a file."""
    return isinstance(value, str) and "@" in value


def _beside(path: Path, value: str | list[str]) -> str | list[str]:
    """Returns paths that a file gives as they are from the working folder."""
    if isinstance(value, str):
        return os.path.relpath(path.parent / Path(value).expanduser())
    return [str(_beside(path, each)) for each in value]


def _check(file: str, key: str, value: Any) -> None:
    if key not in KEYS:
        raise PerfmodelError(f"{file}: [{SECTION}] has no key {key!r}{nearest(key, KEYS)} (known: {', '.join(KEYS)})")
    is_list = key == "load" and isinstance(value, list)
    if not all(isinstance(each, str) and each for each in (value if is_list else [value])):
        raise PerfmodelError(
            f"{file}: {key} is {value!r}, which is no name; write it in quotes, such as {EXAMPLES[key]}"
        )
    if key == "protocol":
        from perfmodel.measuring.protocol import PROTOCOLS  # keeps start-up quick

        if value not in PROTOCOLS:
            known = ", ".join(sorted(PROTOCOLS))
            raise PerfmodelError(f"{file}: there is no protocol {value!r}{nearest(value, PROTOCOLS)} (known: {known})")


EXAMPLES = {
    "calibration": 'calibration = "cpu.json"',
    "device": 'device = "gpu"',
    "protocol": 'protocol = "quick"',
    "store": 'store = "times.sqlite"',
} | {"load": 'load = ["mine.py"]'}
