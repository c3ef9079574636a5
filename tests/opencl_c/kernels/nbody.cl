// Covers: float4 in local memory, swizzles as targets, rsqrt, a local pointer argument of vectors.
// launch: {"kernel": "nbody", "global": [64], "local": [16], "args": [{"name": "position", "array": "float32", "size": 256, "range": [-1, 1]}, {"name": "velocity", "array": "float32", "size": 256, "output": true}, {"name": "n", "scalar": "int32", "value": 64}, {"name": "dt", "scalar": "float32", "value": 0.01}, {"name": "tile", "local_bytes": 256}]}
__kernel void nbody(__global const float4 *position, __global float4 *velocity, int n, float dt, __local float4 *tile)
{
    const int g = get_global_id(0), l = get_local_id(0), width = get_local_size(0);
    const float4 mine = position[g];
    float4 force = (float4)(0.0f, 0.0f, 0.0f, 0.0f);
    for (int start = 0; start < n; start += width) {
        tile[l] = position[start + l];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < width; j++) {
            float4 r;
            r.xyz = tile[j].xyz - mine.xyz;
            r.w = 0.0f;
            float distance2 = r.x * r.x + r.y * r.y + r.z * r.z + 0.05f;
            float inverse = rsqrt(distance2);
            force += r * (inverse * inverse * inverse * tile[j].w);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    velocity[g].xyz += force.xyz * dt;
}
