// Covers: structs in global memory, nested and with arrays; by pointer, by value and returned; assigned as a whole.
// launch: {"kernel": "particles", "global": [16], "local": [8], "args": [{"name": "all", "array": "float32", "size": 192, "output": true}, {"name": "dt", "scalar": "float32", "value": 0.5}]}
typedef struct {
    float position[3];
    float mass;
} Body;

typedef struct Particle {
    Body body;
    struct { float x, y, z; } velocity;
    float spare[5];
} Particle;

float energy(const Particle p)
{
    return 0.5f * p.body.mass * (p.velocity.x * p.velocity.x + p.velocity.y * p.velocity.y + p.velocity.z * p.velocity.z);
}

Particle moved(Particle p, float dt)
{
    p.body.position[0] += dt * p.velocity.x;
    p.body.position[1] += dt * p.velocity.y;
    p.body.position[2] += dt * p.velocity.z;
    return p;
}

void mark(__global Particle *p, float value)
{
    p->spare[4] = value;
    (*p).spare[0] = p->body.mass;
}

__kernel void particles(__global struct Particle *all, float dt)
{
    int i = get_global_id(0);
    Particle mine = all[i], other;
    other = moved(mine, dt);
    other.spare[1] = energy(other);
    all[i] = other;
    mark(&all[i], (float)sizeof(Particle));
}
