"""The model of any kernel on a processor: its sets, what it asks of a device, and what is shipped of it."""

from dataclasses import replace
from pathlib import Path

import pytest

import perfmodel as pm
from perfmodel.cli.command_line import main
from perfmodel.device import Device
from perfmodel.device.cpuinfo import name_here, numbers_here
from perfmodel.device.facts import DeviceFacts, device_facts
from perfmodel.device.processor import USUAL, Processor, cache_sizes, processor
from perfmodel.modelling.calibration import calibration_called
from perfmodel.modelling.transfer import facts_of
from perfmodel.models.cpu import model_of
from perfmodel.models.unified import LABELS
from perfmodel.recipes.recipe import recipe


@pytest.fixture(scope="module")
def shipped() -> pm.Calibration:
    return pm.Calibration.shipped("cpu", device="Intel(R) Xeon(R) Processor")


@pytest.mark.parametrize("is_large", [False, True])
def test_no_kernel_that_is_predicted_is_measured_for_the_fit(is_large: bool) -> None:
    chosen = recipe("cpu")

    def seconds_of(tags: object) -> float:
        return 1e-7 if is_large else 1.0

    measured = {tags[0] for tags in chosen.measurement_tags(seconds_of)}
    judged = {tags[0] for tags in chosen.evaluation_tags(seconds_of)}
    assert judged == set(LABELS)
    assert measured & judged == {"matmul"}


def test_every_term_and_parameter_has_a_meaning_and_the_shipped_calibration_has_the_same(
    shipped: pm.Calibration,
) -> None:
    said = recipe("cpu").meanings["cpu"]
    model = pm.Model("f_cl_wall_time", model_of(USUAL), meanings=said)
    assert set(said) == {*model.string.terms, *model.parameters}
    assert shipped.model.meanings == model.meanings, "run python docs/parameter_table.py"
    assert shipped.model == model


def test_a_processor_has_its_own_vectors_and_caches() -> None:
    model = pm.Model("f_cl_wall_time", model_of(Processor(8, 48 << 10, 2 << 20, 30 << 20)))
    asked = " ".join(model.features)
    assert "vector8" in asked
    assert "subgroup16" not in asked
    assert {f"f_mem_missed_keeps:{size}_width:8" for size in (48 << 10, 30 << 20)} <= set(model.features)


def test_what_is_not_here_is_taken_to_be_usual(shipped: pm.Calibration) -> None:
    elsewhere = Device.from_fingerprint({**shipped.device, "key": "a-processor-elsewhere"})
    assert processor(elsewhere) is None
    notes: list[str] = []
    assert recipe("cpu").models_on(elsewhere, notes) == {"cpu": model_of(USUAL)}
    (note,) = notes
    assert "not here to be asked" in note


def test_linux_says_what_caches_keep(tmp_path: Path) -> None:
    for index, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K"), ("3", "Unified", "30M")]
    ):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(f"{text}\n")
    (tmp_path / "index9").mkdir()
    assert cache_sizes(tmp_path) == {1: 48 << 10, 2: 2 << 20, 3: 30 << 20}
    assert cache_sizes(tmp_path / "nowhere") == {}


def test_the_processor_at_hand_says_what_it_has() -> None:
    (device,) = [each for each in pm.devices() if each.kind == "cpu" and "Intel" in each.platform]
    known = processor(device)
    if known is not None:  # where Linux lists caches
        assert known.lanes in (4, 8, 16)
        assert 2**13 <= known.first < known.second <= known.last


def seconds(shipped: pm.Calibration, collection: pm.KernelCollection, *tags: str) -> float:
    (kernel,) = collection.generate_kernels(tags)
    return float(shipped.predict(kernel))


def test_other_cores_have_to_start_where_there_is_more_than_one_group(
    shipped: pm.Calibration, collection: pm.KernelCollection
) -> None:
    """The threads of a processor that sleep wake up for the second work-group."""
    there = shipped.on("e5-2697-v2")
    for calibration, start in ((shipped, 0.9e-6), (there, 5e-6)):
        one, two, four = (seconds(calibration, collection, "launch", f"groups:{n}") for n in (1, 2, 4))
        assert 0.5 * start < two - one < 1.5 * start
        assert four - two < 0.5 * start


def test_shipped_knows_vectors_and_powers_of_two(shipped: pm.Calibration, collection: pm.KernelCollection) -> None:
    product = ("matmul_sq", "tiled_prefetch:False", "dtype:float32")
    times = {n: seconds(shipped, collection, *product, "lsizes:16x16", f"n:{n}") for n in (1024, 1088)}
    assert 1.3 < times[1024] / times[1088] < 4  # 2.3 measured, of fewer operations
    scalar = seconds(shipped, collection, *product, "lsizes:8x8", "n:256")
    assert 7 < scalar / seconds(shipped, collection, *product, "lsizes:16x16", "n:256") < 28  # 14 measured


SUMS = """__kernel void sums(__global const float *x, __global float *y, const int cols)
{
    const int r = get_global_id(0);
    __global const float *row = x + r * cols;
    float sum = 0.0f;
    for (int c = 0; c < cols; c++)
        sum += row[c];
    y[r] = sum;
}"""


def test_rows_of_any_length_whose_neighbours_are_hidden_have_a_time(shipped: pm.Calibration) -> None:
    kernel = pm.Kernel.from_opencl(SUMS, "sums", 4096, 64, {"x": "4096 * cols", "y": 4096}, cols=500)
    assert shipped.predict(kernel) == pytest.approx(shipped.predict(kernel.at(cols=500)), rel=1e-6)
    assert shipped.predict(kernel.at(cols=1000)) > shipped.predict(kernel)


def test_shipped_says_what_limits(shipped: pm.Calibration, collection: pm.KernelCollection) -> None:
    for tags, bottleneck in (
        (("throughput", "op:madd", "accumulators:32", "n:4096", "m:256"), "compute"),
        (("throughput", "op:div", "accumulators:32", "n:4096", "m:256"), "divide"),
        (("throughput", "op:madd", "accumulators:1", "n:256", "m:16384"), "chains"),
        (("local_access", "direction:load", "lstride_0:3", "n:4096", "m:256"), "apart"),
    ):
        (kernel,) = collection.generate_kernels(tags)
        assert shipped.explain(kernel).bottleneck == bottleneck, tags


def machine(monkeypatch: pytest.MonkeyPatch, name: str, facts: DeviceFacts | None) -> None:
    """Makes this machine's processor one of this name, and of these facts."""
    here = facts and replace(facts, name=name, key="here")
    for module in ("perfmodel.modelling.transfer", "perfmodel.device.cpuinfo", "perfmodel.device.processor_here"):
        monkeypatch.setattr(f"{module}.name_here", lambda: name)
    for module in ("perfmodel.modelling.transfer", "perfmodel.device.processor_here"):
        monkeypatch.setattr(f"{module}.facts_here", lambda: here)


XEON = "Intel(R) Xeon(R) Processor"


@pytest.mark.parametrize("named", ["cpu", "AMD EPYC 1"])
def test_the_processor_at_hand_is_carried_over_to(
    named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shipped: pm.Calibration
) -> None:
    facts = device_facts("epyc_9755").with_facts("driver", units=2)
    machine(monkeypatch, "AMD EPYC 1", facts)
    calibrated = facts_of(shipped)
    assert calibrated is not None
    there = shipped.on(facts.with_facts("guess", launch=calibrated["launch"], wake=calibrated["wake"]))
    here = pm.Calibration.shipped(device=named)
    assert here.parameters == there.parameters
    assert here == calibration_called(f"@{named}") == calibration_called(f"cpu@{named}")
    assert main(["predict", "--device", named, "launch", "groups:16"]) == 0
    told = capsys.readouterr().err
    assert "carried over from intel-xeon-processor-0b3c4a to this machine's AMD EPYC 1 (AMD Zen 5, AVX-512, by" in told
    assert "guessed: clock); calibrate it by 'perfmodel calibrate --device cpu'" in told
    assert told.count("\n") == 1


def test_what_was_calibrated_is_asked_for_by_its_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shipped: pm.Calibration
) -> None:
    machine(monkeypatch, "AMD EPYC 1", device_facts("epyc_9755"))
    for name in ("intel-xeon-processor-0b3c4a", "intel-xeon", XEON):
        assert pm.Calibration.shipped(device=name) == shipped
    assert main(["predict", "--device", "intel-xeon", "launch", "groups:16"]) == 0
    told = capsys.readouterr().err
    assert f"these are times of {XEON}, and this machine has AMD EPYC 1; predict for that by --device cpu, or" in told


def test_the_processor_that_was_calibrated_is_predicted_for_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shipped: pm.Calibration
) -> None:
    machine(monkeypatch, XEON, device_facts("xeon_6980p"))
    assert pm.Calibration.shipped(device="cpu") == shipped
    assert main(["predict", "--device", "cpu", "launch", "groups:16"]) == 0
    assert capsys.readouterr().err == ""
    machine(monkeypatch, XEON, device_facts("xeon_platinum_8480"))  # of a virtual machine, which hides the number
    assert pm.Calibration.shipped(device="cpu").device["carried_over_from"] == shipped.device["key"]


def test_where_the_processor_is_unknown_its_name_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shipped: pm.Calibration
) -> None:
    machine(monkeypatch, "Another processor", None)
    assert pm.Calibration.shipped(device="cpu") == shipped
    assert main(["predict", "--device", "cpu", "launch", "groups:16"]) == 0
    told = capsys.readouterr().err
    assert f"these are times of {XEON}, and this machine has Another processor; calibrate that by" in told
    machine(monkeypatch, "", None)
    assert main(["predict", "--device", "cpu", "launch", "groups:16"]) == 0
    assert capsys.readouterr().err == ""


def test_an_architecture_that_is_a_guess_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = device_facts("epyc_9755")
    machine(monkeypatch, "AMD EPYC 2", facts.with_facts("guess", **{name: facts[name] for name in facts.facts}))
    assert main(["predict", "--device", "cpu", "launch", "groups:16"]) == 0
    assert "this machine's AMD EPYC 2 (unknown, taken for AMD Zen 5, AVX-512)" in capsys.readouterr().err


def test_models_that_cannot_be_carried_over_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, "AMD EPYC 1", device_facts("epyc_9755"))
    assert pm.Calibration.shipped("unified-plus", device="cpu").device["key"] == "amd-epyc-eb6565"


def test_a_processor_that_is_asked_for_by_name_is_warned_of_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "--device", "e5-2697-v2", "launch", "groups:16"]) == 0
    told = capsys.readouterr().err
    assert "nothing was measured on Xeon E5-2697 v2" in told
    assert "these are times of" not in told


def test_a_processor_is_called_as_linux_has_it(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Some CPU @ 2.5GHz \n")
    assert name_here(tmp_path / "cpuinfo") == "Some CPU @ 2.5GHz"
    assert name_here(tmp_path / "nothing") == ""


def test_a_processor_tells_its_family_and_model(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n")
    assert numbers_here(tmp_path / "cpuinfo") == "26 2"
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nBogoMIPS\t: 100\n")
    assert numbers_here(tmp_path / "cpuinfo") == numbers_here(tmp_path / "nothing") == ""
