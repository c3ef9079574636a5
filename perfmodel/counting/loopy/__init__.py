"""Counts Loopy programs: domains, operations, accesses, and the OpenCL C that Loopy writes for them."""
