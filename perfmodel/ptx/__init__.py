"""The room of PTX: NVIDIA's virtual instruction set, into which CUDA C++ and Triton are compiled; read, emulated and
counted here."""

from __future__ import annotations
