// Covers: bytes, wrapped neighbours, conditions as numbers.
// launch: {"kernel": "life", "global": [16, 16], "local": [4, 4], "args": [{"name": "now", "array": "uint8", "size": 256, "range": [0, 1]}, {"name": "next", "array": "uint8", "size": 256, "output": true}], "exact": true}
__kernel void life(__global const uchar *now, __global uchar *next)
{
    const int w = get_global_size(0), h = get_global_size(1), x = get_global_id(0), y = get_global_id(1);
    uchar around = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx != 0 || dy != 0)
                around += now[((y + dy + h) % h) * w + (x + dx + w) % w];
    next[y * w + x] = around == 3 || (now[y * w + x] && around == 2);
}
