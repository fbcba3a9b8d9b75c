// Black's formula, LANES rows at a time: kernels/black.py and kernels/normal.py, operation by operation and therefore bit
// for bit; the symbols are explained there.
#pragma once
#include <cmath>

#include "black_arrays.hpp"
#include "elementary.hpp"

namespace STRIKEOUT_BUILD {

constexpr double SQRT_HALF_PI = 1.2533141373155003, SQRT_HALF = 0.7071067811865476,
                 INVERSE_SQRT_TWO_PI = 0.3989422804014327;

// erfcx for z >= 0: a polynomial in y, lowest coefficient first.
INLINE vd erfcx(const Erfcx& of, vd z) {
    const vd y = 1.0 - 2.0 * of.centre / (z + of.centre);
    vd total = of.coefficients[of.last] * y;
    for (size_t k = of.last - 1; k > 0; k--) total = (total + of.coefficients[k]) * y;
    total += of.coefficients[0];
    return total / (1.0 + 2.0 * z);
}

// (Y(h + t) - Y(h - t)) / 2t by its Taylor series in t.
INLINE vd series(vd h, vd t, const Erfcx& of) {
    const vd t2 = t * t, t4 = t2 * t2, q = h * h * t2;
    vd term = 1.0 + SQRT_HALF_PI * h * erfcx(of, -SQRT_HALF * h);
    vd total = term, before = t2;
    for (int n = 1; n < 20; n += 2) {
        const vd after = (((2.0 * n + 1.0) * t2 + q) * term - before) * (1.0 / ((n + 1) * (n + 2)));
        before = t4 * term;
        term = after;
        total += term;
    }
    return total;
}

// exp(factor z^2) to the last place: z = u + v with u a multiple of 1/16, z^2 = u^2 + v (z + u).
INLINE vd exp_of_square(double factor, vd z) {
    const vd a = magnitude(z), within = pick(a > 64.0, all(64.0), a);
    vi unused;
    const vd u = nearest(16.0 * within, unused) / 16.0;
    return elementary::exp(factor * u * u) * elementary::exp(factor * ((within - u) * (within + u)));
}
INLINE vd normal_density(vd x) { return exp_of_square(-0.5, x) * INVERSE_SQRT_TWO_PI; }
INLINE vd normal_cdf(vd x, const Erfcx& of) {
    const vd tail = 0.5 * exp_of_square(-0.5, x) * erfcx(of, magnitude(x) * SQRT_HALF);
    return pick(x > 0.0, 1.0 - tail, tail);
}

struct Normalised {
    vd b, b_bar, e;
};

INLINE Normalised normalised(vd x, vd s, vd b_max, const Erfcx& of) {
    const vd ratio = x / s;
    const vd h = pick((x == 0.0) & (s >= 0.0), all(0.0), pick(ratio < -1000.0, all(-1000.0), ratio)), t = 0.5 * s;
    const vd e = elementary::exp(-0.5 * (h * h + t * t));
    const vi near = (x >= -2.0) & (t < 0.5);
    vd b = all(0.0), b_bar = all(0.0);
    if (any(near)) {
        b = 2.0 * INVERSE_SQRT_TWO_PI * e * t * series(h, t, of);
        b_bar = b_max - b;
    }
    if (any(~near)) {
        const vd outer = erfcx(of, SQRT_HALF * (t - h)), inner = erfcx(of, SQRT_HALF * magnitude(h + t));
        const vi high = h + t > 0.0;
        const vd part = 0.5 * e * pick(high, inner + outer, inner - outer), rest = b_max - part;
        b = pick(near, b, pick(high, rest, part)), b_bar = pick(near, b_bar, pick(high, part, rest));
    }
    return {b, b_bar, e};
}

INLINE vi positive(vd a) { return (a > 0.0) & (a < elementary::INFINITE); }

INLINE vd price(vd F, vd K, vd T, vd sigma, vd D, vi call, const Erfcx& of) {
    const vi below = F < K, comparable = (F == F) & (K == K);
    const vd low = pick(comparable, pick(below, F, K), all(elementary::NOT_A_NUMBER)), high = pick(below, K, F);
    const vd s = pick(positive(F) & positive(K) & positive(D) & (sigma >= 0.0), sigma * root(T), all(elementary::NOT_A_NUMBER));
    const vd b = normalised(-elementary::log1p(magnitude(F - K) / low), s, root(low / high), of).b;
    const vd away = pick(call, F - K, K - F), intrinsic = pick(away < 0.0, all(0.0), away);
    const vd found = D * (intrinsic + root(F) * root(K) * b), bound = D * pick(call, F, K);
    return pick((bound < found) | (bound != bound), bound, found);  // not left to rounding: above it there is no volatility
}

// The second and third derivative of b by s, over the first.
struct Curvatures {
    vd r2, r3;
};
INLINE Curvatures curvatures(vd x, vd s) {
    const vd h_over_s = pick(x == 0.0, all(0.0), x / (s * s)), r2 = h_over_s * h_over_s * s - 0.25 * s;
    return {r2, r2 * r2 - 3.0 * h_over_s * h_over_s - 0.25};
}
INLINE vd householder(vd newton, vd y2, vd y3) {
    return newton * (1.0 + 0.5 * newton * y2) / (1.0 + newton * (y2 + newton * y3 / 6.0));
}
// The step towards y(s) = (-target)^power of the objective y = (-log)^power, where slope = d log / ds.
INLINE vd step_on_log(vd x, vd s, vd log, vd target, vd slope, double power) {
    const Curvatures c = curvatures(x, s);
    const vd l2 = c.r2 - slope, l3 = c.r3 - 3.0 * c.r2 * slope + 2.0 * slope * slope, g = slope / log;
    const vd newton = (root(power < 0.0 ? log / target : target / log) - 1.0) / (power * g);
    const vd y2 = l2 + (power - 1.0) * g;
    const vd y3 = l3 + 3.0 * (power - 1.0) * g * l2 + (power - 1.0) * (power - 2.0) * g * g;
    return householder(newton, y2, y3);
}

constexpr int STEPS = 3;
INLINE vd solve_middle(vd s, vd x, vd target, vd b_max, const Erfcx& of) {
    for (int i = 0; i < STEPS; i++) {
        const Normalised at = normalised(x, s, b_max, of);
        const Curvatures c = curvatures(x, s);
        s = s + householder((target - at.b) / (at.e * INVERSE_SQRT_TWO_PI), c.r2, c.r3);
    }
    return s;
}
INLINE vd low_asymptote(vd x, vd a) {
    const vd H = 0.5 * (a + root(a * a - x * x)), t2 = x * x / (4.0 * H), wide = H - t2 + 2.0;
    const vd less = a - elementary::log(6.283185307179586 * H * (wide * wide));
    return -x / root(0.5 * (less + root(less * less - x * x)));
}
INLINE vd solve_low(vd s, vd x, vd b, vd b_max, const Erfcx& of) {
    const vd target = elementary::log(b / -x), guess = low_asymptote(x, -2.0 * target);
    s = pick((guess < s) | elementary::is_nan(s), guess, s);
    for (int i = 0; i < STEPS; i++) {
        const Normalised at = normalised(x, s, b_max, of);
        s = s + step_on_log(x, s, elementary::log(at.b / -x), target, at.e * INVERSE_SQRT_TWO_PI / at.b, -0.5);
    }
    return s;
}
INLINE vd solve_high(vd s, vd x, vd b_bar, vd b_max, const Erfcx& of) {
    const vd target = elementary::log(b_bar / b_max);
    const vd first = root(-8.0 * elementary::log(b_bar));
    const vd guess = root(-8.0 * elementary::log(b_bar * first / (4.0 * INVERSE_SQRT_TWO_PI)));
    s = pick((guess > s) | elementary::is_nan(s), guess, s);
    for (int i = 0; i < STEPS; i++) {
        const Normalised at = normalised(x, s, b_max, of);
        s = s + step_on_log(x, s, elementary::log(at.b_bar / b_max), target, -at.e * INVERSE_SQRT_TWO_PI / at.b_bar, 0.5);
    }
    return s;
}

// A wing is solved if one of the lanes lies in it; the other lanes take what their own part gives.
INLINE vd implied_volatility(vd price, vd F, vd K, vd T, vd D, vi call, const Erfcx& of) {
    const vd away = pick(call, F - K, K - F), intrinsic = pick(away < 0.0, all(0.0), away);
    const vd time_value = price - D * intrinsic, room = D * pick(call, F, K) - price;
    const vi answerable = (time_value >= 0.0) & (room >= 0.0) & positive(F) & positive(K) & positive(T) & positive(D);
    const vi solved = answerable & (time_value > 0.0) & (room > 0.0);
    const vd ends = pick(answerable, pick(time_value == 0.0, all(0.0), all(elementary::INFINITE)), all(elementary::NOT_A_NUMBER));
    if (!any(solved)) return ends / root(T);
    const vi below = F < K;
    const vd low = pick(below, F, K), high = pick(below, K, F), unit = D * (root(F) * root(K)), share = time_value / unit;
    const vd b = pick(share < elementary::LEAST_NORMAL, all(elementary::NOT_A_NUMBER), share), b_bar = room / unit;
    const vd x = -elementary::log1p(magnitude(F - K) / low), b_max = root(low / high), z = root(-x);
    const vd b_c = 0.5 * b_max * (1.0 - erfcx(of, z)), slope = b_max * INVERSE_SQRT_TWO_PI;
    const vd s_l = pick(z < 1e-5, SQRT_HALF_PI * -x, z / SQRT_HALF - b_c / slope), s = s_l + b / slope;
    const vd third = 0.3 * b_c, fifth = -0.2 * x;
    const vi is_low = b < pick(third < fifth, third, fifth), is_high = (b_bar < 0.2 * b_max) & (b > b_c);
    vd found = s;
    if (any(solved & ~is_low & ~is_high)) found = solve_middle(s, x, b, b_max, of);
    if (any(solved & is_low)) found = pick(is_low, solve_low(s, x, b, b_max, of), found);
    if (any(solved & is_high)) found = pick(is_high, solve_high(s, x, b_bar, b_max, of), found);
    return pick(solved, found, ends) / root(T);
}

}  // namespace STRIKEOUT_BUILD
