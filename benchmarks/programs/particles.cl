// Particles and fields.

typedef struct {
    float x, y, z;
    float mass;
    float vx, vy, vz;
} Body;

__kernel void nbody_structs(__global const Body *in, __global Body *out, int n, float dt, float soft2)
{
    int i = get_global_id(0);
    if (i >= n) return;
    Body b = in[i];
    float ax = 0, ay = 0, az = 0;
    for (int j = 0; j < n; j++) {
        float dx = in[j].x - b.x;
        float dy = in[j].y - b.y;
        float dz = in[j].z - b.z;
        float r2 = dx * dx + dy * dy + dz * dz + soft2;
        float inv = rsqrt(r2);
        float f = in[j].mass * inv * inv * inv;
        ax += f * dx;
        ay += f * dy;
        az += f * dz;
    }
    b.vx += dt * ax; b.vy += dt * ay; b.vz += dt * az;
    b.x += dt * b.vx; b.y += dt * b.vy; b.z += dt * b.vz;
    out[i] = b;
}

// Forces within a cut-off in a periodic box, all pairs.
__kernel void nbody_cutoff(__global const float4 *pos, __global float4 *force, const uint n, const float box,
                           const float cutoff)
{
    __local float4 tile[128];
    const uint i = get_global_id(0);
    const float4 p = i < n ? pos[i] : (float4)(0.0f);
    float4 f = (float4)(0.0f);
    for (uint start = 0; start < n; start += 128) {
        uint j = start + get_local_id(0);
        tile[get_local_id(0)] = j < n ? pos[j] : (float4)(0, 0, 0, 0);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < 128 && start + k < n; k++) {
            float3 d = p.xyz - tile[k].xyz;
            d -= box * rint(d / box);
            float r2 = dot(d, d);
            if (r2 < cutoff * cutoff && r2 > 0.0f) {
                float s = p.w * tile[k].w / (r2 * sqrt(r2));
                f.xyz += s * d;
                f.w += s * r2;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < n) force[i] = f;
}

// Particles are sorted by cells; 27 cells around each are looked through.
typedef struct {
    int nx, ny, nz;
    float size;
} CellGrid;

__kernel void cell_list_forces(__global const float4 *pos, __global const int *cell_start, __global float4 *force,
                               CellGrid g, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    float4 p = pos[i];
    int cx = clamp((int)(p.x / g.size), 0, g.nx - 1);
    int cy = clamp((int)(p.y / g.size), 0, g.ny - 1);
    int cz = clamp((int)(p.z / g.size), 0, g.nz - 1);
    float fx = 0, fy = 0, fz = 0;
    for (int z = max(cz - 1, 0); z <= min(cz + 1, g.nz - 1); z++)
        for (int y = max(cy - 1, 0); y <= min(cy + 1, g.ny - 1); y++)
            for (int x = max(cx - 1, 0); x <= min(cx + 1, g.nx - 1); x++) {
                int c = (z * g.ny + y) * g.nx + x;
                for (int j = cell_start[c]; j < cell_start[c + 1]; j++) {
                    if (j == i) continue;
                    float4 q = pos[j];
                    float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
                    float d = sqrt(dx * dx + dy * dy + dz * dz);
                    if (d >= g.size) continue;
                    float push = (g.size - d) / fmax(d, 1e-6f);
                    fx += push * dx; fy += push * dy; fz += push * dz;
                }
            }
    force[i] = (float4)(fx, fy, fz, 0);
}

__kernel void lj_neighbours(__global const double *x, __global const int *neighbours, __global const int *count,
                            __global double *f, __global double *energy, int n, int most, double cut2, double eps,
                            double sigma6)
{
    int i = get_global_id(0);
    if (i >= n) return;
    double xi = x[3 * i], yi = x[3 * i + 1], zi = x[3 * i + 2];
    double fx = 0, fy = 0, fz = 0, e = 0;
    for (int k = 0; k < count[i]; k++) {
        int j = neighbours[k * n + i];
        double dx = xi - x[3 * j], dy = yi - x[3 * j + 1], dz = zi - x[3 * j + 2];
        double r2 = dx * dx + dy * dy + dz * dz;
        if (r2 >= cut2) continue;
        double r2i = 1.0 / r2;
        double r6 = sigma6 * r2i * r2i * r2i;
        double w = 48.0 * eps * r6 * (r6 - 0.5) * r2i;
        fx += w * dx; fy += w * dy; fz += w * dz;
        e += 2.0 * eps * r6 * (r6 - 1.0);
    }
    f[3 * i] = fx; f[3 * i + 1] = fy; f[3 * i + 2] = fz;
    energy[i] = e;
}

inline float poly6(float r2, float h2)
{
    float d = h2 - r2;
    return d <= 0 ? 0 : 1.5666815f * d * d * d / (h2 * h2 * h2 * h2 * sqrt(h2));
}

// Density of a fluid of particles in 2-D cells with at most CAP particles each.
#define CAP 8
__kernel void sph_density(__global const float2 *pos, __global const uchar *cell_count, __global const int *cell_items,
                          __global float *density, int n, int cells, float h, float mass)
{
    int i = get_global_id(0);
    if (i >= n) return;
    float2 p = pos[i];
    int cx = (int)(p.x * cells), cy = (int)(p.y * cells);
    float rho = 0;
    for (int oy = -1; oy <= 1; oy++) {
        int y = cy + oy;
        if (y < 0 || y >= cells) continue;
        for (int ox = -1; ox <= 1; ox++) {
            int x = cx + ox;
            if (x < 0 || x >= cells) continue;
            int c = y * cells + x;
            for (int k = 0; k < cell_count[c]; k++) {
                float2 d = p - pos[cell_items[c * CAP + k]];
                rho += mass * poly6(d.x * d.x + d.y * d.y, h * h);
            }
        }
    }
    density[i] = rho;
}

// A Yee step of the electric field in two dimensions, in place.
__kernel void fdtd_electric(__global float *ez, __global const float *hx, __global const float *hy,
                            __global const uchar *material, __constant float *coefficient, int nx, int ny)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x == 0 || y == 0 || x >= nx || y >= ny) return;
    int i = x + y * nx;
    ez[i] += coefficient[material[i]] * (hy[i] - hy[i - 1] - hx[i] + hx[i - nx]);
}

__kernel void fdtd_magnetic_3d(__global float4 *h, __global const float4 *e, int nx, int ny, int nz, float s)
{
    int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x >= nx - 1 || y >= ny - 1 || z >= nz - 1) return;
    int i = (z * ny + y) * nx + x;
    float4 here = e[i], ex = e[i + 1], ey = e[i + nx], ez = e[i + nx * ny];
    float4 curl = (float4)((ey.z - here.z) - (ez.y - here.y), (ez.x - here.x) - (ex.z - here.z),
                           (ex.y - here.y) - (ey.x - here.x), 0.0f);
    h[i] = h[i] - s * curl;
}

// Charges of particles to the four corners of their cell, in fixed point.
__kernel void pic_deposit(__global const float *px, __global const float *py, __global int *charge, int n, int nx,
                          int ny)
{
    for (int p = get_global_id(0); p < n; p += get_global_size(0)) {
        int ix = (int)px[p], iy = (int)py[p];
        if (ix < 0 || iy < 0 || ix >= nx - 1 || iy >= ny - 1)
            continue;
        int wx = (int)((px[p] - ix) * 256.0f), wy = (int)((py[p] - iy) * 256.0f);
        atomic_add(&charge[iy * nx + ix], (256 - wx) * (256 - wy));
        atomic_add(&charge[iy * nx + ix + 1], wx * (256 - wy));
        atomic_add(&charge[(iy + 1) * nx + ix], (256 - wx) * wy);
        atomic_add(&charge[(iy + 1) * nx + ix + 1], wx * wy);
    }
}

struct Charged { float x, y, vx, vy; };

// The other way round: fields of cells move the particles, which bounce at the walls.
__kernel void pic_push(__global struct Charged *p, __global const float2 *field, int n, int nx, int ny, float dt)
{
    int i = get_global_id(0);
    if (i >= n) return;
    struct Charged c = p[i];
    int ix = min((int)c.x, nx - 2), iy = min((int)c.y, ny - 2);
    float fx = c.x - ix, fy = c.y - iy;
    __global const float2 *corner = &field[iy * nx + ix];
    float2 low = mix(corner[0], corner[1], fx), high = mix(corner[nx], corner[nx + 1], fx);
    float2 e = mix(low, high, fy);
    c.vx += dt * e.x;
    c.vy += dt * e.y;
    c.x += dt * c.vx;
    c.y += dt * c.vy;
    if (c.x < 0) { c.x = -c.x; c.vx = -c.vx; }
    if (c.y < 0) { c.y = -c.y; c.vy = -c.vy; }
    float w = nx - 1, h = ny - 1;
    if (c.x > w) { c.x = 2 * w - c.x; c.vx = -c.vx; }
    if (c.y > h) { c.y = 2 * h - c.y; c.vy = -c.vy; }
    p[i] = c;
}

// The reciprocal sum: structure factors of wave vectors over all charges.
__kernel void ewald_structure(__global const float4 *charges, __global const int4 *waves, __global float2 *factor, int n,
                              int nwaves, float two_pi_over_box)
{
    int k = get_global_id(0);
    if (k >= nwaves) return;
    float3 g = two_pi_over_box * convert_float3(waves[k].xyz);
    float re = 0.0f, im = 0.0f;
    for (int j = 0; j < n; j++) {
        float phase = dot(g, charges[j].xyz), c;
        float s = sincos(phase, &c);
        re += charges[j].w * c;
        im += charges[j].w * s;
    }
    factor[k] = (float2)(re, im);
}

typedef struct { float x, y, z; } Vec3;
typedef struct {
    Vec3 position, velocity;
    uchar kind;
    uchar frozen;
} Atom;
typedef struct {
    float inverse_mass[3];
    Vec3 gravity;
    float dt, lowest;
} Setup;

static Vec3 add_scaled(Vec3 a, float s, Vec3 b)
{
    Vec3 r = {a.x + s * b.x, a.y + s * b.y, a.z + s * b.z};
    return r;
}

__kernel void leapfrog_atoms(__global Atom *atoms, __global const Vec3 *force, __constant Setup *setup, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    Atom a = atoms[i];
    if (a.frozen)
        return;
    Vec3 pull = add_scaled(setup->gravity, setup->inverse_mass[a.kind], force[i]);
    a.velocity = add_scaled(a.velocity, setup->dt, pull);
    a.position = add_scaled(a.position, setup->dt, a.velocity);
    if (a.position.z < setup->lowest) {
        a.position.z = 2.0f * setup->lowest - a.position.z;
        a.velocity.z *= -0.5f;
    }
    atoms[i] = a;
}

typedef struct { float x, y; } Point;
typedef struct {
    Point centre;
    float mass, size;
    int child;              // the first of four, or -1
} QuadNode;

// Barnes and Hut in two dimensions, with a stack of nodes that are still to be seen.
__kernel void barnes_hut_walk(__global const QuadNode *nodes, __global const Point *bodies, __global Point *acceleration,
                              int n, float theta2, float soft2)
{
    int i = get_global_id(0);
    if (i >= n) return;
    Point me = bodies[i];
    float ax = 0, ay = 0;
    int stack[40], top = 0;
    stack[top++] = 0;
    while (top) {
        QuadNode node = nodes[stack[--top]];
        if (node.mass == 0.0f) continue;
        float dx = node.centre.x - me.x, dy = node.centre.y - me.y;
        float r2 = dx * dx + dy * dy;
        if (node.child >= 0 && node.size * node.size >= theta2 * r2) {
            for (int c = 0; c < 4; c++)
                stack[top++] = node.child + c;
            continue;
        }
        float w = node.mass / (r2 + soft2);
        ax += w * dx;
        ay += w * dy;
    }
    acceleration[i].x = ax;
    acceleration[i].y = ay;
}
