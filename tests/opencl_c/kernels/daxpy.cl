// Covers: double precision, double vectors, fma, literals without a suffix.
// launch: {"kernel": "daxpy", "global": [32], "local": [16], "args": [{"name": "x", "array": "float64", "size": 64}, {"name": "y", "array": "float64", "size": 64, "output": true}, {"name": "alpha", "scalar": "float64", "value": 1.5}]}
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
__kernel void daxpy(__global const double2 *x, __global double2 *y, double alpha)
{
    const size_t i = get_global_id(0);
    y[i] = fma((double2)(alpha), x[i], y[i]) + 0.1;
    y[i].x = y[i].x * 2 - M_PI;
}
