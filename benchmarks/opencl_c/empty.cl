// Covers: family empty; a kernel without statements.
// kernel: {"name": "empty", "generator": "empty", "tags": ["lsizes:16x16"],
//   "global": ["n", "n"], "local": [16, 16], "assumptions": "n % 16 == 0",
//   "small": {"n": 48}, "sizes": [{"n": 4096}, {"n": 8192}]}
__kernel void empty(const int n)
{
}
