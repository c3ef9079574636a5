// Covers: compound literals of structs, arrays and vectors; designated, partial and nested initializers.
// launch: {"kernel": "compound_literals", "global": [8], "local": [4], "args": [{"name": "a", "array": "int32", "size": 8}, {"name": "out", "array": "int32", "size": 8, "output": true}], "exact": true}
typedef struct {
    int x, y;
    int rest[3];
} Point;

int weight(Point p)
{
    return p.x + 10 * p.y + 100 * p.rest[0] + 1000 * p.rest[2];
}

__constant Point ORIGIN = {.y = 2, .rest = {[2] = 1}};
__constant int TABLE[2][3] = {{1, 2}, {[1] = 5, 6}};

__kernel void compound_literals(__global const int *a, __global int *out)
{
    const int i = get_global_id(0);
    Point p = {a[i], .rest = {4, 5}}, q[2] = {{1, 2}, {3, 4, {5, 6, 7}}};
    p.y = ((int[3]){7, 8, 9})[i % 3];
    int4 v = (int4){1, 2, 3, 4} + (int4)(a[i], (int2)(i), 1);
    int flat[2][2] = {1, 2, 3};
    Point copy = ORIGIN;
    out[i] = weight(p) + weight((Point){i, 1}) + weight(copy) + v.z + flat[1][0] + q[1].rest[1] + TABLE[1][i % 3];
}
