// Dynamic programming, a launch a diagonal, row or step.

#define MATCH 2
#define MISMATCH (-1)
#define GAP 1

// One anti-diagonal of the local alignments of many pairs; scores are (m + 1) x (n + 1) for each.
__kernel void smith_waterman_diagonal(__global const char *firsts, __global const char *seconds, __global int *scores,
                                      int m, int n, int diagonal)
{
    int first = max(1, diagonal - n), last = min(m, diagonal - 1);
    int i = first + get_global_id(0);
    if (i > last)
        return;
    int j = diagonal - i, pair = get_global_id(1);
    int w = n + 1;
    __global int *H = scores + pair * (m + 1) * w;
    int score = firsts[pair * m + i - 1] == seconds[pair * n + j - 1] ? MATCH : MISMATCH;
    int best = H[(i - 1) * w + j - 1] + score;
    int up = H[(i - 1) * w + j] - GAP;
    int left = H[i * w + j - 1] - GAP;
    if (up > best) best = up;
    if (left > best) best = left;
    H[i * w + j] = best < 0 ? 0 : best;
}

// One short pair of words a work-item, with a private row.
#define MAXLEN 32
__kernel void edit_distance(__global const uchar *words, __global const int *start, __global const int2 *pairs,
                            __global int *distance, int count)
{
    int p = get_global_id(0);
    if (p >= count) return;
    int2 pair = pairs[p];
    __global const uchar *a = words + start[pair.x];
    __global const uchar *b = words + start[pair.y];
    int la = start[pair.x + 1] - start[pair.x];
    int lb = start[pair.y + 1] - start[pair.y];
    int row[MAXLEN + 1];
    for (int j = 0; j <= lb; j++)
        row[j] = j;
    for (int i = 1; i <= la; i++) {
        int diag = row[0];
        row[0] = i;
        for (int j = 1; j <= lb; j++) {
            int old = row[j];
            int cost = diag + (a[i - 1] != b[j - 1]);
            row[j] = min(min(old, row[j - 1]) + 1, cost);
            diag = old;
        }
    }
    distance[p] = row[lb];
}

// A work-group computes the longest common subsequence of one pair by diagonals in local memory.
__kernel void lcs_group(__global const uchar *s, __global const uchar *t, __global int *lengths, int m, int n,
                        __local ushort *diagonals)
{
    int pair = get_group_id(0);
    __global const uchar *a = s + pair * m;
    __global const uchar *b = t + pair * n;
    __local ushort *d0 = diagonals, *d1 = diagonals + m + 1, *d2 = diagonals + 2 * (m + 1);
    for (int i = get_local_id(0); i <= m; i += get_local_size(0))
        d0[i] = d1[i] = d2[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 2; d <= m + n; d++) {
        int lo = max(1, d - n), hi = min(m, d - 1);
        for (int i = lo + get_local_id(0); i <= hi; i += get_local_size(0)) {
            int j = d - i;
            d2[i] = a[i - 1] == b[j - 1] ? d0[i - 1] + 1 : max(d1[i - 1], d1[i]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        __local ushort *spare = d0;
        d0 = d1; d1 = d2; d2 = spare;
    }
    if (get_local_id(0) == 0)
        lengths[pair] = d1[m];
}

// The row of one item for all capacities, and whether it was taken.
__kernel void knapsack_item(__global const int *before, __global int *after, __global uchar *taken, int capacity,
                            int weight, int value)
{
    int c = get_global_id(0);
    if (c > capacity) return;
    int best = before[c];
    uchar took = 0;
    if (c >= weight) {
        int with_item = before[c - weight] + value;
        if (with_item > best) {
            best = with_item;
            took = 1;
        }
    }
    after[c] = best;
    taken[c] = took;
}

__kernel void floyd_warshall_step(__global int *dist, __global int *next, const int n, const int k)
{
    const int j = get_global_id(0);
    const int i = get_global_id(1);
    if (i >= n || j >= n) return;
    const int through = dist[i * n + k] + dist[k * n + j];
    if (through < dist[i * n + j]) {
        dist[i * n + j] = through;
        next[i * n + j] = k;
    }
}

// The cheapest way down a grid, several rows a launch, work-groups overlap by their halo.
#define WIDE 256
__kernel void grid_path(__global const int *cost, __global const int *from, __global int *to, int cols, int first_row,
                        int rows)
{
    __local int prev[WIDE];
    __local int now[WIDE];
    int tx = get_local_id(0);
    int useful = WIDE - 2 * rows;
    int x = get_group_id(0) * useful - rows + tx;
    bool inside = x >= 0 && x < cols;
    if (inside)
        prev[tx] = from[x];
    barrier(CLK_LOCAL_MEM_FENCE);
    int lo = max(0, -(x - tx));                         // the first column of the grid within the group
    int hi = min(WIDE - 1, cols - 1 - (x - tx));
    for (int r = 0; r < rows; r++) {
        bool valid = inside && tx >= r && tx <= WIDE - 1 - r;
        if (valid) {
            int m = prev[tx];
            if (tx > lo) m = min(m, prev[tx - 1]);
            if (tx < hi) m = min(m, prev[tx + 1]);
            now[tx] = m + cost[(first_row + r) * cols + x];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (valid)
            prev[tx] = now[tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (inside && tx >= rows && tx < WIDE - rows)
        to[x] = prev[tx];
}

// One step of the best path through hidden states, in logarithms.
__kernel void viterbi_step(__global const float *score, __global float *new_score, __global int *back,
                           __global const float *log_trans, __global const float *log_emit, int states, int symbols,
                           int observed)
{
    int to = get_global_id(0);
    if (to >= states) return;
    float best = -FLT_MAX;
    int arg = 0;
    for (int from = 0; from < states; from++) {
        float s = score[from] + log_trans[from * states + to];
        if (s > best) {
            best = s;
            arg = from;
        }
    }
    new_score[to] = best + log_emit[to * symbols + observed];
    back[to] = arg;
}

// The matrix-chain order: all chains of one length.
__kernel void matrix_chain(__global const int *dims, __global long *cost, __global short *split, int n, int length)
{
    int i = get_global_id(0);
    int j = i + length;
    if (j >= n) return;
    long best = LONG_MAX;
    short at = -1;
    for (int k = i; k < j; ++k) {
        long c = cost[i * n + k] + cost[(k + 1) * n + j] + (long)dims[i] * dims[k + 1] * dims[j + 1];
        if (c < best) { best = c; at = k; }
    }
    cost[i * n + j] = best;
    split[i * n + j] = at;
}

// Dynamic time warping of a query to many series of one length, one work-item a series.
__kernel void dtw_band(__global const float *series, __constant float *query, __global float *out, int count, int len,
                       int band)
{
    int id = get_global_id(0);
    if (id >= count) return;
    float row[64];
    for (int j = 0; j < len; j++) row[j] = INFINITY;
    for (int i = 0; i < len; i++) {
        float q = query[i];
        int lo = max(0, i - band), hi = min(len - 1, i + band);
        float diag = lo > 0 ? row[lo - 1] : INFINITY;
        if (lo > 0) row[lo - 1] = INFINITY;
        float left = INFINITY;
        for (int j = lo; j <= hi; j++) {
            float d = q - series[j * count + id];
            float up = j == i + band ? INFINITY : row[j];
            float best = (i == 0 && j == 0) ? 0.0f : fmin(fmin(up, left), diag);
            diag = row[j];
            left = row[j] = d * d + best;
        }
    }
    out[id] = row[len - 1];
}
