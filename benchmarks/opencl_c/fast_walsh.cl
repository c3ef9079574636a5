// Covers: family fast_walsh; a pair of elements of a block that is a row of the launch, and a step by bit operations.
// kernel: {"name": "walsh_blocks", "generator": "fast_walsh", "tags": ["lsize_0:256"],
//   "global": ["step", "n // (2 * step)"], "local": [256, 1], "args": {"values": "n"},
//   "assumptions": "step % 256 == 0 and n % (2 * step) == 0",
//   "small": {"n": 2048, "step": 512}, "sizes": [{"n": 16777216, "step": 1024}, {"n": 67108864, "step": 1024}]}
// kernel: {"name": "walsh_step", "generator": "fast_walsh", "tags": ["lsize_0:256"],
//   "global": "n // 2", "local": 256, "args": {"values": "n"}, "options": ["-DSTEP=32"],
//   "assumptions": "n % 512 == 0 and step == 32",
//   "small": {"n": 1024, "step": 32}, "sizes": [{"n": 16777216, "step": 32}, {"n": 67108864, "step": 32}]}
// differs: walsh_blocks: f_mem_bytes_global_load: the source reads both elements twice; a compiler does once
__kernel void walsh_blocks(__global float *values, const int n, const int step)
{
    __global float *upper = values + get_global_id(1) * 2 * step + get_global_id(0), *lower = upper + step;
    const float sum = *upper + *lower;
    const float difference = *upper - *lower;
    *upper = sum;
    *lower = difference;
}

#ifdef STEP
__kernel void walsh_step(__global float *values, const int n, const int step)
{
    const uint pair = get_global_id(0);
    const uint first = ((pair & ~(STEP - 1)) << 1) | (pair & (STEP - 1));
    const float a = values[first], b = values[first | STEP];
    values[first] = a + b;
    values[first | STEP] = a - b;
}
#endif
