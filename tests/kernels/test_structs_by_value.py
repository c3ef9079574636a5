"""Structs and vectors passed by value are counted by their numbers, emulated, and given to a device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import KernelError
from perfmodel.cli.command_line import main
from perfmodel.device import Device
from perfmodel.kernels.arguments import Struct
from perfmodel.measuring.isolation.child import as_launch, as_message
from perfmodel.measuring.protocol import run_launch

SOURCE = """
typedef struct { uchar flag; int dims[2]; short stride; float3 weight; double scale; } Shape;
float at(__global const float *a, const Shape s, const int2 p) { return a[p.y * s.stride + p.x] * (float)s.scale; }
__kernel void k(__global const float *a, __global float *out, const Shape s, const int2 shift, Shape changed)
{
    int2 p = (int2)(get_global_id(0), get_global_id(1));
    changed.dims[1] += 3;
    if (p.x >= s.dims[0] || p.y >= s.dims[1])
        return;
    int2 q = clamp(p + shift, (int2)(0), (int2)(s.dims[0] - 1, s.dims[1] - 1));
    if (s.flag > 2)
        out[p.y * s.stride + p.x] = at(a, s, q) * s.weight.y + changed.dims[1];
}
"""
SHAPE = {"flag": 3, "dims": [37, 20], "stride": 40, "weight": [1.0, 2.0, 3.0], "scale": 0.5}
LAYOUT = np.dtype(
    {
        "names": list(SHAPE),
        "formats": ["u1", ("i4", 2), "i2", ("f4", 3), "f8"],
        "offsets": [0, 4, 12, 16, 32],
        "itemsize": 48,
    }
)
GLOBAL = ("(s.dims[0] + 15) // 16 * 16", "(s.dims[1] + 7) // 8 * 8")


def kernel(**given: Any) -> pm.Kernel:
    extent = "s.stride * s.dims[1]"
    values: dict[str, Any] = {"s": SHAPE, "shift": [1, -2], "changed": {**SHAPE, "dims": [0, 4]}, **given}
    return pm.Kernel.from_opencl(SOURCE, "k", GLOBAL, (16, 8), {"a": extent, "out": extent}, **values)


def expected(a: np.ndarray) -> np.ndarray:
    out = np.zeros((20, 40), np.float32)
    rows, columns = np.mgrid[:20, :37]
    moved = a.reshape(20, 40)[np.clip(rows - 2, 0, 19), np.clip(columns + 1, 0, 36)]
    out[:, :37] = moved * np.float32(0.5) * np.float32(2) + np.float32(7)
    return out.ravel()


def test_a_device_and_the_emulator_get_every_number(cpu: Device) -> None:
    arrays = {"a": np.arange(800, dtype=np.float32), "out": np.zeros(800, np.float32)}
    launch = kernel().launch()
    assert launch.global_size == (48, 24)
    np.testing.assert_array_equal(run_launch(launch, cpu, arrays)["out"], expected(arrays["a"]))
    np.testing.assert_array_equal(pm.emulate(kernel(), arrays, groups="all").array("out"), expected(arrays["a"]))


def test_a_launch_goes_to_another_process_as_it_is() -> None:
    launch = kernel().launch()
    assert as_launch(json.loads(json.dumps(as_message(launch)))) == launch
    (shape,) = (argument for argument in launch.arguments if argument.name == "s")
    assert isinstance(shape, Struct)
    values = np.frombuffer(shape.contents, LAYOUT)[0]
    assert values["dims"].tolist() == SHAPE["dims"]
    assert values["weight"].tolist() == SHAPE["weight"]
    assert values["scale"] == 0.5


def test_records_mappings_and_single_numbers_are_the_same_kernel() -> None:
    record = np.zeros((), LAYOUT)
    for name, value in SHAPE.items():
        record[name] = value
    plain = kernel()
    assert kernel(s=record) == kernel(s=record[()]) == plain
    assert kernel(shift=np.array([1, -2])) == kernel(shift=(1, -2)) == plain
    assert kernel(s={**SHAPE, "stride": 99}).at(s_stride=40) == plain
    assert kernel(s={**SHAPE, "stride": 99}).at(s={"stride": 40}) == plain
    assert plain.sizes["s_dims_1"] == 20
    assert "s_scale" not in plain.sizes


def test_counts_follow_from_their_numbers() -> None:
    assert pm.feature("f_mem_access_global_float32_store").eval(kernel()) == 37 * 20
    assert pm.feature("f_mem_access_global_float32_store").eval(kernel().at(s_dims_0=16)) == 320
    assert pm.feature("f_mem_access_global_float32_store").eval(kernel(s={**SHAPE, "flag": 2})) == 0
    (store,) = (each for each in kernel().counts.accesses if each.variable == "out")
    assert {axis: str(stride) for axis, stride in store.local_strides.items()} == {0: "1", 1: "40"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"s": {**SHAPE, "dim": [1, 2]}}, "has no size or argument 's_dim_0'"),
        ({"shift": [1, 2, 3]}, "has no size or argument 'shift_2'"),
        ({"s": 4}, "has no size or argument 's'; it has s_flag, s_dims_0"),
        ({"s": {**SHAPE, "flag": "x"}}, "s_flag='x' is not a number"),
        ({"s": {**SHAPE, "stride": 1.5}}, "size s_stride=1.5 of kernel 'k' is not a whole number"),
    ],
)
def test_wrong_numbers_are_one_sentence(given: dict[str, Any], words: str) -> None:
    with pytest.raises(KernelError) as caught:
        kernel(**given)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_number_that_is_left_out_or_does_not_fit_is_named() -> None:
    with pytest.raises(KernelError, match="needs a value for s_stride"):
        kernel(s={key: value for key, value in SHAPE.items() if key != "stride"}).launch()
    with pytest.raises(KernelError, match="s_flag=256 of kernel 'k' does not fit into uint8"):
        kernel(s={**SHAPE, "flag": 256})


COMMAND = ("--global", ",".join(GLOBAL), "--local", "16,8", "--arg", "a=800", "--arg", "shift=[1, -2]")


def test_the_command_line_takes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.cl"
    path.write_text(SOURCE)
    given = ["--arg", f"s={json.dumps(SHAPE)}", "--arg", f"changed={json.dumps(SHAPE)}", "--arg", "out=800"]
    assert main(["count", str(path), *COMMAND, *given, "--json"]) == 0
    (counted,) = json.loads(capsys.readouterr().out)["kernels"]
    assert "s_dims_0" in counted["sizes"]
    single = {key: value for key, value in SHAPE.items() if key != "dims"}
    numbers = ["--arg", f"s={json.dumps(single)}", "--arg", "s.dims[0]=37", "--arg", "s.dims[1]=20", *given[2:]]
    assert main(["count", str(path), *COMMAND, *numbers, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kernels"] == [counted]
    assert main(["count", str(path), *COMMAND, *given, "--arg", "s={1}"]) == 2
    assert "--arg s is given twice" in capsys.readouterr().err
    assert main(["count", str(path), *COMMAND, "--arg", "s={dims: 3}", *given[2:]]) == 2
    assert "--arg s={dims: 3} is no JSON; write a struct as" in capsys.readouterr().err


MEMBERS = """
typedef struct { float2 v; int n; } Inner;
typedef struct { Inner inner[2]; union { int i; float f; } u; } Outer;
int helper(Outer *o, int by) { o->inner[1].n += by; return o->inner[1].n; }
__kernel void k(__global int *out, const int pick)
{
    Outer a = {{{(float2)(1, 2), 3}, {(float2)(4, 5), 6}}, {7}}, b = a, c = a;
    b.inner[0].v.y = 10;
    int found = helper(&b, 2) + (int)b.inner[0].v.y + a.inner[1].n;
    c.inner[pick].n = 50;
    c.u.f = 1.0f;
    out[get_global_id(0)] = found + c.inner[1].n + c.u.i;
}
"""


def test_structs_that_cannot_be_registers_stay_in_memory() -> None:
    """Helpers, copies and vectors' components are followed; indices that are not known, and unions, stay in memory."""
    kernel = pm.Kernel.from_opencl(MEMBERS, "k", 8, 8, {"out": 8}, pick=1)
    profile = pm.emulate(kernel, {"out": np.zeros(8, np.int32)}, groups="all")
    assert profile.array("out").tolist() == [8 + 10 + 6 + 50 + 0x3F800000] * 8
    assert {each.name for each in profile.lowered.objects} == {"c"}


def test_arrays_of_structs_have_random_numbers_by_their_fields() -> None:
    source = """
    typedef struct { char tag; float weight; int kind[2]; } Item;
    __kernel void k(__global const Item *items, __global float *w, __global int *kinds)
    {
        int i = get_global_id(0);
        w[i] = items[i].weight;
        kinds[i] = items[i].kind[1];
    }
    """
    kernel = pm.Kernel.from_opencl(source, "k", 4096, 64, {"items": 4096, "w": 4096, "kinds": 4096})
    profile = pm.emulate(kernel, groups="all")
    weights, kinds = profile.array("w"), profile.array("kinds")
    assert 0.5 <= weights.min() < 0.6 < 1.4 < weights.max() < 1.5
    assert set(kinds.tolist()) == set(range(1, 8))
    assert len(np.unique(weights)) > 4000
