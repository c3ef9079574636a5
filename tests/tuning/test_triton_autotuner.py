"""Configurations of Triton's autotuner are predicted without being run, and Triton measures the best of them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from perfmodel import Calibration, Kernel
from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.tuning.triton_autotuner import TritonPredictions
from tests.kernels.triton.texts import PATH
from tests.ptx.stored_kernels import load

TITLES = {32: "softmax", 64: "long_softmax", 128: "matmul fp16"}


class Config:
    """A configuration as Triton has it."""

    def __init__(self, block: int) -> None:
        self.block = block

    def all_kwargs(self) -> dict[str, Any]:
        return {"BLOCK": self.block, "num_warps": 4}

    def __str__(self) -> str:
        return f"BLOCK: {self.block}"


def parameter(name: str, is_constexpr: bool = False) -> SimpleNamespace:
    return SimpleNamespace(name=name, is_constexpr=is_constexpr)


FUNCTION: Any = SimpleNamespace(
    arg_names=["x", "n", "BLOCK"], cache_key="", params=[parameter("x"), parameter("n"), parameter("BLOCK", True)]
)
CONFIGS = [Config(block) for block in (64, 32, 256, 128)]
ARRAY = SimpleNamespace(shape=(777,), dtype="torch.float32")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Kernels that Triton compiled before, in the place of compiling them."""
    found: list[dict[str, Any]] = []

    def from_triton(fn: Any, grid: Any, args: Any, **given: Any) -> Kernel:
        found.append({"fn": fn, "grid": grid, "args": args, **given})
        if given["BLOCK"] not in TITLES:
            raise KernelError("it does not compile")
        return load(PATH, TITLES[given["BLOCK"]])

    monkeypatch.setattr(Kernel, "from_triton", from_triton)
    return found


def predictions(workers: int) -> TritonPredictions:
    made = TritonPredictions(Calibration.shipped(device="H200"), workers=workers)
    assert made.of(FUNCTION) is FUNCTION
    return made


@pytest.mark.parametrize("workers", [1, 2])
def test_configurations_are_predicted(workers: int, calls: list[dict[str, Any]]) -> None:
    made = predictions(workers)
    given = {"x": ARRAY, "n": 777}
    assert made.predict_all(CONFIGS, given, grid=(4,), warmup=False) == CONFIGS
    calibration = Calibration.shipped(device="H200")
    for block, title in TITLES.items():
        assert made.seconds[f"BLOCK: {block}"] == pytest.approx(float(calibration.predict(load(PATH, title))))
    assert made.seconds["BLOCK: 256"] == math.inf
    assert made.unpredicted == {"BLOCK: 256": "it does not compile"}
    before = len(calls)
    assert [made(**given, grid=(4,), warmup=False, **config.all_kwargs()) for config in CONFIGS] == [
        made.seconds[str(config)] for config in CONFIGS
    ]
    assert len(calls) == before  # what was predicted is not compiled again


def test_configurations_are_searched_as_any(calls: list[dict[str, Any]]) -> None:
    made = predictions(1)
    assert made.tuner is None
    made.predict_all(CONFIGS, {"x": ARRAY, "n": 777}, grid=(4,))
    tuner = made.tuner
    assert tuner is not None
    fastest = min(made.seconds, key=lambda name: made.seconds[name])
    assert tuner.ask() == [fastest]
    tuner.tell(fastest, 3 * made.seconds[fastest])
    expected = {each.config: each for each in tuner.predicted}
    assert expected["BLOCK: 256"].pruned == "it does not compile"
    others = [name for name in made.seconds if name not in (fastest, "BLOCK: 256")]
    assert all(expected[name].seconds > 1.5 * made.seconds[name] for name in others)  # what all share is learned
    made.predict_all([CONFIGS[2]], {"x": ARRAY, "n": 777}, grid=(4,))
    assert made.tuner is None


def test_a_call_is_what_triton_says(calls: list[dict[str, Any]]) -> None:
    made = predictions(1)
    made(x=ARRAY, n=777, grid=(4,), warmup=False, **CONFIGS[0].all_kwargs())
    assert calls == [
        {
            "fn": FUNCTION,
            "grid": (4,),
            "args": {"x": ARRAY, "n": 777},
            "target": "sm_90",
            "BLOCK": 64,
            "num_warps": 4,
        }
    ]


def test_blocks_that_do_not_fit_have_no_prediction(
    calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TITLES, 512, "matmul fp16 8 warps")
    made = TritonPredictions(Calibration.shipped(device="H200"), target="sm_75", workers=1)
    made.of(FUNCTION)
    made.predict_all([Config(512)], {"x": ARRAY, "n": 777}, grid=(4,))
    assert "bytes of shared memory, and there are 65536" in made.unpredicted["BLOCK: 512"]


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(PerfmodelError, match="predicts nothing; give a calibration"):
        TritonPredictions(3)  # type: ignore[arg-type]
    with pytest.raises(PerfmodelError, match="of no kernel; put @predictions"):
        TritonPredictions(Calibration.shipped(device="H200"))(n=1, grid=(1,))


def test_triton_measures_the_best() -> None:
    triton = pytest.importorskip("triton", reason="the compiler of the extra triton is not installed")
    from tests.kernels.triton import sources

    made = TritonPredictions(Calibration.shipped(device="H200"), workers=1)
    configs = [triton.Config({"BLOCK": block}, num_warps=4) for block in (32, 1024, 256)]
    tuner = triton.autotune(configs, key=["n"], prune_configs_by=made.best(2))(made.of(sources.vector_add))
    array, n = SimpleNamespace(shape=(10**6,), dtype="torch.float32"), 10**6
    tuner.nargs = {"x": array, "y": array, "out": array, "n": n}
    kept = tuner.prune_configs({"grid": lambda meta: (-(-n // meta["BLOCK"]),), "warmup": False})
    assert [config.kwargs["BLOCK"] for config in kept] == [1024, 256]
