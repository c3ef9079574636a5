// Covers: a while loop with two conditions, work-items that leave it at different turns.
// launch: {"kernel": "mandelbrot", "global": [32, 16], "local": [16, 4], "args": [{"name": "counts", "array": "int32", "size": 512, "output": true}, {"name": "limit", "scalar": "int32", "value": 50}], "exact": true}
__kernel void mandelbrot(__global int *counts, const int limit)
{
    // In steps of a sixteenth and cut to sixteenths, every product is exact: no device rounds otherwise.
    int cx = (int)get_global_id(0) - 20, cy = (int)get_global_id(1) - 8;
    int x = 0, y = 0, turns = 0;
    while (x * x + y * y < 1024 && turns < limit) {
        int kept = (x * x - y * y) / 16 + cx * 2;
        y = 2 * x * y / 16 + cy * 2;
        x = kept;
        turns++;
    }
    counts[get_global_id(1) * get_global_size(0) + get_global_id(0)] = turns;
}
