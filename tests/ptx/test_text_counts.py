"""PTX texts are counted as the assembler leaves them: instructions that it joins, vectors, private arrays, waits."""

from __future__ import annotations

import pytest

from perfmodel import Kernel
from perfmodel.vocabulary.named_features import feature
from tests.ptx.written import HEAD, ROUND, twice


@pytest.mark.parametrize(
    ("instruction", "divisions"),
    [("div.rn.f32", 2), ("div.full.f32", 1), ("div.approx.f32", 1), ("mul.rn.f32", 0)],
)
def test_a_division_that_rounds_exactly_is_two(instruction: str, divisions: int) -> None:
    kernel = twice(f"{instruction} %f2, %f1, %f1;")
    assert feature("f_op_float32_div").eval(kernel) == divisions * 1000


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("xor.b32 %r7, %r6, %r5; and.b32 %r8, %r7, %r2;", 1),
        ("xor.b32 %r7, %r6, 5; and.b32 %r3, %r7, 77; or.b32 %r8, %r3, 1;", 2),
        # machine code has one LOP3 where two of four inputs are one, as in a choice of bits
        ("xor.b32 %r7, %r6, %r5; xor.b32 %r8, %r6, %r2; and.b32 %r8, %r7, %r8;", 1),
        ("not.b32 %q1, %r2; and.b32 %q2, %q1, %r6; and.b32 %q3, %r5, %r2; or.b32 %r8, %q2, %q3;", 1),
        (
            "xor.b32 %q4, %r2, %r6; not.b32 %q1, %q4; and.b32 %q2, %q1, %r6; and.b32 %q3, %r5, %q4;"
            " or.b32 %r8, %q2, %q3;",
            2,
        ),
    ],
)
def test_bitwise_operations_of_three_inputs_are_one(body: str, count: int) -> None:
    kernel = twice(f"mov.b32 %r6, %f1; {{ .reg .b32 %q<5>; {body} }} mov.b32 %f2, %r8;").at(n=1024)
    assert feature("f_op_int32_bitwise").eval(kernel) == 1024 * count


def test_thirty_two_bits_out_of_two_numbers_take_one_instruction() -> None:
    """Machine code of compute capability 9.0 has one SHF; of shifts that leave bits out, two and a bitwise one."""
    found = []
    for places in (25, 24):
        body = f"shl.b32 %q1, %r6, 7; shr.u32 %q2, %r5, {places}; or.b32 %r8, %q1, %q2;"
        kernel = twice(f"mov.b32 %r6, %f1; {{ .reg .b32 %q<3>; {body} }} mov.b32 %f2, %r8;").at(n=1024)
        kinds = ("int32_bitwise", "int32_shift", "uint32_shift")
        found.append(sum(float(feature(f"f_op_{kind}").eval(kernel)) for kind in kinds) / 1024)
    assert found == [1, 3]


def test_what_a_block_computes_twice_costs_nothing_again() -> None:
    """Compilers to PTX leave inline assembly as it is; the assembler computes it once."""
    turned = "shf.l.wrap.b32 %q1, %r6, %r6, 7; xor.b32 %q1, %q1, %r5;"
    body = f"{turned} {turned.replace('%q1', '%q2')} add.s32 %r8, %q1, %q2;"
    kernel = twice(f"mov.b32 %r6, %f1; {{ .reg .b32 %q<3>; {body} }} mov.b32 %f2, %r8;").at(n=1024)
    kinds = ("shift", "bitwise", "add")
    assert [feature(f"f_op_int32_{kind}").eval(kernel) for kind in kinds] == [1024, 1024, 1024]


@pytest.mark.parametrize(
    ("loads", "count"),
    [
        ("ld.shared.f32 %f2, [%r6]; ld.shared.f32 %f3, [%r6+4]; ld.shared.f32 %f4, [%r6+8];", 2),
        ("ld.shared.f32 %f3, [%r6+4]; ld.shared.f32 %f4, [%r6+12]; ld.shared.f32 %f2, [%r6+8];", 2),
        ("ld.shared.f32 %f2, [%r6]; st.shared.f32 [%r6+16], %f1; ld.shared.f32 %f3, [%r6+4]; mov.f32 %f4, %f3;", 2),
        ("ld.shared.f32 %f2, [%r6+4]; ld.shared.f32 %f3, [%r6+8]; mov.f32 %f4, %f3;", 2),
    ],
)
def test_neighbouring_loads_from_shared_memory_are_vectors_where_they_are_aligned(loads: str, count: int) -> None:
    body = f"""shl.b32 %r6, %r2, 5;
  {loads}
  add.f32 %f2, %f2, %f3;
  add.f32 %f2, %f2, %f4;"""
    text = HEAD + ".shared .align 16 .b8 s[4096];\n" + ROUND.replace("BODY", body)
    kernel = Kernel.from_ptx(text, None, "(n + 63) / 64", 64, {"x": "n"}, n=1024)
    assert feature("f_mem_access_local_load").eval(kernel) == 1024 * count


@pytest.mark.parametrize(
    ("address", "offset", "count"),
    [
        ("shl.b32 %r6, %r2, 5;", 0, 1),
        ("mul.lo.s32 %r6, %r2, %r1;", 0, 4),  # a multiple of 16, but by the launch alone
        ("and.b32 %q1, %r1, -16; mul.lo.s32 %r6, %r2, %q1;", 0, 1),
        ("shl.b32 %q1, %r2, 3; mul.lo.s32 %r6, %q1, 4;", 0, 1),
        ("shl.b32 %q1, %r2, 5; add.s32 %r6, %q1, 8;", 8, 1),
        ("shl.b32 %q1, %r2, 3; mad.lo.s32 %r6, %q1, %r1, 8;", 0, 2),
        # What a register holds that several instructions write, as pointers of loops, is known to be a multiple only.
        ("mov.b32 %r6, 24; mov.b32 %r6, 8;", 8, 2),
    ],
)
def test_vectors_are_loaded_where_the_text_says_that_they_are_aligned(address: str, offset: int, count: int) -> None:
    loads = " ".join(f"ld.shared.f32 %q{each + 2}, [%r6+{offset + 4 * each}];" for each in range(4))
    sums = "add.f32 %f2, %q2, %q3; add.f32 %f3, %q4, %q5; add.f32 %f2, %f2, %f3;"
    body = f"{{ .reg .b32 %q<6>; {address} {loads} {sums} }}"
    text = HEAD + ".shared .align 16 .b8 s[1048576];\n" + ROUND.replace("BODY", body)
    kernel = Kernel.from_ptx(text, None, "(n + 63) / 64", 64, {"x": "n"}, n=1024)
    assert feature("f_mem_access_local_load").eval(kernel) == 1024 * count


def test_lanes_that_take_no_part_touch_nothing() -> None:
    body = """and.b32 %r6, %r2, 31;
  setp.lt.u32 %p2, %r6, 8;
  mov.f32 %f2, %f1;
  @%p2 ld.global.f32 %f2, [%rd4+4];"""
    text = HEAD + ROUND.replace("BODY", body)
    kernel = Kernel.from_ptx(text, None, "(n + 63) / 64", 64, {"x": "n + 1"}, n=1024)
    warps = 1024 / 32
    assert feature("f_mem_transactions_global_load_block:32").eval(kernel) == warps * (4 + 2)


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has private arrays lie in memory as the text says, however few of their places a kernel goes to."""
    monkeypatch.setattr("perfmodel.sass.toolchain.held", lambda *_: None)


@pytest.mark.parametrize(("mask", "lines"), [(0, 1), (1, 2), (7, 8)])
@pytest.mark.usefixtures("in_memory")
def test_private_arrays_have_the_words_of_one_place_side_by_side(mask: int, lines: int) -> None:
    body = f"""and.b32 %r6, %r2, {mask};
  mul.wide.u32 %rd5, %r6, 4;
  mov.u64 %rd6, own;
  cvta.local.u64 %rd7, %rd6;
  add.s64 %rd8, %rd6, %rd5;
  st.local.f32 [%rd8], %f1;
  ld.local.f32 %f2, [%rd8];"""
    array = ".local .align 4 .b8 own[32]; .reg .pred %p<3>;"
    text = HEAD + ROUND.replace("BODY", body).replace(".reg .pred %p<3>;", array)
    kernel = Kernel.from_ptx(text, None, "(n + 63) / 64", 64, {"x": "n"}, n=1024)
    assert feature("f_mem_transactions_scratch_block:128").eval(kernel) == 2 * lines * 1024 / 32
    assert feature("f_mem_transactions_scratch_block:32").eval(kernel) == 4 * 2 * lines * 1024 / 32


@pytest.mark.parametrize("words", [1, 8, 100])
@pytest.mark.usefixtures("in_memory")
def test_private_arrays_have_the_bytes_that_threads_use_of_them(words: int) -> None:
    """An array is as large as the longest row may be; caches hold no more of it than is used."""
    body = f"""mov.u64 %rd6, own;
  mov.u32 %r6, 0;
$each:
  mul.wide.u32 %rd5, %r6, 4;
  add.s64 %rd8, %rd6, %rd5;
  st.local.f32 [%rd8], %f1;
  add.s32 %r6, %r6, 1;
  setp.lt.u32 %p2, %r6, {words};
  @%p2 bra $each;
  ld.local.f32 %f2, [%rd6];"""
    array = ".local .align 4 .b8 own[4096]; .reg .pred %p<3>;"
    text = HEAD + ROUND.replace("BODY", body).replace(".reg .pred %p<3>;", array)
    kernel = Kernel.from_ptx(text, None, "(n + 63) / 64", 64, {"x": "n"}, n=1024)
    assert feature("f_mem_scratch").eval(kernel) == 1024 * 4 * words


@pytest.mark.usefixtures("in_memory")
def test_vectors_of_private_arrays_are_words_of_several_places() -> None:
    body = """mov.u64 %rd6, own;
  cvta.local.u64 %rd7, %rd6;
  st.local.v4.f32 [%rd6], {%f1, %f1, %f1, %f1};
  ld.local.v4.f32 {%f2, %f3, %f4, %f5}, [%rd6+16];"""
    array = ".local .align 16 .b8 own[32]; .reg .pred %p<3>;"
    text = HEAD + ROUND.replace("BODY", body).replace(".reg .pred %p<3>;", array)
    kernel = Kernel.from_ptx(text, None, "(n + 63) / 64", 64, {"x": "n"}, n=1024)
    assert feature("f_mem_transactions_scratch_block:32").eval(kernel) == 2 * 4 * 4 * 1024 / 32
    assert feature("f_mem_transactions_scratch_block:128").eval(kernel) == 2 * 4 * 1024 / 32


@pytest.mark.parametrize(("divided", "together"), [("div.rn.f32", 1), ("div.full.f32", 4)])
def test_iterations_with_an_exact_division_wait_one_by_one(divided: str, together: int) -> None:
    body = f"""mov.f32 %f2, 0f00000000;
  mov.u32 %r6, 0;
$turn:
  ld.global.f32 %f3, [%rd4];
  {divided} %f3, %f3, %f1;
  add.f32 %f2, %f2, %f3;
  add.s64 %rd4, %rd4, 4;
  add.s32 %r6, %r6, 1;
  setp.lt.s32 %p2, %r6, 10;
  @%p2 bra $turn;
  sub.s64 %rd4, %rd4, 40;"""
    text = HEAD + ROUND.replace("BODY", body)
    kernel = Kernel.from_ptx(text, None, "(n + 63) / 64", 64, {"x": "n + 10"}, n=1024)
    assert feature("f_mem_rounds_global").eval(kernel) == 1024 * 11
    assert feature("f_mem_waits_global").eval(kernel) == 1024 * (1 + 10 / together)


@pytest.mark.parametrize("shorter", [0, 1, 4])
def test_guarded_loads_of_one_place_are_waited_for_as_often_as_the_longest_of_them_by_the_busiest_sub_group(
    shorter: int,
) -> None:
    body = f"""mov.f32 %f2, 0f00000000;
  mov.u32 %r6, 0;
  shr.u32 %r7, %r2, 5;
  mad.lo.s32 %r7, %r7, 8, 5;
  sub.s32 %r8, %r7, {shorter};
$turn:
  setp.lt.s32 %p1, %r6, %r7;
  setp.lt.s32 %p2, %r6, %r8;
  .loc 1 7 5
  @%p1 ld.global.f32 %f3, [%rd4];
  @%p2 ld.global.f32 %f4, [%rd4+4096];
  add.f32 %f3, %f3, %f4;
  .loc 1 8 5
  add.f32 %f2, %f2, %f3;
  add.s64 %rd4, %rd4, 4;
  add.s32 %r6, %r6, 1;
  setp.lt.s32 %p2, %r6, 20;
  @%p2 bra $turn;
  sub.s64 %rd4, %rd4, 80;"""
    text = HEAD + '.file 1 "turns.py"\n' + ROUND.replace("BODY", body)
    kernel = Kernel.from_ptx(text, None, "(n + 63) / 64", 64, {"x": "n + 2048"}, n=1024)
    assert feature("f_mem_rounds_global_granularity:longest").eval(kernel) == 1024 * (1 + 13)
    assert feature("f_mem_rounds_global").eval(kernel) == 1024 * (1 + (5 + 13) / 2)
