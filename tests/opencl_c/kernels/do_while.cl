// Covers: do-while with continue and break, Collatz lengths, nested loops left early.
// launch: {"kernel": "collatz", "global": [64], "local": [16], "args": [{"name": "out", "array": "int32", "size": 64, "output": true}], "exact": true}
__kernel void collatz(__global int *out)
{
    uint n = get_global_id(0) + 1;
    int steps = 0, odd = 0;
    do {
        if (n == 1)
            break;
        steps++;
        if (n % 2 == 0) {
            n /= 2;
            continue;
        }
        odd++;
        n = 3 * n + 1;
    } while (steps < 200);
    for (int i = 0; i < 4; i++) {
        for (int j = 0;; j++) {
            if (j > i)
                break;
            if ((i + j) & 1)
                continue;
            odd += j;
        }
    }
    out[get_global_id(0)] = steps * 256 + odd;
}
