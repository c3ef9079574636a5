"""Strings in kernels are tables of characters, truth values in memory bytes; compilers' names of types are known."""

from __future__ import annotations

import numpy as np

import perfmodel as pm
from perfmodel.device import Device
from perfmodel.measuring.protocol import run_launch

SOURCE = """
#define WHOLE_2(bits) unsigned __INT##bits##_TYPE__
#define WHOLE(bits) WHOLE_2(bits)
typedef WHOLE(__INTPTR_WIDTH__) address;
typedef __UINT8_TYPE__ letter;
typedef __SIZE_TYPE__ index;
int same(global const letter *text, constant char *word, int n)
{
    for (int k = 0; k < n; k++)
        if (text[k] != word[k])
            return 0;
    return 1;
}
kernel void k(global const letter *text, global bool *found, global int *letters)
{
    const address i = get_global_id(0);
    found[i] = same(text + (index)i, "ab" "c", 3);
    letters[i] = "xyz"[i % 3];
}"""


def kernel() -> pm.Kernel:
    return pm.Kernel.from_opencl(SOURCE, "k", 64, 16, {"text": 66, "found": 64, "letters": 64})


def test_they_are_read_emulated_and_counted() -> None:
    text = np.full(66, ord("a"), np.uint8)
    text[[9, 10, 11, 30, 31, 32]] = [*b"abcabd"]
    found = pm.emulate(kernel(), {"text": text}, groups="all")
    assert np.flatnonzero(found.array("found")).tolist() == [9]
    assert bytes(found.array("letters")[:4].astype(np.uint8)) == b"xyzx"
    counted = kernel().as_observed({"text": text})
    assert pm.feature("f_mem_bytes_global_store").eval(counted) == 64 * (1 + 4)


def test_a_device_says_the_same(cpu: Device) -> None:
    text = np.resize(np.frombuffer(b"ababcabcaa", np.uint8), 66)
    arrays: dict[str, np.ndarray] = {"text": text, "found": np.zeros(64, np.uint8), "letters": np.zeros(64, np.int32)}
    expected = run_launch(kernel().launch(), cpu, arrays)
    found = pm.emulate(kernel(), {"text": text}, groups="all")
    for name in ("found", "letters"):
        np.testing.assert_array_equal(found.array(name), expected[name])
