"""Mutated files of every kind that perfmodel reads, loaded and used: no crash, no hang, no flood of memory.

    python -m tests.fuzz_files --kind calibration,profile,results,jsonl,csv,parquet,kernel_tuner --count 2000 --seed 1

Each file is changed in its structure (types swapped, huge numbers, what JSON has no numbers for, missing keys, deep
nesting) or in its bytes, and read in a child process. A violation is any error that is no PerfmodelError, one that is
no sentence, more than 2 seconds of the processor, or more than 500 MB. Exits with status 1 if there was any; the same
numbers give the same files.
"""

from __future__ import annotations

import argparse
import copy
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import perfmodel as pm
from perfmodel.basics.errors import PerfmodelError
from perfmodel.measuring.store import Store, export, import_file, to_frame
from perfmodel.projection.device_profile import FOLDER, DeviceProfile
from perfmodel.report.page import report_page
from perfmodel.report.reported import reported
from perfmodel.tuning.kernel_tuner_files import import_kernel_tuner

ROOT = Path(__file__).parent.parent
DEMO = ROOT / "docs" / "results" / "demo-nvidia-h200-e38dd1"
SECONDS, MEGABYTES, LONGEST_MESSAGE = 2.0, 500, 1500
LARGEST = 2**23
STUCK_S = 120.0
"""Seconds by the clock that a child may take which no signal reaches; its processors may have others to serve."""
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**400, -(10**30), 0.5, -0.0, 1e-320, 1e308, -1e308),
    *(float("inf"), float("-inf"), float("nan"), "", "x", "n", "\ud800", "\0", "é" * 50, "1e999", "[" * 200, "p_a"),
    *([], {}, [[]], [None], [1, "x"], {"": 0}, {"n": {}}, {"n": float("inf")}, ["x"] * 1000),
)


ODD_BYTES = (b'"', b"{", b"[", b"9" * 20, b"1e999", b"\0", b"\xff", b"-", b",")


# --- what a kind is: files to begin with, and what is done with one


@cache
def exported(ending: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder, Store(DEMO / "measurements.sqlite.xz") as store:
        export(store, path := Path(folder) / f"rows{ending}")
        if ending == ".parquet":
            return path.read_bytes()
        return b"".join(path.read_bytes().splitlines(keepends=True)[:8])


@cache
def kernel() -> pm.Kernel:
    (found,) = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "n:256"])
    return found


def calibrations() -> list[bytes]:
    """Returns calibrations as saved, and one whose terms and parameters have meanings."""
    plain = [(DEMO / f"calibration-{name}.json").read_bytes() for name in ("overlap", "one-term-prefetch")]
    told = json.loads(plain[0])
    model = pm.Calibration.load(DEMO / "calibration-overlap.json").model
    meaning = pm.Meaning("a", {"{:si}B": "f_work_items", "{} b": "f_thread_groups"}, {"c": "f_work_items - 5", "d": ""})
    told["model"]["meanings"] = {name: meaning.as_json() for name in model.string.terms}
    for name in model.parameters:
        reads = {"{:.3g} T/s": f"1e-12 / {name}"}
        price = pm.Meaning("a price", reads=reads, physical={"H200": (1, 2, "a sheet")}, lacks="caches")
        told["model"]["meanings"][name] = price.as_json()
    return [*plain, json.dumps(told).encode()]


def calibration(path: Path, is_whole: bool) -> None:
    found = pm.Calibration.load(path)
    str(found), repr(found), found._repr_html_(), found.to_frame(), found.parameter_frame(), found.to_ship()
    found.save(path.with_suffix(".again"))
    pm.Calibration.load(path.with_suffix(".again"))
    found.predict(kernel(), return_std=True, n=[256, 512])
    str(found.explain(kernel(), n=256))
    if is_whole:
        report_page(reported([str(path)]))


def profile(path: Path, is_whole: bool) -> None:
    made = DeviceProfile.load(path).calibration()
    made.save(path.with_suffix(".again"))
    str(made)


def results(path: Path, is_whole: bool) -> None:
    path.rename(path.parent / "results.json")
    models = reported([str(path.parent)])
    if is_whole:
        report_page(models)


def rows(path: Path, is_whole: bool) -> None:
    with Store() as store:
        import_file(store, path)
        to_frame(store)
        list(store.devices())


def kernel_tuner(path: Path, is_whole: bool) -> None:
    with Store() as store:
        import_kernel_tuner(store, path, device="Some GPU")
        to_frame(store)


def files(*paths: Path) -> Callable[[], list[bytes]]:
    return lambda: [path.read_bytes() for path in paths]


KINDS: dict[str, tuple[str, Callable[[], list[bytes]], Callable[[Path, bool], None]]] = {
    "calibration": (".json", calibrations, calibration),
    "profile": (".json", files(*sorted(FOLDER.glob("*.json"))), profile),
    "results": (".json", files(DEMO / "results.json"), results),
    "jsonl": (".jsonl", lambda: [exported(".jsonl")], rows),
    "csv": (".csv", lambda: [exported(".csv")], rows),
    "parquet": (".parquet", lambda: [exported(".parquet")], rows),
    "kernel_tuner": (
        ".json",
        files(*sorted((ROOT / "tests" / "tuning" / "kernel_tuner").glob("*.json"))),
        kernel_tuner,
    ),
}


# --- mutations


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in items:
            found += places(each, (*path, key))
    return found


def by_structure(rng: random.Random, document: Any) -> Any:
    document = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        path = rng.choice(places(document))
        if not path:
            continue
        parent = document
        for key in path[:-1]:
            parent = parent[key]
        key = path[-1]
        match rng.randrange(6):
            case 0:
                del parent[key]
            case 1 if isinstance(parent, dict):
                parent[rng.choice(("", "x", "n", "\ud800", str(key) * 2))] = parent.pop(key)
            case 2:
                parent[key] = copy.deepcopy(rng.choice([document, parent]))
            case 3:
                parent[key] = [parent[key]] * rng.choice((1, 3, 1000))
            case 4:
                deep: Any = parent[key]
                for _ in range(rng.choice((10, 70, 500))):
                    deep = [deep] if rng.random() < 0.5 else {"n": deep}
                parent[key] = deep
            case _:
                parent[key] = copy.deepcopy(rng.choice(ODD))
    return document


def by_bytes(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 2, 5, 50))):
        place = rng.randrange(len(changed) + 1)
        match rng.randrange(5):
            case 0:
                changed[place : place + rng.choice((1, 8, 1000))] = b""
            case 1:
                changed[place:place] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 4))))
            case 2:
                changed[place : place + 1] = rng.choice(ODD_BYTES)
            case 3:
                other = rng.randrange(len(changed) + 1)
                changed[place:place] = changed[other : other + 100]
            case _:
                changed[place : place + 4] = rng.randbytes(4)
    return bytes(changed[: rng.randrange(len(changed) + 1)] if rng.random() < 0.05 else changed)


def file_of(kind: str, seed: int, index: int) -> bytes:
    """Returns a file's bytes: the same for the same numbers, in every process; none is longer than `LARGEST`."""
    rng = random.Random(f"{kind} {seed} {index}")
    made = _mutated(rng, kind)
    return made if len(made) <= LARGEST else made[:LARGEST]


def _mutated(rng: random.Random, kind: str) -> bytes:
    ending, originals, _ = KINDS[kind]
    content = rng.choice(originals())
    if rng.random() < 0.4:
        return by_bytes(rng, content)
    try:
        if ending == ".json":
            return json.dumps(by_structure(rng, json.loads(content))).encode()
        if ending == ".jsonl":
            lines = content.splitlines()
            place = rng.randrange(len(lines))
            lines[place] = json.dumps(by_structure(rng, json.loads(lines[place]))).encode()
            return b"\n".join(lines) + b"\n"
        if ending == ".parquet":
            return _parquet(rng)
    except (RecursionError, ValueError):
        pass
    return by_bytes(rng, content)


def _parquet(rng: random.Random) -> bytes:
    """Returns the rows as Parquet, with a column of other values, or many times."""
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(pyarrow.BufferReader(exported(".parquet")))
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    name = rng.choice(list(columns))
    length = len(columns[name])
    odd = rng.choice(["x" * 3_000_000, "[" * 10_000, "{}", "null", "1e999", 7, 2**62, 0.5, None, b"\xff", [1], True])
    if rng.random() < 0.2:
        columns.pop(name)
    else:
        columns[name] = [odd] * length
    made = pyarrow.concat_tables([pyarrow.table(columns)] * rng.choice((1, 1, 20)))
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(made, sink, compression=rng.choice(("zstd", "snappy", "none")))
    return bytes(sink.getvalue().to_pybytes())


# --- one of them, and many


class TooLongError(BaseException):
    """An error that is not caught by those who catch every Exception."""


def tried(kind: str, seed: int, index: int) -> tuple[str, str]:
    """Tries one file; returns how it ended, and a traceback if that is a violation."""

    def stop(*_: object) -> None:
        raise TooLongError(f"took more than {SECONDS:g} s of the processor")

    ending, _, use = KINDS[kind]
    content = file_of(kind, seed, index)
    before = resident()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / f"file{ending}"
        path.write_bytes(content)
        signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            use(path, index % 20 == 0)
            said = "used"
        except PerfmodelError as error:
            said = f"refused by {type(error).__name__}"
            # A model string's error shows its place below.
            if len(str(error)) > LONGEST_MESSAGE or (str(error).count("\n") > 2):
                return "violation", f"no sentence: {str(error)[:300]!r}"
            str(error).encode()
        except BaseException:
            return "violation", traceback.format_exc()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    if (grown := resident() - before) > MEGABYTES:
        return "violation", f"took {grown:.0f} MB"
    return said, ""


def resident() -> float:
    """Returns the most memory that this process has ever held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def work(connection: Any, kind: str, seed: int, numbers: range) -> None:
    kernel().counts  # noqa: B018, so that no file pays for it
    for index in numbers:
        connection.send((index, *tried(kind, seed, index)))
    connection.send(None)


def run(kind: str, seed: int, numbers: range, save: Path) -> int:
    """Tries files of one kind in a child process, which is replaced where it crashes or no signal reaches it."""
    ends: Counter[str] = Counter()
    violations, following = 0, numbers.start
    while following < numbers.stop:
        ours, theirs = multiprocessing.get_context("fork").Pipe()
        child = multiprocessing.get_context("fork").Process(
            target=work, args=(theirs, kind, seed, range(following, numbers.stop)), daemon=True
        )
        child.start()
        theirs.close()
        while True:
            try:
                found = ours.recv() if ours.poll(STUCK_S) else (following, "violation", "never came back")
            except EOFError:
                found = (following, "violation", "the process crashed")
            if found is None:
                following = numbers.stop
                break
            index, end, trouble = found
            ends[end] += 1
            following = index + 1
            if trouble:
                violations += 1
                save.mkdir(exist_ok=True)
                (save / f"{kind}-{seed}-{index}{KINDS[kind][0]}").write_bytes(file_of(kind, seed, index))
                (save / f"{kind}-{seed}-{index}.txt").write_text(trouble)
                print(f"violation by {kind} {index}: {trouble.strip().splitlines()[-1][:200]}", flush=True)
                if trouble in ("never came back", "the process crashed"):
                    break
        child.kill()
        child.join()
    ended = dict(ends.most_common())
    print(f"{kind}, count {len(numbers)}, seed {seed}: {ended}; violations: {violations}", flush=True)
    return violations


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default=",".join(KINDS))
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first file, to repeat one with --count 1")
    parser.add_argument("--save", type=Path, default=Path(tempfile.gettempdir()) / "fuzz_files")
    options = parser.parse_args()
    os.environ.setdefault("PERFMODEL_NO_CACHE", "1")  # for the processes that are started, too
    numbers = range(options.first, options.first + options.count)
    violations = [run(kind, options.seed, numbers, options.save) for kind in options.kind.split(",")]
    return int(any(violations))


if __name__ == "__main__":
    sys.exit(main())
