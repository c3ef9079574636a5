// Covers: arrays of characters that start with strings, whole, cut short, side by side, with escapes, inside structs.
// launch: {"kernel": "strings", "global": [32], "local": [8], "args": [{"name": "out", "array": "int32", "size": 32, "output": true}], "exact": true}
__constant char letters[] = "AB\n\x41\101" "c d'\"\\";
__constant uchar cut[3] = "xyzw";
typedef struct { char name[4]; int value; } Entry;
__constant Entry entries[2] = {{"ab", 1}, {{"cd"}, 2}};

__kernel void strings(__global int *out)
{
    const int i = get_global_id(0);
    char word[8] = "hey";
    if (i < (int)sizeof(letters))
        out[i] = letters[i];
    else if (i < 20)
        out[i] = cut[i % 3];
    else
        out[i] = entries[i & 1].name[(i >> 1) & 3] * entries[i & 1].value + word[i % 8];
}
