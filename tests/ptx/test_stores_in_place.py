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
