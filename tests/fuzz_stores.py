"""Throw mutated stores at all that reads and writes them: ``python tests/fuzz_stores.py --count 2000 --seed 1``.

Flipped bits, lost and exchanged parts, other schemas, hostile values with the right checksums, of both schema versions,
with logs and journals, also compressed ones. Whatever the file, it is opened, listed, read, checked, put to, merged and
vacuumed, or refused with an error of one sentence, in 2 s of the processor and 500 MB at most. Stores are used in a
process of their own, so that a crash or a hang is seen too. Exits with status 1 if there was any violation, of which
the stores are saved.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import lzma
import multiprocessing
import os
import random
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from perfmodel.basics.errors import PerfmodelError
from perfmodel.cli.command_line import command_parser
from perfmodel.measuring.protocol import Protocol
from perfmodel.measuring.store import Failure, Measurement, Store, export, measurement_key, merge, to_frame
from perfmodel.measuring.store.documents import document_number
from perfmodel.measuring.store.rows import COLUMNS, SHARED, checksum
from perfmodel.measuring.store.schema import MIGRATIONS

SECONDS, HARD_SECONDS = 2.0, 30.0
"""Seconds of the processor that a store may take; and seconds until a process that hangs is ended, on a busy machine,
too."""
MEMORY = 500 * 2**20
DEVICE = {"key": "h200-abcdef", "driver": "1.0", "name": "H200", "kind": "gpu", "compute_units": 132}
FORMS = ("closed", "with its log", "schema 1", "compressed", "compressed schema 1")
TABLES = {"measurement": Measurement, "failure": Failure}

VALUES: tuple[Any, ...] = (
    *(None, 0, -1, 2**63 - 1, -(2**63), 1.5, 1e308, float("inf"), b"", b"\xff\xfe", "", " ", "x", "null", "[]", "{}"),
    *("[" * 50_000, '{"a":' * 3000, "[1e999]", "[NaN]", "[-1]", "[0]", "[" + "9" * 5000 + "]", "[true]", '["1"]'),
    *('{"n": 1.5}', '{"n": null}', '{"n": 99999999999999999999}', '{"": 1}', '{"key": [], "driver": {}}'),
    *('{"key": "\\ud800", "driver": "\\u0000"}', '{"key": "a\\nb", "driver": "\\u001b[2J"}', '{"a": 1, "a": 2}'),
    *(
        '{"cost_s": "x"}',
        '{"cost_s": 1e308}',
        '{"cost_s": []}',
        '{"host": {}}',
        "a\nb",
        "\x1b[31m",
        "\udcff",
        "é" * 999,
    ),
    *('{"trials": "x"}', '{"name": 1, "trials": -5, "statistic": "mode"}', '["' + "x" * 2**17 + '"]', "x" * 2**18),
    json.dumps({**DEVICE, "key": "gpu", "compute_units": "many"}),
    json.dumps({**DEVICE, "max_work_item_sizes": "x", "global_memory": -1}),
    "[" + "1e-3," * 20_000 + "1]",
)
STATEMENTS = (
    "CREATE TRIGGER t AFTER INSERT ON measurement BEGIN DELETE FROM measurement; END",
    "CREATE TRIGGER sqlite_t AFTER INSERT ON measurement BEGIN DELETE FROM measurement; END",
    "CREATE VIEW v AS SELECT * FROM measurement",
    "CREATE TABLE other (x)",
    "CREATE INDEX other ON measurement (kernel)",
    "CREATE VIRTUAL TABLE other USING fts5(x)",
    "ALTER TABLE measurement ADD COLUMN other",
    "ALTER TABLE measurement ADD COLUMN other AS (kernel || kernel)",
    "ALTER TABLE measurement RENAME TO other",
    "DROP TABLE measurement",
    "DROP TABLE document",
    "DROP INDEX measurement_device",
    "DELETE FROM document",
    "UPDATE document SET number = number + 1",
    "UPDATE measurement SET number = -number",
    "UPDATE measurement SET key = 'k' || number",
    "INSERT INTO sqlite_master SELECT * FROM sqlite_master",
    "UPDATE sqlite_master SET rootpage = 1",
    "UPDATE sqlite_master SET rootpage = rootpage + 1",
    "UPDATE sqlite_master SET name = 'sqlite_' || name",
    "UPDATE sqlite_master SET type = 'view'",
    "UPDATE sqlite_master SET sql = NULL",
    "UPDATE sqlite_master SET sql = replace(sql, 'TEXT', 'TEXT CHECK (length(zeroblob(1000000000)) > 0)')",
    "UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')",
    "UPDATE sqlite_master SET sql = replace(sql, 'INTEGER PRIMARY KEY', 'INTEGER') WHERE name = 'measurement'",
    "UPDATE sqlite_master SET sql = sql || ' WITHOUT ROWID' WHERE name = 'measurement'",
    "PRAGMA user_version = -1",
    "PRAGMA user_version = 1",
    "PRAGMA user_version = 2147483647",
    "PRAGMA application_id = 0",
    "PRAGMA encoding = 'UTF-16'",
    "ANALYZE",
)


@cache
def rows(count: int) -> tuple[list[Measurement], list[Failure]]:
    protocol = Protocol("unified", trials=30, dropped=1, statistic="min")
    found = []
    for n in range(count + 4):
        common: dict[str, Any] = {
            "key": measurement_key("c" * 64, {"n": n}, DEVICE, protocol),
            "kernel": ("sq", "copy")[n % 2],
            "content": "c" * 64,
            "sizes": {"n": n},
            "tags": {"variant": "tiled"},
            "device": {**DEVICE, "key": f"h200-{n % 2}"},
            "protocol": asdict(protocol),
            "created": "2026-11-20T12:00:00+00:00",
            "versions": {"perfmodel": "0.1.0"},
            "conditions": {"host": "node1", "cost_s": 0.25},
        }
        found.append(common)
    measured = [
        Measurement(**each, trials=(9.0, 1e-3 + n * 1e-6), dropped=1, statistic="min", flags=("noisy",))
        for n, each in enumerate(found[:count])
    ]
    return measured, [Failure(**each, reason="needs 9 GB") for each in found[count:]]


def make(form: str, path: Path) -> None:
    """Writes a sound store, as a copy of one that was made before."""
    for end, content in made(form.removeprefix("compressed").strip()).items():
        Path(f"{path}{end}").write_bytes(content)


@cache
def made(form: str) -> dict[str, bytes]:
    """Returns the files of a sound store, by the ends of their names."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.sqlite")
        fill(form, path)
        return {end: Path(f"{path}{end}").read_bytes() for end in ("", "-wal") if Path(f"{path}{end}").exists()}


def fill(form: str, path: Path) -> None:
    measured, failed = rows(40)
    if form == "schema 1":
        connection = sqlite3.connect(path, isolation_level=None)
        MIGRATIONS[0](connection)
        connection.execute("PRAGMA user_version = 1")
        names = COLUMNS[Measurement][:-1]
        for each in measured:
            values = [getattr(each, name) for name in names]
            texts = [json.dumps(value) if isinstance(value, dict | tuple) else value for value in values]
            marks = ", ".join("?" * len(names))
            connection.execute(f"INSERT INTO measurement ({', '.join(names)}) VALUES ({marks})", texts)
        connection.close()
        return
    with Store(path) as store:
        store.put_many(measured[:20], failed)
        store.put_many(measured[20:])
        if form == "with its log":
            for end in ("", "-wal"):
                shutil.copy(f"{path}{end}", f"{path}{end}.kept")
    if form == "with its log":
        for end in ("", "-wal"):
            Path(f"{path}{end}.kept").replace(f"{path}{end}")


def edit(path: Path, chance: random.Random) -> None:
    """Writes other values into a store, with the right checksums or without, and other schemas."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.text_factory = bytes
    connection.execute("PRAGMA writable_schema = ON")
    for _ in range(chance.randint(1, 3)):
        with contextlib.suppress(sqlite3.Error, UnicodeEncodeError, OverflowError):
            if chance.random() < 0.3:
                connection.execute(chance.choice(STATEMENTS))
                continue
            table = chance.choice(list(TABLES))
            column = chance.choice(COLUMNS[TABLES[table]])
            value = chance.choice(VALUES)
            if column in SHARED and chance.random() < 0.8:
                number = document_number(value) if isinstance(value, str) else chance.randrange(2**48)
                connection.execute("INSERT OR REPLACE INTO document VALUES (?, ?)", (number, value))
                value = number
            which = chance.choice(("", f" WHERE number % 7 = {chance.randrange(7)}"))
            connection.execute(f"UPDATE {table} SET {column} = ?{which}", (value,))
    if chance.random() < 0.7:
        with contextlib.suppress(sqlite3.Error, ValueError, TypeError):
            sign(connection)
    connection.close()


def sign(connection: sqlite3.Connection) -> None:
    """Writes checksums that are right for what a store holds."""
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    texts = dict(connection.execute("SELECT number, text FROM document").fetchall())
    for table, kind in TABLES.items():
        names = COLUMNS[kind]
        for number, *stored in connection.execute(f"SELECT number, {', '.join(names)} FROM {table}").fetchall():
            values = [texts.get(v) if name in SHARED else v for name, v in zip(names, stored, strict=True)]
            with contextlib.suppress(TypeError):
                digest = checksum(kind, values)
                connection.execute(f"UPDATE {table} SET checksum = ? WHERE number = ?", (digest, number))


def spoilt(content: bytes, chance: random.Random) -> bytes:
    """Returns the content with a few parts replaced by others."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        if not data:
            break
        at = chance.randrange(len(data)) if chance.random() < 0.6 else chance.randrange(min(len(data), 200))
        match chance.randrange(7):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at] = chance.choice((0, 1, 127, 128, 255))
            case 2:
                data[at : at + 4] = chance.choice((0, 1, 2, 2**31 - 1, 2**32 - 1, at)).to_bytes(4, "big")
            case 3:
                size, origin = chance.choice((1, 16, 512, 4096)), chance.randrange(len(data))
                data[at : at + size] = data[origin : origin + size]
            case 4:
                del data[at : at + chance.choice((1, 100, 4096))]
            case 5:
                data[at:at] = chance.randbytes(chance.choice((1, 100, 4096)))
            case 6:
                if chance.random() < 0.2:
                    del data[at:]
    return bytes(data)


def mutated(seed: int, index: int, folder: Path) -> tuple[str, Path]:
    """Makes the store of this number; returns its kind and path."""
    chance = random.Random(f"{seed} {index}")
    form = chance.choice(FORMS)
    path = folder / "store.sqlite"
    make(form, path)
    changes = chance.choice(("edited", "spoilt", "edited and spoilt", "journal"))
    if "edited" in changes:
        edit(path, chance)
    if "spoilt" in changes:
        log = Path(f"{path}-wal")
        for part in [path, log] if log.exists() and chance.random() < 0.5 else [path]:
            part.write_bytes(spoilt(part.read_bytes(), chance))
    if changes == "journal":
        content = path.read_bytes()
        header = bytes.fromhex("d9d505f920a163d7") + chance.randbytes(4) + bytes(4) + (9).to_bytes(4, "big")
        journal = header + (512).to_bytes(4, "big") + (4096).to_bytes(4, "big") + bytes(484) + content[:4096]
        Path(f"{path}-journal").write_bytes(spoilt(journal, chance))
    if form.startswith("compressed"):
        packed = lzma.compress(path.read_bytes() + bytes(chance.choice((0, 0, 0, 2**26))), preset=0)
        path.unlink()
        path = folder / "store.sqlite.xz"
        path.write_bytes(spoilt(packed, chance) if chance.random() < 0.3 else packed)
    return f"{form}, {changes}", path


def command(*arguments: str) -> None:
    parsed = command_parser().parse_args(["store", *arguments])
    with contextlib.redirect_stdout(io.StringIO()):
        parsed.run(parsed)


def put(store: Store, measured: list[Measurement], failed: list[Failure]) -> None:
    store.put_many(measured, failed)
    if store.get_many([row.key for row in measured]) != {row.key: row for row in measured}:
        raise ValueError("what was put is not there")


def uses(path: Path, folder: Path) -> dict[str, Callable[[Store], object]]:
    measured, failed = rows(60)
    keys = [row.key for row in measured]
    return {
        "listed": lambda store: (len(store), store.keys(), store.groups(), store.devices(), store.costs("h200-0")),
        "completed": lambda store: store.keys_beginning("a"),
        "checked": lambda store: store.check(),
        "looked up": lambda store: (store.get_many(keys), store.failures()),
        "read": lambda store: (list(store), list(store.all_failures())),
        "as a table": to_frame,
        "exported": lambda store: export(store, folder / "rows.csv", force=True),
        "merged": lambda store: merge(Store(), store),
        "ls": lambda store: command("ls", str(path)),
        "show": lambda store: command("show", str(path), keys[3][:12]),
        "check": lambda store: command("check", str(path)),
        "added to": lambda store: store.add(measured[30:50], failed),
        "put to": lambda store: put(store, measured[:50], failed),
        "vacuumed": lambda store: store.vacuum(),
    }


def used(path: Path, folder: Path, is_read_only: bool) -> tuple[list[str], str]:
    """Uses a store in every way; returns what could be done, and the first failure that is no error of ours."""
    reached: list[str] = []

    def tried(name: str, use: Callable[[], Any]) -> Any:
        try:
            found = use()
            reached.append(name)
            return found
        except PerfmodelError as error:
            if "\n" in str(error) or not str(error).isprintable():
                raise ValueError(f"no sentence: {str(error)[:300]!r}") from error
            return None

    name = "opened"
    try:
        if (store := tried(name, lambda: Store(path, is_read_only))) is not None:
            with store:
                for name, use in uses(path, folder).items():
                    tried(name, partial(use, store))
    except Exception:
        return reached, f"{name}: {traceback.format_exc()}"
    return reached, ""


def work(connection: Connection, seed: int) -> None:
    """Answers numbers of stores until there is none."""
    warnings.simplefilter("ignore")
    uses(Path(), Path())
    first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    while (index := connection.recv()) is not None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            kind, path = mutated(seed, index, folder)
            began = time.process_time()
            reached, trouble = used(path, folder, index % 3 == 0)
            took = time.process_time() - began
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - first
        if not trouble and took > SECONDS:
            trouble = f"took {took:.1f} s"
        if not trouble and more > MEMORY:
            trouble = f"took {more / 2**20:.0f} MB"
        connection.send((kind, reached, took, more, trouble))
        if more > MEMORY:
            return


class Worker:
    """The process that uses stores, and is started anew whenever it ends."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.seed), daemon=True)
        self.process.start()
        theirs.close()

    def result(self, index: int) -> tuple[str, list[str], float, int, str]:
        try:
            self.connection.send(index)
            if self.connection.poll(HARD_SECONDS):
                found: tuple[str, list[str], float, int, str] = self.connection.recv()
                return found
            trouble = f"hangs for {HARD_SECONDS:g} s"
        except (EOFError, OSError):
            self.process.join()
            trouble = f"crashed with exit code {self.process.exitcode}"
        self.process.kill()
        self.process.join()
        self.start()
        return "unknown", [], 0.0, 0, trouble


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first store, to repeat one with --count 1")
    parser.add_argument("--save", type=Path, default=Path(tempfile.gettempdir()) / "fuzz_stores")
    options = parser.parse_args()
    os.environ.setdefault("PERFMODEL_NO_CACHE", "1")  # for the processes that are started, too
    totals: Counter[str] = Counter()
    slowest, largest, violations, began = (0.0, 0), (0, 0), 0, time.monotonic()
    worker = Worker(options.seed)
    for index in range(options.first, options.first + options.count):
        kind, reached, took, more, trouble = worker.result(index)
        totals.update(reached)
        slowest, largest = max(slowest, (took, index)), max(largest, (more, index))
        if trouble:
            violations += 1
            folder = options.save / f"{options.seed}-{index}"
            folder.mkdir(parents=True, exist_ok=True)
            mutated(options.seed, index, folder)
            (folder / "trouble.txt").write_text(trouble, encoding="utf-8", errors="replace")
            print(f"violation by store {index} ({kind}), saved in {folder}: {trouble.strip().splitlines()[-1][:300]}")
    print(
        f"count {options.count}, seed {options.seed}, {options.count / (time.monotonic() - began):.0f} stores a second"
    )
    for step, number in totals.most_common():
        print(f"{step:12} {number:8}")
    print(
        f"slowest: store {slowest[1]} with {slowest[0]:.1f} s; most memory: store {largest[1]} with "
        f"{largest[0] / 2**20:.0f} MB more than before; violations: {violations}"
    )
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main())
