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

}  // namespace STRIKEOUT_BUILD
