"""Reads the machine code that a processor's driver makes of a kernel: instructions, loops, and where they come from."""
