// Four doubles at a time, and the elementary functions on them.
//
// Every product that feeds a sum is an explicit fma, and contraction is off, so the AVX2 build, the plain build, GCC and
// Clang all give the same bits; exp, log, sin, cos and atan2 are here so that the C library's versions do not matter.
// Polynomial coefficients: sin, cos, log and atan from fdlibm (Sun Microsystems, 1993); exp is a Taylor series. They are
// summed in pairs of terms, not one after the other: half the wait for a few products more.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

namespace STRIKEOUT_BUILD {

typedef double v4 __attribute__((vector_size(32)));
typedef int64_t i4 __attribute__((vector_size(32)));
typedef uint64_t u4 __attribute__((vector_size(32)));
#define INLINE static inline __attribute__((always_inline))

constexpr double PI = 3.14159265358979323846;

INLINE v4 all(double x) { return v4{x, x, x, x}; }
INLINE v4 load(const double* p) { v4 r; std::memcpy(&r, p, sizeof r); return r; }
INLINE void store(double* p, v4 x) { std::memcpy(p, &x, sizeof x); }
INLINE i4 bits(v4 x) { i4 r; std::memcpy(&r, &x, sizeof r); return r; }
INLINE v4 value(i4 x) { v4 r; std::memcpy(&r, &x, sizeof r); return r; }
// Sums and shifts of bit patterns wrap around, so they are done without sign.
INLINE u4 pattern(v4 x) { u4 r; std::memcpy(&r, &x, sizeof r); return r; }
INLINE v4 value(u4 x) { v4 r; std::memcpy(&r, &x, sizeof r); return r; }
INLINE v4 magnitude(v4 x) { return value(bits(x) & INT64_MAX); }

#if defined(__AVX2__) && defined(__FMA__)
INLINE v4 fma(v4 a, v4 b, v4 c) { return (v4)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
INLINE v4 fnma(v4 a, v4 b, v4 c) { return (v4)_mm256_fnmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }  // c - a b
INLINE v4 root(v4 x) { return (v4)_mm256_sqrt_pd((__m256d)x); }
INLINE v4 pick(i4 mask, v4 a, v4 b) { return (v4)_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)mask); }
// The second where they cannot be compared, as the plain build has it.
INLINE v4 smaller(v4 a, v4 b) { return (v4)_mm256_min_pd((__m256d)a, (__m256d)b); }
INLINE v4 larger(v4 a, v4 b) { return (v4)_mm256_max_pd((__m256d)a, (__m256d)b); }
INLINE bool any(i4 m) { return _mm256_movemask_pd((__m256d)m) != 0; }
// How many of the four there are up to the last that is true.
INLINE int up_to(i4 m) { return 32 - __builtin_clz(2 * _mm256_movemask_pd((__m256d)m) + 1) - 1; }
// The first `count` of four, and zeros; what lies behind them is not touched.
INLINE v4 load_some(const double* p, int64_t count) {
    return (v4)_mm256_maskload_pd(p, (__m256i)(i4{0, 1, 2, 3} < i4{count, count, count, count}));
}
INLINE void transpose(v4& a, v4& b, v4& c, v4& d) {
    __m256d ab = _mm256_unpacklo_pd((__m256d)a, (__m256d)b), AB = _mm256_unpackhi_pd((__m256d)a, (__m256d)b);
    __m256d cd = _mm256_unpacklo_pd((__m256d)c, (__m256d)d), CD = _mm256_unpackhi_pd((__m256d)c, (__m256d)d);
    a = (v4)_mm256_permute2f128_pd(ab, cd, 0x20), b = (v4)_mm256_permute2f128_pd(AB, CD, 0x20);
    c = (v4)_mm256_permute2f128_pd(ab, cd, 0x31), d = (v4)_mm256_permute2f128_pd(AB, CD, 0x31);
}
#else
INLINE v4 pick(i4 mask, v4 a, v4 b) { return value((bits(a) & mask) | (bits(b) & ~mask)); }
INLINE v4 smaller(v4 a, v4 b) { return pick(a < b, a, b); }
INLINE v4 larger(v4 a, v4 b) { return pick(a > b, a, b); }
INLINE bool any(i4 m) { return (m[0] | m[1] | m[2] | m[3]) != 0; }
INLINE int up_to(i4 m) { return m[3] ? 4 : m[2] ? 3 : m[1] ? 2 : m[0] ? 1 : 0; }
INLINE v4 load_some(const double* p, int64_t count) {
    v4 r = {0.0, 0.0, 0.0, 0.0};
    for (int i = 0; i < 4 && i < count; i++) r[i] = p[i];
    return r;
}
INLINE void transpose(v4& a, v4& b, v4& c, v4& d) {
    const v4 A = a, B = b, C = c, D = d;
    a = v4{A[0], B[0], C[0], D[0]}, b = v4{A[1], B[1], C[1], D[1]};
    c = v4{A[2], B[2], C[2], D[2]}, d = v4{A[3], B[3], C[3], D[3]};
}
INLINE v4 fma(v4 a, v4 b, v4 c) {
    v4 r = c;
    for (int i = 0; i < 4; i++) r[i] = __builtin_fma(a[i], b[i], c[i]);
    return r;
}
INLINE v4 fnma(v4 a, v4 b, v4 c) { return fma(-a, b, c); }
INLINE v4 root(v4 x) {
    v4 r = x;
    for (int i = 0; i < 4; i++) r[i] = __builtin_sqrt(x[i]);
    return r;
}
#endif
INLINE v4 fma(v4 a, v4 b, double c) { return fma(a, b, all(c)); }

// 2^n for a normal number: a product with it is what ldexp gives, without a call.
INLINE double two_to(int n) {
    const uint64_t b = static_cast<uint64_t>(n + 1023) << 52;
    double r;
    std::memcpy(&r, &b, sizeof r);
    return r;
}

// Adding 1.5 * 2^52 rounds to the nearest integer and leaves it in the low bits; good for |x| < 2^51.
constexpr double ROUNDER = 6755399441055744.0;
INLINE v4 nearest(v4 x, i4& n) {
    v4 shifted = x + ROUNDER;
    n = (i4)(pattern(shifted) - pattern(all(ROUNDER)));
    return shifted - ROUNDER;
}

INLINE v4 exp(v4 x) {  // clamped to the normal range
    x = smaller(larger(x, all(-708.0)), all(709.0));
    i4 k;
    v4 n = nearest(x * 1.4426950408889634074, k);
    v4 r = fnma(n, all(6.93147180559945286227e-01), x);
    r = fnma(n, all(2.31904681384629955842e-17), r);
    // 1 + r + r^2 (1/2! + r/3! + ... + r^11/13!)
    const v4 r2 = r * r, r4 = r2 * r2;
    const v4 a = fma(r, all(1.6666666666666666e-01), 0.5);
    const v4 b = fma(r, all(8.333333333333333e-03), 4.1666666666666664e-02);
    const v4 c = fma(r, all(1.984126984126984e-04), 1.388888888888889e-03);
    const v4 d = fma(r, all(2.7557319223985893e-06), 2.48015873015873e-05);
    const v4 e = fma(r, all(2.505210838544172e-08), 2.7557319223985893e-07);
    const v4 f = fma(r, all(1.6059043836821613e-10), 2.08767569878681e-09);
    const v4 tail = fma(r4, fma(r4, fma(r2, f, e), fma(r2, d, c)), fma(r2, b, a));
    const v4 p = 1.0 + fma(r2, tail, r);
    return value(pattern(p) + ((u4)k << 52));  // times 2^k; the clamp keeps the result normal
}

INLINE void sincos(v4 x, v4& s, v4& c) {
    i4 q;
    v4 n = nearest(x * 0.63661977236758134308, q);
    v4 r = fnma(n, all(1.57079632679489655800e+00), x);
    r = fnma(n, all(6.12323399573676603587e-17), r);
    v4 z = r * r;
    const v4 z2 = z * z;
    const v4 a0 = fma(z, all(8.33333333332248946124e-03), -1.66666666666666324348e-01);
    const v4 a1 = fma(z, all(2.75573137070700676789e-06), -1.98412698298579493134e-04);
    const v4 a2 = fma(z, all(1.58969099521155010221e-10), -2.50507602534068634195e-08);
    const v4 sine = fma(r * z, fma(z2, fma(z2, a2, a1), a0), r);
    const v4 b0 = fma(z, all(-1.38888888888741095749e-03), 4.16666666666666019037e-02);
    const v4 b1 = fma(z, all(-2.75573143513906633035e-07), 2.48015872894767294178e-05);
    const v4 b2 = fma(z, all(-1.13596475577881948265e-11), 2.08757232129817482790e-09);
    const v4 cosine = fma(z2, fma(z2, fma(z2, b2, b1), b0), fma(z, all(-0.5), 1.0));
    i4 odd = -(q & 1);
    s = value(bits(pick(odd, cosine, sine)) ^ (i4)((u4)(q & 2) << 62));
    c = value(bits(pick(odd, sine, cosine)) ^ (i4)((((u4)q + 1) & 2) << 62));
}

INLINE v4 log(v4 x) {  // x > 0 and normal
    u4 b = pattern(x);
    // e so that m lies in [sqrt(1/2), sqrt(2)); biased and unsigned, for AVX2 has no arithmetic shift of 64 bits
    u4 biased = (b + (0x3ff0000000000000ULL - 0x3fe6a09e667f3bcdULL)) >> 52;
    u4 e = biased - 1023;
    v4 m = value(b - (e << 52));
    v4 k = value(e + pattern(all(ROUNDER))) - ROUNDER;
    v4 f = m - 1.0, s = f / (m + 1.0), z = s * s;
    const v4 z2 = z * z;
    const v4 p0 = fma(z, all(3.999999999940941908e-01), 6.666666666666735130e-01);
    const v4 p1 = fma(z, all(2.222219843214978396e-01), 2.857142874366239149e-01);
    const v4 p2 = fma(z, all(1.531383769920937332e-01), 1.818357216161805012e-01);
    const v4 p = fma(z2, fma(z2, fma(z2, all(1.479819860511658591e-01), p2), p1), p0);
    v4 h = 0.5 * f * f;
    v4 low = fma(k, all(1.90821492927058770002e-10), s * fma(z, p, h));
    return fma(k, all(6.93147180369123816490e-01), f - (h - low));
}

// ln x or up to 0.06 more, for x >= 0, from the bits alone: exponent and fraction are log2 of x, less at most 0.0861.
INLINE v4 log_at_most(v4 x) {
    const v4 counted = value((pattern(x) >> 13) + pattern(all(ROUNDER))) - ROUNDER;  // in units of 2^-39
    return fma(counted, all(1.260827376536227e-12), 0.06 - 1023.0 * 0.6931471805599453);
}

INLINE v4 atan2(v4 y, v4 x) {
    v4 ax = magnitude(x), ay = magnitude(y);
    i4 swap = ay > ax;
    const v4 low = pick(swap, ax, ay), high = pick(swap, ay, ax) + 1e-300;
    i4 big = low > 0.41421356237309503 * high;  // tan(pi / 8): then from pi / 4 on
    const v4 u = pick(big, low - high, low) / pick(big, low + high, high), z = u * u, z2 = z * z, z4 = z2 * z2;
    const v4 a0 = fma(z, all(-1.99999999998764832476e-01), 3.33333333333329318027e-01);
    const v4 a1 = fma(z, all(-1.11111104054623557880e-01), 1.42857142725034663711e-01);
    const v4 a2 = fma(z, all(-7.69187620504482999495e-02), 9.09088713343650656196e-02);
    const v4 a3 = fma(z, all(-5.83357013379057348645e-02), 6.66107313738753120669e-02);
    const v4 a4 = fma(z, all(-3.65315727442169155270e-02), 4.97687799461593236017e-02);
    const v4 rest = fma(z4, fma(z4, fma(z2, all(1.62858201153657823623e-02), a4), fma(z2, a3, a2)), fma(z2, a1, a0));
    v4 a = fnma(u * z, rest, u) + pick(big, all(0.25 * PI), all(0.0));
    a = pick(swap, 0.5 * PI - a, a);
    a = pick(x < 0.0, PI - a, a);
    return value(bits(a) | (bits(y) & INT64_MIN));
}

// Four complex numbers.
struct c4 { v4 re, im; };
INLINE c4 operator+(c4 a, c4 b) { return {a.re + b.re, a.im + b.im}; }
INLINE c4 operator-(c4 a, c4 b) { return {a.re - b.re, a.im - b.im}; }
INLINE c4 operator-(c4 a) { return {-a.re, -a.im}; }
INLINE c4 operator*(c4 a, c4 b) { return {fnma(a.im, b.im, a.re * b.re), fma(a.re, b.im, a.im * b.re)}; }
INLINE c4 operator*(v4 s, c4 a) { return {s * a.re, s * a.im}; }
INLINE c4 operator*(double s, c4 a) { return {s * a.re, s * a.im}; }
INLINE c4 operator+(double s, c4 a) { return {s + a.re, a.im}; }
INLINE c4 operator-(double s, c4 a) { return {s - a.re, -a.im}; }
INLINE c4 fma(c4 a, c4 b, c4 c) {
    return {fnma(a.im, b.im, fma(a.re, b.re, c.re)), fma(a.im, b.re, fma(a.re, b.im, c.im))};
}
INLINE c4 fma(double s, c4 b, c4 c) { return {fma(all(s), b.re, c.re), fma(all(s), b.im, c.im)}; }
INLINE c4 pick(i4 mask, c4 a, c4 b) { return {pick(mask, a.re, b.re), pick(mask, a.im, b.im)}; }
INLINE c4 times_i(c4 a) { return {-a.im, a.re}; }
INLINE c4 inverse(c4 a) {
    v4 d = 1.0 / fma(a.im, a.im, a.re * a.re);
    return {a.re * d, -a.im * d};
}
INLINE c4 exp(c4 a) {
    v4 e = exp(a.re), s, c;
    sincos(a.im, s, c);
    return {e * c, e * s};
}
// ln a, with all the digits of the excess a - 1 where that is small.
INLINE c4 log(c4 a, c4 excess) {
    const v4 x = fma(excess.re, excess.re, fma(excess.im, excess.im, 2.0 * excess.re)), near = 1.0 + x;  // |a|^2, by way of one
    const i4 small = magnitude(x) < 0.5;
    const v4 lost = pick(small, x - (near - 1.0), all(0.0));
    const v4 im = pick(small, excess.im, a.im), re = pick(small, 1.0 + excess.re, a.re);
    return {0.5 * (log(pick(small, near, fma(a.im, a.im, a.re * a.re))) + lost), atan2(im, re)};
}
INLINE c4 root(c4 a) {  // the one with real part >= 0
    v4 size = root(fma(a.im, a.im, a.re * a.re));
    v4 t = root(0.5 * (size + magnitude(a.re))), u = magnitude(a.im) / (2.0 * t);
    i4 right = a.re >= 0.0;
    v4 im = pick(right, u, t);
    return {pick(right, t, u), value(bits(im) | (bits(a.im) & INT64_MIN))};
}

}  // namespace STRIKEOUT_BUILD
