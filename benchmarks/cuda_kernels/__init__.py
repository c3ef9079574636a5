"""CUDA kernels that are predicted, timed by way of CUDA, and compared with themselves in OpenCL C.

python -m benchmarks.cuda_kernels compile                  # PTX of all, into kernels.jsonl.xz; needs the compiler
python -m benchmarks.cuda_kernels measure FOLDER           # on a machine with a GPU; the same command goes on
python -m benchmarks.cuda_kernels predict FOLDER           # by a shipped calibration
python -m benchmarks.cuda_kernels judge FOLDER             # ratios and errors, from what the others wrote
"""
