// Rays, fractals and shapes.

float scene(float3 p)
{
    float ball = length(p - (float3)(0.0f, 0.0f, 3.0f)) - 1.0f;
    float small = length(p - (float3)(1.0f, 0.5f, 2.2f)) - 0.4f;
    float floor_ = p.y + 1.0f;
    return fmin(fmin(ball, small), floor_);
}

__kernel void sphere_trace(__global float *depth, __global uchar *steps, int w, int h, int max_steps)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= w || y >= h) return;
    float3 dir = normalize((float3)((x - 0.5f * w) / w, (0.5f * h - y) / w, 1.0f));
    float t = 0.0f;
    int k;
    for (k = 0; k < max_steps; k++) {
        float d = scene(t * dir);
        if (d < 0.001f) break;
        t += d;
        if (t > 20.0f) break;
    }
    depth[y * w + x] = t > 20.0f ? INFINITY : t;
    steps[y * w + x] = k;
}

typedef struct { float3 origin, direction; } Ray;
typedef struct { int a, b, c; } Triangle;
typedef struct { float t, u, v; int triangle; } Hit;

// All triangles of a mesh for each ray; the nearest hit.
__kernel void ray_triangles(__global const Ray *rays, __global const float4 *vertices, __global const Triangle *triangles,
                            __global Hit *hits, int nrays, int ntriangles)
{
    int r = get_global_id(0);
    if (r >= nrays) return;
    Ray ray = rays[r];
    Hit best;
    best.t = INFINITY;
    best.u = best.v = 0;
    best.triangle = -1;
    for (int k = 0; k < ntriangles; k++) {
        Triangle tri = triangles[k];
        float3 a = vertices[tri.a].xyz;
        float3 e1 = vertices[tri.b].xyz - a, e2 = vertices[tri.c].xyz - a;
        float3 p = cross(ray.direction, e2);
        float det = dot(e1, p);
        if (fabs(det) < 1e-7f) continue;
        float inv = 1.0f / det;
        float3 s = ray.origin - a;
        float u = dot(s, p) * inv;
        if (u < 0.0f || u > 1.0f) continue;
        float3 q = cross(s, e1);
        float v = dot(ray.direction, q) * inv;
        if (v < 0.0f || u + v > 1.0f) continue;
        float t = dot(e2, q) * inv;
        if (t > 1e-4f && t < best.t) {
            best.t = t;
            best.u = u;
            best.v = v;
            best.triangle = k;
        }
    }
    hits[r] = best;
}

__kernel void mandelbrot(__global ushort *iterations, int w, int h, double x0, double y0, double step, int limit)
{
    int px = get_global_id(0), py = get_global_id(1);
    if (px >= w || py >= h) return;
    double cx = x0 + px * step, cy = y0 + py * step;
    double x = 0, y = 0;
    int n = 0;
    while (x * x + y * y <= 4.0 && n < limit) {
        double t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
        n++;
    }
    iterations[py * w + px] = n;
}

__constant uchar4 palette[5] = {(uchar4)(0, 0, 40, 255), (uchar4)(10, 90, 200, 255), (uchar4)(240, 240, 180, 255),
                                (uchar4)(250, 160, 0, 255), (uchar4)(0, 0, 0, 255)};

// One pixel of four samples in a vector; colours from a table.
__kernel void julia_quad(__global uchar4 *image, const int w, const int h, const float cx, const float cy)
{
    const int i = get_global_id(0);
    if (i >= w * h) return;
    float4 x = 3.0f * ((float4)(i % w) + (float4)(0.25f, 0.75f, 0.25f, 0.75f)) / w - 1.5f;
    float4 y = 3.0f * ((float4)(i / w) + (float4)(0.25f, 0.25f, 0.75f, 0.75f)) / h - 1.5f;
    int4 count = 0;
    for (int n = 0; n < 100; n++) {
        int4 in = x * x + y * y <= 4.0f;
        if (!any(in)) break;
        count -= in;
        float4 xx = x * x - y * y + cx;
        float4 yy = 2.0f * x * y + cy;
        x = select(x, xx, in);
        y = select(y, yy, in);
    }
    int total = count.x + count.y + count.z + count.w;
    int colour = total >= 400 ? 4 : total >= 200 ? 3 : total >= 80 ? 2 : total >= 30 ? 1 : 0;
    image[i] = palette[colour];
}

__constant uchar segments[16] = {0, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 1, 1, 1, 1, 0};

// The case of each square, how many segments it has, and where the contour cuts its lower side.
__kernel void marching_squares(__global const float *field, __global uchar *kind, __global uchar *count,
                               __global float *cut, int w, int h, float level)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= w - 1 || y >= h - 1) return;
    float a = field[y * w + x], b = field[y * w + x + 1];
    float c = field[(y + 1) * w + x + 1], d = field[(y + 1) * w + x];
    int k = (a > level) | (b > level) << 1 | (c > level) << 2 | (d > level) << 3;
    int at = y * (w - 1) + x;
    kind[at] = k;
    count[at] = segments[k];
    bool crosses = (k & 1) != (k >> 1 & 1);
    cut[at] = crosses ? x + (level - a) / (b - a) : -1.0f;
}

// Walks rays through a grid of voxels, cell by cell, until one is solid or the ray leaves.
__kernel void voxel_walk(__global const uchar *solid, __global const float *origins, __global const float *directions,
                         __global int *cell, __global int *visited, int n, int rays)
{
    int r = get_global_id(0);
    if (r >= rays) return;
    int at[3], step[3];
    float next[3], delta[3];
    for (int k = 0; k < 3; k++) {
        float o = origins[3 * r + k], d = directions[3 * r + k];
        at[k] = (int)o;
        step[k] = d > 0 ? 1 : -1;
        delta[k] = fabs(1.0f / d);
        next[k] = (d > 0 ? at[k] + 1 - o : o - at[k]) * delta[k];
    }
    int found = -1, count = 0;
    while (true) {
        int c = (at[2] * n + at[1]) * n + at[0];
        count++;
        if (solid[c]) {
            found = c;
            break;
        }
        int k = next[0] < next[1] ? (next[0] < next[2] ? 0 : 2) : (next[1] < next[2] ? 1 : 2);
        at[k] += step[k];
        if (at[k] < 0 || at[k] >= n) break;
        next[k] += delta[k];
    }
    cell[r] = found;
    visited[r] = count;
}

// Points in a polygon with many corners by crossing numbers.
__kernel void point_in_polygon(__global const float2 *points, __global const float2 *corners, __global uchar *inside,
                               int n, int m)
{
    int i = get_global_id(0);
    if (i >= n) return;
    float2 p = points[i];
    bool in = false;
    for (int a = 0, b = m - 1; a < m; b = a++) {
        float2 u = corners[a], v = corners[b];
        if ((u.y > p.y) != (v.y > p.y) && p.x < (v.x - u.x) * (p.y - u.y) / (v.y - u.y) + u.x)
            in = !in;
    }
    inside[i] = in;
}

// Normals of a height field's vertices, in four bytes each.
__kernel void terrain_normals(__global const short *height, __global char4 *normal, int w, int h, float scale)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= w || y >= h) return;
    int l = max(x - 1, 0), r = min(x + 1, w - 1), u = max(y - 1, 0), d = min(y + 1, h - 1);
    float dx = scale * (height[y * w + r] - height[y * w + l]) / (r - l);
    float dy = scale * (height[d * w + x] - height[u * w + x]) / (d - u);
    float3 v = fast_normalize((float3)(-dx, -dy, 1.0f));
    normal[y * w + x] = (char4)(convert_char3_sat_rte(127.0f * v), 0);
}

// Transforms of vertices by a matrix for each object, with a division by w and a test against the view.
typedef struct { float4 row[4]; } Matrix;
__kernel void transform_vertices(__global const float4 *vertices, __global const ushort *object,
                                 __global const Matrix *matrices, __global float4 *screen, __global uchar *clipped, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    __global const Matrix *m = matrices + object[i];
    float4 v = vertices[i];
    v.w = 1.0f;
    float4 p = (float4)(dot(m->row[0], v), dot(m->row[1], v), dot(m->row[2], v), dot(m->row[3], v));
    bool out = any(isgreater(fabs(p.xyz), (float3)(p.w)));
    clipped[i] = out;
    screen[i] = out ? (float4)(0.0f) : (float4)(p.xyz / p.w, 1.0f / p.w);
}
