// Covers: enums with values, named ones, sizeof of types and expressions, character literals, octal and hexadecimal.
// launch: {"kernel": "enums", "global": [8], "local": [8], "args": [{"name": "out", "array": "int32", "size": 8, "output": true}], "exact": true}
enum Colour { RED = 1, GREEN = RED << 2, BLUE = -3 };
typedef enum Colour Colour;
typedef struct { char c; double d; short s[3]; } Mixed;

Colour next(Colour c)
{
    return c == RED ? GREEN : c == GREEN ? BLUE : RED;
}

__kernel void enums(__global int *out)
{
    const int i = get_global_id(0);
    Colour c = RED;
    for (int k = 0; k < i; k++)
        c = next(c);
    int sizes = sizeof(Mixed) + sizeof(float4[3]) + sizeof c + sizeof(1.0f + 1.0) + sizeof('a') + sizeof(__global int *);
    out[i] = sizes * 1000 + (int)c + 'a' + '\n' + '\x1f' + '\\' + 017 + 0xFF + 1u + 2UL + vec_step(int3);
}
