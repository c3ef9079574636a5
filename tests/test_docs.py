"""README and docs: every Python block runs, every family and generator is described, every link leads somewhere."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

import perfmodel as pm
from perfmodel.cli.command_line import command_parser, main
from perfmodel.report.kernel_list import as_markdown
from perfmodel.vocabulary.named_features import families

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ONE_PROGRAM = ("tutorial.md",)
"""Pages whose blocks are one program."""


def _blocks(page: Path) -> list[str]:
    found = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    return ["".join(found)] if page.name in ONE_PROGRAM else found


BLOCKS: dict[str, str] = {
    f"{page.name}-{number}": block
    for page in PAGES
    for number, block in enumerate(_blocks(page))
    if ">>>" not in block  # tests/expression/test_reference.py runs those
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.filterwarnings("ignore")
def test_python_blocks_run(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFMODEL_DEVICE", "cpu")
    for module in re.findall(r"^import (triton|numba)$|^from (numba) import", block, re.MULTILINE):
        pytest.importorskip("".join(module), reason="it is an optional extra, which is not installed")
    Path("block.py").write_text(block)  # where compilers of Python's functions look for their source
    exec(compile(block, str(tmp_path / "block.py"), "exec"), {"__name__": "block"})


def _commands(page: Path) -> list[str]:
    """Returns the lines of a page's blocks that call perfmodel, without comments, redirections and pipes."""
    found = []
    for language, block in re.findall(r"```(\w*)\n(.*?)```", page.read_text(), re.DOTALL):
        if language in ("", "sh", "console"):
            lines = block.replace("\\\n", " ").splitlines()
            found += [line.strip().removeprefix("$ ") for line in lines]
    return [line for line in found if line.startswith("perfmodel ")]


COMMANDS = sorted({(page.name, command) for page in PAGES for command in _commands(page)})


def _words(command: str) -> list[str]:
    words = shlex.split(command, comments=True)[1:]
    ends = [place for place, word in enumerate(words) if word in (">", "|", "&&")]
    return words[: ends[0]] if ends else words


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_commands_are_ones_that_there_are(page: str, command: str) -> None:
    if "…" not in command:
        command_parser().parse_args(_words(command))  # which leaves the test by SystemExit if they are not


@pytest.mark.filterwarnings("ignore")
def test_the_commands_of_the_readme_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFMODEL_DEVICE", "cpu")
    Path("blur.cl").write_text(
        """__kernel void blur(__global float *out, __global const float *image, const int n)
        {
            const int i = get_global_id(1) * n + get_global_id(0);
            out[i] = 0.5f * image[i];
        }"""
    )
    ran = [command for page, command in COMMANDS if page == "README.md"]
    order = ("calibrate", "rank", "evaluate", "count", "emulate")
    assert {command.split()[1] for command in ran} == set(order)
    for command in sorted(ran, key=lambda command: order.index(command.split()[1])):
        assert main(_words(command)) == 0, command
        assert capsys.readouterr().out, command


CLAIM = re.compile(r"\S\s+# [\d.]+$", re.MULTILINE)


@pytest.mark.parametrize("block", [block for block in BLOCKS.values() if CLAIM.search(block)])
def test_values_in_comments_are_true(block: str) -> None:
    """`expression    # 123.0` at the end of a line: what the comment says is what the expression gives."""
    lines = block.splitlines()
    claims = [line for line in lines if CLAIM.search(line)]
    namespace: dict[str, object] = {}
    exec(compile("\n".join(line for line in lines if line not in claims), "block", "exec"), namespace)
    for claim in claims:
        expression, value = claim.rsplit("#", 1)
        assert eval(expression, namespace) == float(value), claim


def test_every_family_and_generator_is_described() -> None:
    features, kernels = (ROOT / "docs" / "features.md").read_text(), (ROOT / "docs" / "kernels.md").read_text()
    for family in families():
        assert f"| `{family.name}` |" in features
    # The numbers of kernels that were checked are those of when it was made.
    table = re.escape(as_markdown(pm.ALL_GENERATORS, dict.fromkeys(map(_name, pm.ALL_GENERATORS), 0)))
    assert re.search(table.replace(r"\ 0\ \|", r"\ \d+\ \|"), kernels), "run python docs/kernel_table.py"


def test_the_page_of_the_gpu_model_has_the_values_of_the_calibration_that_comes_along() -> None:
    parameter_table = _script("parameter_table")
    text = parameter_table.PAGE.read_text(encoding="utf-8")
    calibration = pm.Calibration.load(parameter_table.FILE)
    assert parameter_table.with_table(text, calibration) == text, "run python docs/parameter_table.py"
    model = calibration.model.string
    assert all(f"| `{name}` |" in text for name in model.parameters)
    about = text.split("## What its parameters say")[0]
    assert not [name for name in model.terms if f"`{name}" not in about and name not in UNDER_OTHERS]


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


UNDER_OTHERS = {"chip", "own", "spilled", "filled", "waits"}
"""Terms that stand in the page's formulas, or within what it says of another one."""


def _name(generator: pm.KernelGenerator) -> str:
    return generator.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_first_code_lines_of_the_readme_are_the_two_commands() -> None:
    first = re.search(r"```\w*\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert first
    assert [line.split("#")[0].strip() for line in first[1].splitlines()] == ["make demo", "make test"]
