/* go_rand.c - an additive lagged Fibonacci generator whose seeds are mixed with its own
 * state after 7.8e12 steps, and a ziggurat for exponential numbers.
 *
 * Go ships both as tables. Here they are computed: the state by jumping ahead, since a
 * step is linear; the ziggurat by its recurrence. */
#include "validate/adapters/go_rand.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { N = GO_RAND_LENGTH, TAP = 273, LAYERS = 256 };

#define SEED_MODULUS INT64_C(2147483647)
#define COOKED_STEPS UINT64_C(7800000000000)
#define TAIL         7.69711747013104972 /* where the ziggurat's lowest layer ends */
#define LAYER_AREA   3.949659822581572e-3
#define TWO_32       4294967296.0

static struct {
    uint64_t cooked[N];
    uint32_t k[LAYERS];
    float w[LAYERS], f[LAYERS];
} table;

/* ---- the state that seeds are mixed with -------------------------------------- */

static int32_t next_seed(int32_t x)
{
    return (int32_t)(INT64_C(48271) * x % SEED_MODULUS);
}

/* Fills a state from a seed: three draws each, so many bits apart. */
static void fill(uint64_t vec[N], int32_t x, unsigned high, unsigned middle)
{
    for (int i = 0; i < 20; i++)
        x = next_seed(x);
    for (int i = 0; i < N; i++) {
        uint64_t u = (uint64_t)(x = next_seed(x)) << high;

        u ^= (uint64_t)(x = next_seed(x)) << middle;
        vec[i] = u ^ (uint64_t)(x = next_seed(x));
    }
}

/* p := p * q modulo x^607 = x^334 + 1, as the generator adds. */
static void multiply(uint64_t p[N], const uint64_t q[N])
{
    uint64_t product[2 * N] = {0};

    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            product[i + k] += p[i] * q[k];
    for (int i = 2 * N - 1; i >= N; i--) {
        product[i - N] += product[i];
        product[i - TAP] += product[i];
    }
    memcpy(p, product, N * sizeof(*p));
}

static void times_x(uint64_t p[N])
{
    uint64_t top = p[N - 1];

    memmove(p + 1, p, (N - 1) * sizeof(*p));
    p[0] = top;
    p[N - TAP] += top;
}

/* The generator writes its state downwards from N - TAP: what was written i steps after
 * the oldest is here. */
static int place_of(uint64_t step)
{
    return (int)((N - TAP + N - step % N) % N);
}

static void cook(void)
{
    uint64_t first[N], power[N] = {1}, steps = COOKED_STEPS;

    fill(first, 1, 20, 10);
    for (int bit = 63; bit >= 0; bit--) {
        uint64_t same[N];

        memcpy(same, power, sizeof(same));
        multiply(power, same);
        if (steps >> bit & 1)
            times_x(power);
    }
    for (uint64_t i = 1; i <= N; i++, times_x(power)) {
        uint64_t sum = 0;

        for (uint64_t k = 1; k <= N; k++)
            sum += power[k - 1] * first[place_of(k)];
        table.cooked[place_of(steps + i)] = sum;
    }
}

/* ---- the ziggurat -------------------------------------------------------------- */

static void cut_layers(void)
{
    double x = TAIL, below = TAIL, base = LAYER_AREA / exp(-TAIL);

    table.k[0] = (uint32_t)(TAIL / base * TWO_32);
    table.w[0] = (float)(base / TWO_32);
    table.f[0] = 1;
    table.w[LAYERS - 1] = (float)(TAIL / TWO_32);
    table.f[LAYERS - 1] = (float)exp(-TAIL);
    for (int i = LAYERS - 2; i >= 1; i--) {
        x = -log(LAYER_AREA / x + exp(-x));
        table.k[i + 1] = (uint32_t)(x / below * TWO_32);
        below = x;
        table.w[i] = (float)(x / TWO_32);
        table.f[i] = (float)exp(-x);
    }
}

static void make_tables(void)
{
    cook();
    cut_layers();
}

/* ---- numbers ------------------------------------------------------------------- */

void go_rand_seed(struct go_rand *r, int64_t seed)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, make_tables);
    seed %= SEED_MODULUS;
    if (seed < 0)
        seed += SEED_MODULUS;
    fill(r->vec, seed ? (int32_t)seed : 89482311, 40, 20);
    for (int i = 0; i < N; i++)
        r->vec[i] ^= table.cooked[i];
    r->tap = 0;
    r->feed = N - TAP;
}

int64_t go_rand_int63(struct go_rand *r)
{
    r->tap = r->tap > 0 ? r->tap - 1 : N - 1;
    r->feed = r->feed > 0 ? r->feed - 1 : N - 1;
    r->vec[r->feed] += r->vec[r->tap];
    return (int64_t)(r->vec[r->feed] & INT64_MAX);
}

void go_rand_pass(struct go_rand *r, int32_t n, uint64_t times)
{
    int32_t most = (int32_t)(INT32_MAX - (UINT32_C(1) << 31) % (uint32_t)n);

    for (uint64_t i = 0; i < times; i++)
        while ((int32_t)(go_rand_int63(r) >> 32) > most)
            ;
}

static double unit_of(struct go_rand *r)
{
    double f;

    do
        f = (double)go_rand_int63(r) / 9223372036854775808.0;
    while (f == 1);
    return f;
}

double go_rand_exp(struct go_rand *r)
{
    for (;;) {
        uint32_t j = (uint32_t)(go_rand_int63(r) >> 31), i = j & (LAYERS - 1);
        double x = (double)j * (double)table.w[i];
        float at;

        if (j < table.k[i])
            return x;
        if (i == 0)
            return TAIL - log(unit_of(r));
        at = table.f[i] + (float)unit_of(r) * (table.f[i - 1] - table.f[i]);
        if (at < (float)exp(-x))
            return x;
    }
}

int64_t go_rand_part(int64_t seed, const char *part)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (; *part; part++)
        h = (h ^ (uint8_t)*part) * UINT64_C(0x100000001b3);
    return (int64_t)((uint64_t)seed ^ h);
}
