"""Compares kernels' demands on a device with estimates by hand, and with what drivers say."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import perfmodel as pm
from perfmodel.basics.errors import FeatureError, KernelError, SourceError
from perfmodel.counting.counts import RESERVED
from perfmodel.device import Device, find_device
from perfmodel.device.session import VERBOSE, Session
from perfmodel.kernels.demand import Resources
from perfmodel.kernels.resources import compiled, estimate, resources
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.static.liveness import words_at_once
from perfmodel.report.count_table import count_tables
from perfmodel.report.count_text import as_text
from perfmodel.sass.machine_code import _machine_code_or_none, of_listing
from perfmodel.sass.toolchain import Assembled
from tests.fake_cuda import FUNCTION, FakeLibrary, installed

SUM = """__kernel void total(__global const float *a, __global float *o, __local float *part, int n) {
    __local float fixed[32];
    float counts[4];
    int l = get_local_id(0);
    counts[l & 3] = a[l];
    part[l] = counts[3];
    fixed[l & 31] = part[0];
    o[l] = fixed[0] * n;
}"""


def kernel(**sizes: Any) -> pm.Kernel:
    return pm.Kernel.from_opencl(SUM, "total", "n", 64, {"a": "n", "o": "n", "part": "4 * n"}, **sizes)


def words(body: str) -> int:
    source = f"__kernel void f(__global float *o, __global const float4 *v, double d, int n) {{ {body} }}"
    return words_at_once(lowered_kernel(source, "f"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", 0),
        ("o[0] = 1;", 2),  # the address
        ("o[0] = o[1];", 3),  # it and the value
        ("float a = o[1], b = o[2], c = o[3]; o[0] = a; o[1] = b; o[2] = c;", 5),  # three values and an address
        ("float a = o[1]; o[0] = a; float b = o[2]; o[0] = b;", 3),  # one after the other
        ("float4 a = v[0]; o[0] = a.x; o[1] = a.y;", 5),  # two components of a, an address, and the component
        ("float4 a = v[0]; o[0] = a.x; o[1] = length(a);", 7),  # all of them
        ("double a = d * 2; o[0] = a; o[1] = a;", 5),  # a, an address, and a as a float
        (
            "float a = o[1]; for (int k = 0; k < n; k++) o[k] = 0; o[n] = a;",
            4,
        ),  # a, k and an address
    ],
)
def test_words_that_live_at_once(body: str, expected: int) -> None:
    assert words(body) == expected


def test_what_the_next_turn_reads_lives_through_the_loop() -> None:
    carried = "float a = o[1], b = o[2]; for (int k = 0; k < n; k++) { float c = a; a = b; b = c; } o[0] = a;"
    assert words(carried) > words("float a = o[1]; for (int k = 0; k < n; k++) { a = a + 1; } o[0] = a;")


def test_more_values_at_once_need_more_registers() -> None:
    def sums(count: int) -> int:
        loads = " ".join(f"float s{i} = o[{i}];" for i in range(count))
        return words(f"{loads} {' '.join(f'o[{i}] = s{i};' for i in range(count))}")

    assert [sums(count) - sums(count - 1) for count in (4, 8, 16)] == [1, 1, 1]


def test_an_estimate_has_exact_local_memory() -> None:
    found = resources(kernel(n=128))
    assert (found.local_bytes, found.private_bytes, found.source) == (4 * 32 + 4 * 128, 16, "estimate")
    assert found.registers == estimate(kernel().program.as_opencl()).registers > RESERVED
    assert str(estimate(kernel().program.as_opencl()).local_bytes) == "128 + 4*n"
    with pytest.raises(KernelError, match="needs a value for n"):
        resources(kernel())


def test_sizes_are_needed_for_local_arguments_only() -> None:
    plain = pm.Kernel.from_opencl("__kernel void f(__global int *o, int n) { o[0] = n; }", "f", "n", 1, {"o": 1})
    assert resources(plain).local_bytes == 0


def test_loopy_programs_are_estimated_by_their_code(collection: pm.KernelCollection) -> None:
    (tiled,) = collection.generate_kernels(["matmul_sq", "n:64"])
    assert resources(tiled).local_bytes == 2 * 4 * 16 * 16


def test_a_driver_is_asked(cpu: Device) -> None:
    found = resources(kernel(n=128), cpu)
    assert found.source == "driver"
    assert found.registers is None
    assert found.local_bytes >= 4 * 128


LOG = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'perfmodel_0123' for 'sm_90a'
ptxas info    : Function properties for perfmodel_0123
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Used 32 registers, used 0 barriers
ptxas info    : Compiling entry function 'total' for 'sm_90a'
ptxas info    : Function properties for total
ptxas         .     16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 1 barriers, 516 bytes smem
ptxas info    : Compile time = 3.806 ms
"""


def test_the_log_of_nvidias_compiler() -> None:
    """The log is as the driver 580.159 wrote it for an H200."""
    assert compiled(LOG, "total") == (8, 516)
    assert compiled(LOG, "other") == (32, 0)
    assert compiled(LOG, "absent") is None
    assert compiled("", "total") is None


def test_a_driver_of_nvidias_compiles_anew_and_says_what_it_used(monkeypatch: pytest.MonkeyPatch, cpu: Device) -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []

    def built(session: Session, source: str, name: str, options: tuple[str, ...]) -> Any:
        asked.append((source, options))
        program = SimpleNamespace(get_build_info=lambda raw, what: LOG)
        return SimpleNamespace(program=program, get_work_group_info=lambda what, raw: 16)

    session = cpu.session()
    monkeypatch.setattr(Session, "kernel", built)
    monkeypatch.setattr(session, "raw", SimpleNamespace(extensions="cl_khr_fp64 cl_nv_compiler_options"))
    found = [resources(kernel(n=128), cpu) for _ in range(2)]
    assert found == [Resources(8, 516 + 4 * 128, 16, "driver")] * 2
    assert all(VERBOSE in options for _, options in asked)
    assert len({source for source, _ in asked}) == 2  # a driver that knows a source already writes no log


def test_the_table_shows_the_estimate() -> None:
    (table,) = count_tables([kernel(n=128)])
    assert table["resources"]["local_bytes"]["at"] == [640]
    lines = [line.split("  ") for line in as_text(table).splitlines()]
    assert ["private bytes of a work-item", "16"] in [[cell.strip() for cell in line if cell][:2] for line in lines]
    loopy = count_tables(pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "n:64"]))
    assert loopy[0]["resources"] is None


# --- CUDA and PTX

PTX = """
.version 7.0
.target sm_60
.address_size 64
.visible .entry tiny(.param .u64 o, .param .s32 n)
{
  .reg .b32 %r<4>;
  .reg .b64 %a<3>;
  .shared .align 4 .b8 part[512];
  ld.param.u64 %a0, [o];
  ld.param.s32 %r0, [n];
  mov.u32 %r1, %tid.x;
  mul.wide.s32 %a1, %r1, 4;
  add.s64 %a2, %a0, %a1;
  st.global.u32 [%a2], %r0;
  ret;
}
"""


def ptx_kernel(shared: str = "0") -> pm.Kernel:
    return pm.Kernel.from_ptx(PTX, "tiny", "n / 64", 64, {"o": "n"}, shared=shared, n=128)


@pytest.fixture
def without_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfmodel.sass.machine_code.is_installed", lambda: False)


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """Forgets what the assembler said, before and after."""
    _machine_code_or_none.cache_clear()
    yield
    _machine_code_or_none.cache_clear()


@pytest.fixture
def assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the assembler say of every text what it said of a kernel that spills."""
    path = Path(__file__).parents[1] / "sass" / "listings" / "spilling.json.xz"
    told = json.loads(lzma.decompress(path.read_bytes()))
    code = of_listing(Assembled(told["log"], told["listing"]), told["entry"], told["target"])
    monkeypatch.setattr("perfmodel.sass.machine_code.is_installed", lambda: True)
    monkeypatch.setattr("perfmodel.sass.machine_code.machine_code", lambda text, entry, target: code)


def test_ptx_is_estimated_without_the_assembler(without_assembler: None) -> None:
    found = resources(ptx_kernel("4 * n"))
    # Where the address is computed live o and n, and the offset of two words.
    assert found == Resources(2 + 1 + 2 + RESERVED, 512 + 4 * 128, 0, "estimate")
    assert pm.feature("f_code_registers").eval(ptx_kernel()) == found.registers
    with pytest.raises(FeatureError, match=r"'f_code_spills' is not defined .* machine code is not known; pip install"):
        pm.feature("f_code_spills").eval(ptx_kernel())
    assert "estimated resources" in as_text(count_tables([ptx_kernel()])[0])


def test_an_assembler_that_does_not_take_the_text_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(text: str, entry: str, target: str) -> None:
        raise SourceError("ptxas does not take the kernel: unsupported version")

    monkeypatch.setattr("perfmodel.sass.machine_code.is_installed", lambda: True)
    monkeypatch.setattr("perfmodel.sass.machine_code.machine_code", refused)
    assert resources(ptx_kernel()).source == "estimate"


def test_the_assembler_is_asked_where_it_is(assembler: None) -> None:
    assert resources(ptx_kernel("4 * n")) == Resources(
        registers=32, local_bytes=4 * 128, private_bytes=328, source="assembler", spilled_bytes=596 + 660
    )
    names = ("registers", "spills", "bytes", "flight")
    assert [pm.feature(f"f_code_{name}").eval(ptx_kernel()) for name in names] == [32, 596 + 660, 8704, 20]
    text = as_text(count_tables([ptx_kernel("4 * n")])[0])
    assert "resources by the assembler" in text
    assert "bytes spilled" in text
    # Blocks of 64 threads with 32 registers: 32 blocks of two warps each fill the 64 slots.
    assert pm.feature("f_occupancy_cc:9.0").eval(ptx_kernel()) == 1
    shared = pm.feature("f_occupancy_cc:9.0").eval(ptx_kernel("100 * 1024"))
    assert shared == 2 * 2 / 64


def test_what_machine_code_says_of_other_kernels() -> None:
    own = kernel(n=128)
    assert pm.feature("f_code_registers").eval(own) == resources(own).registers
    with pytest.raises(FeatureError, match="only CUDA and PTX have it"):
        pm.feature("f_code_flight").eval(own)
    with pytest.raises(FeatureError, match="f_code_registers"):
        pm.feature("f_code")
    with pytest.raises(FeatureError, match="did you mean 'spills'"):
        pm.feature("f_code_spill")


def test_a_driver_of_cuda_is_asked() -> None:
    with installed(FakeLibrary()):
        found = resources(ptx_kernel("4 * n"), "h200")
        find_device("cuda").end_session()
    assert found == Resources(FUNCTION["NUM_REGS"], FUNCTION["SHARED_SIZE_BYTES"] + 4 * 128, 0, "driver")
