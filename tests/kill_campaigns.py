"""Kills and interrupts campaigns, their measuring processes and their writes at random moments, and looks at the rest.

``python -m tests.kill_campaigns --kills 100 --interrupts 50 --seed 1`` prints a line a campaign; the test suite does a
few.
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
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import perfmodel
from perfmodel.device import find_device
from perfmodel.measuring.isolation.locks import FOLDER_VARIABLE
from perfmodel.measuring.store import Store
from tests.simulated_campaign import TROUBLE, expected_rows
from tests.simulated_timers import DONE_VARIABLE, HANGING_VARIABLE, SECONDS_VARIABLE

ROOT = Path(perfmodel.__file__).parents[1]
CAMPAIGN, WORKER, WRITE = "campaign", "worker", "write"
KILLS = (CAMPAIGN, WORKER, WRITE)
MEASURING, HANGING, STOPPED = "interrupt", "interrupt while the driver hangs", "interrupt while the worker is stopped"
INTERRUPTS = (MEASURING, HANGING, STOPPED)
MOST_SECONDS = 5.0
"""Seconds from an interruption until the campaign's process has to have ended."""


@dataclass
class Tally:
    """Holds what was killed or interrupted, and what was wrong afterwards."""

    blows: Counter[str] = field(default_factory=Counter)
    campaigns: int = 0
    rows: int = 0
    slowest_s: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return sum(self.blows[kind] for kind in KILLS)

    @property
    def interrupts(self) -> int:
        return sum(self.blows[kind] for kind in INTERRUPTS)


def strike_one_campaign(path: Path, count: int, chance: random.Random, kinds: list[str], tally: Tally) -> None:
    """Runs a campaign that ends so many times before its end, and then to its end."""
    acknowledged: set[str] = set()
    for kind in kinds:
        after = [str(chance.uniform(0.0, 4.0))] if kind == WRITE else []
        is_struck, said = _struck(path, count, kind, chance.uniform(0.0, 2.5), after, tally)
        acknowledged |= set(said.split())
        tally.blows[kind] += is_struck
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


def _struck(path: Path, count: int, kind: str, seconds: float, after: list[str], tally: Tally) -> tuple[bool, str]:
    """Runs a campaign until it is killed or interrupted; returns whether it was, and what it said."""
    hanging = Path(f"{path}.hanging")
    Path(f"{path}.done").unlink(missing_ok=True)
    if kind == HANGING:
        hanging.touch()
    process = _started(path, count, *after)
    if kind in INTERRUPTS:
        is_struck = _interrupt(process, kind, seconds, tally)
        hanging.unlink(missing_ok=True)
        said = _said(process)
        _check_done(path, kind, tally)
        return is_struck, said
    was_killed = _kill(process, kind, seconds)
    said = _said(process)
    return was_killed or (kind == WRITE and process.returncode == -signal.SIGKILL), said


def _started(path: Path, *arguments: object) -> subprocess.Popen[str]:
    variables = {
        SECONDS_VARIABLE: "0.01",
        FOLDER_VARIABLE: str(path.parent / "locks"),
        HANGING_VARIABLE: f"{path}.hanging",
        DONE_VARIABLE: f"{path}.done",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "tests.simulated_campaign", str(path), *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | variables,
    )


def _kill(process: subprocess.Popen[str], kind: str, seconds: float) -> bool:
    """Kills what is to be killed after so many seconds; returns whether there was anything left to kill."""
    if kind == WRITE:
        return False  # it does so itself
    time.sleep(seconds)
    if process.poll() is not None:
        return False
    if kind == CAMPAIGN:
        process.kill()
        return True
    if found := _workers(process):
        found[0].kill()
        return True
    process.kill()  # it has no measuring process yet
    return True


def _interrupt(process: subprocess.Popen[str], kind: str, seconds: float, tally: Tally) -> bool:
    """Interrupts a campaign; notes how long it takes to end, and whether it leaves a process behind."""
    if kind == HANGING:
        while process.poll() is None and not _workers(process):
            time.sleep(0.01)
    time.sleep(seconds)
    if process.poll() is not None:
        return False
    workers = _workers(process)
    if kind == STOPPED:
        for worker in workers:
            worker.suspend()
        time.sleep(seconds / 5)
    interrupted = time.monotonic()
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(20 * MOST_SECONDS)
    took = time.monotonic() - interrupted
    tally.slowest_s = max(took, tally.slowest_s)
    if took > MOST_SECONDS:
        tally.problems.append(f"{took:.1f} s until the end after {kind}, {seconds:.2f} s from the start")
        process.kill()
    time.sleep(0.1)
    if left := [worker.pid for worker in workers if worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE]:
        tally.problems.append(f"processes {left} are left after {kind}")
    return True


def _workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return list(psutil.Process(process.pid).children())
    return []


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


def _check_done(path: Path, when: str, tally: Tally) -> None:
    """Checks that whatever was measured before an interruption is stored, but for the launch that was under way."""
    done = Path(f"{path}.done")
    if not (done.exists() and path.exists()):
        return
    with Store(path) as store:
        kept = {repr(row.trials[0]) for row in store}
    if lost := set(done.read_text(encoding="ascii").splitlines()[:-1]) - kept:
        tally.problems.append(f"after {when} of {path.name}: {len(lost)} measured times are lost")


def kill_campaigns(kills: int, seed: int, count: int, each: int = 5, interrupts: int = 0) -> Tally:
    """Runs campaigns until so many kills and interruptions came in time, so many of them to a campaign."""
    chance, tally = random.Random(seed), Tally()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        while (left := max(0, kills - tally.kills)) or tally.interrupts < interrupts:
            deck = [KILLS] * left + [INTERRUPTS] * (interrupts - tally.interrupts)
            kinds = [chance.choice(kind) for kind in chance.sample(deck, min(each, len(deck)))]
            path = Path(folder, f"campaign-{tally.campaigns}.sqlite")
            strike_one_campaign(path, count, chance, kinds, tally)
            blows = ", ".join(f"{number} {kind}" for kind, number in sorted(tally.blows.items()))
            print(
                f"{tally.kills} kills and {tally.interrupts} interrupts ({blows}), ended in {tally.slowest_s:.1f} s; "
                f"{tally.rows} rows, problems: {tally.problems or 'none'}",
                flush=True,
            )
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--interrupts", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernels", type=int, default=300)
    parsed = parser.parse_args()
    tally = kill_campaigns(parsed.kills, parsed.seed, parsed.kernels, interrupts=parsed.interrupts)
    return bool(tally.problems)


if __name__ == "__main__":
    sys.exit(main())
