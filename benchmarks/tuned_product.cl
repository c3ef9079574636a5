/* C = alpha A B + beta C with tiles in registers, and in local memory where SA and SB say so: the space of tuned
 * products of Matsumoto, Nakasato and Sedukhin (2012). A is read as A[k * m + i], B as B[k * n + j], C as C[j * m + i].
 * Defined from outside: MWG NWG KWG MDIMC NDIMC MDIMA NDIMB KWI VWM VWN SA SB. */

#define GLUED(a, b) a##b
#define JOINED(a, b) GLUED(a, b)

#if VWM == 1
typedef float of_m;
#else
typedef JOINED(float, VWM) of_m;
#endif

#if VWN == 1
typedef float of_n;
#define EACH(DO, b) DO(0, b)
#else
typedef JOINED(float, VWN) of_n;
#if VWN == 2
#define EACH(DO, b) DO(0, b.s0) DO(1, b.s1)
#elif VWN == 4
#define EACH(DO, b) DO(0, b.s0) DO(1, b.s1) DO(2, b.s2) DO(3, b.s3)
#else
#define EACH(DO, b) DO(0, b.s0) DO(1, b.s1) DO(2, b.s2) DO(3, b.s3) DO(4, b.s4) DO(5, b.s5) DO(6, b.s6) DO(7, b.s7)
#endif
#endif

#define MWI (MWG / MDIMC)
#define NWI (NWG / NDIMC)
#define KDIMA (MDIMC * NDIMC / MDIMA)
#define KDIMB (MDIMC * NDIMC / NDIMB)
#define ROW_M (MWG / VWM)
#define ROW_N (NWG / VWN)

__kernel __attribute__((reqd_work_group_size(MDIMC, NDIMC, 1)))
void product(const int m, const int n, const int k, const float alpha, const float beta,
             __global const of_m *restrict a, __global const of_n *restrict b, __global of_m *restrict c)
{
    const int x = get_local_id(0), y = get_local_id(1);
    const int first_m = get_group_id(0) * ROW_M, first_n = get_group_id(1) * ROW_N;
#if SA || SB
    const int item = x + MDIMC * y;
#endif
#if SA
    __local of_m tile_a[KWG * ROW_M];
    const int a_m = item % MDIMA, a_k = item / MDIMA;
#endif
#if SB
    __local of_n tile_b[KWG * ROW_N];
    const int b_n = item % NDIMB, b_k = item / NDIMB;
#endif
    of_m sums[NWI][MWI / VWM];
    for (int j = 0; j < NWI; ++j)
        for (int i = 0; i < MWI / VWM; ++i)
            sums[j][i] = (of_m)(0.0f);

    for (int start = 0; start < k; start += KWG) {
#if SA
        for (int p = 0; p < KWG / KDIMA; ++p)
            for (int i = 0; i < MWG / MDIMA / VWM; ++i) {
                const int row = p + a_k * (KWG / KDIMA), column = i + a_m * (MWG / MDIMA / VWM);
                tile_a[row * ROW_M + column] = a[(start + row) * (m / VWM) + first_m + column];
            }
#endif
#if SB
        for (int p = 0; p < KWG / KDIMB; ++p)
            for (int j = 0; j < NWG / NDIMB / VWN; ++j) {
                const int row = p + b_k * (KWG / KDIMB), column = j + b_n * (NWG / NDIMB / VWN);
                tile_b[row * ROW_N + column] = b[(start + row) * (n / VWN) + first_n + column];
            }
#endif
#if SA || SB
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        for (int part = 0; part < KWG; part += KWI) {
#pragma unroll
            for (int p = part; p < part + KWI; ++p) {
                of_m of_a[MWI / VWM];
                of_n of_b[NWI / VWN];
#pragma unroll
                for (int i = 0; i < MWI / VWM; ++i) {
                    const int column = i + x * (MWI / VWM);
#if SA
                    of_a[i] = tile_a[p * ROW_M + column];
#else
                    of_a[i] = a[(start + p) * (m / VWM) + first_m + column];
#endif
                }
#pragma unroll
                for (int j = 0; j < NWI / VWN; ++j) {
                    const int column = j + y * (NWI / VWN);
#if SB
                    of_b[j] = tile_b[p * ROW_N + column];
#else
                    of_b[j] = b[(start + p) * (n / VWN) + first_n + column];
#endif
                }
#pragma unroll
                for (int j = 0; j < NWI / VWN; ++j)
#pragma unroll
                    for (int i = 0; i < MWI / VWM; ++i) {
#define ADD(component, value) sums[j * VWN + component][i] += of_a[i] * (of_m)(value);
                        EACH(ADD, of_b[j])
                    }
            }
        }
#if SA || SB
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
    }

    for (int j = 0; j < NWI; ++j)
        for (int i = 0; i < MWI / VWM; ++i) {
            const int place = (get_group_id(1) * NWG + j + y * NWI) * (m / VWM) + first_m + i + x * (MWI / VWM);
            c[place] = alpha * sums[j][i] + beta * c[place];
        }
}
