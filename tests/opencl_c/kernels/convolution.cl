// Covers: nested includes from a folder, macros that make loops, a table of folded constants, clamp of indices.
// launch: {"kernel": "convolution", "global": [16, 16], "local": [16, 1], "folders": ["include"], "args": [{"name": "a", "array": "float32", "size": 256}, {"name": "b", "array": "float32", "size": 256, "output": true}, {"name": "n", "scalar": "int32", "value": 16}]}
#include "filter.h"
#include <filter.h>
#include "types.h"

__kernel void convolution(__global const real *a, __global real *b, int n)
{
    const int x = get_global_id(0), y = get_global_id(1);
    real sum = 0;
    FOR_EACH_TAP(i)
        FOR_EACH_TAP(j)
            sum += TAPS[i + RADIUS] * TAPS[j + RADIUS]
                * a[clamp(y + i, 0, n - 1) * n + clamp(x + j, 0, n - 1)];
    b[y * n + x] = sum;
}
