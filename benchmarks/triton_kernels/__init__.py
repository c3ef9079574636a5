"""Triton's kernels that are predicted, and timed by way of CUDA from the PTX that Triton made of them.

python -m benchmarks.triton_kernels compile                # PTX of all, into kernels.jsonl.xz; needs Triton
python -m benchmarks.triton_kernels measure FOLDER         # on a machine with a GPU; the same command goes on
python -m benchmarks.triton_kernels native FOLDER          # the exam once more, launched by Triton; needs PyTorch
python -m benchmarks.triton_kernels predict FOLDER         # by a shipped calibration
python -m benchmarks.triton_kernels judge FOLDER           # errors and ranks, from what the others wrote
"""
