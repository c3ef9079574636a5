"""What NVIDIA's assembler makes of PTX: registers, spills, loops and loads in flight, without a GPU."""
