"""Kernels: a program with sizes bound, the kinds of programs, their launches, and the forms that derive from them."""
