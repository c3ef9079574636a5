#ifndef FILTER_H
#define FILTER_H
#include "types.h"
#define RADIUS 2
#define WIDTH (2 * RADIUS + 1)
#define FOR_EACH_TAP(k) for (int k = -RADIUS; k <= RADIUS; ++k)
__constant real TAPS[WIDTH] = {1.0f / 16, 4.0f / 16, 6.0f / 16, 4.0f / 16, 1.0f / 16};
#endif
