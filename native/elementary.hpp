// Elementary functions for any argument: the whole range of doubles, infinities, zeros, subnormals, not-a-number.
//
// simd.hpp has quicker ones for the pricing kernel, which knows its arguments. These here are what everything else is
// computed with that is hashed, certified or steers a search: about one unit in the last place (the tests hold each to
// its own figure against mpmath), and the same bits from every build, because every operation is a single correctly
// rounded one in a fixed order.
// Polynomial coefficients: as in simd.hpp, and Taylor's for the long logarithm.
#pragma once
#include <limits>

#include "simd.hpp"

namespace STRIKEOUT_BUILD {
namespace elementary {

constexpr double INFINITE = std::numeric_limits<double>::infinity(), NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
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

// x = n ln 2 + r + rest, |r| <= ln(2) / 2; then exp(r + rest) = 1 + r + (squares + rest).
struct Reduced {
    vd n, r, rest, squares;
};
INLINE Reduced reduced(vd x, vd low) {
    Reduced found;
    vi unused;
    found.n = nearest(x * 1.4426950408889634074, unused);
    const vd first = fnma(found.n, all(6.93147180559945286227e-01), x);  // exact
    const vd r = found.r = fnma(found.n, all(2.31904681384629955842e-17), first) + low;
    found.rest = fnma(found.n, all(2.31904681384629955842e-17), first - r) + low;
    const vd r2 = r * r, r4 = r2 * r2;  // r^2 (1/2! + r/3! + ... + r^11/13!)
    const vd a = fma(r, all(1.6666666666666666e-01), 0.5);
    const vd b = fma(r, all(8.333333333333333e-03), 4.1666666666666664e-02);
    const vd c = fma(r, all(1.984126984126984e-04), 1.388888888888889e-03);
    const vd d = fma(r, all(2.7557319223985893e-06), 2.48015873015873e-05);
    const vd e = fma(r, all(2.505210838544172e-08), 2.7557319223985893e-07);
    const vd f = fma(r, all(1.6059043836821613e-10), 2.08767569878681e-09);
    found.squares = r2 * fma(r4, fma(r4, fma(r2, f, e), fma(r2, d, c)), fma(r2, b, a));
    return found;
}
INLINE vd in_range(vd x) { return smaller(larger(x, all(-746.0)), all(710.0)); }

// exp(x + low), low far below x.
INLINE vd exp(vd x, vd low) {
    const Reduced part = reduced(in_range(x), low);
    const vd sum = 1.0 + part.r, lost = (1.0 - sum) + part.r;
    const vd whole = sum + (lost + (part.squares + part.rest));
    vi unused;
    const vd half = nearest(0.5 * part.n, unused);  // 2^n in two factors: the second product alone rounds
    return pick(is_nan(x), all(NOT_A_NUMBER), (whole * two_to(half)) * two_to(part.n - half));
}
INLINE vd exp(vd x) { return exp(x, all(0.0)); }

// exp(x) - 1 = 2^n (exp(r) - 1 + (1 - 2^-n)).
INLINE vd expm1(vd x) {
    const Reduced part = reduced(smaller(larger(x, all(-64.0)), all(710.0)), all(0.0));
    const vd apart = 1.0 - two_to(larger(-part.n, all(-1022.0)));
    const vd sum = apart + part.r, lost = (apart - sum) + part.r;
    const vd whole = sum + (lost + (part.squares + part.rest));
    const vd big = pick(part.n > 1022.0, all(2.0), all(1.0));
    const vd found = (whole * two_to(part.n - (big - 1.0))) * big;
    return pick(is_nan(x), all(NOT_A_NUMBER), pick(x == 0.0, x, found));
}

// x = 2^k m, m between sqrt(1/2) and sqrt(2); for x > 0, subnormal ones too.
INLINE vd fraction(vd x, vd& k) {
    const vi tiny = x < 2.2250738585072014e-308;
    const vu b = pattern(pick(tiny, x * 18014398509481984.0, x));
    const vu e = ((b + (0x3ff0000000000000ULL - 0x3fe6a09e667f3bcdULL)) >> 52) - 1023;
    k = (value(e + pattern(all(ROUNDER))) - ROUNDER) - pick(tiny, all(54.0), all(0.0));
    return value(b - (e << 52));
}
// The logarithm at the ends of its range; `found` elsewhere.
INLINE vd log_at_ends(vd x, vd found) {
    found = pick(x == 0.0, all(-INFINITE), pick(x == INFINITE, all(INFINITE), found));
    return pick(~(x >= 0.0), all(NOT_A_NUMBER), found);
}
// ln(2^k (1 + f)) + low.
INLINE vd log_of(vd k, vd f, vd low) {
    const vd s = f / (2.0 + f), z = s * s, z2 = z * z;
    const vd p0 = fma(z, all(3.999999999940941908e-01), 6.666666666666735130e-01);
    const vd p1 = fma(z, all(2.222219843214978396e-01), 2.857142874366239149e-01);
    const vd p2 = fma(z, all(1.531383769920937332e-01), 1.818357216161805012e-01);
    const vd p = fma(z2, fma(z2, fma(z2, all(1.479819860511658591e-01), p2), p1), p0);
    const vd h = 0.5 * f * f;
    const vd rest = fma(k, all(1.90821492927058770002e-10), fma(s, fma(z, p, h), low));
    return fma(k, all(6.93147180369123816490e-01), f - (h - rest));
}
INLINE vd log(vd x) {
    vd k;
    const vd m = fraction(x, k);
    return log_at_ends(x, log_of(k, m - 1.0, all(0.0)));
}
INLINE vd log1p(vd x) {
    vd k, lost;
    const vd u = sum_of(x, all(1.0), lost), m = fraction(u, k);
    // Near zero 1 + x is not needed, and would cost the last bits of x.
    const vi near = (x > -0.29) & (x < 0.41);
    const vd found = log_of(pick(near, all(0.0), k), pick(near, x, m - 1.0), pick(near, all(0.0), lost / u));
    return pick(x == 0.0, x, log_at_ends(u, found));
}

// ln x = high + low, to about 2^-66 of itself or of ln 2: long enough for a power.
INLINE vd long_log(vd x, vd& low) {
    vd k, below, lost;
    const vd m = fraction(x, k), f = m - 1.0, below_high = sum_of(m, all(1.0), below);
    const vd s = f / below_high, s_low = fnma(s, below, fnma(s, below_high, f)) / below_high;  // s + s_low = f / (m + 1)
    const vd z = s * s, z_low = fma(s, s, -z) + 2.0 * s * s_low;
    const vd cube = z * s, cube_low = fma(z, s, -cube) + fma(z_low, s, z * s_low);
    constexpr double THIRD = 0.66666666666666663, THIRD_LOW = 3.700743415417188e-17;  // of 2 / 3
    const vd first = THIRD * cube, first_low = fma(all(THIRD), cube, -first) + fma(all(THIRD_LOW), cube, THIRD * cube_low);
    vd tail = all(2.0 / 27.0);  // 2 (1/5 + z/7 + z^2/9 + ...)
    for (int n = 25; n >= 5; n -= 2) tail = fma(tail, z, all(2.0 / n));
    const vd rest = (cube * z) * tail + first_low + 2.0 * s_low + k * 1.90821492927058770002e-10;
    const vd two = sum_of(k * 6.93147180369123816490e-01, 2.0 * s, low);  // the product is exact
    vd more;
    const vd three = sum_of(two, first, more);
    low += more;
    const vd whole = sum_of(three, low + rest, lost);
    low = lost;
    return whole;
}
// x^y for x >= 0; not-a-number below.
INLINE vd power(vd x, vd y) {
    vd low;
    const vi inside = (x > 0.0) & (x < INFINITE);
    const vd high = long_log(pick(inside, x, all(1.0)), low);
    const vd product = y * high, rest = fma(y, high, -product) + y * low;
    const vd far = pick(magnitude(product) < 1000.0, rest, all(0.0));
    vd found = exp(product, far);
    const vd up = pick(y > 0.0, all(INFINITE), all(0.0)), down = pick(y > 0.0, all(0.0), all(INFINITE));
    found = pick(x == 0.0, down, pick(x == INFINITE, up, found));
    found = pick(~(x >= 0.0) | is_nan(y), all(NOT_A_NUMBER), found);
    return pick((y == 0.0) | (x == 1.0), all(1.0), found);
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
INLINE vd atan2(vd y, vd x) {
    vd ax = magnitude(x), ay = magnitude(y);
    const vi both_infinite = (ax == INFINITE) & (ay == INFINITE);
    ax = pick(both_infinite, all(1.0), ax), ay = pick(both_infinite, all(1.0), ay);
    const vi swapped = ay > ax;
    vd low = pick(swapped, ax, ay), high = pick(swapped, ay, ax);
    const vd scale = pick(high > 1e300, all(0.0625), pick(high < 1e-290, all(1.8446744073709552e19), all(1.0)));
    low *= scale, high *= scale;  // so that their sum is finite and a quotient keeps its digits
    const vi big = low > 0.41421356237309503 * high, left = is_negative(x);
    vd over_lost, under_lost;  // u + u_low is the quotient to twice the digits
    const vd over = sum_of(low, pick(big, -high, all(0.0)), over_lost), under = sum_of(high, pick(big, low, all(0.0)), under_lost);
    const vd u = pick(high == 0.0, all(0.0), over / under), z = u * u;
    const vd u_low = pick((high == 0.0) | (high == INFINITE), all(0.0), (fnma(u, under, over) + fnma(u, under_lost, over_lost)) / under);
    const vd z2 = z * z, z4 = z2 * z2;
    const vd a0 = fma(z, all(-1.99999999998764832476e-01), 3.33333333333329318027e-01);
    const vd a1 = fma(z, all(-1.11111104054623557880e-01), 1.42857142725034663711e-01);
    const vd a2 = fma(z, all(-7.69187620504482999495e-02), 9.09088713343650656196e-02);
    const vd a3 = fma(z, all(-5.83357013379057348645e-02), 6.66107313738753120669e-02);
    const vd a4 = fma(z, all(-3.65315727442169155270e-02), 4.97687799461593236017e-02);
    const vd rest = fma(z4, fma(z4, fma(z2, all(1.62858201153657823623e-02), a4), fma(z2, a3, a2)), fma(z2, a1, a0));
    // Turned over once where swapped and once more where left; in eighths of a turn the angle begins at 0, 2, 4 or 2.
    const vd eighth = pick(big, all(1.0), all(0.0));
    const vd from = pick(left, pick(swapped, 2.0 + eighth, 4.0 - eighth), pick(swapped, 2.0 - eighth, eighth));
    const vd turned = pick(swapped ^ left, all(-1.0), all(1.0));
    constexpr double QUARTER = 0.78539816339744828, QUARTER_LOW = 3.061616997868383e-17, THREE = 2.3561944901923448,
                     THREE_LOW = 9.184850993605148e-17;
    const vd base = pick(from == 3.0, all(THREE), QUARTER * from);
    const vd base_low = pick(from == 3.0, all(THREE_LOW), QUARTER_LOW * from);
    const vd small = fnma(u * z, rest, u_low / (1.0 + z));  // atan(u + u_low) - u
    vd lost;
    const vd sum = sum_of(base, turned * u, lost);
    const vd found = sum + (lost + fma(turned, small, base_low));
    return pick(is_nan(x) | is_nan(y), all(NOT_A_NUMBER), signed_as(found, y));
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
    vd k;
    fraction(high, k);
    const vd clamped = larger(all(-1000.0), smaller(k, all(1000.0))), unit = two_to(-clamped);
    const vd h = high * unit, l = low * unit;
    const vd far = fma(clamped, all(6.93147180559945286227e-01), 0.5 * log(fma(h, h, l * l)));
    return {pick(near, 0.5 * log1p(excess), far), atan2(a.im, a.re)};
}
INLINE vc sqrt(vc a) {  // the one with real part >= 0
    const vd ax = magnitude(a.re), ay = magnitude(a.im), high = larger(ax, ay);
    vd k;
    fraction(pick(high > 0.0, high, all(1.0)), k);
    vi unused;
    const vd half = nearest(0.5 * k, unused), unit = two_to(-half), back = two_to(half);
    const vd x = (ax * unit) * unit, y = (ay * unit) * unit;
    const vd t = root(0.5 * (root(fma(y, y, x * x)) + x)), u = pick(t > 0.0, y / (2.0 * t), all(0.0));
    const vi right = ~is_negative(a.re);
    return {back * pick(right, t, u), signed_as(back * pick(right, u, t), a.im)};
}

}  // namespace elementary
}  // namespace STRIKEOUT_BUILD
