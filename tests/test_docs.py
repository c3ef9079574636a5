"""README and docs: every Python block runs, every family and generator is described, every link leads somewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

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


def _files(page: Path) -> dict[str, str]:
    """Returns the files that a page shows, each behind its name."""
    return dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)```", page.read_text(), re.DOTALL | re.MULTILINE))


BLOCKS: dict[str, str] = {
    f"{page.name}-{number}": block
    for page in PAGES
    for number, block in enumerate(_blocks(page))
    if ">>>" not in block  # tests/expression/test_reference.py runs those
}


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.filterwarnings("ignore")
def test_python_blocks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block, page = BLOCKS[name], next(page for page in PAGES if name.startswith(page.name))
    for file, text in _files(page).items():
        (tmp_path / file).write_text(text)
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


BY_HAND = {
    "reproduce": "it measures for minutes; tests of the recipes run smaller ones",
    "suggest": "it measures for minutes",
    "characterize": "it measures for minutes",
    "doctor": "it watches the device for seconds; tests/measuring/test_doctor.py runs it",
    "browse": "it serves until it is interrupted; tests/report/test_browsing.py runs it",
    "worker": "it needs a cluster's scheduler",
    "survey": "tests/surveying runs it",
}
"""Commands of pages that no test here runs, with the reason."""
KERNELS = {
    "blur.cl": "__kernel void blur(__global float *out, __global const float *image, const int n) {"
    " const int i = get_global_id(1) * n + get_global_id(0); out[i] = 0.5f * image[i]; }",
    "scale.cl": "__kernel void scale(__global float *a, const float f, const int n) {"
    " const int i = get_global_id(0); for (int k = 0; k < work; k++) a[i * work + k] *= f; }",
    "saxpy.cu": "__global__ void saxpy(float *x, float *y, float a, int n) {"
    " int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }",
    "scale.cu": "template <typename T, int N> __global__ void scale(const T *x, T *y, int n) {"
    " int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] = N * x[i]; }",
    "rows.cu": "struct Rows { const float *x; float *y; int n; }; __global__ void twice(Rows p) {"
    " int i = blockIdx.x * 256 + threadIdx.x; if (i < p.n) p.y[i] = 2 * p.x[i]; }",
    "columns.cu": "__global__ void columns(const float *u, float *s, int n, int m) {"
    " int i = blockIdx.x * 128 + threadIdx.x; float sum = 0; for (int k = 0; k < m; k++) sum += u[k * n + i];"
    " s[i] = sum; }",
}
"""Files of kernels that pages name, as the tests have them."""
ORDER = ("calibrate",)
"""Commands that write what others of the page read."""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a working folder with the files that pages name."""
    for name, text in KERNELS.items():
        (tmp_path / name).write_text(text)
    for name in ("docs", "examples", "docs/pyopencl_program.py"):
        (tmp_path / Path(name).name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "docs/results/demo-nvidia-h200-e38dd1/calibration-overlap.json", tmp_path / "madd.json")
    shutil.copy(next((ROOT / "perfmodel/projection/device_profiles").glob("*.json")), tmp_path / "my-gpu.json")
    configuration = {"block_size_x": 64, "work": 2}
    entry = {"time": 0.1, "times": [0.1], "compile_time": 1, **configuration}
    cache: dict[str, object] = {
        "device_name": "GPU",
        "kernel_name": "scale",
        "problem_size": [4096],
        "tune_params_keys": [*configuration],
        "tune_params": {name: [value] for name, value in configuration.items()},
        "cache": {"64,2": entry},
    }
    (tmp_path / "cache.json").write_text(json.dumps(cache))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PERFMODEL_DEVICE", raising=False)
    return tmp_path


def _to_run(page: str) -> list[list[str]]:
    """Returns the words of a page's commands that run here; what measures only plans."""
    found = []
    for words in sorted(
        (_words(command) for name, command in COMMANDS if name == page), key=lambda w: w[0] not in ORDER
    ):
        if words[0] in BY_HAND or "…" in words or "nvidia*,cpu" in words:
            continue
        if words[0] == "measure" and any(word.endswith(".cu") for word in words):
            continue  # it needs NVIDIA's driver
        if words[0] == "calibrate" and "--device" in words and "--tags" not in words:
            words = [*words, "--kernels", "4", "--protocol", "quick"]  # of the 400 that it measures by default
        found.append([*words, "--dry-run"] if words[0] == "measure" and "--dry-run" not in words else words)
    return found


PAGES_WITH_COMMANDS = sorted({page for page, _ in COMMANDS if _to_run(page)})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS)
def test_commands_run(page: str, desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file, text in _files(next(each for each in PAGES if each.name == page)).items():
        (desk / file).write_text(text)
    for words in _to_run(page):
        assert main(words) == 0, (words, capsys.readouterr().err)
        assert capsys.readouterr().out, words


def test_what_is_run_by_hand_is_on_a_page() -> None:
    assert set(BY_HAND) <= {_words(command)[0] for _, command in COMMANDS}


FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\w$`])\$([^\s$][^$\n]*?)\$", re.DOTALL)


def test_formulas_are_drawn_without_a_network() -> None:
    formulas = _script("formulas")
    drawn = 0
    for page in PAGES:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
        for block, inline in FORMULA.findall(text):
            element = ElementTree.fromstring(formulas.svg(block or inline, bool(block)))
            assert element.attrib["aria-label"] == (block or inline).strip()
            assert len(element[0].attrib["d"]) > 100
            drawn += 1
    assert drawn >= 10


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("custom feature", "extending"),
        ("own kernel", "first-prediction"),
        ("install", "install"),
        ("tuner", "autotuning"),
    ],
)
def test_a_search_finds_a_heading(words: str, page: str) -> None:
    """A site's search puts pages first whose headings have the words."""
    headings = re.findall(r"^#+ (.*)$", (ROOT / "docs" / f"{page}.md").read_text(), re.MULTILINE)
    assert any(all(word in heading.lower() for word in words.split()) for heading in headings)


def test_pages_and_warnings_name_the_set_library_that_was_tested() -> None:
    pinned = re.search(r'"(islpy-barvinok==[^;"]*); python_version < ', (ROOT / "pyproject.toml").read_text())
    assert pinned
    for place in ("README.md", "docs/install.md", "perfmodel/kernels/loopy_program.py"):
        assert f"--no-deps {pinned[1]}" in (ROOT / place).read_text(), place


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


@pytest.mark.parametrize("name", ["gpu", "cpu"])
def test_the_page_of_a_model_has_the_values_of_the_calibration_that_comes_along(name: str) -> None:
    parameter_table = _script("parameter_table")
    text = (ROOT / "docs" / f"{name}-model.md").read_text(encoding="utf-8")
    calibration = pm.Calibration.load(ROOT / "models" / f"{name}@{parameter_table.MODELS[name]}.json")
    assert parameter_table.with_table(text, calibration) == text, "run python docs/parameter_table.py"
    model = calibration.model.string
    assert all(f"| `{parameter}` |" in text for parameter in model.parameters)
    about = text.split("## What its parameters say")[0]
    assert not [term for term in model.terms if f"`{term}" not in about and term not in UNDER_OTHERS]


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
