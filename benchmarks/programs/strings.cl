// Text.

__kernel void naive_match(__global const char *text, __constant char *pattern, __global uchar *hit, int n, int m)
{
    int i = get_global_id(0);
    if (i > n - m) return;
    int k = 0;
    while (k < m && text[i + k] == pattern[k])
        k++;
    hit[i] = (k == m);
}

// Knuth, Morris and Pratt; each work-item searches a chunk, and m - 1 characters beyond.
__kernel void kmp_chunks(__global const char *text, __global const char *pattern, __global const int *failure,
                         __global int *counts, const int n, const int m, const int chunk)
{
    int id = get_global_id(0);
    int begin = id * chunk;
    if (begin >= n) return;
    int end = min(begin + chunk + m - 1, n);
    int state = 0, found = 0;
    for (int i = begin; i < end; i++) {
        while (state > 0 && (state == m || text[i] != pattern[state]))
            state = failure[state - 1];
        if (text[i] == pattern[state])
            state++;
        if (state == m)
            found++;
    }
    counts[id] = found;
}

// An automaton of many words with a row of 256 next states a state; lengths of output lists are added up.
__kernel void automaton_count(__global const uchar *text, __global const short *next, __global const uchar *outputs,
                              __global uint *total, int n, int chunk, int overlap)
{
    int begin = get_global_id(0) * chunk;
    if (begin >= n) return;
    int start = max(0, begin - overlap), stop = min(n, begin + chunk);
    short state = 0;
    uint found = 0;
    for (int i = start; i < stop; ++i) {
        state = next[state * 256 + text[i]];
        if (i >= begin)
            found += outputs[state];
    }
    if (found)
        atomic_add(total, found);
}

// Boyer, Moore and Horspool with the table of shifts in local memory; records of one length.
__kernel void horspool_records(__global const uchar *records, __constant uchar *pattern, __global int *first, int length,
                               int m, int n)
{
    __local uchar shift[256];
    for (int c = get_local_id(0); c < 256; c += get_local_size(0))
        shift[c] = m;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0)
        for (int k = 0; k < m - 1; k++)
            shift[pattern[k]] = m - 1 - k;
    barrier(CLK_LOCAL_MEM_FENCE);
    int r = get_global_id(0);
    if (r >= n) return;
    __global const uchar *s = records + (size_t)r * length;
    int at = 0;
    first[r] = -1;
    while (at <= length - m) {
        int k = m - 1;
        while (k >= 0 && s[at + k] == pattern[k])
            --k;
        if (k < 0) {
            first[r] = at;
            return;
        }
        at += shift[s[at + m - 1]];
    }
}

// Run lengths of each line: pairs of a count and a byte; how many bytes it took.
__kernel void run_length(__global const uchar *in, __global uchar *out, __global int *used, int line, int lines)
{
    int l = get_global_id(0);
    if (l >= lines) return;
    __global const uchar *s = in + l * line;
    __global uchar *d = out + l * line * 2;
    int w = 0, i = 0;
    do {
        uchar c = s[i];
        int run = 1;
        while (i + run < line && s[i + run] == c && run < 255)
            ++run;
        d[w++] = run;
        d[w++] = c;
        i += run;
    } while (i < line);
    used[l] = w;
}

__constant char alphabet64[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

__kernel void base64_encode(__global const uchar *in, __global char4 *out, int n)
{
    int g = get_global_id(0);
    int at = 3 * g;
    if (at >= n) return;
    uint bits = in[at] << 16;
    if (at + 1 < n) bits |= in[at + 1] << 8;
    if (at + 2 < n) bits |= in[at + 2];
    char4 c;
    c.x = alphabet64[bits >> 18];
    c.y = alphabet64[(bits >> 12) & 63];
    c.z = at + 1 < n ? alphabet64[(bits >> 6) & 63] : '=';
    c.w = at + 2 < n ? alphabet64[bits & 63] : '=';
    out[g] = c;
}

// Code points, lines and words that begin in the chunk of a work-group.
typedef struct { uint points, lines, words; } TextCount;

__kernel void utf8_count(__global const uchar *text, __global TextCount *counts, int n)
{
    __local uint points, lines, words;
    if (get_local_id(0) == 0)
        points = lines = words = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    int i = get_global_id(0);
    if (i < n) {
        uchar c = text[i];
        if ((c & 0xc0) != 0x80) atomic_inc(&points);
        if (c == '\n') atomic_inc(&lines);
        bool blank = c == ' ' || c == '\n' || c == '\t';
        bool blank_before = i == 0 || text[i - 1] == ' ' || text[i - 1] == '\n' || text[i - 1] == '\t';
        if (!blank && blank_before) atomic_inc(&words);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        TextCount c;
        c.points = points;
        c.lines = lines;
        c.words = words;
        counts[get_group_id(0)] = c;
    }
}

// Decimal numbers in fields of one width: blanks, a sign, digits, and perhaps a fraction. A machine of states.
enum { BLANKS, WHOLE, FRACTION, BAD };
__kernel void parse_numbers(__global const char *fields, __global float *values, __global uchar *state_out, int width, int n)
{
    int f = get_global_id(0);
    if (f >= n) return;
    int state = BLANKS;
    int mantissa = 0, scale = 0;
    bool negative = false;
    for (int k = 0; k < width && state != BAD; k++) {
        char c = fields[f * width + k];
        switch (state) {
        case BLANKS:
            if (c == ' ') break;
            if (c == '-') { negative = true; state = WHOLE; break; }
            state = WHOLE;
            /* falls through: the first digit */
        case WHOLE:
            if (c == '.') state = FRACTION;
            else if (c >= '0' && c <= '9') mantissa = 10 * mantissa + (c - '0');
            else state = BAD;
            break;
        case FRACTION:
            if (c >= '0' && c <= '9') { mantissa = 10 * mantissa + (c - '0'); scale++; }
            else state = BAD;
            break;
        }
    }
    float v = mantissa;
    while (scale-- > 0) v /= 10.0f;
    values[f] = state == BAD ? NAN : negative ? -v : v;
    state_out[f] = state;
}

__kernel void to_upper_hash(__global uchar *names, __global const ushort *length, __global ulong *hash, int stride, int n)
{
    int i = get_global_id(0);
    if (i < n) {
        ulong h = 5381;
        for (ushort k = 0; k < length[i]; ++k) {
            uchar c = names[i * stride + k];
            if (c >= 'a' && c <= 'z')
                names[i * stride + k] = c -= 32;
            h = h * 33 + c;
        }
        hash[i] = h;
    }
}
