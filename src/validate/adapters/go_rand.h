/* go_rand.h - the numbers that Go's math/rand draws for a seed, which BLIS makes its
 * arrivals of. */
#ifndef VT_VALIDATE_GO_RAND_H
#define VT_VALIDATE_GO_RAND_H

#include <stdint.h>

enum { GO_RAND_LENGTH = 607 };

struct go_rand {
    uint64_t vec[GO_RAND_LENGTH];
    int tap, feed;
};

void go_rand_seed(struct go_rand *r, int64_t seed);
int64_t go_rand_int63(struct go_rand *r);
/* Intn() so often, as if somebody wanted the numbers; n is not a power of two. */
void go_rand_pass(struct go_rand *r, int32_t n, uint64_t times);
double go_rand_exp(struct go_rand *r); /* ExpFloat64() */
/* What BLIS seeds the generator of one of its parts with. */
int64_t go_rand_part(int64_t seed, const char *part);

#endif
