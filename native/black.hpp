// Black's formula, four rows at a time: kernels/black.py and kernels/normal.py, operation by operation and therefore bit
// for bit; the symbols are explained there.
#pragma once
#include <cmath>

#include "black_arrays.hpp"
#include "elementary.hpp"

namespace STRIKEOUT_BUILD {

constexpr double SQRT_HALF_PI = 1.2533141373155003, SQRT_HALF = 0.7071067811865476,
                 INVERSE_SQRT_TWO_PI = 0.3989422804014327;

// erfcx for z >= 0: a polynomial in y, lowest coefficient first.
INLINE v4 erfcx(const Erfcx& of, v4 z) {
    const v4 y = 1.0 - 2.0 * of.centre / (z + of.centre);
    v4 total = of.coefficients[of.last] * y;
    for (size_t k = of.last - 1; k > 0; k--) total = (total + of.coefficients[k]) * y;
    total += of.coefficients[0];
    return total / (1.0 + 2.0 * z);
}

// (Y(h + t) - Y(h - t)) / 2t by its Taylor series in t.
INLINE v4 series(v4 h, v4 t, const Erfcx& of) {
    const v4 t2 = t * t, t4 = t2 * t2, q = h * h * t2;
    v4 term = 1.0 + SQRT_HALF_PI * h * erfcx(of, -SQRT_HALF * h);
    v4 total = term, before = t2;
    for (int n = 1; n < 20; n += 2) {
        const v4 after = (((2.0 * n + 1.0) * t2 + q) * term - before) * (1.0 / ((n + 1) * (n + 2)));
        before = t4 * term;
        term = after;
        total += term;
    }
    return total;
}

// exp(factor z^2) to the last place: z = u + v with u a multiple of 1/16, z^2 = u^2 + v (z + u).
INLINE v4 exp_of_square(double factor, v4 z) {
    const v4 a = magnitude(z), within = pick(a > 64.0, all(64.0), a);
    i4 unused;
    const v4 u = nearest(16.0 * within, unused) / 16.0;
    return elementary::exp(factor * u * u) * elementary::exp(factor * ((within - u) * (within + u)));
}
INLINE v4 normal_density(v4 x) { return exp_of_square(-0.5, x) * INVERSE_SQRT_TWO_PI; }
INLINE v4 normal_cdf(v4 x, const Erfcx& of) {
    const v4 tail = 0.5 * exp_of_square(-0.5, x) * erfcx(of, magnitude(x) * SQRT_HALF);
    return pick(x > 0.0, 1.0 - tail, tail);
}

struct Normalised {
    v4 b, b_bar, e;
};

INLINE Normalised normalised(v4 x, v4 s, v4 b_max, const Erfcx& of) {
    const v4 ratio = x / s;
    const v4 h = pick((x == 0.0) & (s >= 0.0), all(0.0), pick(ratio < -1000.0, all(-1000.0), ratio)), t = 0.5 * s;
    const v4 e = elementary::exp(-0.5 * (h * h + t * t));
    const i4 near = (x >= -2.0) & (t < 0.5);
    v4 b = all(0.0), b_bar = all(0.0);
    if (any(near)) {
        b = 2.0 * INVERSE_SQRT_TWO_PI * e * t * series(h, t, of);
        b_bar = b_max - b;
    }
    if (any(~near)) {
        const v4 outer = erfcx(of, SQRT_HALF * (t - h)), inner = erfcx(of, SQRT_HALF * magnitude(h + t));
        const i4 high = h + t > 0.0;
        const v4 part = 0.5 * e * pick(high, inner + outer, inner - outer), rest = b_max - part;
        b = pick(near, b, pick(high, rest, part)), b_bar = pick(near, b_bar, pick(high, part, rest));
    }
    return {b, b_bar, e};
}

INLINE i4 positive(v4 a) { return (a > 0.0) & (a < elementary::INFINITE); }

INLINE v4 price(v4 F, v4 K, v4 T, v4 sigma, v4 D, i4 call, const Erfcx& of) {
    const i4 below = F < K, comparable = (F == F) & (K == K);
    const v4 low = pick(comparable, pick(below, F, K), all(elementary::NOT_A_NUMBER)), high = pick(below, K, F);
    const v4 s = pick(positive(F) & positive(K) & positive(D) & (sigma >= 0.0), sigma * root(T), all(elementary::NOT_A_NUMBER));
    const v4 b = normalised(-elementary::log1p(magnitude(F - K) / low), s, root(low / high), of).b;
    const v4 away = pick(call, F - K, K - F), intrinsic = pick(away < 0.0, all(0.0), away);
    const v4 found = D * (intrinsic + root(F) * root(K) * b), bound = D * pick(call, F, K);
    return pick((bound < found) | (bound != bound), bound, found);  // not left to rounding: above it there is no volatility
}

}  // namespace STRIKEOUT_BUILD
