"""Imports times that Kernel Tuner took: its cache files, and the results files of its T4 format."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perfmodel.basics.errors import DeviceError, StoreError, one_line
from perfmodel.basics.files import check_file
from perfmodel.basics.provenance import versions
from perfmodel.device import Device, devices
from perfmodel.kernels.kernel import Kernel
from perfmodel.measuring.protocol import Protocol
from perfmodel.measuring.store.rows import Failure, Measurement, measurement_key
from perfmodel.measuring.store.store import Counts, Store

LARGEST_FILE = 2**30
"""Bytes that such a file may have."""
FAILURES = {
    "InvalidConfig": "Kernel Tuner: the device does not allow this configuration, or a restriction of the user",
    "CompilationFailedConfig": "Kernel Tuner: it did not compile",
    "RuntimeFailedConfig": "Kernel Tuner: it failed when it ran",
    "ErrorConfig": "Kernel Tuner: it failed",
    "constraints": "Kernel Tuner: the device does not allow this configuration, or a restriction of the user",
    "compile": "Kernel Tuner: it did not compile",
    "runtime": "Kernel Tuner: it failed when it ran",
    "timeout": "Kernel Tuner: it took too long",
    "correctness": "Kernel Tuner: its results were wrong",
}
"""Marks of a failure in a cache (the first four) or in a results file."""
NO_TIME_MS = 1e20
"""Early versions wrote this instead of a time where there was none."""
PARAMETERS_OF_RUNNING = ("time", "times", "timestamp", "__error__")

Configuration = dict[str, Any]


@dataclass(frozen=True)
class Imported:
    """Holds what an import did.

    Attributes:
        counts: of rows that were added, and that were there.
        device, protocol: those of the rows, for `perfmodel.measure`.
    """

    counts: Counts
    device: Device
    protocol: Protocol


@dataclass(frozen=True)
class _Result:
    """One configuration's result.

    Attributes:
        trials: milliseconds of each run, or their mean alone; empty for a failure.
        reason: of a failure.
        others: whatever else was measured.
    """

    configuration: Configuration
    trials: tuple[float, ...] = ()
    reason: str = ""
    created: str = ""
    others: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Tuning:
    """Holds what a file says of a whole tuning; empty where it does not."""

    results: list[_Result]
    device: str = ""
    kernel: str = ""
    problem_size: Any = None


def import_kernel_tuner(
    store: Store,
    path: str | os.PathLike[str],
    kernel: Callable[[Configuration], Kernel | None] | None = None,
    device: Device | str | None = None,
    name: str | None = None,
    iterations: int = 7,
) -> Imported:
    """Adds the times of a cache file, also one that a tuner still writes or was killed over, or of a T4 results file.

    Rows of known keys stay as they are. The file is taken for data of unknown origin.

    Args:
        kernel: gives the kernel that a configuration (its values by the parameters' names) stands for; the time is
            then found by whoever measures that kernel on the device under the protocol. None leaves a configuration
            out. Without `kernel`, rows are kept as data, with the configuration as tags.
        device: that the times are of: a `Device`; the key or full name of one here or in the store; or any other
            name, which then stands for a device of which nothing else is known. By default, the name in the file stands
            so for one.
        name: of the kernel, for rows without `kernel`; by default, the name in the file, or that of the file.
        iterations: how many runs a time is the mean of, where the file does not list them.

    Returns:
        Counts, and the device and the protocol to ask for.

    Raises:
        StoreError: for what is no such file, with the first entry that is wrong; nothing is added then.
        KernelError: from `kernel`.
    """
    source = Path(path)
    tuning = _read(source)
    target = _device(device, tuning.device, store, source)
    runs = max((len(result.trials) for result in tuning.results if len(result.trials) > 1), default=iterations)
    protocol = Protocol("kernel-tuner", trials=runs, dropped=0, statistic="mean")
    measurements: list[Measurement] = []
    failures: list[Failure] = []
    for result in tuning.results:
        described = _described(result, tuning, kernel, name or tuning.kernel or source.stem)
        if described is None:
            continue
        row = described | {
            "key": measurement_key(described["content"], described["sizes"], target.fingerprint(), protocol),
            "device": target.fingerprint(),
            "protocol": asdict(protocol),
            "created": result.created,
            "versions": {"perfmodel": versions()["perfmodel"]},
            "conditions": {"kernel_tuner": result.others},
        }
        if result.reason:
            failures.append(Failure(**row, reason=result.reason))
        else:
            seconds = tuple(time / 1e3 for time in result.trials)
            measurements.append(Measurement(**row, trials=seconds, dropped=0, statistic="mean", flags=()))
    return Imported(store.add(measurements, failures), target, protocol)


def _described(
    result: _Result, tuning: _Tuning, kernel: Callable[[Configuration], Kernel | None] | None, name: str
) -> dict[str, Any] | None:
    """Returns the fields of a row that describe its program; None for a configuration that is left out."""
    texts = {parameter: str(value) for parameter, value in result.configuration.items()}
    if kernel is not None:
        found = kernel(dict(result.configuration))
        if found is None:
            return None
        tags = {**found.tags, **texts}
        return {"kernel": found.name, "content": found.program.content, "sizes": found.sizes, "tags": tags}
    identity = json.dumps(["Kernel Tuner", name, result.configuration], sort_keys=True)
    content = hashlib.sha256(identity.encode()).hexdigest()
    return {"kernel": name, "content": content, "sizes": _sizes(tuning.problem_size), "tags": texts}


def _sizes(problem_size: Any) -> dict[str, int]:
    """Returns problem sizes by axis; a size that was no number is not known."""
    sizes = problem_size if isinstance(problem_size, list) else [problem_size]
    axes = zip(("x", "y", "z"), sizes, strict=False)
    return {f"problem_size_{axis}": size for axis, size in axes if type(size) is int}


def _device(wanted: Device | str | None, in_file: str, store: Store, source: Path) -> Device:
    if isinstance(wanted, Device):
        return wanted
    if not wanted and not in_file:
        raise StoreError(f"{source} does not say of which device it is: give the device's name")
    if not wanted:  # one here that is called so may have had another driver when the file was written
        return device_called(in_file)
    here: list[Device] = []
    with suppress(DeviceError):  # without any driver, there is none here
        here = devices()
    for known in (*here, *store.devices()):
        if wanted in (known.key, known.name):
            return known
    return device_called(wanted)


def device_called(name: str) -> Device:
    """Returns a device of which nothing but the name is known."""
    readable = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-") or "device"
    return Device(
        key=f"{readable}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:6]}",
        name=name,
        platform="",
        vendor="",
        driver="",
        opencl_version="",
        kind="gpu",
        compute_units=0,
        clock_mhz=0,
        global_memory=0,
        max_allocation=0,
        local_memory=0,
        max_work_group_size=0,
        max_work_item_sizes=(),
        sub_group_size=None,
        double_precision=False,
        half_precision=False,
    )


def _read(source: Path) -> _Tuning:
    try:
        check_file(source)
        if source.stat().st_size > LARGEST_FILE:
            raise ValueError(f"it has more than {LARGEST_FILE} bytes")
        written = datetime.fromtimestamp(source.stat().st_mtime, UTC).isoformat(timespec="seconds")
        document = _document(source.read_text(encoding="utf-8"))
        if isinstance(document.get("cache"), dict):
            return _of_cache(document, written)
        if isinstance(document.get("results"), list):
            return _of_results(document, written)
        raise ValueError("it has neither a cache nor results")
    except OSError as error:
        raise StoreError(f"{source} cannot be read ({error.strerror or error}): give a file of Kernel Tuner") from error
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise StoreError(
            f"{source} is no cache or results file of Kernel Tuner ({one_line(error)}): give one; nothing was imported"
        ) from error


def _document(text: str) -> dict[str, Any]:
    """Returns what a file holds; of a cache that was not closed, all entries that were written whole."""
    text = text.strip()
    try:
        found = json.loads(text)
    except ValueError:
        # A tuner adds a line to the end for each configuration, ending with a comma; the last may be cut off.
        for whole in (text, text[: text.rfind("\n") + 1]):
            try:
                found = json.loads(whole.rstrip().removesuffix(",") + "}\n}")
                break
            except ValueError:
                continue
        else:
            raise
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found


def _of_cache(document: Mapping[str, Any], written: str) -> _Tuning:
    names = _texts(document.get("tune_params_keys"), "tune_params_keys")
    results = []
    for key, entry in document["cache"].items():
        if not isinstance(entry, dict) or not set(names) <= entry.keys():
            raise ValueError(f"entry {key!r} has not a value for each of {', '.join(names)}")
        configuration = {name: _scalar(entry[name], key) for name in names}
        # Once, a failure stood instead of the time.
        marks = [v for k, v in entry.items() if k not in names and isinstance(v, str) and v in FAILURES]
        time = entry.get("time")
        if not marks and isinstance(time, int | float) and time >= NO_TIME_MS:
            marks = ["ErrorConfig"]
        results.append(
            _Result(
                configuration=configuration,
                trials=() if marks else _times(entry.get("times"), time, key),
                reason=FAILURES[marks[0]] if marks else "",
                created=_created(entry.get("timestamp"), written),
                others={k: v for k, v in entry.items() if k not in names and k not in PARAMETERS_OF_RUNNING},
            )
        )
    device, kernel = (_texts([document.get(name, "")], name)[0] for name in ("device_name", "kernel_name"))
    return _Tuning(results, device, kernel, document.get("problem_size"))


def _of_results(document: Mapping[str, Any], written: str) -> _Tuning:
    metadata = document.get("metadata")
    unit = metadata.get("timeunit", "milliseconds") if isinstance(metadata, dict) else "milliseconds"
    if unit != "milliseconds":
        raise ValueError(f"its times are in {unit!r}, not milliseconds")
    results = []
    for number, entry in enumerate(document["results"]):
        place = f"results[{number}]"
        if not isinstance(entry, dict) or not {"configuration", "times", "invalidity"} <= entry.keys():
            raise ValueError(f"{place} has not configuration, times and invalidity")
        values, times, validity = entry["configuration"], entry["times"], entry["invalidity"]
        if not isinstance(values, dict) or not isinstance(times, dict) or not isinstance(validity, str):
            raise ValueError(f"{place} has no mappings of configuration and times, or no text of invalidity")
        if validity not in ("correct", *FAILURES):
            raise ValueError(f"{place} has the invalidity {validity!r}, which is none")
        is_sound, measured = validity == "correct", _measured(entry.get("measurements", []), place)
        others = {"times": {k: v for k, v in times.items() if k != "runtimes"}}
        others |= {name: value for name, value in measured.items() if name not in PARAMETERS_OF_RUNNING}
        results.append(
            _Result(
                configuration={name: _scalar(value, place) for name, value in values.items()},
                trials=_times(times.get("runtimes"), measured.get("time"), place) if is_sound else (),
                reason="" if is_sound else FAILURES[validity],
                created=_created(entry.get("timestamp"), written),
                others=others,
            )
        )
    return _Tuning(results)


def _measured(measurements: Any, place: str) -> dict[str, Any]:
    if not isinstance(measurements, list) or not all(isinstance(each, dict) for each in measurements):
        raise ValueError(f"{place} has no list of measurements")
    found = {str(each.get("name")): each for each in measurements}
    unit = found.get("time", {}).get("unit", "ms")
    if unit != "ms":
        raise ValueError(f"{place} has its time in {unit!r}, not ms")
    return {name: each.get("value") for name, each in found.items()}


def _times(runs: Any, mean: Any, place: str) -> tuple[float, ...]:
    """Returns milliseconds of each run, or of their mean where they are not listed."""
    times = runs if isinstance(runs, list) and runs else [mean]
    if not all(type(time) in (int, float) and 0 < time < math.inf for time in times):
        raise ValueError(f"the times of {place} are not all positive numbers")
    return tuple(map(float, times))


def _created(timestamp: Any, written: str) -> str:
    """Returns when a configuration was measured, in UTC; when the file was written, if that is not known."""
    try:
        return datetime.fromisoformat(timestamp).astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, TypeError, OverflowError):
        return written


def _scalar(value: Any, place: str) -> Any:
    if not isinstance(value, str | int | float | bool):
        raise ValueError(f"{place} has a value that is neither a number nor a text")
    return value


def _texts(values: Any, what: str) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{what} is no text, or no list of them")
    return values
