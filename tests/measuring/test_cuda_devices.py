"""PTX is timed by way of CUDA, here by a driver that isn't there (`tests.fake_cuda`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import DeviceError, KernelError
from perfmodel.cli.command_line import main
from perfmodel.device import CUDA, OPENCL, Device, devices, find_device
from perfmodel.device.occupancy import limits_of_device
from perfmodel.kernels.arguments import Array, Scalar, Struct
from perfmodel.kernels.launch import PTX, Launch
from perfmodel.measuring.isolation.locks import held
from perfmodel.measuring.protocol import PROTOCOLS, launch_overhead, run_launch, time_launch
from perfmodel.measuring.store import Store
from perfmodel.modelling.evaluation import evaluate
from tests.fake_cuda import FakeLibrary, installed

# y[i] = p.a * x[i] + p.d, for i < p.n, where p is struct { int n; float a; double d; }.
TEXT = """
.version 7.0
.target sm_60
.address_size 64
.visible .entry axpy(.param .u64 x, .param .u64 y, .param .align 8 .b8 p[16])
{
  .reg .pred %p<2>;
  .reg .f32 %f<5>;
  .reg .f64 %d<2>;
  .reg .b32 %r<6>;
  .reg .b64 %a<6>;
  ld.param.u64 %a0, [x];
  ld.param.u64 %a1, [y];
  ld.param.u32 %r0, [p];
  ld.param.f32 %f0, [p+4];
  ld.param.f64 %d0, [p+8];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  setp.ge.s32 %p0, %r4, %r0;
  @%p0 bra DONE;
  cvta.to.global.u64 %a2, %a0;
  cvta.to.global.u64 %a3, %a1;
  mul.wide.s32 %a4, %r4, 4;
  add.s64 %a2, %a2, %a4;
  add.s64 %a3, %a3, %a4;
  ld.global.f32 %f1, [%a2];
  cvt.rn.f32.f64 %f2, %d0;
  fma.rn.f32 %f3, %f0, %f1, %f2;
  st.global.f32 [%a3], %f3;
DONE:
  ret;
}
"""


def launch(n: int = 100, text: str = TEXT, name: str = "axpy", block: int = 32, shared: int = 0) -> Launch:
    fields = (Scalar("p_0", "int32", n), Scalar("p_1", "float32", 2.5), Scalar("p_2", "float64", 0.25))
    arguments = (Array("x", "float32", n), Array("y", "float32", n, True), Struct("p", fields, (0, 4, 8), 16))
    return Launch(
        source=text,
        kernel_name=name,
        global_size=(-(-n // block) * block,),
        local_size=(block,),
        arguments=arguments,
        language=PTX,
        shared_bytes=shared,
    )


def kernels(*sizes: int) -> list[pm.Kernel]:
    arguments = [Array("x", "float32", "p_0"), Array("y", "float32", "p_0", True), launch().arguments[2]]
    kernel = pm.Kernel.from_ptx(TEXT, "axpy", "(p_0 + 31) / 32", 32, arguments, p_1=2.5, p_2=0.25)
    return [kernel.at(p_0=size) for size in sizes]


@pytest.fixture
def library() -> Iterator[FakeLibrary]:
    library = FakeLibrary((9, 7))
    with installed(library):
        yield library
        for device in devices():
            if device.runtime == CUDA:
                device.end_session()


@pytest.fixture
def gpu(library: FakeLibrary) -> Device:
    return find_device("cuda")


# --- which devices there are


def test_devices_of_cuda_stand_beside_those_of_opencl(library: FakeLibrary) -> None:
    first, second = (device for device in devices() if device.runtime == CUDA)
    assert first.key.startswith("cuda-nvidia-h200-")
    assert second.key == f"{first.key}.2"
    assert (first.driver, first.compute_units, first.local_memory) == ("580.159.04", 132, 232448)
    assert (first.compute_capability, first.kind, first.sub_group_size) == ("9.0", "gpu", 32)
    assert limits_of_device(first).registers == 65536
    assert first.is_here
    assert Device.from_fingerprint(json.loads(json.dumps(first.fingerprint()))) == first
    assert second.cuda_session().buffers
    assert [device.runtime for device in devices()].index(CUDA) == len(devices()) - 2


def test_names_of_cuda_devices(library: FakeLibrary) -> None:
    first, second = (device for device in devices() if device.runtime == CUDA)
    assert find_device("cuda") == find_device("cuda:0") == first
    assert find_device("cuda:1") == second
    assert find_device(None, runtime=CUDA) == first
    assert find_device(None).runtime == OPENCL
    with pytest.raises(DeviceError, match="no device is called 'cuda:2'; there are"):
        find_device("cuda:2")
    of_opencl = replace(first, key="nvidia-h200-e38dd1", platform="NVIDIA CUDA", opencl_version="OpenCL 3.0 CUDA")
    known = [replace(first, key="cuda-far-h200-aaaaaa"), of_opencl]
    with installed(None):
        assert find_device("h200", known).runtime == OPENCL
        assert find_device("h200", known, CUDA).key == find_device("cuda", known).key == "cuda-far-h200-aaaaaa"


def test_without_a_driver_there_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with installed(None):
        assert all(device.runtime == OPENCL for device in devices())
        with pytest.raises(DeviceError, match=r"^no CUDA device was found: NVIDIA's driver .* is not on this machine$"):
            find_device("cuda")
        with pytest.raises(DeviceError, match="no CUDA device"):
            find_device(None, runtime=CUDA)
    with installed(FakeLibrary(())), pytest.raises(DeviceError, match="NVIDIA's driver lists none"):
        find_device("cuda:0")


def test_a_gpu_is_held_for_both_runtimes(gpu: Device) -> None:
    of_opencl = replace(gpu, key="nvidia-h200-e38dd1", platform="NVIDIA CUDA")
    other = replace(gpu, key="nvidia-h200-e38dd1.2", platform="NVIDIA CUDA")
    refused = pytest.raises(Exception, match="another program measures")
    with held(gpu), held(other), refused, held(of_opencl, lambda: True):
        pass


# --- launches


def test_a_run_computes_what_numpy_computes(gpu: Device) -> None:
    x = np.arange(100, dtype="float32")
    result = run_launch(launch(), gpu, {"x": x})
    np.testing.assert_array_equal(result["y"], np.float32(2.5) * x + np.float32(0.25))


def test_pointers_in_structs_are_addresses_of_the_device(gpu: Device) -> None:
    """The same kernel, whose arrays and numbers are parts of one struct."""
    head = ".visible .entry axpy(.param .u64 x, .param .u64 y, .param .align 8 .b8 p[16])"
    text = TEXT.replace(head, ".visible .entry axpy(.param .align 8 .b8 q[32])")
    for place, name in ((0, "[x]"), (8, "[y]"), (16, "[p]"), (20, "[p+4]"), (24, "[p+8]")):
        text = text.replace(name, f"[q+{place}]")
    args: dict[str, int | str] = {"q_0": "q_4", "q_2": "q_4"}
    low, high = np.array([0.25]).view("int32").tolist()
    kernel = pm.Kernel.from_ptx(text, "axpy", "(q_4 + 31) / 32", 32, args, q_5=int(np.float32(2.5).view("int32")))
    kernel = kernel.at(q_4=100, q_6=low, q_7=high)
    x = np.arange(100, dtype="float32")
    result = run_launch(kernel.launch(), gpu, {"q_0": x})
    np.testing.assert_array_equal(result["q_2"], np.float32(2.5) * x + np.float32(0.25))
    assert len(time_launch(kernel.at(q_4=4096).launch(), gpu, PROTOCOLS["unified"]).trials) == 30
    with pytest.raises(KernelError, match=r"array 'q_0' .* more than one allocation"):
        time_launch(kernel.at(q_4=10**9).launch(), gpu, PROTOCOLS["unified"])
    with pytest.raises(KernelError, match="input 'q_0' of kernel 'axpy' is missing"):
        run_launch(kernel.launch(), gpu, {})


def test_trials_are_those_of_the_protocol_without_the_way_to_the_device(gpu: Device, library: FakeLibrary) -> None:
    timing = time_launch(launch(8192), gpu, PROTOCOLS["unified"])
    assert len(timing.trials) == 30
    assert timing.seconds == pytest.approx(1e-6 + 8192e-9)
    assert timing.flags == ()
    assert launch_overhead(gpu) == pytest.approx(1.001e-6)
    names = [name for name, *_ in library.launches]
    assert names[:4] == ["perfmodel_delay", "axpy"] * 2
    given = {"x": np.ones(8192, "float32"), "y": np.zeros(8192, "float32")}
    assert time_launch(launch(8192), gpu, PROTOCOLS["unified"], given).seconds == timing.seconds


def test_dynamic_shared_memory_is_allowed_and_given(gpu: Device, library: FakeLibrary) -> None:
    run_launch(launch(shared=1000), gpu, {"x": np.ones(100, "float32")})
    assert (library.launches[-1], library.allowed) == (("axpy", (4, 1, 1), (32, 1, 1), 1000), [])
    run_launch(launch(shared=60000), gpu, {"x": np.ones(100, "float32")})
    assert (library.launches[-1][3], library.allowed) == (60000, [60000])
    with pytest.raises(KernelError, match=r"needs 232513 bytes of shared memory to a block, more than .* has .232448."):
        run_launch(launch(shared=232449), gpu, {"x": np.ones(100, "float32")})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            launch(text="nothing"),
            r"does not take the PTX of kernel 'axpy' on .* .INVALID_PTX.:\n    ptxas fatal, line 1;",
        ),
        (launch(name="other"), "the PTX has no kernel 'other'"),
        (launch(1 << 20), "kernel 'axpy' ran out of memory or resources on .* .OUT_OF_MEMORY.: use smaller sizes"),
        (
            launch(text=TEXT.replace("axpy", "wrong_address"), name="wrong_address"),
            "kernel 'wrong_address' failed on .* .ILLEGAL_ADDRESS.: check its arguments",
        ),
        (launch(block=2048), "work-groups of .2048,. work-items, more than"),
        (launch(2**30), "takes 4294967296 bytes, more than one allocation"),
        (replace(launch(), language="OpenCL C"), "is OpenCL C, which cuda-.* does not run: choose a device of OpenCL"),
    ],
)
def test_what_fails_is_one_sentence(gpu: Device, wrong: Launch, words: str) -> None:
    with pytest.raises(KernelError, match=words):
        time_launch(wrong, gpu, PROTOCOLS["quick"])
    assert run_launch(launch(), gpu, {"x": np.ones(100, "float32")})["y"][99] == 2.75


def test_the_other_runtime_is_named(gpu: Device) -> None:
    with pytest.raises(KernelError, match=r"kernel 'axpy' is PTX, which .* does not run: choose a device of CUDA"):
        time_launch(launch(), find_device("cpu"), PROTOCOLS["quick"])
    with pytest.raises(DeviceError, match="is reached by way of CUDA, which runs no OpenCL C"):
        gpu.queue()
    with pytest.raises(DeviceError, match="is reached by way of OpenCL"):
        find_device("cpu").cuda_session()


# --- campaigns, stores, and what follows


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a store that a campaign on a fake GPU has filled, by a process that knows the fake driver."""
    path = tmp_path_factory.mktemp("cuda") / "times.sqlite"
    with installed(FakeLibrary()):
        campaign = pm.Campaign(kernels(4096, 8192, 16384), ["h200"], store=path, timer="tests.fake_cuda:timer")
        result = campaign.run(progress=False)
        assert result.is_complete
        assert (result.devices[0].new, result.devices[0].device.runtime) == (3, CUDA)
        assert campaign.run(progress=False).devices[0].known == 3
    return path


def test_a_store_keeps_times_of_cuda_under_a_key_of_their_own(measured: Path) -> None:
    with Store(measured) as store:
        (row, *_) = store
        assert row.device["platform"] == "CUDA"
        assert row.device["key"].startswith("cuda-nvidia-h200-")
        times = {row.sizes["p_0"]: row.seconds for row in store}
    assert times == {size: pytest.approx(1e-6 + 1e-9 * size) for size in (4096, 8192, 16384)}


def test_models_are_fitted_and_judged_by_stored_times(measured: Path) -> None:
    with installed(None):
        model = pm.Model("f_cl_wall_time", "p_launch + p_item * f_work_items")
        table = pm.measure(kernels(4096, 16384), model, device="cuda", store=measured)
        fit = model.fit(table)
        assert fit.parameters["p_item"] == pytest.approx(1e-9, rel=1e-3)
        judged = evaluate(fit, kernels(8192), store=measured)
    assert judged.over_all is not None
    assert judged.over_all.maximum < 1e-3


def test_commands(measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "axpy.ptx"
    file.write_text(
        TEXT.replace(".align 8 .b8 p[16]", ".u32 n")
        .replace("[p]", "[n]")
        .replace("ld.param.f32 %f0, [p+4]", "mov.f32 %f0, 0f40000000")
        .replace("ld.param.f64 %d0, [p+8]", "mov.f64 %d0, 0d3FD0000000000000")
    )
    words = [str(file), "--grid", "(n+31)/32", "--block", "32", "--arg", "x=n", "--arg", "y=n", "--arg", "n=4096"]
    with installed(FakeLibrary()):
        assert main(["devices", "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)["devices"]
        assert [each["platform"] for each in listed].count("CUDA") == 1
        assert main(["measure", *words, "--store", str(measured), "--dry-run", "--json"]) == 0
        (plan,) = json.loads(capsys.readouterr().out)["devices"]
        assert plan["device"].startswith("cuda-nvidia-h200-")
        assert main(["doctor", "--device", "cuda"]) == 2
        assert "is reached by way of CUDA" in capsys.readouterr().err
    with installed(None):
        assert main(["measure", *words, "--store", str(tmp_path / "new.sqlite")]) == 2
        told = capsys.readouterr().err
    assert "no CUDA device was found" in told
    assert len(told.strip().splitlines()) == 1
