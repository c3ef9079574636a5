/* Textbook kernels, naive as such kernels are: launched as the kernels were whose times were published
 * (`benchmarks.published.textbook`). Arguments are named as in the list of launches. */

/* Clustering: points lie one after the other, and are first turned so that each feature's values do. */

__kernel void turned(__global const float *input, __global float *output, const int npoints, const int nfeatures)
{
    const int point = get_global_id(0);
    if (point < npoints)
        for (int feature = 0; feature < nfeatures; ++feature)
            output[feature * npoints + point] = input[point * nfeatures + feature];
}

__kernel void nearest_cluster(__global const float *features, __global const float *clusters,
                              __global int *membership, const int npoints, const int nclusters, const int nfeatures)
{
    const int point = get_global_id(0);
    if (point >= npoints)
        return;
    int nearest = 0;
    float least = FLT_MAX;
    for (int cluster = 0; cluster < nclusters; ++cluster) {
        float distance = 0.0f;
        for (int feature = 0; feature < nfeatures; ++feature) {
            const float apart = features[feature * npoints + point] - clusters[cluster * nfeatures + feature];
            distance += apart * apart;
        }
        if (distance < least) {
            least = distance;
            nearest = cluster;
        }
    }
    membership[point] = nearest;
}

/* Factors of a matrix in blocks of 16, in place: L has ones on its diagonal. */

#define BLOCK 16

__kernel void factored_diagonal(__global float *m, const int matrix_dim, const int offset)
{
    const int item = get_local_id(0);
    __global float *block = m + offset * matrix_dim + offset;
    for (int i = 0; i < BLOCK - 1; ++i) {
        if (item > i) {
            for (int j = 0; j < i; ++j)
                block[item * matrix_dim + i] -= block[item * matrix_dim + j] * block[j * matrix_dim + i];
            block[item * matrix_dim + i] /= block[i * matrix_dim + i];
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
        if (item > i)
            for (int j = 0; j <= i; ++j)
                block[(i + 1) * matrix_dim + item] -= block[(i + 1) * matrix_dim + j] * block[j * matrix_dim + item];
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
}

__kernel void factored_perimeter(__global float *m, const int matrix_dim, const int offset)
{
    const int item = get_local_id(0) % BLOCK, further = (get_group_id(0) + 1) * BLOCK;
    __global const float *diagonal = m + offset * matrix_dim + offset;
    if (get_local_id(0) < BLOCK) {
        __global float *column = m + offset * matrix_dim + offset + further + item;
        for (int i = 1; i < BLOCK; ++i)
            for (int j = 0; j < i; ++j)
                column[i * matrix_dim] -= diagonal[i * matrix_dim + j] * column[j * matrix_dim];
    } else {
        __global float *row = m + (offset + further + item) * matrix_dim + offset;
        for (int i = 0; i < BLOCK; ++i) {
            for (int j = 0; j < i; ++j)
                row[i] -= row[j] * diagonal[j * matrix_dim + i];
            row[i] /= diagonal[i * matrix_dim + i];
        }
    }
}

__kernel void factored_internal(__global float *m, const int matrix_dim, const int offset)
{
    const int row = offset + (get_group_id(1) + 1) * BLOCK + get_local_id(1);
    const int column = offset + (get_group_id(0) + 1) * BLOCK + get_local_id(0);
    float sum = 0.0f;
    for (int k = 0; k < BLOCK; ++k)
        sum += m[row * matrix_dim + offset + k] * m[(offset + k) * matrix_dim + column];
    m[row * matrix_dim + column] -= sum;
}

/* A wavelet transform (5/3, of whole numbers). */

__kernel void colours(__global int *d_r, __global int *d_g, __global int *d_b, __global const uchar *cl_d_src,
                      const int pixels)
{
    const int pixel = get_global_id(0);
    if (pixel < pixels) {
        d_r[pixel] = cl_d_src[3 * pixel] - 128;
        d_g[pixel] = cl_d_src[3 * pixel + 1] - 128;
        d_b[pixel] = cl_d_src[3 * pixel + 2] - 128;
    }
}

int mirrored(int place, const int size)
{
    place = abs(place);
    place = place < size ? place : 2 * (size - 1) - place;
    return clamp(place, 0, size - 1);
}

/* A work-group slides down WIN_SIZE_X columns in windows of WIN_SIZE_Y rows. Its buffer has the rows of a window, two
 * before and one behind, each with two elements before and one behind. */
__kernel void wavelet(__global const int *in, __global int *out, const int sx, const int sy, const int steps,
                      const int WIN_SIZE_X, const int WIN_SIZE_Y, __local int *buffer)
{
    const int item = get_local_id(0), first_x = get_group_id(0) * WIN_SIZE_X, row = WIN_SIZE_X + 3;
    const int pairs = WIN_SIZE_X / 2, x = first_x + item;
    for (int step = 0; step < steps; ++step) {
        const int first_y = (get_group_id(1) * steps + step) * WIN_SIZE_Y;
        const int known = step ? 3 : 0;
        if (step)
            for (int r = 0; r < 3; ++r)
                for (int c = item; c < row; c += WIN_SIZE_X)
                    buffer[r * row + c] = buffer[(r + WIN_SIZE_Y) * row + c];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int r = known; r < WIN_SIZE_Y + 3; ++r)
            for (int c = item; c < row; c += WIN_SIZE_X)
                buffer[r * row + c] = in[mirrored(first_y - 2 + r, sy) * sx + mirrored(first_x - 2 + c, sx)];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int each = item; each < (WIN_SIZE_Y + 3 - known) * (pairs + 1); each += WIN_SIZE_X) {
            __local int *odd = buffer + (known + each / (pairs + 1)) * row + 2 * (each % (pairs + 1)) + 1;
            odd[0] -= (odd[-1] + odd[1]) >> 1;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int each = item; each < (WIN_SIZE_Y + 3 - known) * pairs; each += WIN_SIZE_X) {
            __local int *even = buffer + (known + each / pairs) * row + 2 * (each % pairs) + 2;
            even[0] += (even[-1] + even[1] + 2) >> 2;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const int out_x = x % 2 ? (sx + 1) / 2 + x / 2 : x / 2;
        __local const int *own = buffer + item + 2;
        int before = own[row] - ((own[0] + own[2 * row]) >> 1);
        for (int r = 2; r < WIN_SIZE_Y + 2; r += 2) {
            const int high = own[(r + 1) * row] - ((own[r * row] + own[(r + 2) * row]) >> 1);
            const int low = own[r * row] + ((before + high + 2) >> 2), y = first_y + r - 2;
            if (x < sx && y < sy)
                out[y / 2 * sx + out_x] = low;
            if (x < sx && y + 1 < sy)
                out[((sy + 1) / 2 + y / 2) * sx + out_x] = high;
            before = high;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* Breadth-first search, a level a launch of both. */

typedef struct {
    int first, count;
} node;

__kernel void visited_neighbours(__global const node *g_graph_nodes, __global const int *g_graph_edges,
                                 __global int *g_graph_mask, __global int *g_updating_graph_mask,
                                 __global const int *g_graph_visited, __global int *g_cost, const int no_of_nodes)
{
    const int own = get_global_id(0);
    if (own < no_of_nodes && g_graph_mask[own]) {
        g_graph_mask[own] = 0;
        const node here = g_graph_nodes[own];
        for (int edge = here.first; edge < here.first + here.count; ++edge) {
            const int neighbour = g_graph_edges[edge];
            if (!g_graph_visited[neighbour]) {
                g_cost[neighbour] = g_cost[own] + 1;
                g_updating_graph_mask[neighbour] = 1;
            }
        }
    }
}

__kernel void next_level(__global int *g_graph_mask, __global int *g_updating_graph_mask,
                         __global int *g_graph_visited, __global int *g_over, const int no_of_nodes)
{
    const int own = get_global_id(0);
    if (own < no_of_nodes && g_updating_graph_mask[own]) {
        g_graph_mask[own] = 1;
        g_graph_visited[own] = 1;
        g_updating_graph_mask[own] = 0;
        *g_over = 1;
    }
}

/* A hidden Markov model's forward-backward pass, a step of time a launch. */

__kernel void ones(__global float *ones_s_d, const int nsymbols)
{
    const int i = get_global_id(0);
    if (i < nsymbols)
        ones_s_d[i] = 1.0f;
}

__kernel void first_alpha(__global const float *b_d, __global const float *pi_d, const int nstates,
                          __global float *alpha_d, __global float *ones_n_d, const int obs_t)
{
    const int i = get_global_id(0);
    if (i < nstates) {
        alpha_d[i] = pi_d[i] * b_d[obs_t * nstates + i];
        ones_n_d[i] = 1.0f;
    }
}

__kernel void alpha(const int nstates, __global float *alpha_d, const int offset, __global const float *b_d,
                    const int obs_t)
{
    const int i = get_global_id(0);
    if (i < nstates)
        alpha_d[offset + i] *= b_d[obs_t * nstates + i];
}

__kernel void scaled_alpha(const int nstates, __global float *alpha_d, const int offset, const float scale)
{
    const int i = get_global_id(0);
    if (i < nstates)
        alpha_d[offset + i] /= scale;
}

__kernel void last_beta(const int nstates, __global float *beta_d, const int offset, const float scale)
{
    const int i = get_global_id(0);
    if (i < nstates)
        beta_d[offset + i] = 1.0f / scale;
}

__kernel void beta(__global float *beta_d, __global const float *b_d, const float scale_t, const int nstates,
                   const int obs_t, const int t)
{
    const int i = get_global_id(0);
    if (i < nstates)
        beta_d[t * nstates + i] = b_d[obs_t * nstates + i] * beta_d[(t + 1) * nstates + i] / scale_t;
}

__kernel void gamma_sums(__global float *gamma_sum_d, __global const float *alpha_d, __global const float *beta_d,
                         const int nstates, const int t)
{
    const int i = get_global_id(0);
    if (i < nstates)
        gamma_sum_d[i] += alpha_d[t * nstates + i] * beta_d[t * nstates + i];
}

__kernel void xi_sums(__global float *xi_sum_d, __global const float *a_d, __global const float *b_d,
                      __global const float *alpha_d, __global const float *beta_d, const float sum_ab,
                      const int nstates, const int obs_t, const int t)
{
    const int to = get_global_id(0), from = get_global_id(1);
    if (to < nstates && from < nstates)
        xi_sum_d[from * nstates + to] += alpha_d[t * nstates + from] * a_d[from * nstates + to]
            * b_d[obs_t * nstates + to] * beta_d[(t + 1) * nstates + to] / sum_ab;
}

__kernel void transitions(__global float *a_d, __global const float *alpha_d, __global const float *beta_d,
                          __global const float *xi_sum_d, __global const float *gamma_sum_d, const float sum_ab,
                          const int nstates, const int length)
{
    const int to = get_global_id(0), from = get_global_id(1);
    if (to < nstates && from < nstates) {
        const int last = length * nstates + from;
        a_d[from * nstates + to] = xi_sum_d[from * nstates + to]
            / (gamma_sum_d[from] - alpha_d[last] * beta_d[last] / sum_ab);
    }
}

__kernel void scaled_transitions(__global float *a_d, __global const float *c_d, const int nstates)
{
    const int to = get_global_id(0), from = get_global_id(1);
    if (to < nstates && from < nstates)
        a_d[from * nstates + to] /= c_d[from];
}

__kernel void emission_sums(__global float *b_d, __global const float *alpha_d, __global const float *beta_d,
                            const float sum_ab, const int nstates, const int nsymbols, const int obs_t, const int t)
{
    const int state = get_global_id(0), symbol = get_global_id(1);
    if (state < nstates && symbol < nsymbols && symbol == obs_t)
        b_d[symbol * nstates + state] += alpha_d[t * nstates + state] * beta_d[t * nstates + state] / sum_ab;
}

__kernel void emissions(__global float *b_d, __global const float *gamma_sum_d, const int nstates, const int nsymbols)
{
    const int state = get_global_id(0), symbol = get_global_id(1);
    if (state < nstates && symbol < nsymbols)
        b_d[symbol * nstates + state] /= gamma_sum_d[state];
}

__kernel void scaled_emissions(__global float *b_d, __global const float *c_d, const int nstates, const int nsymbols)
{
    const int state = get_global_id(0), symbol = get_global_id(1);
    if (state < nstates && symbol < nsymbols) {
        const int place = symbol * nstates + state;
        if (b_d[place] == 0.0f)
            b_d[place] = 1e-10f;
        else
            b_d[place] /= c_d[state];
    }
}

__kernel void first_states(__global float *pi_d, __global const float *alpha_d, __global const float *beta_d,
                           const int nstates, const float sum_ab)
{
    const int i = get_global_id(0);
    if (i < nstates)
        pi_d[i] = alpha_d[i] * beta_d[i] / sum_ab;
}

__kernel void products(const int n, __global const float *paramA, const int offsetA, __global const float *paramB,
                       const int offsetB, __global float *partialSum_d)
{
    const int i = get_global_id(0);
    if (i < n)
        partialSum_d[i] = paramA[offsetA + i] * paramB[offsetB + i];
}

__kernel void matrix_by_vector(const int m, const int n, __global const float *A, const int lda,
                               __global const float *x, const int offsetX, __global float *y, const int offsetY)
{
    const int i = get_global_id(0);
    if (i < m) {
        float sum = 0.0f;
        for (int j = 0; j < n; ++j)
            sum += A[i * lda + j] * x[offsetX + j];
        y[offsetY + i] = sum;
    }
}

__kernel void turned_matrix_by_vector(const int m, const int n, __global const float *A, const int lda,
                                      __global const float *x, const int offsetX, __global float *y,
                                      const int offsetY)
{
    const int i = get_global_id(0);
    if (i < n) {
        float sum = 0.0f;
        for (int j = 0; j < m; ++j)
            sum += A[j * lda + i] * x[offsetX + j];
        y[offsetY + i] = sum;
    }
}

/* Alignment of two sequences in blocks of 16: a diagonal of blocks a launch, a diagonal of cells at a time. */

void aligned(__global const int *referrence, __global int *matrix, const int cols, const int penalty,
             const int block_x, const int block_y)
{
    const int item = get_local_id(0);
    for (int diagonal = 0; diagonal < 2 * BLOCK - 1; ++diagonal) {
        const int down = diagonal - item;
        if (down >= 0 && down < BLOCK) {
            const int cell = (block_y * BLOCK + down + 1) * cols + block_x * BLOCK + item + 1;
            const int matched = matrix[cell - cols - 1] + referrence[cell];
            matrix[cell] = max(matched, max(matrix[cell - 1] - penalty, matrix[cell - cols] - penalty));
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
}

__kernel void aligned_first_half(__global const int *referrence, __global int *matrix_opencl, const int cols,
                                 const int penalty, const int i, const int block_width)
{
    const int block = get_group_id(0);
    aligned(referrence, matrix_opencl, cols, penalty, block, i - 1 - block);
}

__kernel void aligned_second_half(__global const int *referrence, __global int *matrix_opencl, const int cols,
                                  const int penalty, const int i, const int block_width)
{
    const int block = get_group_id(0);
    aligned(referrence, matrix_opencl, cols, penalty, block + block_width - i, block_width - 1 - block);
}

/* The electrostatic potential of a molecule at the vertices of its surface, by an analytic approximation: charges in a
 * sphere of one dielectric constant within another (Gordon, Fenley, Onufriev 2008), screened by salt outside. */

#define ALPHA 0.580127f

__kernel void potential(const int nres, __global const int *atom_addrs, __global const int *atom_lengths,
                        __global const float *at_c_s, __global const float *at_x_s, __global const float *at_y_s,
                        __global const float *at_z_s, __global float *vert_c_s, __global const float *vert_x_s,
                        __global const float *vert_y_s, __global const float *vert_z_s, const int nvert,
                        const float A, const float diel_int, const float diel_ext, const float sal,
                        const float ion_exc_rad, const float proj_len, const int phiType, const int eye,
                        const int step_size)
{
    const int own = get_global_id(1) * get_global_size(0) + get_global_id(0), vertex = eye + own;
    if (own >= step_size || vertex >= nvert)
        return;
    const float x = vert_x_s[vertex], y = vert_y_s[vertex], z = vert_z_s[vertex];
    const float ratio = diel_int / diel_ext, kappa = 0.316f * sqrt(sal);
    const float distance = A + proj_len, screened = exp(-kappa * (distance - A - ion_exc_rad)) / (1.0f + kappa * A);
    float sum = 0.0f;
    for (int residue = 0; residue < nres; ++residue) {
        const int first = atom_addrs[residue];
        for (int atom = first; atom < first + atom_lengths[residue]; ++atom) {
            const float apart_x = x - at_x_s[atom], apart_y = y - at_y_s[atom], apart_z = z - at_z_s[atom];
            const float d2 = apart_x * apart_x + apart_y * apart_y + apart_z * apart_z, d = sqrt(d2);
            const float coulomb = at_c_s[atom] / (d * diel_int);
            const float inside = sqrt(fabs(0.5f * (A * A + distance * distance - d2)));
            const float reaction = -at_c_s[atom] * (1.0f / diel_int - 1.0f / diel_ext) / (1.0f + ALPHA * ratio)
                * (1.0f / sqrt(d2 + inside) + ALPHA / distance);
            const float outside = at_c_s[atom] / diel_ext / (1.0f + ALPHA * ratio)
                * ((1.0f + ALPHA) / d - ALPHA * (1.0f - ratio) / distance);
            if (phiType & 1)
                sum += distance < A ? reaction : outside * screened;
            if (phiType & 2)
                sum += coulomb;
        }
    }
    vert_c_s[vertex] += sum;
}
