// Clustering, neighbours, mixtures and trees.

// points lie dimension by dimension, centres centre by centre
__kernel void kmeans_assign(__global const float *points, __global const float *centres, __global int *member, int n,
                            int dims, int k)
{
    int p = get_global_id(0);
    if (p >= n) return;
    int best = -1;
    float nearest = FLT_MAX;
    for (int c = 0; c < k; c++) {
        float d2 = 0;
        for (int d = 0; d < dims; d++) {
            float diff = points[d * n + p] - centres[c * dims + d];
            d2 += diff * diff;
        }
        if (d2 < nearest) {
            nearest = d2;
            best = c;
        }
    }
    member[p] = best;
}

typedef struct {
    float4 position;
    int label;
    float weight;
} Sample;

// Centres in local memory, points as structs of 32 bytes.
__kernel void kmeans_assign_structs(__global Sample *samples, __constant float4 *centres, int n, int k,
                                    __local float4 *cache)
{
    for (int c = get_local_id(0); c < k; c += get_local_size(0))
        cache[c] = centres[c];
    barrier(CLK_LOCAL_MEM_FENCE);
    int i = get_global_id(0);
    if (i >= n) return;
    float4 at = samples[i].position;
    float least = MAXFLOAT;
    int label = samples[i].label;
    for (int c = 0; c < k; c++) {
        float4 d = at - cache[c];
        float d2 = dot(d, d);
        if (d2 < least) {
            least = d2;
            label = c;
        }
    }
    samples[i].label = label;
    samples[i].weight = 1.0f / (1.0f + least);
}

// Integer sums of each cluster: first of a work-group, then of all.
#define MAXK 16
#define DIMS 4
__kernel void kmeans_accumulate(__global const short *points, __global const uchar *member, __global int *sums,
                                __global int *counts, int n, int k)
{
    __local int lsums[MAXK * DIMS];
    __local int lcounts[MAXK];
    int t = get_local_id(0);
    if (t < MAXK * DIMS) lsums[t] = 0;
    if (t < MAXK) lcounts[t] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
        int m = member[i];
        atomic_inc(&lcounts[m]);
        for (int d = 0; d < DIMS; d++)
            atomic_add(&lsums[m * DIMS + d], (int)points[i * DIMS + d]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < k * DIMS) atomic_add(&sums[t], lsums[t]);
    if (t < k) atomic_add(&counts[t], lcounts[t]);
}

// The k nearest of all references, kept sorted by insertion.
#define K 8
__kernel void knn_insertion(__global const float *refs, __global const float *queries, __global float *dist,
                            __global int *index, int nrefs, int nqueries)
{
    int q = get_global_id(0);
    if (q >= nqueries) return;
    float d[K];
    int id[K];
    for (int s = 0; s < K; s++) { d[s] = INFINITY; id[s] = -1; }
    float qx = queries[3 * q], qy = queries[3 * q + 1], qz = queries[3 * q + 2];
    for (int r = 0; r < nrefs; r++) {
        float dx = refs[3 * r] - qx, dy = refs[3 * r + 1] - qy, dz = refs[3 * r + 2] - qz;
        float dd = dx * dx + dy * dy + dz * dz;
        if (dd >= d[K - 1])
            continue;
        int s = K - 1;
        while (s > 0 && d[s - 1] > dd) {
            d[s] = d[s - 1];
            id[s] = id[s - 1];
            s--;
        }
        d[s] = dd;
        id[s] = r;
    }
    for (int s = 0; s < K; s++) {
        dist[q * K + s] = d[s];
        index[q * K + s] = id[s];
    }
}

typedef struct { float lat, lng; } LatLong;

// Distances of places to one place.
__kernel void nearest_place(__global const LatLong *places, __global float *distances, const int n, const float lat,
                            const float lng)
{
    int gid = get_global_id(0);
    if (gid < n) {
        LatLong here = places[gid];
        distances[gid] = sqrt((lat - here.lat) * (lat - here.lat) + (lng - here.lng) * (lng - here.lng));
    }
}

__kernel void mean_shift(__global const float2 *points, __global float2 *shifted, int n, float radius)
{
    int i = get_global_id(0);
    if (i >= n) return;
    float2 me = points[i], sum = (float2)(0.0f, 0.0f);
    float total = 0;
    const float h2 = radius * radius;
    for (int j = 0; j < n; j++) {
        float2 d = points[j] - me;
        float r2 = d.x * d.x + d.y * d.y;
        if (r2 > 4 * h2) continue;
        float w = exp(-0.5f * r2 / h2);
        sum += w * points[j];
        total += w;
    }
    shifted[i] = sum / total;
}

// Responsibilities of k diagonal Gaussians, by logarithms of sums of exponentials.
__kernel void gmm_estep(__global const double *x, __global const double *mean, __global const double *inv_var,
                        __global const double *log_coef, __global double *resp, __global double *loglik, int n, int d,
                        int k)
{
    int i = get_global_id(0);
    if (i >= n) return;
    double top = -DBL_MAX;
    for (int c = 0; c < k; c++) {
        double q = 0;
        for (int j = 0; j < d; j++) {
            double z = x[i * d + j] - mean[c * d + j];
            q += z * z * inv_var[c * d + j];
        }
        double l = log_coef[c] - 0.5 * q;
        resp[i * k + c] = l;
        top = fmax(top, l);
    }
    double sum = 0;
    for (int c = 0; c < k; c++)
        sum += exp(resp[i * k + c] - top);
    double all = top + log(sum);
    for (int c = 0; c < k; c++)
        resp[i * k + c] = exp(resp[i * k + c] - all);
    loglik[i] = all;
}

typedef struct {
    short feature;        // -1 in leaves
    short left;           // the right child is the next one
    float threshold;      // or the value of a leaf
} TreeNode;

__kernel void decision_tree(__global const TreeNode *tree, __global const float *rows, __global float *out, int n,
                            int features)
{
    int i = get_global_id(0);
    if (i >= n) return;
    __global const float *row = rows + i * features;
    int at = 0;
    while (tree[at].feature >= 0)
        at = tree[at].left + (row[tree[at].feature] > tree[at].threshold);
    out[i] = tree[at].threshold;
}

// Votes of many trees for classes; trees lie behind one another.
__kernel void forest_vote(__global const TreeNode *nodes, __global const int *roots, int trees,
                          __global const float *rows, int features, __global uchar *winner, int n)
{
    int i = get_global_id(0);
    if (i >= n) return;
    int votes[4] = {0, 0, 0, 0};
    for (int t = 0; t < trees; t++) {
        __global const TreeNode *tree = nodes + roots[t];
        TreeNode node = tree[0];
        for (;;) {
            if (node.feature < 0) break;
            float v = rows[node.feature * n + i];
            node = tree[v <= node.threshold ? node.left : node.left + 1];
        }
        votes[(int)node.threshold]++;
    }
    int best = 0;
    for (int c = 1; c < 4; c++)
        if (votes[c] > votes[best]) best = c;
    winner[i] = best;
}

// One pass of DBSCAN: how many points lie within eps, which are core points.
__kernel void dbscan_core(__global const float *xs, __global const float *ys, __global int *neighbours,
                          __global char *core, float eps2, int min_points, int n)
{
    __local float tx[64], ty[64];
    int i = get_global_id(0), l = get_local_id(0);
    float x = i < n ? xs[i] : 0, y = i < n ? ys[i] : 0;
    int found = 0;
    for (int base = 0; base < n; base += 64) {
        if (base + l < n) { tx[l] = xs[base + l]; ty[l] = ys[base + l]; }
        barrier(CLK_LOCAL_MEM_FENCE);
        int limit = min(64, n - base);
        for (int j = 0; j < limit; j++) {
            float dx = tx[j] - x, dy = ty[j] - y;
            if (dx * dx + dy * dy <= eps2) found++;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < n) {
        neighbours[i] = found;
        core[i] = found >= min_points;
    }
}

// A step of stochastic gradient descent for logistic regression, one work-item a weight.
__kernel void logistic_gradient(__global const float *x, __global const char *label, __global const float *margin,
                                __global float *w, int samples, int features, float rate, float decay)
{
    int f = get_global_id(0);
    if (f >= features) return;
    float g = 0.0f;
    for (int s = 0; s < samples; s++) {
        float p = 1.0f / (1.0f + native_exp(-margin[s]));
        float want = label[s] > 0 ? 1.0f : 0.0f;
        g += (p - want) * x[s * features + f];
    }
    w[f] -= rate * (g / samples + decay * w[f]);
}
