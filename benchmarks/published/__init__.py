"""Kernels of ours stand for kernels whose times were published: tuned spaces, and textbook kernels."""
