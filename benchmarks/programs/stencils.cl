// Finite differences and cellular automata, with their boundaries.

__kernel void heat_2d(__global const float *u, __global float *unew, const int nx, const int ny, const float r)
{
    const int i = get_global_id(0), j = get_global_id(1);
    if (i >= nx || j >= ny) return;
    const int at = j * nx + i;
    if (i == 0 || j == 0 || i == nx - 1 || j == ny - 1) {
        unew[at] = u[at];
        return;
    }
    unew[at] = u[at] + r * (u[at - 1] + u[at + 1] + u[at - nx] + u[at + nx] - 4.0f * u[at]);
}

// A tile with a halo of one, loaded by the work-items at its edges.
#define TX 32
#define TY 8
__kernel void heat_2d_tile(__global const float *u, __global float *unew, int nx, int ny, float r)
{
    __local float t[TY + 2][TX + 2];
    int lx = get_local_id(0) + 1, ly = get_local_id(1) + 1;
    int i = get_global_id(0), j = get_global_id(1);
    int ci = min(i, nx - 1), cj = min(j, ny - 1);
    t[ly][lx] = u[cj * nx + ci];
    if (lx == 1)  t[ly][0]      = u[cj * nx + max(ci - 1, 0)];
    if (lx == TX) t[ly][TX + 1] = u[cj * nx + min(ci + 1, nx - 1)];
    if (ly == 1)  t[0][lx]      = u[max(cj - 1, 0) * nx + ci];
    if (ly == TY) t[TY + 1][lx] = u[min(cj + 1, ny - 1) * nx + ci];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < 1 || j < 1 || i >= nx - 1 || j >= ny - 1)
        return;
    unew[j * nx + i] = t[ly][lx] + r * (t[ly][lx - 1] + t[ly][lx + 1] + t[ly - 1][lx] + t[ly + 1][lx] - 4 * t[ly][lx]);
}

typedef struct { int x, y, z; } Extent;
#define AT(i, j, k) (((k) * e.y + (j)) * e.x + (i))

__kernel void laplace_3d_7(__global const double *in, __global double *out, Extent e, double c0, double c1)
{
    int i = get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    if (i < 1 || j < 1 || k < 1 || i > e.x - 2 || j > e.y - 2 || k > e.z - 2)
        return;
    out[AT(i, j, k)] = c0 * in[AT(i, j, k)] + c1 * (in[AT(i - 1, j, k)] + in[AT(i + 1, j, k)] + in[AT(i, j - 1, k)]
                     + in[AT(i, j + 1, k)] + in[AT(i, j, k - 1)] + in[AT(i, j, k + 1)]);
}

__constant float weights27[4] = {0.5f, 0.05f, 0.012f, 0.007f};

// The weight of a neighbour depends on how many of its coordinates differ.
__kernel void box_3d_27(__global const float *in, __global float *out, int nx, int ny, int nz)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    int z = get_global_id(2);
    if (x >= nx || y >= ny || z >= nz) return;
    float sum = 0.0f;
    for (int dz = -1; dz <= 1; dz++)
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                int xx = clamp(x + dx, 0, nx - 1);
                int yy = clamp(y + dy, 0, ny - 1);
                int zz = clamp(z + dz, 0, nz - 1);
                sum += weights27[abs(dx) + abs(dy) + abs(dz)] * in[(zz * ny + yy) * nx + xx];
            }
    out[(z * ny + y) * nx + x] = sum;
}

// Fourth order in space; work-items march along z with a queue of planes in registers.
__constant float wave_c[3] = {-2.5f, 1.3333333f, -0.083333336f};

__kernel void wave_march(__global const float *cur, __global const float *prev, __global const float *vel2,
                         __global float *next, int nx, int ny, int nz)
{
    int x = get_global_id(0) + 2, y = get_global_id(1) + 2;
    if (x >= nx - 2 || y >= ny - 2) return;
    const int plane = nx * ny;
    int at = y * nx + x;
    float b2 = cur[at], b1 = cur[at + plane], c = cur[at + 2 * plane], f1 = cur[at + 3 * plane];
    at += 2 * plane;
    for (int z = 2; z < nz - 2; ++z, at += plane) {
        float f2 = cur[at + 2 * plane];
        float lap = 3 * wave_c[0] * c + wave_c[1] * (b1 + f1) + wave_c[2] * (b2 + f2);
        for (int o = 1; o <= 2; o++)
            lap += wave_c[o] * (cur[at - o] + cur[at + o] + cur[at - o * nx] + cur[at + o * nx]);
        next[at] = 2.0f * c - prev[at] + vel2[at] * lap;
        b2 = b1; b1 = c; c = f1; f1 = f2;
    }
}

inline float edge_stop(float d, float k2) { return 1.0f / (1.0f + d * d / k2); }

__kernel void anisotropic_diffusion(__global const float *img, __global float *out, int w, int h, float kappa,
                                    float lambda)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= w || y >= h) return;
    float c = img[y * w + x];
    float dn = (y > 0 ? img[(y - 1) * w + x] : c) - c;
    float ds = (y < h - 1 ? img[(y + 1) * w + x] : c) - c;
    float dw = (x > 0 ? img[y * w + x - 1] : c) - c;
    float de = (x < w - 1 ? img[y * w + x + 1] : c) - c;
    float k2 = kappa * kappa;
    out[y * w + x] = c + lambda * (edge_stop(dn, k2) * dn + edge_stop(ds, k2) * ds + edge_stop(dw, k2) * dw
                                   + edge_stop(de, k2) * de);
}

// One colour of a successive over-relaxation, in place.
__kernel void red_black_sor(__global double *p, __global const double *rhs, int n, int colour, double omega)
{
    int y = get_global_id(1) + 1;
    int x = 2 * get_global_id(0) + 1 + ((y + colour) & 1);
    if (x > n || y > n) return;
    int w = n + 2;
    int i = y * w + x;
    double residual = p[i - 1] + p[i + 1] + p[i - w] + p[i + w] - 4.0 * p[i] - rhs[i];
    p[i] += 0.25 * omega * residual;
}

__kernel void game_of_life(__global const uchar *world, __global uchar *next, int width, int height)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    if (x >= width || y >= height) return;
    int alive = 0;
    for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
            if (dx == 0 && dy == 0)
                continue;
            int xx = (x + dx + width) % width;
            int yy = (y + dy + height) % height;
            alive += world[yy * width + xx];
        }
    }
    uchar state = world[y * width + x];
    switch (alive) {
    case 2: next[y * width + x] = state; break;
    case 3: next[y * width + x] = 1; break;
    default: next[y * width + x] = 0;
    }
}

// Elementary automaton of 32 cells a word, periodic, by rule number.
__kernel void rule_automaton(__global const uint *cells, __global uint *out, uint words, uchar rule)
{
    uint i = get_global_id(0);
    if (i >= words) return;
    uint c = cells[i];
    uint left = (c << 1) | (cells[i == 0 ? words - 1 : i - 1] >> 31);
    uint right = (c >> 1) | (cells[i + 1 == words ? 0 : i + 1] << 31);
    uint result = 0;
    for (uint pattern = 0; pattern < 8; pattern++)
        if (rule >> pattern & 1) {
            uint m = (pattern & 4 ? left : ~left) & (pattern & 2 ? c : ~c) & (pattern & 1 ? right : ~right);
            result |= m;
        }
    out[i] = result;
}

// Reaction and diffusion of two substances that lie as float2 on a torus.
typedef struct { float du, dv, feed, kill, dt; } Gray;

__kernel void gray_scott(__global const float2 *s, __global float2 *d, const Gray g, int n)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= n || y >= n) return;
    int xm = x == 0 ? n - 1 : x - 1, xp = x == n - 1 ? 0 : x + 1;
    int ym = y == 0 ? n - 1 : y - 1, yp = y == n - 1 ? 0 : y + 1;
    float2 c = s[y * n + x];
    float2 lap = s[y * n + xm] + s[y * n + xp] + s[ym * n + x] + s[yp * n + x] - 4.0f * c;
    float uvv = c.x * c.y * c.y;
    float2 rate;
    rate.x = g.du * lap.x - uvv + g.feed * (1.0f - c.x);
    rate.y = g.dv * lap.y + uvv - (g.feed + g.kill) * c.y;
    d[y * n + x] = c + g.dt * rate;
}
