"""Online performance projection (Panwar et al.): which device runs each of eight applications fastest."""

from __future__ import annotations

import argparse

from perfmodel.projection_study import Application, reproduce
from perfmodel.study import Study

# Table II; sizes around the table's, which is marked. Generators of this project stand for the AMD samples.
APPLICATIONS = (
    Application("FloydWarshall", "floyd_warshall dtype:int32 lsizes:16x16", "n", (48, 96, 192, 384, 768, 1536), 192),
    Application(
        "FastWalshTrans.",
        "fast_walsh dtype:float32 lsize_0:256 step:512",
        "n",
        (2**14, 2**16, 2**18, 2**20, 2**22, 2**24),
        2**20,
    ),
    Application(
        "MatMul (gmem)",
        "matmul_sq tiled_prefetch:False dtype:float32 lsizes:16x16",
        "n",
        (64, 128, 256, 512, 768, 1024),
        1024,
    ),
    Application(
        "MatMul (lmem)",
        "matmul_sq tiled_prefetch:True dtype:float32 lsizes:16x16",
        "n",
        (64, 128, 256, 512, 768, 1024, 1536),
        1024,
    ),
    Application(
        "Reduction", "reduction dtype:float32 lsize_0:256", "n", (2**14, 2**16, 2**18, 2**20, 2**22, 2**24), 2**20
    ),
    Application("NBody", "nbody dtype:float32 lsize_0:256", "n", (1024, 4096, 8192, 16384, 32768, 65536), 32768),
    # 1536 x 512 pixels of four bytes.
    Application(
        "AESEncryptDecr.",
        "table_cipher table:constant rounds:10 lsize_0:256",
        "n",
        (1536, 12288, 49152, 98304, 196608, 393216),
        196608,
    ),
    Application(
        "Matrix Transpose", "transpose dtype:float32 lsizes:16x16", "n", (64, 256, 512, 1024, 2048, 4096), 1024
    ),
)

PUBLISHED = {
    "chosen": [7, 8],
    "penalty": 0.3372,
    "relative_error_one_group": 0.198,
    "relative_error_all_groups": 0.167,
    # Table III: the whole emulation by that of one work-group, on four devices.
    "emulation_ratio": {
        "FastWalshTrans.": [2882.1, 2772.7, 2761.0, 2606.9],
        "FloydWarshall": [172.7, 182.6, 248.5, 229.3],
        "MatMul (gmem)": [267.9, 337.4, 219.1, 217.7],
        "NBody": [3.9, 4.1, 4.7, 4.0],
        "AESEncryptDecr.": [710.4, 784.0, 623.4, 581.4],
        "Reduction": [1710.7, 1709.0, 2629.1, 2700.0],
        "MatMul (lmem)": [240.7, 196.6, 201.5, 209.6],
        "Matrix Transpose": [554.2, 556.1, 469.2, 457.1],
    },
}


class Projection(Study):
    """Reproduces Table III, Figures 4, 6 and 7, and device selection, on the devices at hand and those of the store."""

    name = "projection"
    summary = "device selection by emulating one work-group (Panwar et al.)"

    def reproduce(self, parsed: argparse.Namespace, command: str) -> None:
        reproduce(APPLICATIONS, PUBLISHED, parsed, command)
