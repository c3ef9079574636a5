"""The command line: thin, each command a few calls of the library."""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import perfmodel
from perfmodel import doctor_command, measure_command, occupancy_command, projection_command, store_command
from perfmodel.command_options import CommandParser, condition_options, recipe_options, source_options, tag_options
from perfmodel.errors import KernelError, PerfmodelError

if TYPE_CHECKING:
    from perfmodel.kernel import Kernel

DESCRIPTION = "Black-box performance models of OpenCL kernels: declare, calibrate, predict, explain, rank."


_python_shows_warning = warnings.showwarning


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its status, or 2 after one sentence on standard error for anything a user can mend.

    Status 1 means that the command did its work, and that what it found is not as it should be.
    """
    _prepare_streams_and_cache()
    parsed = _parser().parse_args(arguments)
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    try:
        return parsed.run(parsed) or 0
    except PerfmodelError as error:
        print(f"perfmodel: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        store = getattr(parsed, "store", None)
        print(f"perfmodel: interrupted{f'; what was measured is kept in {store}' if store else ''}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
    except OSError as error:
        print(f"perfmodel: {error.strerror or error}; free the place or write elsewhere", file=sys.stderr)
        return 2
    return 0


def _prepare_streams_and_cache() -> None:
    """Output that can't be encoded must not end a command, nor must a home in which nothing can be written."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    try:
        os.makedirs(cache, exist_ok=True)  # noqa: PTH103
        writable = os.access(cache, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    if not writable:  # loopy's caches don't take no for an answer
        os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="perfmodel-cache-")


def _show_warning(message: Warning | str, *_: Any) -> None:
    """A warning in one line, without the place in the code."""
    print(f"perfmodel: warning: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="perfmodel", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"perfmodel {perfmodel.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=CommandParser)

    def command(run: Callable[[Any], int | None], name: str, summary: str, example: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=summary, description=summary + ".", epilog=f"example: {example}")
        added.set_defaults(run=run)
        return added

    command(_devices, "devices", "list the OpenCL devices and the drivers that failed", "perfmodel devices")
    command(_features, "features", "list the families of features", "perfmodel features")
    added = command(
        _kernels,
        "kernels",
        "list generators and tags, or the kernels that tags select",
        "perfmodel kernels matmul_sq n:512",
    )
    tag_options(added, "*")
    added.add_argument("--json", action="store_true", help="print one JSON document instead")
    added.add_argument("--device", help="for which sizes given as auto are chosen (default: the best one)")
    added = command(
        _verify,
        "verify",
        "run every variant of families of kernels on small sizes, and compare with their numpy references",
        "perfmodel verify matmul_sq --device cpu",
    )
    added.add_argument("generators", nargs="*", metavar="GENERATOR", help="families to check (default: all)")
    added.add_argument("--device", help="key, part of the name, 'gpu' or 'cpu' (default: the best GPU, else the CPU)")
    added = command(
        _count,
        "count",
        "show what kernels do: operations, accesses, footprints, barriers, symbolic and at sizes",
        "perfmodel count my_kernels.py:tiled --at n=256,1024",
    )
    tag_options(added, "+")
    added.add_argument(
        "--at", nargs="+", action="extend", metavar="SIZE=VALUE", help="sizes, n=1024 or n=256,512 (default: the tags')"
    )
    added.add_argument("--subgroup", type=int, default=32, metavar="N", help="work-items of a sub-group (default: 32)")
    added.add_argument("--json", action="store_true", help="print one JSON document instead")
    source_options(added)
    added = command(
        _emulate,
        "emulate",
        "run some work-groups of a kernel in numpy, and show what they do",
        "perfmodel emulate blur.cl --global n,n --local 16,16 --arg n=1024 --arg image=n*n --arg out=n*n",
    )
    tag_options(added, "+")
    added.add_argument("--groups", default="first", metavar="WHICH", help="first, sample or all (default: first)")
    added.add_argument("--subgroup", type=int, default=32, metavar="N", help="work-items of a sub-group (default: 32)")
    added.add_argument("--transaction", type=int, default=32, metavar="BYTES", help="of global memory (default: 32)")
    added.add_argument("--banks", type=int, default=32, metavar="N", help="of local memory (default: 32)")
    added.add_argument("--no-checks", action="store_true", help="don't look for races and uninitialised memory")
    added.add_argument("--full", action="store_true", help="run all turns of long loops, instead of extrapolating")
    added.add_argument("--steps", type=int, metavar="N", help="blocks that may be executed (default: two million)")
    added.add_argument("--seed", type=int, default=0, metavar="N", help="of random arrays and groups (default: 0)")
    added.add_argument("--json", action="store_true", help="print one JSON document instead")
    source_options(added)
    occupancy_command.add(command)
    projection_command.add(command, _with_contents)
    store_command.add(command)
    measure_command.add(command, _selected)
    doctor_command.add(command)
    added = command(
        _calibrate,
        "calibrate",
        "measure kernels and fit a model to them",
        "perfmodel calibrate 'p_madd * f_op_float32_madd' --tags matmul_sq n:256,512 --out madd.json",
    )
    added.add_argument("model", help="model string, or @FILE that holds it")
    added.add_argument("--output", default="f_cl_wall_time", help="output feature (default: %(default)s)")
    tag_options(added, "+", "--tags", action="append", required=True)
    condition_options(added)
    added.add_argument("--out", default="calibration.json", help="file to write (default: %(default)s)")
    added.add_argument("--strict", action="store_true", help="fail where the measurements leave a parameter open")
    added.add_argument("--free", action="store_true", help="let parameters be negative")
    added = command(
        _suggest,
        "suggest",
        "measure kernels and search the features for a model of their times",
        "perfmodel suggest --measurements dtype:float32 n:1024 --evaluation matmul n:1536 --out model.txt",
    )
    tag_options(added, "+", "--measurements", action="append", required=True)
    tag_options(added, "+", "--evaluation", action="append", default=[])
    condition_options(added)
    added.add_argument("--out", default="model.txt", help="file to write, for calibrate @FILE (default: %(default)s)")
    added.add_argument("--terms", type=int, default=12, metavar="N", help="at most so many (default: %(default)s)")
    added = command(
        _run,
        "run",
        "run a Python script that uses pyopencl, and list the kernels that it launched",
        "perfmodel run my_program.py 1024 --predict unified-plus@h200",
    )
    added.runs_scripts = True  # type: ignore[attr-defined]
    added.usage = "%(prog)s [-h] [--json] [--predict CALIBRATION] [--emulate] SCRIPT [ARGUMENT ...]"
    added.add_argument(
        "script", metavar="SCRIPT", help="a Python file, and its own arguments; after -- all are its own"
    )
    added.add_argument("--json", action="store_true", help="print one line of JSON at the end instead of the table")
    added.add_argument("--predict", metavar="CALIBRATION", help="a calibration's file, or the name of a shipped one")
    added.add_argument("--emulate", action="store_true", help="emulate the first work-group of each kernel as well")
    for run, name, summary in (
        (_predict, "predict", "predict the time of kernels"),
        (_explain, "explain", "say where the predicted time of kernels goes"),
        (_rank, "rank", "order kernels by their predicted time"),
    ):
        added = command(run, name, summary, f"perfmodel {name} madd.json matmul_sq tiled_prefetch:* n:1024")
        added.add_argument(
            "calibration",
            help="file that calibrate or demo wrote, or the name of a shipped one, such as cache-aware@h200",
        )
        tag_options(added, "+")
        source_options(added)
    added = command(
        _reproduce,
        "reproduce",
        "calibrate a recipe's models here, predict its evaluation kernels, and write its tables",
        "perfmodel reproduce unified --device gpu --store times.sqlite --out unified --budget 540",
    )
    added.add_argument("recipe", metavar="NAME", help="a recipe's or study's name; a wrong one lists them")
    recipe_options(added, None)
    projection_command.study_options(added)
    added = command(
        _reproduce,
        "demo",
        "calibrate two models of matrix multiplication here and check them; short for: reproduce demo",
        "perfmodel demo --device gpu",
    )
    added.set_defaults(recipe="demo")
    recipe_options(added, "demo-out")
    return parser


def _devices(parsed: argparse.Namespace) -> None:
    from perfmodel.device import devices, driver_faults
    from perfmodel.report.tables import grid

    found = devices()
    lines = [
        [
            d.key,
            d.name,
            d.driver,
            str(d.compute_units),
            f"{d.clock_mhz} MHz" if d.clock_mhz else "-",
            f"{d.local_memory // 1024} KiB",
            f"{d.global_memory / 2**30:.1f} GiB",
            d.platform,
        ]
        for d in found
    ]
    if lines:
        print(grid(["key", "name", "driver", "units", "clock", "local", "global", "platform"], lines))
    for fault in driver_faults():
        print(f"driver {fault.library} ({fault.source}): {fault.reason}")
    if not found:
        from perfmodel.device import find_device

        find_device()


def _features(parsed: argparse.Namespace) -> None:
    from perfmodel.vocabulary import families

    for family in families():
        print(f"{family.name}: {family.summary}")
        for example in family.examples:
            print(f"    {example}")


def _kernels(parsed: argparse.Namespace) -> None:
    if _lists_a_file(parsed.tags):
        return
    from perfmodel.collection import ALL_GENERATORS
    from perfmodel.report.kernel_list import as_json, as_text

    if parsed.device:
        from perfmodel.device import find_device

        find_device(parsed.device)
    kernels = _selected(parsed.tags, parsed.device) if parsed.tags else None
    if parsed.json:
        names = {kernel.name for kernel in kernels or ()}
        print(as_json([g for g in ALL_GENERATORS if kernels is None or g.name in names], kernels))
    elif kernels is None:
        print(as_text(ALL_GENERATORS))
    else:
        for kernel in kernels:
            print(repr(kernel)[len("Kernel(") : -1])


def _verify(parsed: argparse.Namespace) -> None:
    from perfmodel.collection import ALL_GENERATORS, KernelCollection
    from perfmodel.device import find_device
    from perfmodel.verification import verify_family

    collection = KernelCollection(ALL_GENERATORS)
    device = find_device(parsed.device)
    print(f"device {device.key}: {device.name}")
    total = 0
    for name in parsed.generators or collection.generators:
        number = verify_family(collection.generator(name), device)
        total += number
        print(f"{name}: {number} kernels equal their reference", flush=True)
    print(f"{total} kernels in all")


def _count(parsed: argparse.Namespace) -> None:
    from perfmodel.kernel_file import size_points
    from perfmodel.report.count_table import as_json, as_text, count_tables

    if _lists_a_file(parsed.tags):
        return
    points = size_points(parsed.at, "=") if parsed.at else ()
    tables = count_tables(_described(parsed), points, parsed.subgroup)
    print(as_json(tables) if parsed.json else "\n\n\n".join(map(as_text, tables)))


def _emulate(parsed: argparse.Namespace) -> None:
    from perfmodel.opencl_c.emulation import Machine
    from perfmodel.profile import emulate

    machine = Machine(parsed.subgroup, parsed.transaction, parsed.banks)
    profiles = [
        emulate(
            kernel,
            contents,
            groups=parsed.groups,
            machine=machine,
            checks=not parsed.no_checks,
            extrapolate=not parsed.full,
            steps=parsed.steps,
            seed=parsed.seed,
        )
        for kernel, contents in _with_contents(parsed)
    ]
    if parsed.json:
        documents = [profile.as_json() for profile in profiles]
        print(documents[0] if len(documents) == 1 else f"[{','.join(documents)}]")
    else:
        print("\n\n\n".join(map(str, profiles)))


def _calibrate(parsed: argparse.Namespace) -> None:
    from perfmodel.feature_table import measure
    from perfmodel.model import Model

    model = Model(parsed.output, _text(parsed.model))
    _check_writable(parsed.out)
    # What was measured is kept, also if the command is interrupted or the fit fails.
    parsed.store = parsed.store or os.path.splitext(parsed.out)[0] + ".sqlite"  # noqa: PTH122
    kernels = [kernel for tags in parsed.tags for kernel in _selected(tags, parsed.device)]
    conditions = {"device": parsed.device, "store": parsed.store, "protocol": parsed.protocol or "unified"}
    table = measure(kernels, model, **conditions)
    calibration = model.fit(table, strict=parsed.strict, nonnegative=not parsed.free)
    calibration.save(parsed.out)
    print(calibration)
    print(f"\nwritten to {parsed.out}")


def _suggest(parsed: argparse.Namespace) -> None:
    import shlex
    from pathlib import Path

    from perfmodel.feature_table import measure
    from perfmodel.model import Model
    from perfmodel.suggestion import OUTPUT, suggest
    from perfmodel.suggestion.report import as_file, as_text

    _check_writable(parsed.out)
    parsed.store = parsed.store or os.path.splitext(parsed.out)[0] + ".sqlite"  # noqa: PTH122
    kernels, checks = (
        [kernel for tags in sets for kernel in _selected(tags, parsed.device)]
        for sets in (parsed.measurements, parsed.evaluation)
    )
    conditions = {"device": parsed.device, "store": parsed.store, "protocol": parsed.protocol or "unified"}
    table = measure([*kernels, *checks], Model(OUTPUT, "p_time"), **conditions)
    found = suggest(
        kernels,
        table.iloc[: len(kernels)],
        evaluation=(checks, table.iloc[len(kernels) :]) if checks else None,
        terms=parsed.terms,
        tell=lambda message: print(f"{message} …", flush=True),
    )
    command = shlex.join(["perfmodel", *sys.argv[1:]])
    Path(parsed.out).write_text(as_file(found, command), encoding="utf-8")
    print(f"\n{as_text(found)}\n\nwritten to {parsed.out}")


def _run(parsed: argparse.Namespace) -> None:
    from perfmodel.calibration import calibration_called
    from perfmodel.interception import intercept
    from perfmodel.interception.report import as_json, as_text
    from perfmodel.interception.script import check_script, make_drivers_visible, run_script

    check_script(parsed.script)
    calibration = calibration_called(parsed.predict) if parsed.predict else None
    make_drivers_visible()
    log = intercept(contents="first" if parsed.emulate else False)
    with warnings.catch_warnings():
        warnings.showwarning = _python_shows_warning
        status = run_script(parsed.script, parsed.arguments, log)
    print((as_json if parsed.json else as_text)(log.groups(), calibration, parsed.emulate))
    if status:
        raise SystemExit(status)


def _predict(parsed: argparse.Namespace) -> None:
    from perfmodel.report.tables import grid, seconds

    calibration, kernels = _loaded(parsed)
    lines = []
    for kernel in kernels:
        time, std = calibration.predict(kernel, return_std=True)
        lines.append([repr(kernel)[len("Kernel(") : -1], seconds(float(time)), seconds(float(std))])
    print(grid(["kernel", "predicted", "standard deviation"], lines))


def _explain(parsed: argparse.Namespace) -> None:
    calibration, kernels = _loaded(parsed)
    for kernel in kernels:
        print(calibration.explain(kernel))


def _rank(parsed: argparse.Namespace) -> None:
    from perfmodel.report.tables import grid, seconds

    calibration, kernels = _loaded(parsed)
    lines = [
        [f"{row.kernel} {row.variant} {row.sizes}", seconds(row.predicted_s), f"{row.times_best:.2f}"]
        for row in calibration.rank(kernels).itertuples()
    ]
    print(grid(["kernel", "predicted", "times the best"], lines))


def _reproduce(parsed: argparse.Namespace) -> None:
    import shlex
    from pathlib import Path

    from perfmodel import recipe, report
    from perfmodel.device import find_device
    from perfmodel.store import Store
    from perfmodel.study import studies

    if parsed.recipe in (own := studies()):
        own[parsed.recipe].reproduce(parsed, shlex.join(["perfmodel", *sys.argv[1:]]))
        return
    chosen = recipe.recipe(parsed.recipe, beside=own)
    folder = Path(parsed.out or f"{chosen.name}-out")
    parsed.store = parsed.store or str(report.prepared(folder) / "perfmodel.sqlite")
    with Store(parsed.store) as store:
        device = find_device(parsed.device, store.devices())
        print(f"device {device.key}: {device.name}, {device.platform}, driver {device.driver}")
        if not device.is_here:
            print(f"it is not on this machine; all times are those of {parsed.store}")
        outcome = recipe.run(
            chosen,
            device=device,
            store=store,
            protocol=parsed.protocol,
            budget_s=parsed.budget,
            command=shlex.join(["perfmodel", *sys.argv[1:]]),
            tell=lambda message: print(f"{message} …", flush=True),
        )
    print(f"\n{report.weights(outcome)}\n\n{report.text(outcome)}\n")
    for path in report.write(outcome, folder):
        print(f"written: {path}")


def _lists_a_file(tags: Sequence[str]) -> bool:
    """Whether the tags are one kernel file without a name; if so, prints what it defines."""
    if len(tags) != 1 or not tags[0].endswith(".py"):
        return False
    from perfmodel.kernel_file import definitions

    for name, kind in definitions(tags[0]).items():
        print(f"{tags[0]}:{name}: {kind}")
    return True


def _selected(tags: Sequence[str], device: str | None = None) -> list[Kernel]:
    from perfmodel.kernel_file import is_kernel_file, kernels_from_files

    if any(map(is_kernel_file, tags)):
        return kernels_from_files(tags)
    from perfmodel.collection import ALL_GENERATORS, KernelCollection

    return KernelCollection(ALL_GENERATORS).generate_kernels(tags, device)


def _described(parsed: argparse.Namespace) -> list[Kernel]:
    """The kernels that a command's tags select, or the one of a ``.cl`` file."""
    return [kernel for kernel, _ in _with_contents(parsed)]


def _with_contents(parsed: argparse.Namespace) -> list[tuple[Kernel, Mapping[str, Any]]]:
    """The same with what their arrays hold, as far as that is said."""
    if not any(tag.endswith(".cl") for tag in parsed.tags):
        return [(kernel, {}) for kernel in _selected(parsed.tags)]
    from perfmodel.opencl_command import source_kernel

    if len(parsed.tags) > 1:
        raise KernelError(f"give a source file alone, and what {parsed.tags[1]!r} says by --arg NAME=VALUE")
    return [source_kernel(parsed.tags[0], parsed)]


def _loaded(parsed: argparse.Namespace) -> Any:
    from perfmodel.calibration import calibration_called

    return calibration_called(parsed.calibration), _described(parsed)


def _check_writable(path: str) -> None:
    """Refuses a file that can't be written before anything is measured for it."""
    folder = os.path.dirname(path) or "."  # noqa: PTH120
    if not path or os.path.isdir(path) or not os.access(folder, os.W_OK):  # noqa: PTH112
        raise PerfmodelError(f"--out {path!r} cannot be written; give a file in a folder that is there")


def _text(argument: str) -> str:
    if not argument.startswith("@"):
        return argument
    try:
        with open(argument[1:], encoding="utf-8") as file:  # noqa: PTH123
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise PerfmodelError(f"model file {argument[1:]!r} cannot be read ({error}); give a text file") from error


if __name__ == "__main__":
    sys.exit(main())
