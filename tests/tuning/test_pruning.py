"""`perfmodel.prune`, and Kernel Tuner's search led by predictions."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.basics.errors import CountingError, FeatureError, KernelError, PerfmodelError
from perfmodel.modelling.prediction import PredictionWarning
from perfmodel.tuning.kernel_tuner import PredictedFirst, configured_kernel

SOURCE = Path(__file__).parents[2] / "examples" / "convolution.cl"

seconds = st.one_of(
    st.floats(1e-9, 1e3),
    st.sampled_from([1e-3, 2e-3]),  # ties
    st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -1.0]),
    st.just("fails"),
)
limits = st.fixed_dictionaries(
    {
        "top_k": st.none() | st.integers(1, 30),
        "within": st.none() | st.floats(1, 10),
        "unpredicted": st.sampled_from(["last", "drop"]),
    }
)


def predictions(times: list[Any]) -> Any:
    def predict(index: int) -> float:
        if times[index] == "fails":
            raise CountingError("it cannot be counted; count another")
        return float(times[index])

    return predict


def is_time(value: Any) -> bool:
    return bool(value != "fails" and 0 < value < math.inf)


# --- prune


@given(st.lists(seconds, max_size=25), limits)
@pytest.mark.filterwarnings("ignore::perfmodel.modelling.prediction.PredictionWarning")
def test_what_is_kept(times: list[Any], limit: dict[str, Any]) -> None:
    """Compares with the definition: stable order, the limits, nothing lost, and never nothing."""
    pruned = pm.prune(range(len(times)), predictions(times), **limit)
    every = list(pruned) + [candidate.config for candidate in pruned.left_out]
    assert sorted(every) == list(range(len(times)))
    assert bool(pruned) == bool(times)

    known = sorted((index for index in range(len(times)) if is_time(times[index])), key=lambda index: times[index])
    others = [index for index in range(len(times)) if not is_time(times[index])]
    expected = known
    if known and limit["within"] is not None:
        expected = [index for index in known if times[index] <= limit["within"] * times[known[0]]]
    if limit["unpredicted"] == "last" or not known:
        expected = expected + others
    assert list(pruned) == expected[: limit["top_k"]]


@given(st.lists(seconds, min_size=1, max_size=25), limits)
@pytest.mark.filterwarnings("ignore::perfmodel.modelling.prediction.PredictionWarning")
def test_every_candidate_says_what_is_known_of_it(times: list[Any], limit: dict[str, Any]) -> None:
    pruned = pm.prune(range(len(times)), predictions(times), **limit)
    for candidate in pruned.kept:
        assert candidate.pruned == ""
    for candidate in pruned.left_out:
        assert candidate.pruned != ""
    for candidate in (*pruned.kept, *pruned.left_out):
        if is_time(times[candidate.config]):
            assert (candidate.seconds, candidate.unpredicted) == (times[candidate.config], "")
        else:
            assert math.isnan(candidate.seconds)
            assert candidate.unpredicted != ""


def test_configurations_may_be_anything_and_are_predicted_once() -> None:
    asked: list[dict[str, int]] = []

    def predict(config: dict[str, int]) -> Any:
        asked.append(config)
        return np.array(1e-3 * config["work"])  # as `Calibration.predict` gives it

    configs = ({"work": work} for work in (4, 2, 8))
    pruned = pm.prune(configs, predict, top_k=np.int64(2))  # type: ignore[arg-type]
    assert list(pruned) == [{"work": 2}, {"work": 4}]
    assert pruned[0] == {"work": 2}
    assert pruned[:1] == [{"work": 2}]
    assert asked == [{"work": 4}, {"work": 2}, {"work": 8}]


def test_kernels_are_pruned_by_a_calibration() -> None:
    calibration = pm.Calibration.shipped("unified-plus", device="cpu")
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    kernels = collection.generate_kernels(["matmul_sq", "tiled_prefetch:*", "n:128,256"])
    ranked = sorted(kernels, key=lambda kernel: float(calibration.predict(kernel)))
    assert list(pm.prune(kernels, calibration.predict, top_k=3)) == ranked[:3]


def test_its_text_says_how_many_are_left_out_and_why() -> None:
    text = str(pm.prune(range(5), predictions([1.0, 1.2, 1.3, 3.0, "fails"]), top_k=2, within=2))
    assert text.splitlines() == [
        "2 of 5 configurations are to be measured",
        "  2 left out: there are top_k=2 before it",
        "  1 left out: it is predicted slower than 2 times the best",
        "  1 without a prediction, the first because it cannot be counted; count another",
    ]


def test_without_any_prediction_the_order_stays_with_a_warning() -> None:
    with pytest.warns(PredictionWarning, match=r"none of 3 configurations has a prediction.*it cannot be counted"):
        pruned = pm.prune("abc", lambda _: predictions(["fails"])(0), top_k=2, unpredicted="drop")
    assert list(pruned) == ["a", "b"]


def test_with_any_prediction_there_is_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(pm.prune(range(2), predictions(["fails", 1.0]))) == [1, 0]
        assert len(pm.prune([], predictions([]))) == 0


def test_a_kernel_without_a_feature_has_no_prediction() -> None:
    def predict(index: int) -> float:
        if index == 0:
            raise FeatureError("it has no such feature; name another")
        return 1.0

    assert list(pm.prune(range(3), predict)) == [1, 2, 0]


def test_other_errors_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        pm.prune([0], lambda config: 1 / config)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": 0}, "top_k=0 is no number of configurations to keep; give 1 or more"),
        ({"top_k": True}, "top_k=True is no number of configurations to keep; give 1 or more"),
        ({"top_k": 2.0}, "top_k=2.0 is no number of configurations to keep; give 1 or more"),
        ({"within": 0.9}, "within=0.9 is no factor above the best prediction; give 1 or more, such as 1.5"),
        ({"within": math.nan}, "within=nan is no factor above the best prediction; give 1 or more, such as 1.5"),
        ({"within": "2"}, "within='2' is no factor above the best prediction; give 1 or more, such as 1.5"),
        ({"unpredicted": "first"}, "unpredicted='first' is not understood; give 'last' or 'drop'"),
    ],
)
def test_limits_that_leave_nothing(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PerfmodelError, match=f"^{re.escape(message)}$"):
        pm.prune([1], lambda _: 1.0, **options)
    with pytest.raises(PerfmodelError, match=f"^{re.escape(message)}$"):
        PredictedFirst(lambda _: 1.0, **options)


@pytest.mark.parametrize("given_back", [None, "fast", np.ones(3), 1j])
def test_predictions_that_are_no_number(given_back: Any) -> None:
    with pytest.raises(PerfmodelError, match=r"^predict gives .* for \{'work': 2\}, which is no number; give its time"):
        pm.prune([{"work": 2}], lambda _: given_back)


# --- Kernel Tuner's search


class Runner:
    """A stand-in for Kernel Tuner's runners: the protocol that `PredictedFirst` uses, and what was run."""

    def __init__(self, failing: Iterable[int] = (), budget: int = 1000) -> None:
        self.failing, self.budget, self.strategy_s = set(failing), budget, 0.0
        self.ran: list[int] = []
        self.warmed_up = False
        self.kernel_source = SimpleNamespace(lang="OPENCL")
        self.kernel_options = SimpleNamespace()

    def run(self, parameter_space: Iterable[tuple[int, ...]], tuning_options: Any) -> list[dict[str, Any] | None]:
        results: list[dict[str, Any] | None] = []
        for (work,) in parameter_space:
            if len(self.ran) >= self.budget:
                results.append(None)
                continue
            self.ran.append(work)
            failed = {"__error__": "RuntimeFailedConfig"} if work in self.failing else {"time": 1.0}
            results.append({"work": work, **failed})
        return results

    def add_strategy_time(self, seconds: float) -> None:
        self.strategy_s += seconds


SPACE = SimpleNamespace(tune_params={"work": [1, 2, 4, 8]}, list=[(1,), (2,), (4,), (8,)])


def larger_first(configuration: dict[str, int]) -> float:
    return 1e-3 / configuration["work"]


def test_the_search_runs_what_is_predicted_fastest_and_no_others() -> None:
    runner, strategy = Runner(), PredictedFirst(larger_first, top_k=3)
    results = strategy.tune(SPACE, runner, None)
    assert runner.ran == [8, 4, 2]
    assert [result["work"] for result in results] == [8, 4, 2]
    assert runner.strategy_s > 0
    assert strategy.pruned is not None
    assert [candidate.config for candidate in strategy.pruned.left_out] == [(1,)]


def test_one_candidate_is_run_once_and_not_warmed_up() -> None:
    runner = Runner()
    PredictedFirst(larger_first, top_k=1).tune(SPACE, runner, None)
    assert runner.ran == [8]
    assert runner.warmed_up
    several = Runner()
    PredictedFirst(larger_first, top_k=2).tune(SPACE, several, None)
    assert not several.warmed_up


def test_where_all_that_was_chosen_fails_the_search_goes_on() -> None:
    runner = Runner(failing=[8, 4])
    results = PredictedFirst(larger_first, top_k=1).tune(SPACE, runner, None)
    assert runner.ran == [8, 4, 2]
    assert "__error__" not in results[-1]
    everything = Runner(failing=[1, 2, 4, 8])
    assert len(PredictedFirst(larger_first, top_k=1).tune(SPACE, everything, None)) == 4


def test_the_budget_of_kernel_tuner_holds() -> None:
    runner = Runner(failing=[8], budget=1)
    assert PredictedFirst(larger_first, top_k=2).tune(SPACE, runner, None) == [
        {"work": 8, "__error__": "RuntimeFailedConfig"}
    ]
    assert runner.ran == [8]


def test_a_calibration_predicts_opencl_only() -> None:
    runner = Runner()
    runner.kernel_source.lang = "CUDA"
    strategy = PredictedFirst(pm.Calibration.shipped("unified-plus", device="cpu"))
    with pytest.raises(PerfmodelError, match=r"^a calibration predicts OpenCL C, and Kernel Tuner tunes CUDA here; "):
        strategy.tune(SPACE, runner, None)
    assert runner.ran == []


def test_what_predicts_nothing_is_refused() -> None:
    with pytest.raises(PerfmodelError, match=r"^'unified-plus' predicts nothing; give a calibration, or a function"):
        PredictedFirst("unified-plus")  # type: ignore[arg-type]


class SlowRunner(Runner):
    """A runner on which little work is fastest, against what is predicted; the largest fails."""

    def run(self, parameter_space: Iterable[tuple[int, ...]], tuning_options: Any) -> list[dict[str, Any] | None]:
        results = super().run(parameter_space, tuning_options)
        return [
            result if result is None or "__error__" in result else {**result, "time": 5 + abs(result["work"] - 20)}
            for result in results
        ]


def test_a_search_that_learns_goes_where_times_are_short() -> None:
    space = SimpleNamespace(tune_params={"work": list(range(1, 101))}, list=[(work,) for work in range(1, 101)])
    runner = SlowRunner(failing=[100])
    results = PredictedFirst(larger_first, learn=4).tune(space, runner, None)
    assert [result["work"] for result in results] == runner.ran
    assert runner.ran[0] == 100
    assert min(abs(work - 20) for work in runner.ran) <= 1
    assert len(runner.ran) < 60
    few = SlowRunner(budget=6)
    assert len(PredictedFirst(larger_first, learn=4).tune(space, few, None)) == 6


# --- Kernel Tuner itself

N = 64
PARAMETERS = {
    "image_width": [N],
    "image_height": [N],
    "block_size_x": [8, 16],
    "block_size_y": [2, 4],
    "work_x": [1, 2],
    "work_y": [1],
    "interleaved": [0],
    "use_local": [0, 1],
}


SCALE = """#include "factor.cl"
__kernel void scale(__global float2 *a, const int n, const float by)
{
    if (get_global_id(0) < n)
        a[get_global_id(0)] *= FACTOR * by;
}"""


@pytest.fixture
def scaling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns a runner that knows a kernel of two files; what Kernel Tuner writes goes into the same folder."""
    core = pytest.importorskip("kernel_tuner.core")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.cl").write_text(SCALE)
    (tmp_path / "factor.cl").write_text("#define FACTOR work\n")
    options = SimpleNamespace(
        kernel_name="scale",
        problem_size=1000,
        arguments=[np.zeros((1024, 2), np.float32), np.int32(1000), np.float32(0.5)],
        block_size_names=None,
        grid_div_x=None,
        grid_div_y=None,
        grid_div_z=None,
    )
    source = core.KernelSource("scale", ["scale.cl", "factor.cl"], "OpenCL")
    return SimpleNamespace(kernel_source=source, kernel_options=options)


def test_a_configuration_is_the_kernel_that_kernel_tuner_would_launch(scaling: Any, tmp_path: Path) -> None:
    kernel = configured_kernel(scaling, {"block_size_x": 128, "work": 4})
    launch = kernel.launch()
    assert (launch.global_size, launch.local_size) == ((1024,), (128,))
    assert [(argument.name, argument.size) for argument in launch.arrays()] == [("a", 2048)]
    assert kernel.bound == {"n": 1000, "by": 0.5}
    assert "#define work 4" in launch.source
    assert "#define FACTOR work" in launch.source
    assert sorted(path.name for path in tmp_path.iterdir()) == ["factor.cl", "scale.cl"]


def test_arguments_that_are_not_those_of_the_source(scaling: Any) -> None:
    del scaling.kernel_options.arguments[1:]
    with pytest.raises(
        KernelError, match=r"^kernel 'scale' has 3 arguments in its source, and tune_kernel is given 1; "
    ):
        configured_kernel(scaling, {"block_size_x": 128, "work": 4})


class Evaluations(list[dict[str, Any]]):
    """Results of what Kernel Tuner compiled and ran."""


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> Evaluations:
    core = pytest.importorskip("kernel_tuner.core")
    from kernel_tuner.backends import opencl

    from perfmodel.device import devices

    devices()  # which makes the driver that comes along known to pyopencl
    seen = Evaluations()
    original = core.DeviceInterface.compile_and_benchmark

    def counted(interface: Any, source: Any, arguments: Any, params: Any, *others: Any) -> Any:
        seen.append(dict(params))
        return original(interface, source, arguments, params, *others)

    def finished(backend: Any) -> bool:
        backend.event.wait()
        return True

    monkeypatch.setattr(core.DeviceInterface, "compile_and_benchmark", counted)
    # Kernel Tuner asks for a command's state without ever flushing the queue; OpenCL need not begin it by then.
    monkeypatch.setattr(opencl.OpenCLFunctions, "kernel_finished", finished)
    return seen


def tuned(
    strategy: Any, parameters: dict[str, list[int]] = PARAMETERS, **options: Any
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    import kernel_tuner

    random = np.random.default_rng(0)
    image, weights = (random.random(shape, np.float32) for shape in ((N + 6, N + 6), 49))
    windows = np.lib.stride_tricks.sliding_window_view(image, (7, 7)).reshape(N, N, 49)
    results, environment = kernel_tuner.tune_kernel(
        "convolve",
        str(SOURCE),
        (N, N),
        [np.zeros((N, N), np.float32), image, weights],
        parameters,
        grid_div_x=["block_size_x", "work_x"],
        grid_div_y=["block_size_y", "work_y"],
        answer=[windows @ weights, None, None],
        atol=1e-3,
        strategy=strategy,
        quiet=True,
        **options,
    )
    return results, environment


@pytest.mark.filterwarnings("ignore")
def test_kernel_tuner_measures_one_candidate_once(evaluations: Evaluations) -> None:
    results, environment = tuned(PredictedFirst(pm.Calibration.shipped("unified-plus", device="cpu"), top_k=1))
    assert len(evaluations) == len(results) == 1
    assert environment["best_config"]["time"] > 0


@pytest.mark.filterwarnings("ignore")
def test_kernel_tuner_is_led_by_a_calibration(evaluations: Evaluations) -> None:
    """It measures, in order, what the same calibration says of the same kernels described by hand."""
    calibration = pm.Calibration.shipped("unified-plus", device="cpu")
    strategy = PredictedFirst(calibration, top_k=3)
    results, _ = tuned(strategy)
    assert strategy.pruned is not None
    assert len(strategy.pruned.left_out) == 13
    assert [tuple(result[name] for name in PARAMETERS) for result in results] == list(strategy.pruned)
    for candidate in (*strategy.pruned.kept, *strategy.pruned.left_out):
        by_hand = described(dict(zip(PARAMETERS, candidate.config, strict=True)))
        assert candidate.seconds == pytest.approx(float(calibration.predict(by_hand)), rel=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_kernel_tuner_stops_at_its_own_limit(evaluations: Evaluations) -> None:
    results, _ = tuned(PredictedFirst(lambda c: 1e-3 * c["block_size_x"]), strategy_options={"max_fevals": 2})
    assert len(results) == 2
    assert {result["block_size_x"] for result in results} == {8}


@pytest.mark.filterwarnings("ignore")
def test_the_convolution_is_right_in_every_form(evaluations: Evaluations) -> None:
    """Kernel Tuner compares each result with numpy's, and raises where it is another."""
    forms = {"block_size_x": [8], "block_size_y": [4], "work_x": [2], "work_y": [2], "interleaved": [0, 1]}
    results, _ = tuned("brute_force", PARAMETERS | forms)
    assert len(results) == 4
    assert all(result["verification_time"] > 0 for result in results)


def described(c: dict[str, Any]) -> pm.Kernel:
    return pm.Kernel.from_opencl(
        SOURCE,
        "convolve",
        (N // c["work_x"], N // c["work_y"]),
        (c["block_size_x"], c["block_size_y"]),
        {"out": N * N, "image": (N + 6) ** 2, "weights": 49},
        [f"-D{name}={value}" for name, value in c.items()],
    )
