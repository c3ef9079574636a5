"""Devices: what they say of themselves, how one is chosen, and what is said when a driver gives none."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

import perfmodel
from perfmodel.basics.errors import DeviceError
from perfmodel.device import Device, devices, driver_faults, find_device
from perfmodel.device import device as device_module
from perfmodel.device.session import PROGRAMS, SPARE_BYTES

ROOT = Path(perfmodel.__file__).parents[1]


def python(code: str, **variables: str) -> str:
    """Returns what a fresh interpreter prints, without any loader variable but those given."""
    loader = ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "PERFMODEL_DEVICE")
    environment = {name: value for name, value in os.environ.items() if name not in loader}
    environment |= {"PYTHONPATH": str(ROOT)} | variables
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def intel_library() -> Path:
    import importlib.metadata

    files = importlib.metadata.files("intel-opencl-rt") or []
    return next(Path(str(file.locate())).resolve() for file in files if file.name == "libintelocl.so")


PRINT_KEYS = "from perfmodel.device import devices; print(*[d.key for d in devices()])"
PRINT_FAULTS = "from perfmodel.device import driver_faults; print(*map(str, driver_faults()), sep='\\n')"
PRINT_ERROR = """
from perfmodel.device import find_device
from perfmodel.basics.errors import DeviceError
try:
    find_device()
except DeviceError as error:
    print(error)
"""


# --- the CPU device of this machine


def test_a_device_tells_what_its_driver_tells() -> None:
    device = find_device("cpu")
    raw = device.context().devices[0]
    assert (device.name, device.compute_units) == (raw.name.strip(), raw.max_compute_units)
    assert (device.global_memory, device.local_memory) == (raw.global_mem_size, raw.local_mem_size)
    assert device.max_work_item_sizes == tuple(raw.max_work_item_sizes)
    assert device.double_precision == bool(raw.double_fp_config)
    assert device.kind == "cpu"
    assert device in devices()


def test_a_device_is_a_plain_value_and_its_queue_is_made_once() -> None:
    device = find_device("cpu")
    copy = pickle.loads(pickle.dumps(device))
    assert copy == device
    assert copy.queue() is device.queue()
    assert copy.context() == device.queue().context
    assert json.loads(json.dumps(device.fingerprint())) == device.fingerprint()
    assert device.fingerprint()["driver"] == device.driver


def test_the_key_is_the_same_in_another_process() -> None:
    assert python(PRINT_KEYS).split() == [device.key for device in devices()]


def test_a_device_of_another_machine_has_no_queue() -> None:
    from dataclasses import replace

    with pytest.raises(DeviceError, match="device h200-abcdef is not on this machine; there are "):
        replace(find_device("cpu"), key="h200-abcdef").queue()


def test_importing_needs_neither_pyopencl_nor_numpy() -> None:
    assert python("import sys, perfmodel.device; print({'pyopencl', 'numpy'} & set(sys.modules))") == "set()"


def test_a_missing_pyopencl_is_said_with_its_remedy() -> None:
    shown = python("import sys; sys.modules['pyopencl'] = None\n" + PRINT_ERROR)
    assert "pyopencl does not load" in shown
    assert "pip install pyopencl" in shown


# --- choosing among several devices


class FakeRaw(SimpleNamespace):
    """A device as a driver lists it; asking for what it does not have is an AttributeError, as with pyopencl."""


def fake(name: str, kind: int, units: int, driver: str = "1.0", bus: int | None = None) -> FakeRaw:
    facts = {
        "name": name, "vendor": "Vendor", "type": kind, "max_compute_units": units, "driver_version": driver,
        "version": "OpenCL 3.0", "max_clock_frequency": 1000, "global_mem_size": 1 << 30,
        "max_mem_alloc_size": 1 << 28, "local_mem_size": 48 << 10, "max_work_group_size": 1024,
        "max_work_item_sizes": [1024, 1024, 64], "extensions": "cl_khr_fp64 cl_khr_icd",
    }  # fmt: skip
    if bus is not None:
        facts |= {"pci_domain_id_nv": 0, "pci_bus_id_nv": bus, "pci_slot_id_nv": 0, "warp_size_nv": 32}
    return FakeRaw(**facts)


GPU, CPU = 4, 2
PLATFORM = SimpleNamespace(name="Some OpenCL")
MACHINE = [
    fake("Fast GPU", GPU, 132, bus=7),
    fake("Fast GPU", GPU, 132, bus=3),
    fake("Slow GPU", GPU, 12, bus=9),
    fake("Big CPU(R) @ 2.0GHz", CPU, 64),
]

Machine = Callable[[Sequence[FakeRaw]], None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Returns a function that pretends that devices are listed."""
    monkeypatch.delenv("PERFMODEL_DEVICE", raising=False)
    monkeypatch.setattr("perfmodel.device.cuda_gpus.told_by_cuda", list)

    def pretend(listed: Sequence[FakeRaw]) -> None:
        monkeypatch.setattr(device_module, "_raw_devices", lambda: [(PLATFORM, raw) for raw in listed])

    return pretend


def keys_by_bus(listed: Sequence[FakeRaw]) -> dict[Any, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_module, "_raw_devices", lambda: [(PLATFORM, raw) for raw in listed])
        return {
            getattr(raw, "pci_bus_id_nv", raw.name): device.key for device, raw in device_module._listed_by_opencl()
        }


@given(st.permutations(MACHINE))
def test_keys_do_not_depend_on_the_order_of_listing(listed: list[FakeRaw]) -> None:
    keys = keys_by_bus(listed)
    assert keys == keys_by_bus(MACHINE)
    assert keys[7] == keys[3] + ".2"  # identical devices, by their PCI bus
    assert re.fullmatch(r"fast-gpu-[0-9a-f]{6}", keys[3])
    assert re.fullmatch(r"big-cpu-[0-9a-f]{6}", keys["Big CPU(R) @ 2.0GHz"])


def test_a_key_outlives_a_driver_update_and_tells_other_hardware_apart(machine: Machine) -> None:
    def key(raw: FakeRaw) -> str:
        machine([raw])
        return devices()[0].key

    original = key(fake("GPU", GPU, 10))
    assert key(fake("GPU", GPU, 10, driver="2.0")) == original
    assert key(fake("GPU", GPU, 11)) != original
    assert key(fake("GPU 2", GPU, 10)) != original


def test_processors_of_one_name_are_told_apart_by_their_family_and_model(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine([fake("AMD EPYC", CPU, 2), fake("GPU", GPU, 10)])
    keys = []
    for numbers in ("26 2", "25 1", ""):
        monkeypatch.setattr(device_module, "numbers_here", lambda told=numbers: told)
        keys.append([device.key for device in devices()])
    (zen5, gpu), (zen3, same), (unknown, again) = keys
    assert len({zen5, zen3, unknown}) == 3
    assert gpu == same == again


def test_what_drivers_tell_of_sub_groups_and_precision(machine: Machine) -> None:
    machine(MACHINE)
    gpu, cpu = find_device("slow"), find_device("cpu")
    assert (gpu.sub_group_size, cpu.sub_group_size) == (32, None)
    assert (gpu.double_precision, gpu.half_precision) == (True, False)
    assert gpu.local_memory == 48 * 1024


def test_the_default_is_the_largest_gpu_then_a_cpu(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(MACHINE)
    assert find_device().key == keys_by_bus(MACHINE)[3]
    monkeypatch.setenv("PERFMODEL_DEVICE", "slow")
    assert find_device().name == "Slow GPU"
    assert find_device("cpu").name == "Big CPU(R) @ 2.0GHz"  # what is asked for wins
    monkeypatch.setenv("PERFMODEL_DEVICE", "")
    machine(MACHINE[3:])
    assert find_device().kind == "cpu"


@pytest.mark.parametrize(
    ("selector", "name"),
    [
        ("gpu", "Fast GPU"),
        ("CPU", "Big CPU(R) @ 2.0GHz"),
        ("slow-", "Slow GPU"),
        ("slow gpu", "Slow GPU"),
        ("big", None),
    ],
)
def test_selectors(machine: Machine, selector: str, name: str | None) -> None:
    machine(MACHINE)
    device = find_device(selector)
    assert device.name == (name or "Big CPU(R) @ 2.0GHz")
    assert find_device(device.key) == find_device(device) == device


def test_exact_key_wins_over_the_keys_that_it_begins(machine: Machine) -> None:
    machine(MACHINE)
    second = keys_by_bus(MACHINE)[7]
    assert find_device(second).key == second
    assert find_device(second.removesuffix(".2")).key == second.removesuffix(".2")


def test_ambiguous_and_unknown_selectors_list_the_keys(machine: Machine) -> None:
    machine(MACHINE)
    keys = keys_by_bus(MACHINE)
    with pytest.raises(DeviceError, match="'fast' names several devices; choose one by its key") as ambiguous:
        find_device("fast")
    assert keys[3] in str(ambiguous.value)
    assert keys[9] not in str(ambiguous.value)
    with pytest.raises(DeviceError, match="no device is called 'slaw-gpu'; there are") as unknown:
        find_device("slaw-gpu")
    assert all(key in str(unknown.value) for key in keys.values())
    with pytest.raises(DeviceError, match="no device is called 'accelerator'"):
        find_device("accelerator")


@pytest.mark.parametrize(
    ("system", "processor", "remedy"),
    [
        ("linux", "x86_64", "pip install intel-opencl-rt intel-cmplr-lib-rt"),
        ("linux", "aarch64", "pocl-opencl-icd"),
        ("darwin", "arm64", "conda-forge's `pocl`"),
    ],
)
def test_without_a_device_the_error_names_a_package(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, system: str, processor: str, remedy: str
) -> None:
    machine([])
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr("platform.machine", lambda: processor)
    with pytest.raises(DeviceError, match="no OpenCL device was found") as error:
        find_device()
    assert remedy in str(error.value)


# --- drivers and the loader

INTEL = "intel(r) opencl"


def test_a_driver_that_gives_a_device_has_no_fault() -> None:
    assert [str(fault) for fault in driver_faults() if "intelocl" in fault.library] == []


def test_the_users_variable_wins_and_stays(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "no-driver.so")
    assert python(PRINT_KEYS, OCL_ICD_VENDORS=nowhere) == ""
    shown = python(PRINT_ERROR + "import os; print(os.environ['OCL_ICD_VENDORS'])", OCL_ICD_VENDORS=nowhere)
    error, variable = shown.splitlines()
    assert variable == nowhere
    assert error.startswith("no OpenCL device was found: ")
    assert "OCL_ICD_VENDORS: the library does not load" in error
    assert nowhere in error
    assert python(PRINT_KEYS, OPENCL_VENDOR_PATH=str(tmp_path)) == ""
    assert python(PRINT_KEYS, OCL_ICD_VENDORS=str(intel_library())) == find_device(INTEL).key


def test_broken_drivers_are_told_beside_a_sound_one(tmp_path: Path) -> None:
    for name, text in {
        "a-missing.icd": "libgone.so.1\n",
        "b-other.icd": "libm.so.6\n",
        "c-empty.icd": "",
        "d-sound.icd": f"{intel_library()}\n",
    }.items():
        (tmp_path / name).write_text(text)
    assert python(PRINT_KEYS, OCL_ICD_VENDORS=str(tmp_path)) == find_device(INTEL).key
    faults = python(PRINT_FAULTS, OCL_ICD_VENDORS=str(tmp_path)).splitlines()
    assert len(faults) == 3
    assert "a-missing.icd: the library does not load (libgone.so.1: cannot open shared object file" in faults[0]
    assert "b-other.icd: libm.so.6 is no OpenCL driver" in faults[1]
    assert "c-empty.icd: the file names no library" in faults[2]


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_driver_without_hardware_is_told(tmp_path: Path) -> None:
    (tmp_path / "driver.c").write_text(
        "static int none(unsigned n, void **p, unsigned *count) { return -1001; }\n"
        "void *clGetExtensionFunctionAddress(const char *name) { return (void *)none; }\n"
        "int clGetPlatformInfo(void) { return -30; }\n"
    )
    library = tmp_path / "libnone.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "driver.c"], check=True)
    assert "loads but reports no platform (status -1001)" in python(PRINT_FAULTS, OCL_ICD_VENDORS=str(library))


def test_processes_that_start_together_share_one_complete_folder(tmp_path: Path) -> None:
    code = f"{PRINT_KEYS}; import os; print(os.environ['OCL_ICD_VENDORS'])"
    environment = {
        name: value for name, value in os.environ.items() if name not in ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH")
    }
    environment |= {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    outputs = {process.communicate()[0] for process in started}
    assert len(outputs) == 1
    keys, folder = outputs.pop().splitlines()
    assert find_device(INTEL).key in keys.split()
    assert [path.name for path in Path(folder).parent.iterdir()] == [Path(folder).name]
    assert str(intel_library()) in "".join(str(Path(p.read_text().strip()).resolve()) for p in Path(folder).iterdir())


def test_an_unwritable_cache_and_a_spoilt_folder_do_not_matter(tmp_path: Path) -> None:
    code = f"{PRINT_KEYS}; import os; print(os.environ['OCL_ICD_VENDORS'])"
    key = find_device(INTEL).key
    keys, private = python(code, XDG_CACHE_HOME="/dev/null/cache").splitlines()
    assert key in keys.split()
    assert not Path(private).exists()  # removed when the process ended
    keys, folder = python(code, XDG_CACHE_HOME=str(tmp_path)).splitlines()
    for file in Path(folder).iterdir():
        file.write_text("spoilt")
    assert key in python(code, XDG_CACHE_HOME=str(tmp_path)).split()


def test_a_device_passes_through() -> None:
    device = find_device("cpu")
    assert isinstance(device, Device)
    assert find_device(device) is device


# --- devices that are elsewhere


def test_a_device_is_what_its_fingerprint_says(machine: Machine) -> None:
    machine(MACHINE)
    for device in devices():
        assert Device.from_fingerprint(json.loads(json.dumps(device.fingerprint()))) == device
        assert device.is_here
    with pytest.raises(DeviceError, match=r"without name, platform.* give all of its fingerprint"):
        Device.from_fingerprint({"key": "far-gpu"})


def test_a_stored_device_is_found_where_none_of_this_machine_is_meant(machine: Machine) -> None:
    machine([fake("Far GPU", GPU, 132), fake("Far CPU", CPU, 4)])
    far_gpu, far_cpu = find_device("far gpu"), find_device("far cpu")
    machine([fake("Near CPU", CPU, 2)])
    near = find_device("near")
    stored = [far_gpu, far_cpu]
    assert find_device("cpu", stored) == find_device(None, stored) == near
    assert find_device("gpu", stored) == find_device(far_gpu.key, stored) == far_gpu
    assert not far_gpu.is_here
    with pytest.raises(DeviceError, match="'far' names several devices"):
        find_device("far", stored)
    machine([])
    assert find_device("cpu", stored) == far_cpu
    with pytest.raises(DeviceError, match="no OpenCL device was found"):
        find_device(None, stored)


def test_little_memory_is_kept_between_launches(cpu: Device) -> None:
    """An eighth of a machine's memory, as once, is gigabytes in each process that measured something large."""
    pool, process = cpu.session().buffers, psutil.Process()
    before = process.memory_info().rss
    for megabytes in (150, 160, 170, 180, 190):
        with pool.lent([megabytes * 2**20]) as (buffer,):
            pool.fill(buffer, megabytes * 2**20, "float32")
    assert process.memory_info().rss - before < 1.5 * SPARE_BYTES


def test_compiled_programs_do_not_pile_up(cpu: Device) -> None:
    """Each takes some 2 MB with Intel's driver: verifying thousands of kernels took gigabytes."""
    session, process = cpu.session(), psutil.Process()

    def compiled(first: int, last: int) -> int:
        for number in range(first, last):
            session.kernel(f"__kernel void k{number}(__global float *a) {{ a[0] += {number}; }}", f"k{number}", ())
        return int(process.memory_info().rss)

    before = compiled(0, PROGRAMS)
    assert compiled(PROGRAMS, PROGRAMS + 60) - before < 50 * 2**20
