// Vectors of doubles, and the elementary functions on them.
//
//   vd, vi, vu, vc   LANES doubles, signed integers, patterns of bits, complex numbers
//
// LANES is 4; only the functions over arrays (arrays.cpp) are compiled once more with 8, for AVX-512. The pricing kernel adds
// up its lanes, so its number of lanes is part of its bits; an element of an array is never added to another.
//
// Every product that feeds a sum is an explicit fma, and contraction is off, so all builds, GCC and Clang give the same bits;
// exp, log, sin, cos and atan2 are here so that the C library's versions do not matter.
// Polynomial coefficients: sin, cos, log and atan from fdlibm (Sun Microsystems, 1993); exp is a Taylor series. They are
// summed in pairs of terms, not one after the other: half the wait for a few products more.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif
#if defined(STRIKEOUT_LANES)
#define LANES STRIKEOUT_LANES
#else
#define LANES 4
#endif

namespace STRIKEOUT_BUILD {

typedef double vd __attribute__((vector_size(8 * LANES)));
typedef int64_t vi __attribute__((vector_size(8 * LANES)));
typedef uint64_t vu __attribute__((vector_size(8 * LANES)));
#define INLINE static inline __attribute__((always_inline))
#define RARE static inline __attribute__((noinline, cold))
#define UNLIKELY(condition) __builtin_expect(condition, 0)

constexpr double PI = 3.14159265358979323846;

#if LANES == 8
INLINE vd all(double x) { return vd{x, x, x, x, x, x, x, x}; }
#else
INLINE vd all(double x) { return vd{x, x, x, x}; }
#endif
INLINE vd load(const double* p) { vd r; std::memcpy(&r, p, sizeof r); return r; }
INLINE void store(double* p, vd x) { std::memcpy(p, &x, sizeof x); }
INLINE vi bits(vd x) { vi r; std::memcpy(&r, &x, sizeof r); return r; }
INLINE vd value(vi x) { vd r; std::memcpy(&r, &x, sizeof r); return r; }
// Sums and shifts of bit patterns wrap around, so they are done without sign.
INLINE vu pattern(vd x) { vu r; std::memcpy(&r, &x, sizeof r); return r; }
INLINE vd value(vu x) { vd r; std::memcpy(&r, &x, sizeof r); return r; }
INLINE vd magnitude(vd x) { return value(bits(x) & INT64_MAX); }

#if LANES == 8
// maskz with all lanes on: the plain forms read a register that GCC 12 calls uninitialised.
INLINE vd fma(vd a, vd b, vd c) { return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
INLINE vd fnma(vd a, vd b, vd c) { return (vd)_mm512_fnmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }  // c - a b
INLINE vd root(vd x) { return (vd)_mm512_maskz_sqrt_pd(255, (__m512d)x); }
INLINE vd pick(vi mask, vd a, vd b) { return mask ? a : b; }  // of a comparison the compiler keeps the mask register
INLINE vd smaller(vd a, vd b) { return (vd)_mm512_maskz_min_pd(255, (__m512d)a, (__m512d)b); }
INLINE vd larger(vd a, vd b) { return (vd)_mm512_maskz_max_pd(255, (__m512d)a, (__m512d)b); }
INLINE bool any(vi m) { return _mm512_movepi64_mask((__m512i)m) != 0; }
INLINE bool all_below(vd a, double b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)all(b), _CMP_LT_OQ) == 255; }
INLINE bool all_at_least(vd a, double b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)all(b), _CMP_GE_OQ) == 255; }
INLINE vd lookup(const double* table, vu index) {  // of sixteen, by the last four bits
    return (vd)_mm512_permutex2var_pd((__m512d)load(table), (__m512i)index, (__m512d)load(table + 8));
}
INLINE vd load_some(const double* p, int64_t count) {
    return (vd)_mm512_maskz_loadu_pd(static_cast<__mmask8>(count < 8 ? (1 << count) - 1 : 255), p);
}
#elif defined(__AVX2__) && defined(__FMA__)
INLINE vd fma(vd a, vd b, vd c) { return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
INLINE vd fnma(vd a, vd b, vd c) { return (vd)_mm256_fnmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }  // c - a b
INLINE vd root(vd x) { return (vd)_mm256_sqrt_pd((__m256d)x); }
INLINE vd pick(vi mask, vd a, vd b) { return (vd)_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)mask); }
// The second where they cannot be compared, as the plain build has it.
INLINE vd smaller(vd a, vd b) { return (vd)_mm256_min_pd((__m256d)a, (__m256d)b); }
INLINE vd larger(vd a, vd b) { return (vd)_mm256_max_pd((__m256d)a, (__m256d)b); }
INLINE bool any(vi m) { return _mm256_movemask_pd((__m256d)m) != 0; }
INLINE bool all_below(vd a, double b) { return _mm256_movemask_pd((__m256d)(a < b)) == 15; }  // false for not-a-number
INLINE bool all_at_least(vd a, double b) { return _mm256_movemask_pd((__m256d)(a >= b)) == 15; }
INLINE vd lookup(const double* table, vu index) {  // of sixteen, by the last four bits
    return (vd)_mm256_i64gather_pd(table, (__m256i)(index & 15), 8);
}
// How many of the four there are up to the last that is true.
INLINE int up_to(vi m) { return 32 - __builtin_clz(2 * _mm256_movemask_pd((__m256d)m) + 1) - 1; }
// The first `count` of LANES, and zeros; what lies behind them is not touched.
INLINE vd load_some(const double* p, int64_t count) {
    return (vd)_mm256_maskload_pd(p, (__m256i)(vi{0, 1, 2, 3} < vi{count, count, count, count}));
}
INLINE void transpose(vd& a, vd& b, vd& c, vd& d) {
    __m256d ab = _mm256_unpacklo_pd((__m256d)a, (__m256d)b), AB = _mm256_unpackhi_pd((__m256d)a, (__m256d)b);
    __m256d cd = _mm256_unpacklo_pd((__m256d)c, (__m256d)d), CD = _mm256_unpackhi_pd((__m256d)c, (__m256d)d);
    a = (vd)_mm256_permute2f128_pd(ab, cd, 0x20), b = (vd)_mm256_permute2f128_pd(AB, CD, 0x20);
    c = (vd)_mm256_permute2f128_pd(ab, cd, 0x31), d = (vd)_mm256_permute2f128_pd(AB, CD, 0x31);
}
#else
INLINE vd pick(vi mask, vd a, vd b) { return value((bits(a) & mask) | (bits(b) & ~mask)); }
INLINE vd smaller(vd a, vd b) { return pick(a < b, a, b); }
INLINE vd larger(vd a, vd b) { return pick(a > b, a, b); }
INLINE bool any(vi m) { return (m[0] | m[1] | m[2] | m[3]) != 0; }
INLINE bool all_below(vd a, double b) { return a[0] < b && a[1] < b && a[2] < b && a[3] < b; }
INLINE bool all_at_least(vd a, double b) { return a[0] >= b && a[1] >= b && a[2] >= b && a[3] >= b; }
INLINE vd lookup(const double* table, vu index) {
    return vd{table[index[0] & 15], table[index[1] & 15], table[index[2] & 15], table[index[3] & 15]};
}
INLINE int up_to(vi m) { return m[3] ? 4 : m[2] ? 3 : m[1] ? 2 : m[0] ? 1 : 0; }
INLINE vd load_some(const double* p, int64_t count) {
    vd r = {0.0, 0.0, 0.0, 0.0};
    for (int i = 0; i < 4 && i < count; i++) r[i] = p[i];
    return r;
}
INLINE void transpose(vd& a, vd& b, vd& c, vd& d) {
    const vd A = a, B = b, C = c, D = d;
    a = vd{A[0], B[0], C[0], D[0]}, b = vd{A[1], B[1], C[1], D[1]};
    c = vd{A[2], B[2], C[2], D[2]}, d = vd{A[3], B[3], C[3], D[3]};
}
INLINE vd fma(vd a, vd b, vd c) {
    vd r = c;
    for (int i = 0; i < 4; i++) r[i] = __builtin_fma(a[i], b[i], c[i]);
    return r;
}
INLINE vd fnma(vd a, vd b, vd c) { return fma(-a, b, c); }
INLINE vd root(vd x) {
    vd r = x;
    for (int i = 0; i < 4; i++) r[i] = __builtin_sqrt(x[i]);
    return r;
}
#endif
INLINE vd fma(vd a, vd b, double c) { return fma(a, b, all(c)); }
INLINE bool all_between(double low, vd a, double high) { return all_at_least(a, low) & all_below(a, high); }  // high itself is not

// 2^n for a normal number: a product with it is what ldexp gives, without a call.
INLINE double two_to(int n) {
    const uint64_t b = static_cast<uint64_t>(n + 1023) << 52;
    double r;
    std::memcpy(&r, &b, sizeof r);
    return r;
}

// Adding 1.5 * 2^52 rounds to the nearest integer and leaves it in the low bits; good for |x| < 2^51.
constexpr double ROUNDER = 6755399441055744.0;
INLINE vd nearest(vd x, vi& n) {
    vd shifted = x + ROUNDER;
    n = (vi)(pattern(shifted) - pattern(all(ROUNDER)));
    return shifted - ROUNDER;
}

INLINE vd exp(vd x) {  // clamped to the normal range
    x = smaller(larger(x, all(-708.0)), all(709.0));
    vi k;
    vd n = nearest(x * 1.4426950408889634074, k);
    vd r = fnma(n, all(6.93147180559945286227e-01), x);
    r = fnma(n, all(2.31904681384629955842e-17), r);
    // 1 + r + r^2 (1/2! + r/3! + ... + r^11/13!)
    const vd r2 = r * r, r4 = r2 * r2;
    const vd a = fma(r, all(1.6666666666666666e-01), 0.5);
    const vd b = fma(r, all(8.333333333333333e-03), 4.1666666666666664e-02);
    const vd c = fma(r, all(1.984126984126984e-04), 1.388888888888889e-03);
    const vd d = fma(r, all(2.7557319223985893e-06), 2.48015873015873e-05);
    const vd e = fma(r, all(2.505210838544172e-08), 2.7557319223985893e-07);
    const vd f = fma(r, all(1.6059043836821613e-10), 2.08767569878681e-09);
    const vd tail = fma(r4, fma(r4, fma(r2, f, e), fma(r2, d, c)), fma(r2, b, a));
    const vd p = 1.0 + fma(r2, tail, r);
    return value(pattern(p) + ((vu)k << 52));  // times 2^k; the clamp keeps the result normal
}

INLINE void sincos(vd x, vd& s, vd& c) {
    vi q;
    vd n = nearest(x * 0.63661977236758134308, q);
    vd r = fnma(n, all(1.57079632679489655800e+00), x);
    r = fnma(n, all(6.12323399573676603587e-17), r);
    vd z = r * r;
    const vd z2 = z * z;
    const vd a0 = fma(z, all(8.33333333332248946124e-03), -1.66666666666666324348e-01);
    const vd a1 = fma(z, all(2.75573137070700676789e-06), -1.98412698298579493134e-04);
    const vd a2 = fma(z, all(1.58969099521155010221e-10), -2.50507602534068634195e-08);
    const vd sine = fma(r * z, fma(z2, fma(z2, a2, a1), a0), r);
    const vd b0 = fma(z, all(-1.38888888888741095749e-03), 4.16666666666666019037e-02);
    const vd b1 = fma(z, all(-2.75573143513906633035e-07), 2.48015872894767294178e-05);
    const vd b2 = fma(z, all(-1.13596475577881948265e-11), 2.08757232129817482790e-09);
    const vd cosine = fma(z2, fma(z2, fma(z2, b2, b1), b0), fma(z, all(-0.5), 1.0));
    vi odd = -(q & 1);
    s = value(bits(pick(odd, cosine, sine)) ^ (vi)((vu)(q & 2) << 62));
    c = value(bits(pick(odd, sine, cosine)) ^ (vi)((((vu)q + 1) & 2) << 62));
}

INLINE vd log(vd x) {  // x > 0 and normal
    vu b = pattern(x);
    // e so that m lies in [sqrt(1/2), sqrt(2)); biased and unsigned, for AVX2 has no arithmetic shift of 64 bits
    vu biased = (b + (0x3ff0000000000000ULL - 0x3fe6a09e667f3bcdULL)) >> 52;
    vu e = biased - 1023;
    vd m = value(b - (e << 52));
    vd k = value(e + pattern(all(ROUNDER))) - ROUNDER;
    vd f = m - 1.0, s = f / (m + 1.0), z = s * s;
    const vd z2 = z * z;
    const vd p0 = fma(z, all(3.999999999940941908e-01), 6.666666666666735130e-01);
    const vd p1 = fma(z, all(2.222219843214978396e-01), 2.857142874366239149e-01);
    const vd p2 = fma(z, all(1.531383769920937332e-01), 1.818357216161805012e-01);
    const vd p = fma(z2, fma(z2, fma(z2, all(1.479819860511658591e-01), p2), p1), p0);
    vd h = 0.5 * f * f;
    vd low = fma(k, all(1.90821492927058770002e-10), s * fma(z, p, h));
    return fma(k, all(6.93147180369123816490e-01), f - (h - low));
}

// ln x or up to 0.06 more, for x >= 0, from the bits alone: exponent and fraction are log2 of x, less at most 0.0861.
INLINE vd log_at_most(vd x) {
    const vd counted = value((pattern(x) >> 13) + pattern(all(ROUNDER))) - ROUNDER;  // in units of 2^-39
    return fma(counted, all(1.260827376536227e-12), 0.06 - 1023.0 * 0.6931471805599453);
}

INLINE vd atan2(vd y, vd x) {
    vd ax = magnitude(x), ay = magnitude(y);
    vi swap = ay > ax;
    const vd low = pick(swap, ax, ay), high = pick(swap, ay, ax) + 1e-300;
    vi big = low > 0.41421356237309503 * high;  // tan(pi / 8): then from pi / 4 on
    const vd u = pick(big, low - high, low) / pick(big, low + high, high), z = u * u, z2 = z * z, z4 = z2 * z2;
    const vd a0 = fma(z, all(-1.99999999998764832476e-01), 3.33333333333329318027e-01);
    const vd a1 = fma(z, all(-1.11111104054623557880e-01), 1.42857142725034663711e-01);
    const vd a2 = fma(z, all(-7.69187620504482999495e-02), 9.09088713343650656196e-02);
    const vd a3 = fma(z, all(-5.83357013379057348645e-02), 6.66107313738753120669e-02);
    const vd a4 = fma(z, all(-3.65315727442169155270e-02), 4.97687799461593236017e-02);
    const vd rest = fma(z4, fma(z4, fma(z2, all(1.62858201153657823623e-02), a4), fma(z2, a3, a2)), fma(z2, a1, a0));
    vd a = fnma(u * z, rest, u) + pick(big, all(0.25 * PI), all(0.0));
    a = pick(swap, 0.5 * PI - a, a);
    a = pick(x < 0.0, PI - a, a);
    return value(bits(a) | (bits(y) & INT64_MIN));
}

struct vc { vd re, im; };
INLINE vc operator+(vc a, vc b) { return {a.re + b.re, a.im + b.im}; }
INLINE vc operator-(vc a, vc b) { return {a.re - b.re, a.im - b.im}; }
INLINE vc operator-(vc a) { return {-a.re, -a.im}; }
INLINE vc operator*(vc a, vc b) { return {fnma(a.im, b.im, a.re * b.re), fma(a.re, b.im, a.im * b.re)}; }
INLINE vc operator*(vd s, vc a) { return {s * a.re, s * a.im}; }
INLINE vc operator*(double s, vc a) { return {s * a.re, s * a.im}; }
INLINE vc operator+(double s, vc a) { return {s + a.re, a.im}; }
INLINE vc operator-(double s, vc a) { return {s - a.re, -a.im}; }
INLINE vc fma(vc a, vc b, vc c) {
    return {fnma(a.im, b.im, fma(a.re, b.re, c.re)), fma(a.im, b.re, fma(a.re, b.im, c.im))};
}
INLINE vc fma(double s, vc b, vc c) { return {fma(all(s), b.re, c.re), fma(all(s), b.im, c.im)}; }
INLINE vc pick(vi mask, vc a, vc b) { return {pick(mask, a.re, b.re), pick(mask, a.im, b.im)}; }
INLINE vc times_i(vc a) { return {-a.im, a.re}; }
INLINE vc inverse(vc a) {
    vd d = 1.0 / fma(a.im, a.im, a.re * a.re);
    return {a.re * d, -a.im * d};
}
INLINE vc exp(vc a) {
    vd e = exp(a.re), s, c;
    sincos(a.im, s, c);
    return {e * c, e * s};
}
// ln a, with all the digits of the excess a - 1 where that is small.
INLINE vc log(vc a, vc excess) {
    const vd x = fma(excess.re, excess.re, fma(excess.im, excess.im, 2.0 * excess.re)), near = 1.0 + x;  // |a|^2, by way of one
    const vi small = magnitude(x) < 0.5;
    const vd lost = pick(small, x - (near - 1.0), all(0.0));
    const vd im = pick(small, excess.im, a.im), re = pick(small, 1.0 + excess.re, a.re);
    return {0.5 * (log(pick(small, near, fma(a.im, a.im, a.re * a.re))) + lost), atan2(im, re)};
}
INLINE vc root(vc a) {  // the one with real part >= 0
    vd size = root(fma(a.im, a.im, a.re * a.re));
    vd t = root(0.5 * (size + magnitude(a.re))), u = magnitude(a.im) / (2.0 * t);
    vi right = a.re >= 0.0;
    vd im = pick(right, u, t);
    return {pick(right, t, u), value(bits(im) | (bits(a.im) & INT64_MIN))};
}

}  // namespace STRIKEOUT_BUILD
