"""All commands have in common: help with an example, one JSON document, exit statuses, tables on a terminal."""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import perfmodel as pm
from perfmodel.basics.json_values import plain
from perfmodel.basics.terminal import fitted
from perfmodel.cli.command_line import MODULES, command_parser, main
from perfmodel.cli.summaries import SUMMARIES
from perfmodel.recipes.study import StudyOptions

H200 = "unified-plus@nvidia-h200"


def all_commands(parser: argparse.ArgumentParser, before: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                yield f"{before}{name}", each
                yield from all_commands(each, f"{before}{name} ")


COMMANDS = dict(all_commands(command_parser()))
WITHOUT_DOCUMENT = {"browse", "store", "worker", "completion", "device"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_each_help_parses(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*name.split(), "--help"])
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    example = re.search(r"example: .*?(perfmodel [^)]*)", COMMANDS[name].epilog or "")
    assert example
    assert shown.endswith(" ".join((COMMANDS[name].epilog or "").split()))
    program, *arguments = shlex.split(example[1])
    assert program == "perfmodel"
    assert " ".join(arguments).startswith(name)
    assert callable(command_parser().parse_args(arguments).run)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - WITHOUT_DOCUMENT))
def test_commands_that_print_data_have_json(name: str) -> None:
    assert "--json" in COMMANDS[name].format_help()


def test_the_help_lists_each_command_once_below_what_it_is_for() -> None:
    listed = re.findall(r"^  ([a-z]+)  ", command_parser("--help").format_help(), re.MULTILINE)
    assert sorted(listed) == sorted(name for name in COMMANDS if " " not in name)
    assert "\nmore:\n" not in command_parser().format_help()


# --- JSON


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def document(text: str) -> Any:
    """Returns the one document that a text is; one with NaN or Infinity is none."""
    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns a calibration fitted to as many times as it has parameters, whose standard deviations are NaN."""
    path = tmp_path_factory.mktemp("calibration") / "doubtful.json"
    model = pm.Model("f_cl_wall_time", "p_madd * f_op_float32_madd")
    row = {"kernel": "matmul_sq", "variant": "", "sizes": {"n": 64}, "f_cl_wall_time": 1e-5}
    table = pd.DataFrame([row | {"f_op_float32_madd": 64.0**3, "flags": (), "key": ""}])
    model.fit(table).save(path)
    return str(path)


@pytest.fixture
def source(tmp_path: Path) -> list[str]:
    path = tmp_path / "scale.cl"
    path.write_text("__kernel void scale(__global float *a) { a[get_global_id(0)] *= 2; }")
    return [str(path), "--global", "64", "--local", "8", "--arg", "a=64"]


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str], status: int = 0) -> Any:
    assert main([*arguments, "--json"]) == status
    return document(capsys.readouterr().out)


def test_devices(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(["devices"], capsys)
    assert [device["key"] for device in found["devices"]] == [device.key for device in pm.devices()]
    assert found["devices"][0]["global_memory_bytes"] == pm.devices()[0].global_memory
    assert found["driver_faults"] == [] or found["driver_faults"][0]["reason"]


def test_features(capsys: pytest.CaptureFixture[str]) -> None:
    names = {family["name"] for family in printed(["features"], capsys)["families"]}
    assert {"f_op", "f_cl_wall_time"} <= names


def test_kernel_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def scaled():\n    return None\n")
    for command in ("kernels", "count"):
        assert set(printed([command, str(path)], capsys)["definitions"]) == {"scaled"}


def test_predictions(doubtful: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(["predict", doubtful, "matmul_sq", "n:64,128"], capsys)
    assert [each["predicted_s"] for each in found["predictions"]] == pytest.approx([1e-5, 8e-5])
    assert [each["predicted_std_s"] for each in found["predictions"]] == [None, None]
    assert found["predictions"][1]["sizes"] == {"n": 128}


def test_explanations(doubtful: str, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = printed(["explain", doubtful, "matmul_sq", "n:128"], capsys)["explanations"]
    assert found["bottleneck"] == "p_madd"
    assert found["seconds"] == pytest.approx(8e-5)
    assert found["std"] is None


def test_rankings(doubtful: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(["rank", doubtful, "matmul_sq", "n:128,64"], capsys)["ranking"]
    assert [(each["sizes"]["n"], each["times_best"]) for each in found] == [(64, 1), (128, pytest.approx(8))]


def test_counts_profiles_and_projections(source: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(["count", *source], capsys)["kernels"][0]["kernel"] == "scale"
    assert printed(["emulate", *source], capsys)["kernel"] == "scale"
    assert printed(["project", *source, "--device", "H200,C2050"], capsys)["ranked"][0]["device"]
    several = printed(["emulate", "vector_add", "dtype:float32,float64", "n:1024"], capsys)
    assert [each["kernel"] for each in several] == ["vector_add", "vector_add"]


def test_occupancy(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["occupancy", "--compute-capability", "8.6", "--block", "320", "--registers", "10"]
    assert printed(arguments, capsys)["occupancy"] == pytest.approx(5 / 6)


def test_verify_tells_what_it_does_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "empty", "launch", "--device", "cpu", "--json"]) == 0
    shown = capsys.readouterr()
    found = document(shown.out)
    assert set(found["by_generator"]) == {"empty", "launch"}
    assert found["kernels"] == sum(found["by_generator"].values())
    assert "kernels in all" in shown.err


def test_stores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "times.sqlite")
    pm.Store(path).close()
    assert printed(["store", "ls", path], capsys)["measurements"] == 0
    assert printed(["store", "check", path], capsys)["problems"] == []
    assert printed(["store", "vacuum", path], capsys)["bytes"] > 0
    assert printed(["store", "export", path, str(tmp_path / "t.csv")], capsys)["rows"] == 0


class Inquiry:
    """A study that writes its results and says so."""

    name = "inquiry"

    def reproduce(self, options: StudyOptions) -> None:
        options.out.mkdir()
        (options.out / "results.json").write_text(json.dumps({"summary": {"device": options.devices}}))
        print("written")


def test_a_study_prints_one_document_and_is_of_all_devices_whatever_the_project_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("perfmodel.recipes.study.studies", lambda: {"inquiry": Inquiry()})
    monkeypatch.chdir(tmp_path)
    Path("perfmodel.toml").write_text('[defaults]\ndevice = "gpu"\n')
    assert printed(["reproduce", "inquiry"], capsys) == {
        "recipe": "inquiry",
        "store": "inquiry-out/perfmodel.sqlite",
        "written": ["inquiry-out/results.json"],
        "summary": {"device": None},
    }
    assert printed(["reproduce", "inquiry", "--device", "cpu", "--out", "mine"], capsys)["summary"] == {"device": "cpu"}


def test_what_json_has_no_numbers_for_is_null() -> None:
    nan, infinity = float("nan"), float("inf")
    assert plain({"a": [nan, 1.0, (infinity,)], "b": {"c": -infinity, "d": "NaN"}}) == {
        "a": [None, 1.0, [None]],
        "b": {"c": None, "d": "NaN"},
    }


# --- exit statuses

DAMAGED = "damaged.sqlite"
STATUSES = {
    "done": (["features"], 0),
    "an error of the user's": (["kernels", "matmull_sq"], 2),
    "a store that is sound": (["store", "check", "sound.sqlite"], 0),
    "a store that is not": (["store", "check", DAMAGED], 1),
    "nothing but a group": (["store"], 2),
    "a memory limit that is none": (["measure", "empty", "--store", "s.sqlite", "--memory-limit", "nan"], 2),
    "no store": (["measure", "empty"], 2),
    "a source file where none can be": (["measure", "blur.cl", "--store", "s.sqlite"], 2),
    "a limit that is none": (["evaluate", H200, "empty", "--fail-above", "nan"], 2),
    "a device that is elsewhere": (["evaluate", H200, "matmul_sq", "n:64"], 2),
    "a profile that cannot be written": (["characterize", "--device", "cpu", "--out", "/dev/null/x.json"], 2),
    "a file without kernels": (["count", "nothing.py"], 2),
}


@pytest.mark.parametrize(("arguments", "status"), STATUSES.values(), ids=STATUSES)
def test_exit_statuses(
    arguments: list[str],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / DAMAGED).write_bytes(b"SQLite format 3\x00" + b"\x07" * 5000)
    (tmp_path / "nothing.py").write_text("x = 1\n")
    pm.Store("sound.sqlite").close()
    assert main(arguments) == status
    shown = capsys.readouterr()
    assert "Traceback" not in shown.out + shown.err
    assert status != 2 or arguments == ["store"] or shown.err.startswith("perfmodel: ")


UNPARSED = {
    "no command": ([], "the following arguments are required: COMMAND"),
    "a misspelt command": (["predcit"], "there is no command 'predcit'; did you mean 'predict'"),
    "a kernel instead of a command": (["n=64"], "put one before it, such as perfmodel predict gpu@h200 n=64"),
    "nothing to evaluate": (["evaluate"], "required: CALIBRATION, TAG; write, for example, perfmodel evaluate"),
    "a misspelt option": (["predict", "--devise", "h200", "x"], "no option --devise; did you mean '--device'?"),
    "one word more": (["devices", "gpu"], "'gpu' is one word more than the command takes"),
    "no number": (["occupancy", "--registers", "x"], "argument --registers: invalid int value: 'x'"),
    "no shell": (["completion", "c"], "invalid choice: 'c'"),
    "a misspelt subcommand": (["store", "exprt", "x"], "there is no command 'exprt'; did you mean 'export'"),
}


@pytest.mark.parametrize(("arguments", "words"), UNPARSED.values(), ids=UNPARSED)
def test_what_cannot_be_parsed_is_status_2_and_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.startswith("perfmodel")
    assert told.count("\n") == 1


def test_an_interruption_is_status_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("perfmodel.vocabulary.named_features.families", interrupt)
    assert main(["features"]) == 130
    assert capsys.readouterr().err == "perfmodel: interrupted\n"


def test_a_defect_is_a_sentence_and_a_traceback_only_if_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr("perfmodel.vocabulary.named_features.families", fail)
    monkeypatch.delenv("PERFMODEL_TRACEBACK", raising=False)
    assert main(["features"]) == 2
    assert "a defect of perfmodel (ZeroDivisionError: of ours)" in capsys.readouterr().err
    monkeypatch.setenv("PERFMODEL_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["features"])


# --- tables on a terminal


def on_a_terminal(arguments: list[str], columns: int, **environment: str) -> str:
    """Returns what a command prints on a terminal of so many columns."""
    above, below = pty.openpty()
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "perfmodel", *arguments],
        stdout=below,
        stderr=subprocess.PIPE,
        env={**known, "COLUMNS": str(columns), "PYTHONIOENCODING": "utf-8", **environment},
    )
    os.close(below)
    parts = []
    while True:
        try:
            part = os.read(above, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(above)
    _, complaints = process.communicate()
    assert process.returncode == 0, complaints
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_tables_have_colour_and_fit_on_a_terminal(doubtful: str) -> None:
    shown = on_a_terminal(["rank", doubtful, "matmul_sq", "n:64"], 70, TERM="xterm-256color")
    assert "\x1b[" in shown
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert max(map(len, plain.splitlines())) <= 70
    assert "".join(plain.split()).count("tiled_prefetch=True") == 1


@pytest.mark.parametrize("columns", [30, 47, 50, 70, 100, 200])
def test_a_fitted_table_loses_no_word_and_is_not_too_wide(columns: int) -> None:
    header = ["key", "name of it", "driver", "error"]
    lines = [
        ["intel-xeon-0b3c4a", "Intel(R) Xeon(R) Processor of some kind", "2026.22.10", "12.3%"],
        ["a", "", "b", "-"],
    ]
    shown = fitted(header, lines, columns)
    assert max(map(len, shown.splitlines())) <= columns
    words = " ".join(cell for line in [header, *lines] for cell in line).split()
    assert set(words) <= set(shown.split())
    assert shown.count("key  ") == 1 + 2 * (columns < 47)


def test_a_word_that_has_no_room_is_cut() -> None:
    shown = fitted(["key", "value"], [["intel-xeon-processor-of-some-kind-0b3c4a", "1"]], 20)
    assert max(map(len, shown.splitlines())) <= 40
    assert "intel-xeon-processor-of-some-kind-0b3c4a" in "".join(line.split()[0] for line in shown.splitlines()[2:])


def test_no_colour_if_it_is_not_wanted(doubtful: str) -> None:
    shown = on_a_terminal(["rank", doubtful, "matmul_sq", "n:64"], 70, TERM="xterm-256color", NO_COLOR="1")
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 70


def test_a_dumb_terminal_and_a_pipe_get_the_same_plain_table(doubtful: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rank", doubtful, "matmul_sq", "n:64"]) == 0
    assert on_a_terminal(["rank", doubtful, "matmul_sq", "n:64"], 70, TERM="dumb") == capsys.readouterr().out


def test_two_kernels_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    common = ["explain", "unified-plus@nvidia-h200", "matmul_sq", "n:512", "--compare"]
    assert main([*common, "tiled_prefetch:*"]) == 0
    assert "times as long as the first" in capsys.readouterr().out
    assert main([*common, "tiled_prefetch:*", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    total = sum(each["seconds"] for each in found["differences"])
    assert total == pytest.approx(found["second"]["seconds"] - found["first"]["seconds"])
    assert main(common) == 2
    assert "--compare takes two kernels, and the tags select 1; choose by more tags" in capsys.readouterr().err


def loaded_by(*arguments: str) -> set[str]:
    """Returns the modules that a command imports."""
    program = (
        f"import sys; sys.argv = ['perfmodel', *{list(arguments)!r}]\nfrom perfmodel.cli.command_line import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(['modules:', *sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.partition("modules:\n")[2].splitlines())


def test_commands_load_what_they_need_and_no_more(tmp_path: Path) -> None:
    helped = loaded_by("--help")
    assert not {"numpy", "json", "importlib.metadata"} & helped
    assert not any(name.startswith("perfmodel.cli.commands.") for name in helped)
    source = tmp_path / "copy.cl"
    source.write_text("__kernel void copy(__global float *y, __global const float *x) { y[0] = x[0]; }")
    launch = ("--global", "1024", "--local", "64", "--arg", "x=1", "--arg", "y=1")
    predicted = loaded_by("predict", "--device", "h200", str(source), *launch)
    assert "perfmodel.modelling.prediction" in predicted
    heavy = {"scipy", "sympy", "pandas", "loopy.kernel", "lmfit", "pyopencl", "matplotlib"}
    assert not heavy & predicted
    assert not any(name.startswith("perfmodel.modelling.fitting.least") for name in predicted)
    assert {name for name in predicted if name.startswith("perfmodel.cli.commands.")} == {
        f"perfmodel.cli.commands.{name}" for name in ("predicting", "printing", "selection")
    }


def test_each_module_adds_its_own_commands() -> None:
    assert sorted(name for names in MODULES.values() for name in names) == sorted(
        name for summaries in SUMMARIES.values() for name in summaries
    )
    for names in MODULES.values():
        others = {name for name in COMMANDS if " " not in name} - set(names)
        usage = command_parser(names[0]).format_usage()
        assert usage == "usage: perfmodel [-h] [--version] COMMAND ...\n"
        with pytest.raises(SystemExit):
            command_parser(names[0]).parse_args([min(others)])
        for name in names:
            with pytest.raises(SystemExit) as ended:
                command_parser(names[0]).parse_args([name, "--help"])
            assert ended.value.code == 0
