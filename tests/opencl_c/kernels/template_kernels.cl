// Covers: kernels made by macros: pasted names, types as macros, conditions of the preprocessor, -D with a value.
// launch: {"kernel": "axpy_float", "global": [16], "local": [8], "args": [{"name": "x", "array": "float32", "size": 16}, {"name": "y", "array": "float32", "size": 16, "output": true}, {"name": "a", "scalar": "float32", "value": 2}], "options": ["-DREAL=float", "-DWIDTH=1"]}
// launch: {"kernel": "axpy_float4", "global": [4], "local": [4], "args": [{"name": "x", "array": "float32", "size": 16}, {"name": "y", "array": "float32", "size": 16, "output": true}, {"name": "a", "scalar": "float32", "value": 2}], "options": ["-D REAL=float", "-DWIDTH=4", "-cl-mad-enable", "-w"]}
#define PASTED(a, b) a##b
#define PASTE(a, b) PASTED(a, b)
#if WIDTH > 1
#define VECTOR PASTE(REAL, WIDTH)
#elif WIDTH == 1 && defined(REAL)
#define VECTOR REAL
#else
#error WIDTH must be 1 or more
#endif

#define AXPY(T)                                                                                                        \
    __kernel void PASTE(axpy_, T)(__global const T *x, __global T *y, REAL a)                                          \
    {                                                                                                                  \
        const int i = get_global_id(0);                                                                                \
        y[i] = a * x[i] + y[i];                                                                                        \
    }

AXPY(VECTOR)
