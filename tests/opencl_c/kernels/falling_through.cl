// Covers: a switch on a char with character literals, many cases falling through, nested switches, no default.
// launch: {"kernel": "falling_through", "global": [32], "local": [8], "args": [{"name": "text", "array": "uint8", "size": 32, "range": [97, 105]}, {"name": "out", "array": "int32", "size": 32, "output": true}], "exact": true}
__kernel void falling_through(__global const char *text, __global int *out)
{
    int i = get_global_id(0), r = 0;
    switch (text[i]) {
    case 'a':
        r += 1;
    case 'b':
    case 'c':
        r += 10;
        switch (i & 3) {
        case 0: r += 1000; break;
        case 1: r += 2000;
        case 2: { r += 4000; break; }
        }
    case 'd': ;
        r += 100;
        break;
    case 'e' + 1:
        r = -1;
        for (int k = 0; k < i; k++) {
            if (k == 5)
                break;
            r -= k;
        }
    }
    switch (r > 0) { default: r *= 2; }
    out[i] = r;
}
