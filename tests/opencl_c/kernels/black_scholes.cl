// Covers: exp, log, sqrt, fabs; helpers that are inline and static; constants given by macros.
// launch: {"kernel": "black_scholes", "global": [64], "local": [16], "args": [{"name": "random", "array": "float32", "size": 64}, {"name": "call", "array": "float32", "size": 64, "output": true}, {"name": "put", "array": "float32", "size": 64, "output": true}]}
#define RISK_FREE 0.02f
#define VOLATILITY 0.3f
#define A1 0.31938153f
#define A2 -0.356563782f
#define A3 1.781477937f

inline float normal(float d)
{
    const float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
    float c = exp(-0.5f * d * d) * M_2_SQRTPI_F * M_SQRT1_2_F * 0.5f * (k * (A1 + k * (A2 + k * A3)));
    return d > 0 ? 1.0f - c : c;
}

__kernel void black_scholes(__global const float *random, __global float *call, __global float *put)
{
    const int i = get_global_id(0);
    const float r = random[i] * 0.6f;
    const float stock = 10.0f * r + 100.0f * (1.0f - r), strike = 20.0f + 60.0f * r, years = 1.0f + 9.0f * r;
    const float spread = VOLATILITY * sqrt(years);
    const float d1 = (log(stock / strike) + (RISK_FREE + VOLATILITY * VOLATILITY * 0.5f) * years) / spread;
    const float d2 = d1 - spread;
    const float discounted = strike * exp(-RISK_FREE * years);
    call[i] = stock * normal(d1) - discounted * normal(d2);
    put[i] = discounted * normal(-d2) - stock * normal(-d1);
}
