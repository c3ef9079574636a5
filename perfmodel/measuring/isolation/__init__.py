"""Measures in processes of their own: what hangs, crashes or eats memory there costs only itself."""
