"""Stores to where the same work-items have just loaded from are told from others by a tag."""

from __future__ import annotations

import pytest

import perfmodel as pm

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

ITEMS, LENGTH = 2**12, 48
SOURCE = """
extern "C" __global__ void rows(float *a, float *b)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    BODY
}
"""


def changed(body: str) -> float:
    """Returns the part of the stores that have the tag."""
    kernel = pm.Kernel.from_cuda(
        SOURCE.replace("BODY", body).replace("LENGTH", str(LENGTH)),
        "rows",
        ITEMS // 128,
        128,
        {"a": ITEMS * LENGTH, "b": ITEMS * LENGTH},
    )
    tagged, stores = (float(pm.feature(f"f_mem_access_global_store{tag}").eval(kernel)) for tag in ("_tag:changed", ""))
    return tagged / stores


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("for (int k = 0; k < LENGTH; k++) a[i * LENGTH + k] *= 2;", 1),
        ("for (int k = 0; k < LENGTH; k++) a[i * LENGTH + k] = b[i * LENGTH + k];", 0),
        ("for (int k = 1; k < LENGTH; k++) a[i * LENGTH + k] = a[i * LENGTH + k - 1] + 1;", 1),  # of the same sector
        ("#pragma unroll 1\nfor (int k = 16; k < LENGTH; k++) a[i * LENGTH + k] = a[i * LENGTH + k - 16] + 1;", 0),
        # what was loaded in a loop before is not in the caches any more
        (
            "#pragma unroll 1\nfor (int k = 0; k < LENGTH; k++) sum += a[i * LENGTH + k];\n#pragma unroll 1\n"
            "for (int k = 0; k < LENGTH; k++) a[i * LENGTH + k] = sum;",
            0,
        ),
        ("a[i * 7919 % ITEMS] += 1; b[i] = 0;".replace("ITEMS", str(ITEMS)), 0.5),
    ],
)
def test_a_store_changes_what_its_iteration_has_loaded(body: str, wanted: float) -> None:
    assert changed(body) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("before", "after", "brought", "repeated"),
    [
        ("b[j] = a[j] + 1;", "b[j] *= sum;", 1, 1),
        ("b[j] = a[j] + 1;", "sum += b[j];", 1, 1),
        ("b[j] = a[j] + 1;", "sum += b[j ^ 1];", 2, 0),  # what the neighbour has stored
        ("sum += a[j];", "b[j] *= sum;", 2, 0),
        ("a[j] += 1;", "a[j] *= sum;", 1, 1),
    ],
)
def test_what_was_stored_before_is_not_brought_from_memory(
    before: str, after: str, brought: float, repeated: float
) -> None:
    loop = "#pragma unroll 1\nfor (int k = 0; k < LENGTH; k++) {{ const int j = k * ITEMS + i; {} }}\n"
    body = loop.format(before) + loop.format(after) + "b[i] += sum;"
    text = SOURCE.replace("BODY", body).replace("ITEMS", str(ITEMS)).replace("LENGTH", str(LENGTH))
    size = ITEMS * LENGTH
    kernel = pm.Kernel.from_cuda(text, "rows", ITEMS // 128, 128, {"a": size, "b": size})
    loaded = pm.feature("f_mem_footprint_global_load_brought_block:64").eval(kernel)
    assert float(loaded) / (4 * size) == pytest.approx(brought, rel=0.05)
    again = pm.feature("f_mem_repeated_global_load_block:32").eval(kernel)
    assert float(again) / (4 * size) == pytest.approx(repeated, abs=0.05)
