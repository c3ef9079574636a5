// Lattice Boltzmann and finite volumes.

__constant float lbm_w[9] = {4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};
__constant int lbm_x[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
__constant int lbm_y[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
__constant int lbm_opposite[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};

// Collides and pushes to neighbours; solid cells bounce back. Distributions lie plane by plane, the grid wraps.
__kernel void lbm_push(__global const float *f, __global float *g, __global const uchar *solid, int nx, int ny,
                       float omega)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= nx || y >= ny) return;
    int n = nx * ny, at = y * nx + x;
    float in[9], rho = 0.0f, ux = 0.0f, uy = 0.0f;
    for (int i = 0; i < 9; i++) {
        in[i] = f[i * n + at];
        rho += in[i];
        ux += lbm_x[i] * in[i];
        uy += lbm_y[i] * in[i];
    }
    ux /= rho;
    uy /= rho;
    float usq = 1.5f * (ux * ux + uy * uy);
    bool wall = solid[at];
    for (int i = 0; i < 9; i++) {
        float out;
        if (wall) {
            out = in[lbm_opposite[i]];
        } else {
            float cu = 3.0f * (lbm_x[i] * ux + lbm_y[i] * uy);
            float eq = rho * lbm_w[i] * (1.0f + cu + 0.5f * cu * cu - usq);
            out = in[i] + omega * (eq - in[i]);
        }
        int tx = x + lbm_x[i], ty = y + lbm_y[i];
        tx = tx < 0 ? nx - 1 : tx >= nx ? 0 : tx;
        ty = ty < 0 ? ny - 1 : ty >= ny ? 0 : ty;
        g[i * n + ty * nx + tx] = out;
    }
}

typedef struct { float q[9]; } Cell;

// Cells as structs of nine numbers; only the collision, in place.
__kernel void lbm_collide_structs(__global Cell *cells, int n, float omega, float force)
{
    int i = get_global_id(0);
    if (i >= n) return;
    Cell c = cells[i];
    float rho = 0, mx = 0, my = 0;
    for (int k = 0; k < 9; ++k) {
        rho += c.q[k];
        mx += c.q[k] * lbm_x[k];
        my += c.q[k] * lbm_y[k];
    }
    float ux = mx / rho + force, uy = my / rho;
    float u2 = ux * ux + uy * uy;
    for (int k = 0; k < 9; ++k) {
        float e = lbm_x[k] * ux + lbm_y[k] * uy;
        float eq = lbm_w[k] * rho * (1 + 3 * e + 4.5f * e * e - 1.5f * u2);
        cells[i].q[k] = (1 - omega) * c.q[k] + omega * eq;
    }
}

// Unrolled by hand, pulled through an index list of fluid cells.
__kernel void lbm_pull_indexed(__global const double *f, __global double *out, __global const int *from, int n,
                               double tau_inv)
{
    int i = get_global_id(0);
    if (i >= n) return;
    double f0 = f[i];
    double fe = f[n + from[i]], fn = f[2 * n + from[n + i]], fw = f[3 * n + from[2 * n + i]];
    double fs = f[4 * n + from[3 * n + i]];
    double rho = f0 + fe + fn + fw + fs;
    double ux = (fe - fw) / rho, uy = (fn - fs) / rho;
    out[i] = f0 + tau_inv * (rho / 3.0 - f0);
    out[n + i] = fe + tau_inv * (rho / 6.0 * (1.0 + 3.0 * ux) - fe);
    out[2 * n + i] = fn + tau_inv * (rho / 6.0 * (1.0 + 3.0 * uy) - fn);
    out[3 * n + i] = fw + tau_inv * (rho / 6.0 * (1.0 - 3.0 * ux) - fw);
    out[4 * n + i] = fs + tau_inv * (rho / 6.0 * (1.0 - 3.0 * uy) - fs);
}

#define GAMMA 1.4f

typedef struct {
    float rho, mx, my, energy;
} State;

static float pressure_of(State s)
{
    return (GAMMA - 1.0f) * (s.energy - 0.5f * (s.mx * s.mx + s.my * s.my) / s.rho);
}

static State normal_flux(State s, float nx, float ny)
{
    float p = pressure_of(s);
    float un = (s.mx * nx + s.my * ny) / s.rho;
    State f;
    f.rho = s.rho * un;
    f.mx = s.mx * un + p * nx;
    f.my = s.my * un + p * ny;
    f.energy = (s.energy + p) * un;
    return f;
}

// Residuals of triangles: a Rusanov flux over each of the three edges; -1 is a wall, -2 the far field.
__kernel void unstructured_flux(__global const State *cells, __global const int *neighbour,
                                __global const float2 *normal, __global State *residual, const State far_field, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    State me = cells[i];
    State sum = {0, 0, 0, 0};
    for (int e = 0; e < 3; e++) {
        int nb = neighbour[e * n + i];
        float2 d = normal[e * n + i];
        if (nb == -1) {
            float p = pressure_of(me);
            sum.mx += p * d.x;
            sum.my += p * d.y;
            continue;
        }
        State other;
        if (nb == -2)
            other = far_field;
        else
            other = cells[nb];
        float area = sqrt(d.x * d.x + d.y * d.y);
        float nx = d.x / area, ny = d.y / area;
        State fa = normal_flux(me, nx, ny), fb = normal_flux(other, nx, ny);
        float ua = fabs((me.mx * nx + me.my * ny) / me.rho) + sqrt(GAMMA * pressure_of(me) / me.rho);
        float ub = fabs((other.mx * nx + other.my * ny) / other.rho) + sqrt(GAMMA * pressure_of(other) / other.rho);
        float s = fmax(ua, ub);
        sum.rho += 0.5f * area * (fa.rho + fb.rho - s * (other.rho - me.rho));
        sum.mx += 0.5f * area * (fa.mx + fb.mx - s * (other.mx - me.mx));
        sum.my += 0.5f * area * (fa.my + fb.my - s * (other.my - me.my));
        sum.energy += 0.5f * area * (fa.energy + fb.energy - s * (other.energy - me.energy));
    }
    residual[i] = sum;
}

// HLL fluxes of the shallow water equations at all faces of a line of cells, with dry states.
__kernel void shallow_water_hll(__global const double *h, __global const double *hu, __global double *fh,
                                __global double *fhu, int faces)
{
    const double g = 9.81;
    int i = get_global_id(0);
    if (i >= faces) return;
    double hl = h[i], hr = h[i + 1];
    if (hl < 1e-6 && hr < 1e-6) {
        fh[i] = fhu[i] = 0;
        return;
    }
    double ul = hl < 1e-6 ? 0 : hu[i] / hl, ur = hr < 1e-6 ? 0 : hu[i + 1] / hr;
    double cl = sqrt(g * hl), cr = sqrt(g * hr);
    double sl = fmin(ul - cl, ur - cr), sr = fmax(ul + cl, ur + cr);
    double ml = hl * ul, mr = hr * ur;
    double pl = ml * ul + 0.5 * g * hl * hl, pr = mr * ur + 0.5 * g * hr * hr;
    if (sl >= 0) {
        fh[i] = ml;
        fhu[i] = pl;
    } else if (sr <= 0) {
        fh[i] = mr;
        fhu[i] = pr;
    } else {
        fh[i] = (sr * ml - sl * mr + sl * sr * (hr - hl)) / (sr - sl);
        fhu[i] = (sr * pl - sl * pr + sl * sr * (mr - ml)) / (sr - sl);
    }
}

// An exact Riemann solver's star pressure by Newton's method, a problem a work-item.
float shock_curve(float p, float pk, float rhok, float ck, float *slope)
{
    if (p > pk) {
        float a = 2.0f / ((GAMMA + 1) * rhok), b = (GAMMA - 1) / (GAMMA + 1) * pk;
        float q = sqrt(a / (p + b));
        *slope = q * (1.0f - 0.5f * (p - pk) / (b + p));
        return (p - pk) * q;
    }
    float ratio = p / pk;
    *slope = pow(ratio, -(GAMMA + 1) / (2 * GAMMA)) / (rhok * ck);
    return 2 * ck / (GAMMA - 1) * (pow(ratio, (GAMMA - 1) / (2 * GAMMA)) - 1);
}

__kernel void riemann_star(__global const float4 *left, __global const float4 *right, __global float *star, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    float rl = left[i].x, ul = left[i].y, pl = left[i].z;
    float rr = right[i].x, ur = right[i].y, pr = right[i].z;
    float cl = sqrt(GAMMA * pl / rl), cr = sqrt(GAMMA * pr / rr);
    float p = 0.5f * (pl + pr);
    for (int it = 0; it < 25; it++) {
        float sl, sr;
        float f = shock_curve(p, pl, rl, cl, &sl) + shock_curve(p, pr, rr, cr, &sr) + ur - ul;
        float next = fmax(p - f / (sl + sr), 1e-5f);
        float change = 2 * fabs(next - p) / (next + p);
        p = next;
        if (change < 1e-6f) break;
    }
    star[i] = p;
}

// Semi-Lagrangian advection with bilinear sampling.
__kernel void advect(__global const float *q, __global const float2 *velocity, __global float *out, int w, int h, float dt)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= w || y >= h) return;
    float2 from = (float2)(x, y) - dt * velocity[y * w + x];
    from = clamp(from, (float2)(0.0f), (float2)(w - 1.001f, h - 1.001f));
    int2 c = convert_int2_rtz(from);
    float2 t = from - convert_float2(c);
    int at = c.y * w + c.x;
    out[y * w + x] = (1 - t.y) * ((1 - t.x) * q[at] + t.x * q[at + 1]) + t.y * ((1 - t.x) * q[at + w] + t.x * q[at + w + 1]);
}
