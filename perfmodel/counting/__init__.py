"""Counts what a kernel does, exactly and symbolically in its sizes."""
