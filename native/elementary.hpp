// Elementary functions for any argument: the whole range of doubles, infinities, zeros, subnormals, not-a-number.
//
// simd.hpp has quicker ones for the pricing kernel, which knows its arguments. These here are what everything else is
// computed with that is hashed, certified or steers a search: about one unit in the last place (the tests hold each to
// its own figure against mpmath), and the same bits from every build, because every operation is a single correctly
// rounded one in a fixed order.
// Polynomial coefficients: sin, cos and atan as in simd.hpp; exp and log interpolate at Chebyshev points. Tables: tables.hpp.
// Each function has a quick way for usual arguments and another for any; where both apply they give the same bits.
#pragma once
#include <limits>

#include "simd.hpp"
#include "tables.hpp"

namespace STRIKEOUT_BUILD {
namespace elementary {

constexpr double INFINITE = std::numeric_limits<double>::infinity(), NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
constexpr double LEAST_NORMAL = 0x1p-1022;
constexpr double LARGEST_ANGLE = 1073741824.0;  // 2^30: beyond, sin and cos answer not-a-number

INLINE vi is_nan(vd x) { return ~(x == x); }
INLINE vi is_negative(vd x) { return bits(x) < 0; }  // by its sign bit: -0 is
INLINE vd signed_as(vd x, vd sign) { return value(bits(magnitude(x)) | (bits(sign) & INT64_MIN)); }
INLINE vd two_to(vd n) { return value((pattern(n + ROUNDER) - pattern(all(ROUNDER)) + 1023) << 52); }  // -1022 <= n <= 1023

// a + b = sum + rest, exactly.
INLINE vd sum_of(vd a, vd b, vd& rest) {
    const vd sum = a + b, b_part = sum - a;
    rest = (a - (sum - b_part)) + (b - b_part);
    return sum;
}

// exp(x) = 2^(n / 16) (1 + r + after), |r| <= ln(2) / 32; the last four bits of `count` are those of n.
struct Reduced {
    vd n, r, after;
    vu count;
};
constexpr double STEP = 0x1.62e42fefa39efp-5, STEP_LOW = 0x1.abc9e3b39803fp-60;  // ln(2) / 16; x - n STEP is exact
INLINE vd rest_of(vd x, vd n) { return fnma(n, all(STEP_LOW), fnma(n, all(STEP), x)); }
INLINE vd rest_of(vd x, vd n, vd low) { return fnma(n, all(STEP_LOW), fnma(n, all(STEP), x) + low); }
INLINE vd rest_lost(vd x, const Reduced& of) { return fnma(of.n, all(STEP_LOW), fnma(of.n, all(STEP), x) - of.r); }
template <class... Low>
INLINE Reduced reduced(vd x, Low... low) {
    const vd shifted = fma(x, all(0x1.71547652b82fep+4), ROUNDER), n = shifted - ROUNDER;  // the nearest to 16 x / ln 2
    const vd r = rest_of(x, n, low...), r2 = r * r;
    const vd a = fma(r, all(0x1.5555555555556p-3), 0.5);  // (exp(r) - 1 - r) / r^2
    const vd b = fma(r, all(0x1.11111110e1059p-7), 0x1.55555554e93b7p-5);
    const vd c = fma(r, all(0x1.a01b0c3c80bbcp-13), 0x1.6c17ed5c1f49ep-10);
    return {n, r, fma(r2, fma(r2, fma(r2, c, b), a), lookup(ROOT_REST, pattern(shifted))), pattern(shifted)};
}
// 2^(n / 16) for a normal one: the bits of n that ROOT is found by are missing in it, so that one sum adds them and the exponent.
INLINE vd two_to_sixteenths(vu count) { return value(pattern(lookup(ROOT, count)) + (count << 48)); }
constexpr double USUAL_EXPONENT = 708.0;  // below, exp and its inverse are normal numbers
INLINE vd exp_from(const Reduced& part) {
    const vd s = two_to_sixteenths(part.count);
    return fma(s, part.r + part.after, s);
}

// exp at any place; the same bits as the quicker way where that is allowed. Of the products with powers of two only the last rounds.
template <class... Low>
RARE vd exp_of_any(vd x, Low... low) {
    Reduced part = reduced(smaller(larger(x, all(-746.0)), all(710.0)), low...);
    part.count &= 15;
    vi unused;
    const vd index = value(part.count + pattern(all(ROUNDER))) - ROUNDER, n = 0.0625 * (part.n - index), half = nearest(0.5 * n, unused);
    return pick(is_nan(x), all(NOT_A_NUMBER), (exp_from(part) * two_to(half)) * two_to(n - half));
}
// exp(x + low), low far below x.
template <class... Low>
INLINE vd exp(vd x, Low... low) {
    if (UNLIKELY(!all_below(magnitude(x), USUAL_EXPONENT))) return exp_of_any(x, low...);
    return exp_from(reduced(x, low...));
}

// exp(x) - 1 = (s - 1) + s r + s after, with what each sum loses; x < USUAL_EXPONENT.
INLINE vd expm1_usual(vd x) {
    const vd within = larger(x, all(-64.0));
    const Reduced part = reduced(within);
    vd lost;
    const vd s = two_to_sixteenths(part.count), less = sum_of(s, all(-1.0), lost);
    const vd first = s * part.r, first_low = fma(s, part.r, -first), sum = less + first, sum_lost = (less - sum) + first;
    const vd after = part.after + fma(lookup(ROOT_REST, part.count), part.r, rest_lost(within, part));
    const vd found = sum + (fma(s, after, first_low) + (lost + sum_lost));
    return value(bits(found) | (bits(x) & INT64_MIN));  // -0 for -0
}
RARE vd expm1_of_any(vd x) {
    const vd small = expm1_usual(smaller(x, all(USUAL_EXPONENT)));
    return pick(x < USUAL_EXPONENT, small, exp_of_any(x));
}
INLINE vd expm1(vd x) {
    if (UNLIKELY(!all_below(x, USUAL_EXPONENT))) return expm1_of_any(x);
    return expm1_usual(x);
}

// x = 2^k m, m from 0.703125 to 1.40625, for x > 0 and normal. Which sixteenth of the way m is, the last four bits of `cell` say.
struct Fraction {
    vd k, m;
    vu cell, exponent;  // the exponent as a double has it
};
constexpr uint64_t LEAST_FRACTION = 0x3fe6800000000000ULL, ONE = 0x3ff0000000000000ULL;
INLINE Fraction fraction_of(vd x) {
    const vu shifted = pattern(x) + (ONE - LEAST_FRACTION);
    const vd k = value((shifted >> 52) + pattern(all(ROUNDER))) - (ROUNDER + 1023.0);
    return {k, value((shifted & 0xfffffffffffffULL) + LEAST_FRACTION), shifted >> 48, shifted & 0xfff0000000000000ULL};
}
// The same for subnormal x too.
INLINE Fraction fraction_of_any(vd x) {
    const vi tiny = x < LEAST_NORMAL;
    Fraction found = fraction_of(pick(tiny, x * 18014398509481984.0, x));
    found.k -= pick(tiny, all(54.0), all(0.0));
    return found;
}
// The logarithm at the ends of its range; `found` elsewhere.
INLINE vd log_at_ends(vd x, vd found) {
    found = pick(x == 0.0, all(-INFINITE), pick(x == INFINITE, all(INFINITE), found));
    return pick(~(x >= 0.0), all(NOT_A_NUMBER), found);
}
constexpr double LN2_HIGH = 0x1.62e42fefa3800p-1, LN2_LOW = 0x1.ef35793c76730p-45;  // k LN2_HIGH + LOG_HIGH is exact
// k ln 2 + ln(1 / c) + ln(1 + r) + low, c the reciprocal of the cell.
INLINE vd log_from(vd k, vu cell, vd r, vd low) {
    const vd high = fma(k, all(LN2_HIGH), lookup(LOG_HIGH, cell)), sum = high + r, lost = (high - sum) + r;
    const vd r2 = r * r, r4 = r2 * r2;
    const vd a = fma(r, all(0x1.55555555554eap-2), -0.5);  // (ln(1 + r) - r) / r^2
    const vd b = fma(r, all(0x1.9999999bf0e59p-3), -0x1.fffffffffff3bp-3);
    const vd c = fma(r, all(0x1.24922cf997992p-3), -0x1.555555577ab43p-3);
    const vd d = fma(r, all(0x1.c8176f55ece8bp-4), -0x1.ffffcc5b89520p-4);
    const vd squares = fma(r4, fma(r4, all(-0x1.9a7fadd47ba77p-4), fma(r2, d, c)), fma(r2, b, a));
    return sum + fma(r2, squares, fma(k, all(LN2_LOW), lookup(LOG_LOW, cell)) + (lost + low));
}
INLINE vd log_from(const Fraction& x) {
    return log_from(x.k, x.cell, fma(x.m, lookup(RECIPROCAL, x.cell), -1.0), all(0.0));  // the rest is exact
}
RARE vd log_of_any(vd x) { return log_at_ends(x, log_from(fraction_of_any(x))); }
INLINE vd log(vd x) {
    if (UNLIKELY(!all_between(LEAST_NORMAL, x, INFINITE))) return log_of_any(x);
    return log_from(fraction_of(x));
}

// What 1 + x loses, over 2^k and times c, belongs to the rest as well: near zero that brings x back.
INLINE vd log1p_usual(vd x) {
    const vd whole = 1.0 + x, lost = x - (whole - 1.0);  // exact where it matters, below 2^53
    const Fraction of = fraction_of(whole);
    const vd c = lookup(RECIPROCAL, of.cell), scaled = value(pattern(c) - (of.exponent - ONE));
    const vd first = fma(of.m, c, -1.0), r = fma(lost, scaled, first);
    return value(bits(log_from(of.k, of.cell, r, fma(lost, scaled, first - r))) | (bits(x) & INT64_MIN));
}
constexpr double LARGE = 0x1p60;  // ln(1 + x) = ln x beyond
RARE vd log1p_of_any(vd x) {
    const vd inside = pick((x > -1.0) & (x < LARGE), x, all(0.0));
    return pick(x >= LARGE, log_of_any(x), pick(x > -1.0, log1p_usual(inside), log_at_ends(1.0 + x, all(0.0))));
}
INLINE vd log1p(vd x) {
    if (UNLIKELY(!all_between(-0x1.fffffffffffffp-1, x, LARGE))) return log1p_of_any(x);
    return log1p_usual(x);
}

// ln x = high + low, to about 2^-65 of itself: long enough for a power.
INLINE vd long_log(const Fraction& x, vd& low) {
    const vd r = fma(x.m, lookup(RECIPROCAL, x.cell), -1.0);  // exact
    const vd high = fma(x.k, all(LN2_HIGH), lookup(LOG_HIGH, x.cell)), sum = high + r, lost = (high - sum) + r;
    const vd r2 = r * r, r2_low = fma(r, r, -r2), half = 0.5 * r2, r4 = r2 * r2;
    const vd a = fma(r, all(-0.25), 0x1.5555555555555p-2);  // (ln(1 + r) - r + r^2 / 2) / r^3
    const vd b = fma(r, all(-0x1.5555555555380p-3), 0x1.99999999997a0p-3);
    const vd c = fma(r, all(-0x1.000000031102ep-3), 0x1.24924927dfa9cp-3);
    const vd d = fma(r, all(-0x1.9999603506cd6p-4), 0x1.c71c33f8ab897p-4);
    const vd e = fma(r, all(-0x1.56307db92f3dap-4), 0x1.75491a6da314cp-4);
    const vd cubes = fma(r4, fma(r4, e, fma(r2, d, c)), fma(r2, b, a));
    const vd two = sum - half, two_lost = (sum - two) - half;
    const vd rest = fma(r2_low, all(-0.5), lost + two_lost) + fma(x.k, all(LN2_LOW), lookup(LOG_LOW, x.cell));
    const vd after = fma(r2 * r, cubes, rest), whole = two + after;
    low = (two - whole) + after;
    return whole;
}
// x^y for x >= 0; not-a-number below.
RARE vd power_of_any(vd x, vd y) {
    vd low;
    const vi inside = (x > 0.0) & (x < INFINITE);
    const vd high = long_log(fraction_of_any(pick(inside, x, all(1.0))), low);
    const vd product = y * high, rest = fma(y, high, -product) + y * low;
    const vd far = pick(magnitude(product) < 1000.0, rest, all(0.0));
    vd found = exp_of_any(product, far);
    const vd up = pick(y > 0.0, all(INFINITE), all(0.0)), down = pick(y > 0.0, all(0.0), all(INFINITE));
    found = pick(x == 0.0, down, pick(x == INFINITE, up, found));
    found = pick(~(x >= 0.0) | is_nan(y), all(NOT_A_NUMBER), found);
    return pick((y == 0.0) | (x == 1.0), all(1.0), found);
}
INLINE vd power(vd x, vd y) {
    if (UNLIKELY(!all_between(LEAST_NORMAL, x, INFINITE))) return power_of_any(x, y);
    vd low;
    const vd high = long_log(fraction_of(x), low), product = y * high, rest = fma(y, high, -product) + y * low;
    if (UNLIKELY(!all_below(magnitude(product), USUAL_EXPONENT))) return power_of_any(x, y);
    return exp_from(reduced(product, rest));
}

// x = n pi / 2 + r + rest, |r| <= pi / 4.
INLINE void sincos(vd x, vd& s, vd& c) {
    vi q;
    const vi outside = ~(magnitude(x) <= LARGEST_ANGLE);
    const vd inside = pick(outside, all(0.0), x), n = nearest(inside * 0.63661977236758134308, q);
    const vd first = fnma(n, all(1.57079632679489655800e+00), inside);  // exact
    const vd second = n * 6.12323399573676603587e-17, second_low = fma(n, all(6.12323399573676603587e-17), -second);
    vd rest;
    const vd r = sum_of(first, -second, rest);
    rest = rest - second_low - n * -1.49738490485919e-33;
    const vd z = r * r, z2 = z * z;
    const vd a0 = fma(z, all(8.33333333332248946124e-03), -1.66666666666666324348e-01);
    const vd a1 = fma(z, all(2.75573137070700676789e-06), -1.98412698298579493134e-04);
    const vd a2 = fma(z, all(1.58969099521155010221e-10), -2.50507602534068634195e-08);
    const vd sine = r + (fma(r * z, fma(z2, fma(z2, a2, a1), a0), fma(-0.5 * z, rest, rest)));
    const vd b0 = fma(z, all(-1.38888888888741095749e-03), 4.16666666666666019037e-02);
    const vd b1 = fma(z, all(-2.75573143513906633035e-07), 2.48015872894767294178e-05);
    const vd b2 = fma(z, all(-1.13596475577881948265e-11), 2.08757232129817482790e-09);
    const vd half = 0.5 * z, one = 1.0 - half;
    const vd cosine = one + (((1.0 - one) - half) + fma(z2, fma(z2, fma(z2, b2, b1), b0), -(r * rest)));
    const vi odd = -(q & 1);
    const vd sine_found = value(bits(pick(odd, cosine, sine)) ^ (vi)((vu)(q & 2) << 62));
    const vd cosine_found = value(bits(pick(odd, sine, cosine)) ^ (vi)((((vu)q + 1) & 2) << 62));
    s = pick(outside, all(NOT_A_NUMBER), pick(x == 0.0, x, sine_found));
    c = pick(outside, all(NOT_A_NUMBER), cosine_found);
}
INLINE vd sin(vd x) {
    vd s, c;
    sincos(x, s, c);
    return s;
}
INLINE vd cos(vd x) {
    vd s, c;
    sincos(x, s, c);
    return c;
}

// The angle of (x, y): a multiple of pi / 4, in two parts, plus or minus atan(u) with |u| <= tan(pi / 8).
struct Quotient {
    vi big;       // low above tan(pi / 8) high: then from pi / 4 on
    vd u, u_low;  // low / high or (low - high) / (low + high), to twice the digits
};
INLINE Quotient quotient_of(vd low, vd high) {
    const vi big = low > 0.41421356237309503 * high;
    const vd less = pick(big, high, all(0.0)), more = pick(big, low, all(0.0));
    const vd over = low - less, over_lost = low - (over + less), under = high + more, under_lost = more - (under - high);
    const vd inverse = 1.0 / under, u = over * inverse;
    return {big, u, (fnma(u, under, over) + fnma(u, under_lost, over_lost)) * inverse};
}
INLINE vd angle_from(const Quotient& of, vi swapped, vd y, vd x) {
    const vd u = of.u, z = u * u, z2 = z * z, z4 = z2 * z2;
    const vd a0 = fma(z, all(-1.99999999998764832476e-01), 3.33333333333329318027e-01);
    const vd a1 = fma(z, all(-1.11111104054623557880e-01), 1.42857142725034663711e-01);
    const vd a2 = fma(z, all(-7.69187620504482999495e-02), 9.09088713343650656196e-02);
    const vd a3 = fma(z, all(-5.83357013379057348645e-02), 6.66107313738753120669e-02);
    const vd a4 = fma(z, all(-3.65315727442169155270e-02), 4.97687799461593236017e-02);
    const vd rest = fma(z4, fma(z4, fma(z2, all(1.62858201153657823623e-02), a4), fma(z2, a3, a2)), fma(z2, a1, a0));
    const vd small = fnma(u * z, rest, of.u_low * fma(z, z - 1.0, 1.0));  // atan(u + u_low) - u; 1 - z + z^2 for 1 / (1 + z)
    // Turned over once where swapped and once more where left; in eighths of a turn the angle begins at 0, 1, 2, 3 or 4.
    const vd eighth = pick(of.big, all(1.0), all(0.0)), right = pick(swapped, 2.0 - eighth, eighth);
    const vd from = pick(is_negative(x), 4.0 - right, right);
    const vi turned = (bits(x) ^ swapped) & INT64_MIN;
    constexpr double QUARTER = 0.78539816339744828, QUARTER_LOW = 3.061616997868383e-17;
    const vd base = QUARTER * from, base_low = fma(from, all(QUARTER_LOW), fma(from, all(QUARTER), -base));
    const vd first = value(bits(u) ^ turned), sum = base + first, lost = (base - sum) + first;
    const vd found = sum + (lost + (value(bits(small) ^ turned) + base_low));
    return value(bits(found) | (bits(y) & INT64_MIN));
}
constexpr double LEAST_SIDE = 0x1p-480, LARGEST_SIDE = 0x1p480;  // between them no quotient and no rest of one underflows
RARE vd atan2_of_any(vd y, vd x) {
    vd ax = magnitude(x), ay = magnitude(y);
    const vi both_infinite = (ax == INFINITE) & (ay == INFINITE);
    ax = pick(both_infinite, all(1.0), ax), ay = pick(both_infinite, all(1.0), ay);
    const vi swapped = ay > ax;
    const vd low = pick(swapped, ax, ay), high = pick(swapped, ay, ax);
    const vd scale = pick(high > LARGEST_SIDE, all(0x1p-600), pick(high < LEAST_SIDE, all(0x1p600), all(1.0)));
    Quotient of = quotient_of(low * scale, high * scale);
    const vi unlike = ~((low >= LEAST_SIDE) & (high < LARGEST_SIDE)) & (low <= 0x1p-100 * high);  // the quotient is the angle
    of.u = pick(unlike, pick(high == 0.0, all(0.0), low / high), of.u), of.u_low = pick(unlike, all(0.0), of.u_low);
    of.big &= ~unlike;
    return pick(is_nan(x) | is_nan(y), all(NOT_A_NUMBER), angle_from(of, swapped, y, x));
}
INLINE vd atan2(vd y, vd x) {
    const vd ax = magnitude(x), ay = magnitude(y), low = smaller(ax, ay), high = larger(ay, ax);  // of not-a-numbers one is kept
    if (UNLIKELY(!(all_at_least(low, LEAST_SIDE) && all_below(high, LARGEST_SIDE)))) return atan2_of_any(y, x);
    return angle_from(quotient_of(low, high), ay > ax, y, x);
}

// Complex functions, each part from the real ones above.
INLINE vc exp(vc a) {
    vd s, c;
    sincos(a.im, s, c);
    const vd size = exp(a.re);
    return {size * c, pick(a.im == 0.0, a.im, size * s)};
}
// e^a (cos b + i sin b) - 1, without cancellation: cos b = 1 - 2 sin(b / 2)^2.
INLINE vc expm1(vc a) {
    vd s, c, s_half, c_half;
    sincos(a.im, s, c);
    sincos(0.5 * a.im, s_half, c_half);
    return {fma(expm1(a.re), c, -2.0 * (s_half * s_half)), pick(a.im == 0.0, a.im, exp(a.re) * s)};
}
// Principal branch. Near the unit circle |a|^2 - 1 is found without cancellation.
INLINE vc log(vc a) {
    const vd ax = magnitude(a.re), ay = magnitude(a.im), high = larger(ax, ay), low = smaller(ax, ay);
    const vi near = (high > 0.5) & (high < 2.0);
    const vd square = low * low, lost = fma(low, low, -square);
    vd rest;
    const vd edge = fma(high - 1.0, high + 1.0, square), excess = sum_of(edge, lost, rest);
    const vd k = fraction_of_any(high).k, clamped = larger(all(-1000.0), smaller(k, all(1000.0))), unit = two_to(-clamped);
    const vd h = high * unit, l = low * unit;
    const vd far = fma(clamped, all(6.93147180559945286227e-01), 0.5 * log(fma(h, h, l * l)));
    return {pick(near, 0.5 * log1p(excess), far), atan2(a.im, a.re)};
}
INLINE vc sqrt(vc a) {  // the one with real part >= 0
    const vd ax = magnitude(a.re), ay = magnitude(a.im), high = larger(ax, ay);
    vi unused;
    const vd k = fraction_of_any(pick(high > 0.0, high, all(1.0))).k;
    const vd half = nearest(0.5 * k, unused), unit = two_to(-half), back = two_to(half);
    const vd x = (ax * unit) * unit, y = (ay * unit) * unit;
    const vd t = root(0.5 * (root(fma(y, y, x * x)) + x)), u = pick(t > 0.0, y / (2.0 * t), all(0.0));
    const vi right = ~is_negative(a.re);
    return {back * pick(right, t, u), signed_as(back * pick(right, u, t), a.im)};
}

}  // namespace elementary
}  // namespace STRIKEOUT_BUILD
