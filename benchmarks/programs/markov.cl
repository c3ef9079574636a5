// Hidden Markov models: many sequences or many states.

// alpha of one step for all sequences of a batch, scaled so that each sums to one.
__kernel void hmm_forward(__global const float *before, __global float *after, __global const float *trans,
                          __global const float *emit, __global const uchar *observed, __global float *scale, int states,
                          int symbols)
{
    __local float total[64];
    int seq = get_group_id(0), to = get_local_id(0);
    float a = 0.0f;
    if (to < states) {
        for (int from = 0; from < states; from++)
            a += before[seq * states + from] * trans[from * states + to];
        a *= emit[to * symbols + observed[seq]];
    }
    total[to] = a;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 32; d > 0; d >>= 1) {
        if (to < d)
            total[to] += total[to + d];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (to < states)
        after[seq * states + to] = a / total[0];
    if (to == 0)
        scale[seq] = total[0];
}

// The whole backward pass of short sequences by one work-item each, with private states.
#define STATES 4
__kernel void hmm_backward(__constant float *trans, __constant float *emit, __global const uchar *symbols,
                           __global float *beta, int length, int count, int alphabet)
{
    int s = get_global_id(0);
    if (s >= count) return;
    float b[STATES] = {1.f, 1.f, 1.f, 1.f};
    for (int t = length - 1; t >= 0; t--) {
        for (int i = 0; i < STATES; i++)
            beta[(t * STATES + i) * count + s] = b[i];
        if (t == 0) break;
        uchar seen = symbols[t * count + s];
        float next[STATES], norm = 0.f;
        for (int i = 0; i < STATES; i++) {
            next[i] = 0.f;
            for (int j = 0; j < STATES; j++)
                next[i] += trans[i * STATES + j] * emit[j * alphabet + seen] * b[j];
            norm += next[i];
        }
        for (int i = 0; i < STATES; i++)
            b[i] = next[i] / norm;
    }
}

// Expected transitions of one step, summed over a batch of sequences.
__kernel void hmm_transitions(__global const float *alpha, __global const float *beta, __global const float *trans,
                              __global const float *likelihood, __global float *xi, int states, int batch)
{
    int j = get_global_id(0), i = get_global_id(1);
    if (i >= states || j >= states) return;
    float sum = 0;
    for (int b = 0; b < batch; b++)
        sum += alpha[b * states + i] * likelihood[b * states + j] * beta[b * states + j];
    xi[i * states + j] += sum * trans[i * states + j];
}

// The way back through the table of a Viterbi search.
__kernel void viterbi_backtrack(__global const uchar *back, __global const uchar *last, __global uchar *path, int length,
                                int states, int count)
{
    int s = get_global_id(0);
    if (s >= count) return;
    uchar state = last[s];
    int t = length;
    while (t-- > 0) {
        path[t * count + s] = state;
        state = back[(t * states + state) * count + s];
    }
}

// In logarithms: the logarithm of the sum over former states.
__kernel void hmm_forward_log(__global const double *before, __global double *after, __global const double *log_trans,
                              __global const double *log_emit, int states)
{
    int to = get_global_id(0);
    if (to >= states) return;
    double top = -INFINITY;
    for (int from = 0; from < states; ++from)
        top = fmax(top, before[from] + log_trans[from * states + to]);
    double sum = 0.0;
    for (int from = 0; from < states; ++from)
        sum += exp(before[from] + log_trans[from * states + to] - top);
    after[to] = top + log(sum) + log_emit[to];
}

// Counts of symbols in states by the most probable path, in local memory first.
__kernel void emission_counts(__global const uchar *path, __global const uchar *symbols, __global uint *counts,
                              int states, int alphabet, int n, __local uint *table)
{
    int cells = states * alphabet;
    for (int c = get_local_id(0); c < cells; c += get_local_size(0))
        table[c] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(table + path[i] * alphabet + symbols[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int c = get_local_id(0); c < cells; c += get_local_size(0))
        atomic_add(counts + c, table[c]);
}
