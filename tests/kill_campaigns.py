"""Kills campaigns, their measuring processes and their writes at random moments, and looks at what is left.

``python -m tests.kill_campaigns --kills 100 --seed 1`` prints a line a campaign; the test suite does a few.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import perfmodel
from perfmodel.device import find_device
from perfmodel.isolation.locks import FOLDER_VARIABLE
from perfmodel.store import Store
from tests.simulated_campaign import TROUBLE, expected_rows
from tests.simulated_timers import SECONDS_VARIABLE

ROOT = Path(perfmodel.__file__).parents[1]
CAMPAIGN, WORKER, WRITE = "campaign", "worker", "write"


@dataclass
class Tally:
    """What was killed, and what was wrong afterwards."""

    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys((CAMPAIGN, WORKER, WRITE), 0))
    campaigns: int = 0
    rows: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.kills.values())


def kill_one_campaign(path: Path, count: int, chance: random.Random, kills: int, tally: Tally) -> None:
    """Runs a campaign that is killed so many times, and then to its end."""
    acknowledged: set[str] = set()
    for _ in range(kills):
        kind = chance.choice((CAMPAIGN, WORKER, WRITE))
        after = [str(chance.uniform(0.0, 4.0))] if kind == WRITE else []
        process = _started(path, count, *after)
        was_killed = _kill(process, kind, chance.uniform(0.0, 2.5))
        acknowledged |= set(_said(process).split())
        tally.kills[kind] += was_killed or (kind == WRITE and process.returncode == -signal.SIGKILL)
        _check(path, acknowledged, f"{kind} of {path.name}", tally)
    process = _started(path, count)
    acknowledged |= set(_said(process).split())
    if process.returncode:
        tally.problems.append(f"{path.name}: the last run ended with {process.returncode}")
    _check(path, acknowledged, f"the end of {path.name}", tally)
    with Store(path) as store:
        rows = {row.key: row.trials for row in store}
        failures = store.failures()
    wanted = expected_rows(count, find_device("cpu"))
    if rows | dict.fromkeys(failures, ()) != wanted:
        tally.problems.append(f"{path.name}: {len(rows)} rows and {len(failures)} failures, not those of {len(wanted)}")
    if {failure.kernel for failure in failures.values()} != set(TROUBLE):
        tally.problems.append(f"{path.name}: failures of {sorted(f.kernel for f in failures.values())}")
    tally.campaigns += 1
    tally.rows += len(rows)


def _started(path: Path, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.simulated_campaign", str(path), *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {SECONDS_VARIABLE: "0.01", FOLDER_VARIABLE: str(path.parent / "locks")},
    )


def _kill(process: subprocess.Popen[str], kind: str, seconds: float) -> bool:
    """Kills what is to be killed after so many seconds; whether there was anything left to kill."""
    if kind == WRITE:
        return False  # it does so itself
    time.sleep(seconds)
    if process.poll() is not None:
        return False
    if kind == CAMPAIGN:
        process.kill()
        return True
    with suppress(psutil.Error):
        for child in psutil.Process(process.pid).children():
            child.kill()
            return True
    process.kill()  # it has no measuring process yet
    return True


def _said(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate()
    return said[: said.rfind("\n") + 1]


def _check(path: Path, acknowledged: set[str], when: str, tally: Tally) -> None:
    if not path.exists():
        return
    with Store(path) as store:
        problems = store.check()
        kept = [row.key for row in store] + list(store.failures())
    if lost := acknowledged - set(kept):
        problems.append(f"{len(lost)} acknowledged rows are lost")
    if len(kept) != len(set(kept)):
        problems.append("rows are doubled")
    tally.problems += [f"after {when}: {problem}" for problem in problems]


def kill_campaigns(kills: int, seed: int, count: int, kills_each: int = 5) -> Tally:
    chance, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory() as folder:
        while tally.total < kills:
            path = Path(folder, f"campaign-{tally.campaigns}.sqlite")
            kill_one_campaign(path, count, chance, min(kills_each, kills - tally.total), tally)
            problems = tally.problems or "none"
            print(f"{tally.total} kills {tally.kills}, {tally.rows} rows, problems: {problems}", flush=True)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernels", type=int, default=300)
    parsed = parser.parse_args()
    return bool(kill_campaigns(parsed.kills, parsed.seed, parsed.kernels).problems)


if __name__ == "__main__":
    sys.exit(main())
