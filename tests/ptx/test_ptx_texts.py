"""PTX texts are read, emulated and counted without their compiler; what is not understood is refused by name."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from perfmodel import Kernel, emulate
from perfmodel.basics.errors import CountingError, EmulationError, KernelError, SourceError
from perfmodel.vocabulary.named_features import feature
from tests.ptx.cuda import CASES
from tests.ptx.written import HEAD, ROUND, twice

TEXTS = sorted((Path(__file__).parent / "texts").glob("*.ptx"))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_texts_compute_what_numpy_computes(path: Path) -> None:
    case = CASES[path.stem]
    names = list(Kernel.from_ptx(path, None, 1, 1, _any(path)).program.declared)  # type: ignore[attr-defined]
    arguments = {argument.name: value for argument, value in zip(names, _in_order(path.stem), strict=True)}
    arrays = {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in arguments.items() if not isinstance(value, np.ndarray)}
    elements = {name: array.size for name, array in arrays.items()}
    kernel = Kernel.from_ptx(path, None, case.grid, case.block, elements, shared=case.shared).at(**numbers)
    profile = emulate(kernel, arrays, groups="all")
    by_own_names = dict(zip(_names(path.stem), names, strict=True))
    for name, wanted in case.expected({k: v.copy() for k, v in case.arrays.items()}).items():
        found = profile.array(by_own_names[name].name).reshape(np.shape(case.arrays[name]))
        np.testing.assert_allclose(found, wanted, case.tolerance, case.tolerance)


def _names(title: str) -> list[str]:
    source = CASES[title].source
    start = source.index("(", source.index(CASES[title].name.partition("<")[0], source.index("__global__")))
    inside = source[start + 1 : source.index(")", start)]
    return [each.replace("*", " ").split()[-1] for each in inside.split(",")]


def _in_order(title: str) -> list[object]:
    case = CASES[title]
    return [case.arrays.get(name, case.scalars.get(name)) for name in _names(title)]


def _any(path: Path) -> dict[str, int]:
    """Returns an extent for each parameter that may be a pointer."""
    text = path.read_text()
    entry = text[text.index(".entry") :]
    words = entry[entry.index("(") + 1 : entry.index(")")].split(",")
    return {each.split()[-1]: 1 for each in words if ".u64" in each}


def test_counts_are_those_of_the_hand() -> None:
    kernel = twice()
    counted = {
        "f_op_float32_add": 1000,
        "f_op_float32_add_granularity:subgroup": 32,  # of 1,000 threads, the last warp with 8
        "f_op_float32_add_granularity:workgroup": 16,
        "f_mem_access_global_float32_load_lstrides:{0:1}_gstrides:{0:64}": 1000,
        "f_mem_access_global_store": 1000,
        "f_mem_transactions_global_load_block:128": 32,
        "f_mem_footprint_global_load": 4000,
        "f_mem_bytes_global": 8000,
        "f_thread_groups": 16,
        "f_work_items": 1024,
        "f_sync_barrier_local": 0,
        "f_mem_rounds_global": 1000,
        "f_op_int32_compare_index": 1024,
    }
    assert {name: feature(name).eval(kernel) for name in counted} == counted


def test_large_grids_are_counted_from_some_blocks() -> None:
    kernel = twice().at(n=10**8 + 1)
    assert feature("f_op_float32_add").eval(kernel) == 10**8 + 1
    assert feature("f_mem_footprint_global_load").eval(kernel) == 4 * (10**8 + 1)


def test_loop_of_data_is_counted_on_that_data() -> None:
    body = """mov.f32 %f2, %f1;
$again:
  add.f32 %f2, %f2, 0f3F800000;
  setp.lt.f32 %p2, %f2, 0f41200000;
  @%p2 bra $again;"""
    kernel = twice(body)
    ones, fives = (kernel.as_observed({"x": np.full(1000, value, "float32")}) for value in (1, 5))
    assert feature("f_op_float32_add").eval(ones) == 9 * 1000
    assert feature("f_op_float32_add").eval(fives) == 5 * 1000
    assert feature("f_op_float32_add_carried").eval(ones) == 9 * 1000


def test_branches_that_part_warps_are_counted() -> None:
    body = """mov.f32 %f2, %f1;
  and.b32 %r6, %r5, 1;
  setp.eq.s32 %p2, %r6, 0;
  @%p2 bra $even;
  mul.f32 %f2, %f1, %f1;
$even:"""
    kernel = twice(body).at(n=1024)
    assert feature("f_branch_divergent").eval(kernel) == 32
    assert feature("f_op_float32_mul").eval(kernel) == 512
    assert feature("f_op_float32_mul_granularity:subgroup").eval(kernel) == 32


def test_kernels_are_values() -> None:
    kernel = twice()
    again = pickle.loads(pickle.dumps(kernel))
    assert again == kernel
    assert hash(again) == hash(kernel)
    assert kernel != twice("add.f32 %f2, %f1, 0f00000000;")
    assert kernel.as_compiled() == kernel
    assert feature("f_op_int32_compare_index").eval(again) == 1024


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("frobnicate.f32 %f2, %f1;", "instruction 'frobnicate.f32' is not understood"),
        ("add.wobbly.f32 %f2, %f1, %f1;", "word '.wobbly' of instruction 'add.wobbly.f32'"),
        ("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 %f2, %f1;", "'wgmma.mma_async"),
        ("add.f32 %f2, %f1, %f77;", "register '%f77' is not declared"),
        ("bra $nowhere;", "label '$nowhere' is nowhere"),
        ("add.f32 %f2, %f1;", "2 operands"),
        ("add.f32 %f2, %f1 %f1;", "'%f1' stands where ';' should"),
        ("call.uni (param0), missing, (param1);", "'missing' has no body"),
        ("tex.2d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [%rd1, {%f1, %f1}];", "accesses an image, and is given none; say"),
        ("sured.b.add.1d.b32.trap [%rd1, {%r1}], %r1;", "'sured.b.add.1d.b32.trap' is for atomics in surfaces, which"),
        ("txq.width.b32 %r1, [%rd1];", "of the PTX accesses an image, and is given none; say what the argument is"),
        ("mov.u32 %r1, %envreg2;", "blocks that wait for all others (grid.sync(), '%envreg2') are not emulated"),
    ],
)
def test_what_is_not_understood_is_refused_by_name_and_line(body: str, message: str) -> None:
    with pytest.raises((SourceError, EmulationError)) as refused:
        emulate(twice(body))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_policies_of_caches_change_nothing() -> None:
    policy = "{ .reg .b64 p; createpolicy.fractional.L2::evict_first.b64 p, 1.0; {} }"
    body = policy.replace("{}", "ld.global.L2::cache_hint.f32 %f2, [%rd4], p;")
    x = np.arange(1000, dtype="float32")
    np.testing.assert_array_equal(emulate(twice(body), {"x": x}, groups="all").array("x"), x)
    copied = ".shared .align 16 .b8 kept[1024]; mov.u32 %r6, kept; mad.lo.s32 %r6, %r2, 4, %r6; "
    copied += policy.replace("{}", "cp.async.ca.shared.global.L2::cache_hint [%r6], [%rd4], 4, p;")
    found = emulate(twice(f"{copied} ld.shared.f32 %f2, [%r6];"), {"x": x}, groups="all").array("x")
    np.testing.assert_array_equal(found, x)


def test_registers_of_braces_may_have_the_name_of_others() -> None:
    body = "{ .reg .pred p; setp.gt.f32 p, %f1, 0f41200000; selp.f32 %f2, %f1, 0f00000000, p; }\n"
    body += "  { .reg .b64 p; mov.b64 p, 2; cvt.rn.f32.s64 %f3, p; } mul.f32 %f2, %f2, %f3;"
    x = np.arange(1000, dtype="float32")
    found = emulate(twice(body), {"x": x}, groups="all").array("x")
    np.testing.assert_array_equal(found, np.where(x > 10, 2 * x, 0))


def test_lines_of_errors() -> None:
    with pytest.raises(SourceError) as refused:
        twice("frobnicate.f32 %f2, %f1;")
    assert refused.value.line == 4 + 16


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no source; give the text of PTX"),
        ("hello", "'hello' is not understood"),
        (HEAD, "has no kernel"),
        (HEAD + ".visible .entry a() { ret; } .visible .entry b() { ret; }", "2 kernels (a, b)"),
        (HEAD + ".visible .entry a() { ret;", "ends within a function"),
        (HEAD.replace("64", "32"), "addresses have not 64 bits"),
    ],
)
def test_texts_that_are_none(text: str, message: str) -> None:
    with pytest.raises((SourceError, KernelError)) as refused:
        Kernel.from_ptx(text + "\n", None, 1, 1)
    assert message in str(refused.value)


def test_accesses_beyond_an_array_are_refused() -> None:
    kernel = Kernel.from_ptx(HEAD + ROUND.replace("BODY", "mov.f32 %f2, %f1;"), None, 1, 64, {"x": "n - 1"}, n=64)
    with pytest.raises(EmulationError, match=r"line 19 of the PTX accesses byte 252 of 'x', which has 252"):
        emulate(kernel)


def test_blocks_have_up_to_1024_threads() -> None:
    text = HEAD + ROUND.replace("BODY", "mov.f32 %f2, %f1;")
    kernel = Kernel.from_ptx(text, None, 1, "n", {"x": "n"})
    assert feature("f_work_items").eval(kernel.at(n=1024)) == 1024
    with pytest.raises(KernelError, match="has 1025 threads in a block at n=1025; NVIDIA"):
        emulate(kernel.at(n=1025))


def test_endless_loops_end() -> None:
    with pytest.raises(EmulationError, match="basic blocks and not ended"):
        emulate(twice("$again: bra $again;"), steps=1000)


def test_sizes_have_to_be_numbers() -> None:
    kernel = Kernel.from_ptx(HEAD + ROUND.replace("BODY", "mov.f32 %f2, %f1;"), None, "n / 64", 64, {"x": "n"})
    with pytest.raises(CountingError, match="at sizes that are numbers; give n"):
        kernel.counts_for(32)


def test_nothing_of_ptx_is_loaded_for_other_kernels() -> None:
    program = (
        "import sys, perfmodel as pm\n"
        "source = '__kernel void f(__global float *x, int n) { x[get_global_id(0)] = n; }'\n"
        "kernel = pm.Kernel.from_opencl(source, 'f', 'n', 64, {'x': 'n'}, n=64)\n"
        "pm.Calibration.shipped(device='H200').predict(kernel.as_compiled()); pm.emulate(kernel)\n"
        "print([name for name in sys.modules if 'ptx' in name or 'cuda' in name])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add.s16x2", np.add),
        ("add.u16x2", np.add),
        ("min.s16x2", np.minimum),
        ("max.u16x2", np.maximum),
    ],
)
def test_packed_short_whole_numbers(name: str, expected: np.ufunc) -> None:
    numbers = np.random.default_rng(3).integers(0, 1 << 16, (1000, 2), np.uint16)
    kernel = twice(f"mov.b32 %r6, %f1; prmt.b32 %r7, %r6, %r6, 0x1032; {name} %r8, %r6, %r7; mov.b32 %f2, %r8;")
    found = emulate(kernel, {"x": numbers.view(np.float32)}, groups="all").array("x").view(np.uint16).reshape(-1, 2)
    dtype = np.int16 if ".s" in name else np.uint16
    own = numbers.view(dtype)
    assert np.array_equal(found.view(dtype), expected(own, own[:, ::-1]))
    kind = {"add": "add", "min": "min", "max": "max"}[name[:3]]
    counted = feature(f"f_op_{'int' if '.s' in name else 'uint'}32_{kind}").eval(kernel)
    assert counted == 2 * 1000


def test_copies_between_memories_hand_nothing_to_work_items() -> None:
    """A load of 16 bytes from one place takes four cycles until all have them; of a copy nobody gets any."""
    cycles = feature("f_mem_transactions_global_load_banks:32")
    loaded = twice("{ .reg .f32 a, b, c; ld.global.v4.f32 {a, b, c, %f2}, [%rd1]; }")
    kept = ".shared .align 16 .b8 kept[1024]; mov.u32 %r6, kept;"
    copied = twice(f"{kept} cp.async.cg.shared.global [%r6], [%rd1], 16; mov.f32 %f2, %f1;")
    before = twice("mov.f32 %f2, %f1;")
    subgroups = 1024 / 32
    assert cycles.eval(loaded) - cycles.eval(before) == pytest.approx(4 * subgroups)
    assert cycles.eval(copied) - cycles.eval(before) == pytest.approx(subgroups)


@pytest.mark.parametrize("guard", ["", "@q ", "@!q "])
def test_copies_that_ignore_their_source_write_zeros(guard: str) -> None:
    kept = ".shared .align 16 .b8 kept[1024]; mov.u32 %r6, kept; mad.lo.s32 %r6, %r2, 4, %r6; st.shared.f32 [%r6], 7.0;"
    copy = "{ .reg .pred p, q; setp.gt.f32 p, %f1, 600.0; setp.lt.f32 q, %f1, 300.0; COPY }"
    copy = copy.replace("COPY", f"{guard}cp.async.ca.shared.global [%r6], [%rd4], 4, p;")
    kernel = twice(f"{kept} {copy} ld.shared.f32 %f2, [%r6];")
    x = np.arange(1000, dtype="float32")
    copied = {"": x >= 0, "@q ": x < 300, "@!q ": x >= 300}[guard]
    found = emulate(kernel, {"x": x}, groups="all").array("x")
    np.testing.assert_array_equal(found, np.where(copied, np.where(x > 600, 0, x), 7))
    assert feature("f_mem_access_global_load").eval(kernel) >= 1000


@pytest.mark.parametrize(
    ("lines", "counts"),
    [
        ("mul.f32 %f3, %f1, %f1; sub.f32 %f4, %f3, %f1; add.f32 %f2, %f4, %f4;", (1, 1, 0)),
        ("mul.f32 %f3, %f1, %f1; mul.f32 %f4, %f1, %f1; add.f32 %f2, %f3, %f4;", (1, 0, 1)),
        ("mul.f32 %f3, %f1, %f1; add.f32 %f2, %f3, %f3;", (0, 1, 1)),
        ("mul.rn.f32 %f3, %f1, %f1; add.f32 %f2, %f3, %f1;", (0, 1, 1)),
        ("mul.f32 %f3, %f1, %f1; add.rn.f32 %f2, %f3, %f1;", (0, 1, 1)),
        ("mul.f32 %f3, %f1, %f1; add.f32 %f4, %f3, %f1; max.f32 %f2, %f3, %f4;", (0, 1, 1)),
        ("mul.ftz.f32 %f3, %f1, %f1; add.f32 %f2, %f3, %f1;", (0, 1, 1)),
    ],
)
def test_sums_take_a_product_in_where_neither_is_rounded(lines: str, counts: tuple[int, int, int]) -> None:
    """Machine code has FFMA for these: compilers leave ``a * b - c`` to the assembler."""
    text = HEAD + ROUND.replace("BODY", lines)
    kernel = Kernel.from_ptx(text, None, "(n + 63) / 64", 64, {"x": "n"}, n=1024)
    for kind, count in zip(("madd", "add", "mul"), counts, strict=True):
        assert feature(f"f_op_float32_{kind}").eval(kernel) == 1024 * count, kind


@pytest.mark.parametrize(("bits", "register"), [(8, "%r6"), (16, "%r6"), (32, "%r6"), (64, "%rd8")])
def test_tables_hold_what_their_text_says(bits: int, register: str) -> None:
    values = [0, 2**bits - 1, *(step * (2**bits // 64) for step in range(1, 63))]
    table = f".global .align 8 .b{bits} table[64] = {{{', '.join(map(str, values))}}};\n"
    body = f"""mul.wide.s32 %rd5, %r2, {bits // 8};
  mov.u64 %rd6, table;
  add.s64 %rd7, %rd6, %rd5;
  ld.global.u{bits} {register}, [%rd7];
  cvt.rn.f32.u{max(bits, 32)} %f2, {register};"""
    found = emulate(twice(body, table), {"x": np.zeros(1000, np.float32)}, groups="all").array("x")
    np.testing.assert_array_equal(found, np.resize(np.array(values, np.uint64).astype(np.float32), 1000))
