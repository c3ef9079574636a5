// Covers: a switch in a loop, enums, cases that fall through, default in the middle, blocks and declarations in cases.
// launch: {"kernel": "interpreter", "global": [16], "local": [4], "args": [{"name": "program", "array": "uint8", "size": 32}, {"name": "data", "array": "int32", "size": 16}, {"name": "out", "array": "int32", "size": 16, "output": true}, {"name": "length", "scalar": "int32", "value": 32}], "exact": true}
enum { NOP, PUSH, ADD, SUB, MUL = 4, DUP, SWAP, SKIP_IF_ZERO, };
#define DEPTH 8

__kernel void interpreter(__global const uchar *program, __global const int *data, __global int *out, int length)
{
    int stack[DEPTH] = {1, 2, 3};
    int top = 2, pc = 0;
    while (pc < length) {
        switch (program[pc++]) {
        case PUSH: {
            int value = data[(get_global_id(0) + pc) % 16];
            if (top < DEPTH - 1)
                stack[++top] = value;
            break;
        }
        case ADD:
        case SUB:
            if (top > 0) {
                int right = stack[top--];
                stack[top] += program[pc - 1] == ADD ? right : -right;
            }
            break;
        default:
            stack[0] ^= pc;
            // falls through
        case NOP:
            continue;
        case MUL:
            if (top > 0) {
                stack[top - 1] = (stack[top - 1] & 0xff) * (stack[top] & 0xff);
                --top;
            }
            break;
        case DUP:
            if (top < DEPTH - 1) {
                stack[top + 1] = stack[top];
                top++;
            }
            break;
        case SWAP:
            if (top > 0) {
                int kept = stack[top];
                stack[top] = stack[top - 1];
                stack[top - 1] = kept;
            }
            break;
        case SKIP_IF_ZERO:
            pc += !stack[top];
        }
    }
    out[get_global_id(0)] = stack[top];
}
