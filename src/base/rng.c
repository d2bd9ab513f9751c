/* rng.c - hashes and random numbers that are the same on every machine, except for
 * the last bit of what libm computes. */
#include "base/base.h"

#include <math.h>

__extension__ typedef unsigned __int128 u128;

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)
static const double two_pi = 6.283185307179586476925;

uint64_t vt_mix64(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Bytes are put together low to high, so the value does not depend on the host. */
static uint64_t load_word(const unsigned char *p, size_t n)
{
    uint64_t word = 0;

    for (size_t i = 0; i < n; i++)
        word |= (uint64_t)p[i] << (8 * i);
    return word;
}

uint64_t vt_hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t h = vt_mix64(seed + GOLDEN) ^ (uint64_t)len;

    for (; len >= 8; len -= 8, p += 8)
        h = vt_hash2(h, load_word(p, 8));
    if (len > 0)
        h = vt_hash2(h, load_word(p, len));
    return vt_mix64(h + GOLDEN);
}

void vt_rng_init(struct vt_rng *r, uint64_t seed, const char *stream)
{
    uint64_t x = vt_hash_bytes(stream, strlen(stream), seed);

    for (int i = 0; i < 4; i++)
        r->s[i] = vt_mix64(x += GOLDEN);
}

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

uint64_t vt_rng_u64(struct vt_rng *r)
{
    uint64_t *s = r->s;
    uint64_t out = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return out;
}

static double unit(uint64_t x)
{
    return (double)(x >> 11) * 0x1p-53;
}

double vt_rng_f64(struct vt_rng *r)
{
    return unit(vt_rng_u64(r));
}

/* Lemire's method: the high half of a product is uniform once the few low halves
 * that would favour some results are drawn again. */
uint64_t vt_rng_below(struct vt_rng *r, uint64_t n)
{
    u128 product = (u128)vt_rng_u64(r) * n;

    if ((uint64_t)product < n) {
        uint64_t unfair = (0 - n) % n;

        while ((uint64_t)product < unfair)
            product = (u128)vt_rng_u64(r) * n;
    }
    return (uint64_t)(product >> 64);
}

/* 1 - u keeps the logarithm's argument in (0, 1]. */
static double box_muller(double u, double v)
{
    return sqrt(-2 * log(1 - u)) * cos(two_pi * v);
}

double vt_rng_normal(struct vt_rng *r)
{
    double u = vt_rng_f64(r);

    return box_muller(u, vt_rng_f64(r));
}

double vt_rng_exp(struct vt_rng *r)
{
    return -log(1 - vt_rng_f64(r));
}

/* Marsaglia and Tsang, for shape >= 1. */
static double gamma_large(struct vt_rng *r, double shape)
{
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);

    for (;;) {
        double x = vt_rng_normal(r), v = 1 + c * x, u;

        if (v <= 0)
            continue;
        v = v * v * v;
        u = 1 - vt_rng_f64(r);
        if (log(u) < x * x / 2 + d - d * v + d * log(v))
            return d * v;
    }
}

double vt_rng_gamma(struct vt_rng *r, double shape)
{
    double g;

    if (!(shape > 0) || !isfinite(shape))
        return 0;
    if (shape >= 1)
        return gamma_large(r, shape);
    g = gamma_large(r, shape + 1);
    return g * pow(1 - vt_rng_f64(r), 1 / shape);
}

/* GOLDEN keeps the all-zero key away from mix64's fixed point. */
double vt_draw_f64(uint64_t seed, uint64_t item, uint64_t k)
{
    return unit(vt_mix64(vt_hash2(vt_hash2(seed, item), k) + GOLDEN));
}

double vt_draw_normal(uint64_t seed, uint64_t item, uint64_t k)
{
    return box_muller(vt_draw_f64(seed, item, 2 * k),
                      vt_draw_f64(seed, item, 2 * k + 1));
}
