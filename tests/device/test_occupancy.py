"""Occupancy against a simulation, NVIDIA's and LLVM's own figures; its command, its plots and its feature."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.cli.command_line import main
from perfmodel.device import Device
from perfmodel.device.occupancy import OccupancyLimits, limits_of
from perfmodel.vocabulary.named_features import evaluate

NVIDIA = ["5.0", "5.2", "5.3", "6.0", "6.1", "6.2", "7.0", "7.2", "7.5"]
NVIDIA += ["8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.1", "10.3", "12.0"]
AMD = ["gfx600", "gfx700", "gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950"]
AMD += ["gfx1010", "gfx1030", "gfx1100", "gfx1102", "gfx1200"]

SOURCE = """
__kernel void reversed(__global const float *a, __global float *o, int n)
{
    __local float tile[5120];
    int l = get_local_id(0);
    tile[l] = a[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    o[get_global_id(0)] = tile[get_local_size(0) - 1 - l];
}
"""


def placed(limits: OccupancyLimits, wave: int, block: int, registers: int, shared: int) -> int:
    """Returns the blocks put onto an empty multiprocessor one by one, warp by warp, until one does not go in."""
    warps = len(range(0, block, wave))
    per_warp = len(range(0, registers * wave, limits.register_unit)) * limits.register_unit
    if limits.registers_per_group is not None:
        # The hardware's check before a launch counts warps in fours (cuda_occupancy.h).
        while_fours = warps
        while while_fours % 4:
            while_fours += 1
        if while_fours * per_warp > limits.registers_per_group:
            return 0
    barriers = limits.groups
    if limits.registers_per_group is None and warps == 1:  # LLVM: work-groups of one wavefront take no barrier
        barriers = limits.waves
    free = [limits.registers // limits.partitions] * limits.partitions
    slots, local, blocks = limits.waves, limits.local_bytes, 0
    while blocks < barriers:
        need = len(range(0, shared + limits.local_reserved, limits.local_unit)) * limits.local_unit
        if need > local or warps > slots:
            return blocks
        for _ in range(warps):
            roomiest = free.index(max(free))
            if free[roomiest] < per_warp:
                return blocks
            free[roomiest] -= per_warp
        local, slots, blocks = local - need, slots - warps, blocks + 1
    return blocks


@given(
    st.sampled_from([*NVIDIA, *AMD]), st.integers(1, 1024), st.integers(1, 255), st.integers(0, 48 * 1024), st.data()
)
def test_occupancy_is_what_placing_blocks_one_by_one_gives(
    name: str, block: int, registers: int, shared: int, data: st.DataObject
) -> None:
    limits = limits_of(name) if name in NVIDIA else limits_of(arch=name)
    wave = data.draw(st.sampled_from(limits.wave_sizes))
    shared = min(shared, limits.local_bytes_per_group)
    expected = placed(limits, wave, block, registers, shared)
    given_ = {"limits": limits, "block": block, "registers": registers, "shared": shared, "wave_size": wave}
    if expected == 0:
        with pytest.raises(pm.PerfmodelError, match="registers each takes"):
            pm.occupancy(**given_)  # type: ignore[arg-type]
        return
    found = pm.occupancy(**given_)  # type: ignore[arg-type]
    assert found.blocks == expected
    assert found.occupancy == found.warps / limits.waves <= 1
    assert found.limited_by
    assert all(found.limits[resource] == expected for resource in found.limited_by)


def test_the_papers_example() -> None:
    """Kumar, Tables 1 and 2."""
    found = pm.occupancy("8.6", block=320, registers=10, shared=1024)
    assert (found.threads, found.warps, found.blocks) == (1280, 40, 4)
    assert found.occupancy == 0.8333333333333334
    assert found.limited_by == ("warps",)
    limits = found.device
    table = (
        *(limits.wave_sizes, limits.waves, limits.waves * 32, limits.groups, limits.registers, limits.register_unit),
        *(limits.registers_per_group, limits.registers_per_item, limits.local_bytes, limits.local_unit),
        *(limits.partitions, limits.items_per_group),
    )
    assert table == ((32,), 48, 1536, 16, 65536, 256, 65536, 255, 102400, 128, 4, 1024)


@pytest.mark.parametrize(
    ("capability", "block", "registers", "shared", "blocks", "occupancy"),
    [
        # NVIDIA, CUDA C++ Best Practices Guide, "Calculating Occupancy".
        ("7.0", 128, 37, 0, 12, 0.75),
        ("7.0", 320, 37, 0, 4, 0.625),
        ("7.0", 256, 32, 0, 8, 1.0),
        ("8.0", 1024, 64, 0, 1, 0.5),
        ("7.5", 1024, 64, 0, 1, 1.0),
        ("8.6", 1024, 32, 0, 1, 2 / 3),
        ("5.0", 32, 16, 0, 32, 0.5),
        ("8.9", 32, 16, 0, 24, 0.5),
        # NVIDIA's tuning guides: of 164, 100 and 228 KiB a block can have all but 1, which the driver takes of each.
        ("8.0", 256, 16, 163 * 1024, 1, 0.125),
        ("8.0", 256, 16, 81 * 1024, 2, 0.25),
        ("9.0", 256, 16, 113 * 1024, 2, 0.25),
        ("9.0", 256, 16, 113 * 1024 + 1, 1, 0.125),
        ("8.6", 256, 16, 49 * 1024, 2, 1 / 3),
        ("7.0", 256, 16, 32 * 1024, 3, 0.375),
        # cuda_occupancy.h: registers are those of a quarter, and on 6.0 of a half of the multiprocessor.
        ("6.1", 32, 72, 0, 28, 28 / 64),
        ("6.0", 32, 72, 0, 28, 28 / 64),
        ("6.1", 32, 104, 0, 16, 16 / 64),
        ("6.0", 32, 104, 0, 18, 18 / 64),
    ],
)
def test_known_figures_of_nvidia(
    capability: str, block: int, registers: int, shared: int, blocks: int, occupancy: float
) -> None:
    found = pm.occupancy(capability, block=block, registers=registers, shared=shared)
    assert found.blocks == blocks
    assert found.occupancy == pytest.approx(occupancy)


# LLVM, llvm/test/CodeGen/AMDGPU/occupancy-levels.ll: wavefronts of a SIMD by vector registers, of 64 work-items and,
# for gfx10 and gfx11, of 32 and 64.
VECTOR = [24, 28, 32, 36, 40, 48, 64, 72, 80, 84, 96, 100, 128, 168, 200, 256]
LEVELS = {
    ("gfx900", 64): [10, 9, 8, 7, 6, 5, 4, 3, 3, 3, 2, 2, 2, 1, 1, 1],
    ("gfx950", 64): [8, 8, 8, 8, 8, 8, 8, 7, 6, 5, 5, 4, 4, 3, 2, 2],
    ("gfx1010", 32): [20, 20, 20, 20, 20, 20, 16, 14, 12, 11, 10, 9, 8, 6, 5, 4],
    ("gfx1010", 64): [20, 18, 16, 14, 12, 10, 8, 7, 6, 6, 5, 5, 4, 3, 2, 2],
    ("gfx1030", 32): [16, 16, 16, 16, 16, 16, 16, 12, 12, 10, 10, 9, 8, 5, 4, 4],
    ("gfx1030", 64): [16, 16, 16, 12, 12, 10, 8, 7, 6, 5, 5, 4, 4, 3, 2, 2],
    ("gfx1100", 32): [16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 12, 10, 9, 7, 5],
    ("gfx1100", 64): [16, 16, 16, 16, 16, 16, 10, 10, 9, 9, 8, 7, 5, 4, 3, 2],
}


@pytest.mark.parametrize(("arch", "wave"), LEVELS)
def test_wavefronts_of_a_simd_are_those_of_llvm(arch: str, wave: int) -> None:
    found = [pm.occupancy(arch=arch, wave_size=wave, block=wave, registers=r).warps / 4 for r in VECTOR]
    assert found == LEVELS[arch, wave]


@pytest.mark.parametrize(("scalar", "waves"), [(80, 10), (88, 8), (100, 7)])
def test_scalar_registers_decide_on_gcn(scalar: int, waves: int) -> None:
    assert pm.occupancy(arch="gfx900", block=64, registers=24, scalar_registers=scalar).warps == 4 * waves
    assert pm.occupancy(arch="gfx1030", block=64, registers=24, scalar_registers=scalar).occupancy == 1


@pytest.mark.parametrize(("arch", "wave", "waves"), [("gfx900", 64, 2), ("gfx950", 64, 5), ("gfx1010", 64, 4)])
def test_local_memory_as_llvm_rounds_it(arch: str, wave: int, waves: int) -> None:
    """The same file's used_lds_8252_max_group_size_64; a part of a wavefront counts there as one."""
    found = pm.occupancy(arch=arch, wave_size=wave, block=64, registers=8, shared=8252)
    assert -(-found.warps // 4) == waves
    assert found.limited_by == ("shared memory",)


@pytest.mark.parametrize(
    ("given_", "sentence"),
    [
        ({"compute_capability": "8.6", "block": 1025, "registers": 1}, "a block of 1025 threads cannot be launched"),
        ({"compute_capability": "8.6", "block": 0, "registers": 1}, "give block from 1 to 1024"),
        ({"compute_capability": "8.6", "block": 32, "registers": 256}, "give registers from 1 to 255"),
        ({"compute_capability": "8.6", "block": 32, "registers": 0}, "a thread of 0 registers"),
        ({"compute_capability": "8.6", "block": 32, "registers": 1, "shared": 101377}, "give shared from 0 to 101376"),
        ({"compute_capability": "8.6", "block": 32, "registers": 1, "shared": -1}, "-1 bytes of shared memory"),
        ({"compute_capability": "8.6", "block": 1024, "registers": 65}, "takes 73728 of 65536 registers"),
        ({"compute_capability": "6.2", "block": 1024, "registers": 64}, "takes 65536 of 32768 registers"),
        ({"compute_capability": "8.6", "block": 2.5, "registers": 65}, "block is 2.5, which is no whole number"),
        ({"compute_capability": "8.6", "block": "many", "registers": 65}, "block is 'many', which is no whole number"),
        ({"compute_capability": "8.5", "block": 1, "registers": 1}, "no limits of compute capability 8.5 are known"),
        ({"arch": "gfx1031x", "block": 1, "registers": 1}, "did you mean 'gfx1031'"),
        ({"arch": "gfx90a", "wave_size": 32, "block": 1, "registers": 1}, "has no warps of 32 threads; give 64"),
        ({"arch": "gfx900", "block": 1024, "registers": 129}, "takes 135168 of 65536 registers"),
        ({"block": 1, "registers": 1}, "give a compute capability, an architecture or a device"),
        ({"compute_capability": "8.6", "arch": "gfx900", "block": 1, "registers": 1}, "occupancy is of one device"),
        ({"device": "cpu", "block": 1, "registers": 1}, "is a processor, which has no multiprocessors to fill"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(given_: dict[str, object], sentence: str) -> None:
    with pytest.raises(pm.PerfmodelError, match=sentence) as caught:
        pm.occupancy(**given_)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("NVIDIA H200", {"compute_capability_major_nv": 9, "compute_capability_minor_nv": 0}, "compute capability 9.0"),
        ("gfx90a:sramecc+:xnack-", {}, "gfx90a"),
        ("Arc", {}, None),
        ("NVIDIA old", {"compute_capability_major_nv": 2, "compute_capability_minor_nv": 1}, None),
    ],
)
def test_a_device_tells_what_it_is(
    cpu: Device, monkeypatch: pytest.MonkeyPatch, name: str, raw: dict[str, int], expected: str | None
) -> None:
    monkeypatch.setattr(Device, "session", lambda self: SimpleNamespace(raw=SimpleNamespace(**raw)))
    device = replace(cpu, name=name, kind="gpu")
    if expected is None:
        with pytest.raises(pm.PerfmodelError, match=r"does not tell its compute capability|2\.1 are known"):
            pm.occupancy(device=device, block=64, registers=8)
    else:
        assert pm.occupancy(device=device, block=64, registers=8).device.name == expected


def test_the_command_prints_and_plots(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    example = ["--compute-capability", "8.6", "--block", "320", "--registers", "10", "--shared", "1024"]
    assert main(["occupancy", *example, "--out", str(tmp_path / "curves")]) == 0
    shown = capsys.readouterr().out
    assert "active warps     40 of 48" in shown
    assert "occupancy        0.8333" in shown
    assert "  warps          4  (decides)" in shown
    for name in ("block", "registers", "shared"):
        assert (tmp_path / "curves" / f"occupancy-{name}.png").read_bytes().startswith(b"\x89PNG")
    assert main(["occupancy", *example, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["occupancy"] == 0.8333333333333334
    assert document["limits"] == {"warps": 4, "blocks": 16, "registers": 12, "shared memory": 50}
    assert document["device"]["name"] == "compute capability 8.6"


def test_the_command_reads_a_source_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """20 KiB of local memory leave room for 4 groups of 100 KiB, and none for a fifth with 1 KiB each beside it."""
    path = tmp_path / "reversed.cl"
    path.write_text(SOURCE)
    described = [str(path), *["--global", "n", "--local", "256", "--arg", "n=4096", "--arg", "a=n", "--arg", "o=n"]]
    assert main(["occupancy", *described, "--compute-capability", "8.6", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["block"], document["shared"], document["blocks"]) == (256, 20480, 4)
    assert document["source"] == "estimated from the source"
    assert main(["occupancy", *described, "--arch", "gfx90a", "--registers", "100"]) == 0
    shown = capsys.readouterr().out
    assert "100 registers as given, the rest estimated from the source" in shown
    assert "local memory      3  (decides)" in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--compute-capability 8.6 --registers 3", "occupancy needs --block"),
        ("--compute-capability 8.6 --block 3", "occupancy needs --registers"),
        ("--compute-capability 9.9 --block 3 --registers 3", "no limits of compute capability 9.9"),
        ("--device cpu --block 3 --registers 3", "is a processor"),
        ("matmul_sq --arch gfx900 --out curves", "--out draws the curves of one kernel, and 4 are selected"),
    ],
)
def test_the_command_refuses_with_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: str, sentence: str
) -> None:
    assert main(["occupancy", *arguments.split()]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_the_feature_takes_group_and_local_memory_from_the_kernel(collection: pm.KernelCollection) -> None:
    kernel = pm.Kernel.from_opencl(SOURCE, "reversed", "n", 256, {"a": "n", "o": "n"}, n=4096)
    assert pm.feature("f_occupancy_cc:8.6_registers:32").eval(kernel) == 4 * 8 / 48
    assert pm.feature("f_occupancy_arch:gfx90a").eval(kernel) == 3 * 4 / 32
    (loopy,) = collection.generate_kernels(["vector_add", "lsize_0:512", "n:2^20"])
    assert pm.feature("f_occupancy_cc:7.0_registers:64").eval(loopy) == 0.5
    assert 0 < pm.feature("f_occupancy_cc:7.0").eval(loopy) <= 1
    found = evaluate(pm.feature("f_occupancy_cc:7.0_registers:64"), loopy, loopy.bind({"n": np.array([512, 1024])}))
    assert found.tolist() == [0.5, 0.5]


def test_the_feature_names_what_is_wrong(collection: pm.KernelCollection) -> None:
    (kernel,) = collection.generate_kernels(["vector_add", "lsize_0:1024", "n:2^20"])
    with pytest.raises(pm.PerfmodelError, match=r"'f_occupancy_cc:7.0_registers:65' .* kernel 'vector_add': a block"):
        pm.feature("f_occupancy_cc:7.0_registers:65").eval(kernel)
    for name, sentence in {
        "f_occupancy": "write cc:9.0 or arch:gfx90a",
        "f_occupancy_cc:1.0": "no limits of compute capability 1.0",
        "f_occupancy_cc:9.0_registers:300": "write one from 1 to 255",
        "f_occupancy_cc:9.0_block:3": "unknown word 'block'",
        "f_kernel": r"write f_kernel_name:\{matvec\}",
    }.items():
        with pytest.raises(pm.PerfmodelError, match=sentence):
            pm.feature(name)


def test_a_kernel_is_known_by_its_name(collection: pm.KernelCollection) -> None:
    (kernel,) = collection.generate_kernels(["dot_product", "n:2^20"])
    assert pm.feature("f_kernel_name:{dot_product}").eval(kernel) == 1
    assert pm.feature("f_kernel_name:matvec").eval(kernel) == 0
