// Graphs as lists of neighbours: first[v] to first[v + 1] in `adj`.

typedef struct {
    int first;
    int degree;
} Node;

__kernel void bfs_masks(__global const Node *nodes, __global const int *adj, __global uchar *frontier,
                        __global uchar *next, __global const uchar *visited, __global int *level, int count)
{
    int v = get_global_id(0);
    if (v < count && frontier[v]) {
        frontier[v] = 0;
        for (int e = nodes[v].first; e < nodes[v].first + nodes[v].degree; e++) {
            int w = adj[e];
            if (!visited[w]) {
                level[w] = level[v] + 1;      // all who write here write the same
                next[w] = 1;
            }
        }
    }
}

// The frontier is a queue; a vertex enters the next one by whoever claims it first.
__kernel void bfs_queue(__global const int *queue, int waiting, __global const int *first, __global const int *adj,
                        __global int *depth, __global int *next_queue, __global int *next_count, int current)
{
    int t = get_global_id(0);
    if (t >= waiting) return;
    int v = queue[t];
    for (int e = first[v]; e < first[v + 1]; ++e) {
        int w = adj[e];
        if (atomic_cmpxchg(&depth[w], -1, current + 1) == -1)
            next_queue[atomic_inc(next_count)] = w;
    }
}

__kernel void sssp_relax(__global const int *first, __global const int *adj, __global const int *weight,
                         __global const int *old_dist, __global int *new_dist, __global int *changed, int n)
{
    int v = get_global_id(0);
    if (v >= n) return;
    int d = old_dist[v];
    if (d == INT_MAX) return;
    for (int e = first[v]; e < first[v + 1]; e++) {
        int candidate = d + weight[e];
        if (candidate < old_dist[adj[e]]) {
            atomic_min(&new_dist[adj[e]], candidate);
            *changed = 1;
        }
    }
}

__kernel void pagerank_pull(__global const int *first, __global const int *sources, __global const float *rank,
                            __global const int *out_degree, __global float *next, float damping, int n)
{
    int v = get_global_id(0);
    if (v >= n) return;
    float incoming = 0.f;
    for (int e = first[v]; e < first[v + 1]; e++) {
        int u = sources[e];
        incoming += rank[u] / out_degree[u];
    }
    next[v] = (1.f - damping) / n + damping * incoming;
}

// Ranks are fixed-point numbers, so that they can be added atomically.
__kernel void pagerank_push(__global const int *first, __global const int *targets, __global const uint *rank,
                            __global uint *next, int n)
{
    int v = get_global_id(0);
    if (v >= n) return;
    int begin = first[v], end = first[v + 1];
    if (begin == end) return;
    uint share = rank[v] / (uint)(end - begin);
    for (int e = begin; e < end; e++)
        atomic_add(next + targets[e], share);
}

__kernel void components_hook(__global const int2 *edges, int nedges, __global int *parent)
{
    int e = get_global_id(0);
    if (e >= nedges) return;
    int u = parent[edges[e].x], v = parent[edges[e].y];
    int high = u > v ? u : v, low = u + v - high;
    if (high != low)
        atomic_min(parent + high, low);
}

__kernel void components_jump(__global const int *parent, __global int *root, int n)
{
    int v = get_global_id(0);
    if (v >= n) return;
    int p = parent[v];
    while (p != parent[p])
        p = parent[p];
    root[v] = p;
}

// Neighbours are sorted; each edge u < v merges both lists.
__kernel void triangle_count(__global const int *first, __global const int *adj, __global int *triangles, int n)
{
    int u = get_global_id(0);
    if (u >= n) return;
    int found = 0;
    for (int e = first[u]; e < first[u + 1]; e++) {
        int v = adj[e];
        if (v <= u) continue;
        int i = e + 1, j = first[v];
        while (i < first[u + 1] && j < first[v + 1]) {
            int a = adj[i], b = adj[j];
            if (a == b) {
                if (a > v) found++;
                i++, j++;
            } else if (a < b)
                i++;
            else
                j++;
        }
    }
    triangles[u] = found;
}

// A vertex whose priority is the largest among its uncoloured neighbours takes the smallest free colour.
__kernel void colour_step(__global const int *first, __global const int *adj, __global const int *priority,
                          __global const int *colour, __global int *new_colour, int n)
{
    int v = get_global_id(0);
    if (v >= n || colour[v] >= 0) return;
    ulong used = 0;
    for (int e = first[v]; e < first[v + 1]; e++) {
        int w = adj[e];
        if (w == v) continue;
        int c = colour[w];
        if (c < 0) {
            if (priority[w] > priority[v] || (priority[w] == priority[v] && w > v))
                return;
        } else if (c < 64)
            used |= 1UL << c;
    }
    int c = 0;
    while (used >> c & 1)
        c++;
    new_colour[v] = c;
}

// Labels spread: each vertex takes the most frequent label of its first eight neighbours.
__kernel void label_propagation(__global const int *first, __global const int *adj, __global const int *label,
                                __global int *out, int n)
{
    int v = get_global_id(0);
    if (v >= n) return;
    int seen[8], count[8], kinds = 0;
    for (int e = first[v]; e < first[v + 1] && e < first[v] + 8; e++) {
        int l = label[adj[e]];
        int k = 0;
        while (k < kinds && seen[k] != l) k++;
        if (k == kinds) {
            seen[kinds] = l;
            count[kinds++] = 1;
        } else
            count[k]++;
    }
    int best = label[v], most = 0;
    for (int k = 0; k < kinds; k++)
        if (count[k] > most || (count[k] == most && seen[k] < best)) {
            most = count[k];
            best = seen[k];
        }
    out[v] = best;
}
