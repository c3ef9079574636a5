"""Computes every committed table of docs/results again from the store beside it, and compares.

    python -m benchmarks.recompute                       # all of them; says how long each took
    python -m benchmarks.recompute unified-nvidia-h200-e38dd1 demo-amd-epyc-eb6565
    python -m benchmarks.recompute --write               # and puts what came out where it differs from what is there

docs/results/recompute.toml lists them. Text has to agree word by word and numbers to three digits, as fits end a little
elsewhere on another machine; what is a time of the machine that computes is not compared, nor what follows from
parameters that the measurements leave open: their values, standard errors, and intervals. With ``--write``,
calibrations that come along (models/*.json) are written first, the same or not, and everything that they predict
follows from them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
LIST = RESULTS / "recompute.toml"
TOLERANCE = 1e-3
"""Relative difference of numbers that count as the same."""
NOT_COMPARED = frozenset(
    (
        *("created", "versions", "perfmodel", "command", "device", "devices", "steps_s", "cost_s", "mean_cost_s"),
        *("predict_s", "emulation", "emulation_costs", "searches"),
        *(
            "predicted_std_s",
            "interval_68_s",
            "interval_90_s",
            "intervals",
            "covered",
            "held_out",
            "held_out_errors",
            "residual_std",
        ),
        *("stderr", "covariance", "marks", "undetermined", "report"),
    )
)
"""Fields that are of the run and not of the results, and those that follow from parameters that nothing determines."""
UNSURE = (
    r" ± \S+",
    r" .*\((?:undetermined|at its bound).*$",
    r"(?<=families) .*%.*$|(?<=variants) .*%.*$|(?<=sizes) .*%.*$",
)
"""Parts of lines that say how sure something is, or have values that the measurements leave open.

Such values end elsewhere on another machine, in models of processors by powers of ten, and with them intervals by some
per cent of their width; predictions differ by less than a thousandth.
"""
NUMBER = re.compile(r"([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")
MOST_DIFFERENCES = 3
"""So many differences of one file are shown."""


@dataclass(frozen=True)
class Entry:
    """One command, and the committed files that it gives.

    Attributes:
        name: what people call it: its folder, and where one folder has several commands, the file.
        folder: below docs/results.
        command: as typed in the repository's root, without ``--out``.
        files: of the folder that ``--out`` names; those that end in ``.gz`` are compressed from the file of that name.
        prints: a file that what the command prints is put into instead.
        ships: calibrations that come along, by the file that the command writes.
        seconds: that it took on two cores.
    """

    name: str
    folder: str
    command: str
    seconds: int
    files: tuple[str, ...] = ()
    prints: str = ""
    ships: dict[str, str] = field(default_factory=dict)

    @property
    def committed(self) -> list[Path]:
        return [RESULTS / self.folder / name for name in (*self.files, *([self.prints] if self.prints else []))]


def entries(file: Path = LIST) -> list[Entry]:
    """Returns every entry of the list."""
    found: list[dict[str, Any]] = tomllib.loads(file.read_text())["table"]
    return [Entry(**{**one, "files": tuple(one.get("files", ()))}) for one in found]


def ignored(file: Path = LIST) -> tuple[str, ...]:
    """Returns regular expressions of what is a time of the run, in text."""
    return tuple(tomllib.loads(file.read_text())["ignored"])


def measured_only(file: Path = LIST) -> dict[str, str]:
    """Returns, by their path, why files of docs/results can't be computed again."""
    return dict(tomllib.loads(file.read_text())["measured"])


@dataclass(frozen=True)
class Recomputed:
    """Holds what a command gave.

    Attributes:
        differences: sentences; none where all is as committed.
    """

    entry: Entry
    seconds: float
    differences: tuple[str, ...]

    def __str__(self) -> str:
        what = "same" if not self.differences else f"differs: {'; '.join(self.differences)}"
        return f"{self.entry.name}: {what} ({self.seconds:.0f} s)"


def recompute(entry: Entry, write: bool = False) -> Recomputed:
    """Runs the command in a folder of its own, and compares; with `write`, replaces what differs."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as given:
        out = Path(given)
        problem = _run(entry, out)
        differences = [problem] if problem else list(_differences(entry, out))
        if write and not problem and (differences or entry.ships):  # of calibrations, not all is compared
            _replace(entry, out)
    return Recomputed(entry, time.perf_counter() - started, tuple(differences))


def _run(entry: Entry, out: Path) -> str:
    """Leaves the files of the entry in a folder, by their committed names; returns a sentence if the command fails."""
    words = shlex.split(entry.command)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "1000"}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    program = {"perfmodel": [sys.executable, "-m", "perfmodel"], "python": [sys.executable]}[words[0]]
    wanted = [] if entry.prints else ["--out", str(out)]
    done = subprocess.run(
        [*program, *words[1:], *wanted], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"the command failed: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}"
    if entry.prints:
        (out / entry.prints).write_text(done.stdout)
    if missing := [name for name in entry.files if not (out / name.removesuffix(".gz")).exists()]:
        return f"the command gives no {missing[0]}"
    for file in out.glob("*.json"):  # the command as typed, without the folder of this run
        file.write_text(file.read_text().replace(str(out), "out"))
    for name in entry.files:
        if name.endswith(".gz"):
            (out / name).write_bytes(gzip.compress((out / name.removesuffix(".gz")).read_bytes(), 9, mtime=0))
    return ""


def _differences(entry: Entry, out: Path) -> Iterator[str]:
    for file in entry.committed:
        new = out / file.name
        if file.suffix == ".png":
            continue
        if not file.exists():
            yield f"{file.name} is not committed"
        elif file.suffix == ".txt":
            yield from _limited(file.name, text_differences(file.read_text(), new.read_text(), ignored()))
        else:
            yield from _limited(file.name, differences(document(file), document(new)))


def _limited(name: str, found: Iterator[str]) -> list[str]:
    every = list(found)
    more = [f"and {len(every) - MOST_DIFFERENCES} more"] if len(every) > MOST_DIFFERENCES else []
    return [f"{name}: {', '.join([*every[:MOST_DIFFERENCES], *more])}"] if every else []


def document(file: Path) -> Any:
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    found = json.loads(content)
    if isinstance(found, dict) and "parameters" in found:
        found["parameters"] = dict(_determined(found["parameters"], found.get("stderr")))
    return found


def _determined(parameters: dict[str, Any], stderr: dict[str, Any] | None) -> Iterator[tuple[str, Any]]:
    """Yields the parameters of a calibration, or of each of several models, that have a standard error; and nothing
    else."""
    for name, value in parameters.items():
        if isinstance(value, dict):
            yield name, {each: pair[0] for each, pair in value.items() if pair[1] is not None}
        elif stderr is None or stderr.get(name) is not None:
            yield name, value


def differences(committed: Any, new: Any, where: str = "") -> Iterator[str]:
    """Yields the differences of two JSON documents, but for `NOT_COMPARED` and rounding."""
    if isinstance(committed, dict) and isinstance(new, dict):
        for name in dict.fromkeys((*committed, *new)):
            if name in NOT_COMPARED:
                continue
            if name not in committed or name not in new:
                yield f"{where}/{name} is {'new' if name in new else 'gone'}"
            else:
                yield from differences(committed[name], new[name], f"{where}/{name}")
    elif isinstance(committed, list) and isinstance(new, list):
        if len(committed) != len(new):
            yield f"{where} has {len(new)} instead of {len(committed)}"
        for i, pair in enumerate(zip(committed, new, strict=False)):
            yield from differences(*pair, f"{where}/{i}")
    elif not _same(committed, new):
        yield f"{where} is {new!r} instead of {committed!r}"


def _same(one: Any, other: Any, rounding: float = 0.0) -> bool:
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (one, other))
    if not numbers:
        return bool(one == other)
    return bool(abs(one - other) <= rounding + TOLERANCE * max(abs(one), abs(other)))


def text_differences(committed: str, new: str, ignoring: Sequence[str] = ()) -> Iterator[str]:
    """Yields the lines in which two texts differ, but for rounding, widths of columns, and what is ignored."""
    for pattern in (*UNSURE, *ignoring):
        committed, new = (re.sub(pattern, "", text, flags=re.MULTILINE) for text in (committed, new))
    before, after = committed.splitlines(), new.splitlines()
    if len(before) != len(after):
        yield f"{len(after)} lines instead of {len(before)}"
        known = {" ".join(line.split()) for line in before}
        notes = [" ".join(line.split()) for line in after if line.startswith("note: ")]
        yield from (f"new is {note!r}" for note in notes if note not in known)
    for number, (one, other) in enumerate(zip(before, after, strict=False), start=1):
        if not _same_line(one, other):
            yield f"line {number} is {' '.join(other.split())!r} instead of {' '.join(one.split())!r}"


def _same_line(one: str, other: str) -> bool:
    pieces, others = (NUMBER.split(re.sub(r"\s+|-{2,}", " ", line).strip()) for line in (one, other))
    if len(pieces) != len(others) or pieces[::2] != others[::2]:
        return False
    pairs = zip(pieces[1::2], others[1::2], strict=True)
    return all(_same(float(a), float(b), max(_last_place(a), _last_place(b))) for a, b in pairs)


def _last_place(number: str) -> float:
    """Returns the value of one more in the last digit: 0.01 for 1.23, 1e-9 for 4e-9; zero for a whole number."""
    mantissa, _, exponent = number.lower().partition("e")
    _, point, decimals = mantissa.partition(".")
    return 1.01 * 10.0 ** (int(exponent or 0) - len(decimals)) if point or exponent else 0.0


def _replace(entry: Entry, out: Path) -> None:
    for file in entry.committed:
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(out / file.name, file)
    if entry.ships:
        import perfmodel
        from perfmodel.device.facts import DeviceFacts
        from perfmodel.modelling.transfer import SPECIFICATION

        for name, target in entry.ships.items():
            made, before = perfmodel.Calibration.load(out / name).to_ship(), json.loads((ROOT / target).read_text())
            if known := before["device"].get(SPECIFICATION):  # facts that no run tells
                made = made.with_device(DeviceFacts.from_json(known))
            made.save(ROOT / target)


def _stage(entry: Entry) -> int:
    is_of_results = "results.json" in entry.command or entry.name == "coverage"
    return 0 if entry.ships else 2 if is_of_results else 1


def chosen(names: Sequence[str], every: Sequence[Entry]) -> list[Entry]:
    """Returns the entries of these names or folders, or all."""
    if unknown := set(names) - {name for entry in every for name in (entry.name, entry.folder)}:
        raise SystemExit(
            f"no entry of {LIST.name} is called {min(unknown)}; there are: {', '.join(e.name for e in every)}"
        )
    return [entry for entry in every if not names or {entry.name, entry.folder} & set(names)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="FOLDER", help="of docs/results (default: all)")
    parser.add_argument("--write", action="store_true", help="replace the committed files that differ")
    parser.add_argument("--most", type=float, help="only what takes no longer than so many seconds")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="commands at a time (default: %(default)s)"
    )
    parsed = parser.parse_args()
    found = chosen(parsed.names, entries())
    if parsed.most is not None:
        found = [entry for entry in found if entry.seconds <= parsed.most]
    found.sort(key=lambda entry: -entry.seconds)
    stages = [found]
    if parsed.write:  # what comes along, before what predicts by it; and what is made of results, after them
        stages = [[entry for entry in found if _stage(entry) == stage] for stage in range(3)]
    is_same = True
    with ThreadPoolExecutor(parsed.jobs) as pool:
        for stage in stages:
            for done in as_completed([pool.submit(recompute, entry, parsed.write) for entry in stage]):
                print(done.result(), flush=True)
                is_same &= not done.result().differences
    if not parsed.names:
        for file, why in measured_only().items():
            print(f"{file}: not computed again, {why}")
    return 0 if is_same or parsed.write else 1


if __name__ == "__main__":
    sys.exit(main())
