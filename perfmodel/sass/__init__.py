"""Reads what NVIDIA's assembler makes of PTX, without a GPU: registers, spills, loops and loads in flight."""
