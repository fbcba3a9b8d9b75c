// Heston's law: characteristic function, moments and the shape of a slice.
// The NumPy twin, with the derivation and the legend of the symbols, is kernels/contours.py and kernels/heston_cf.py.
#pragma once
#include "contours.hpp"

namespace STRIKEOUT_BUILD {

struct HestonCf;
struct Heston {
    static constexpr int FUNCTIONS = 6;  // the value and five derivatives
    static constexpr bool HAS_KINK = false;
    using Cf = HestonCf;
    double kappa, vbar, sigma, rho, v0;
};
constexpr int FUNCTIONS = Heston::FUNCTIONS;

// ln E[exp(p X)] for four real p, +inf where the moment no longer exists at T.
INLINE vd log_mgf(vd p, double T, const Heston& m) {
    vd q = p - p * p, xi = m.kappa - (m.rho * m.sigma) * p, D2 = fma(xi, xi, (m.sigma * m.sigma) * q);
    vd d = root(magnitude(D2)) + 1e-300;
    double kv = m.kappa * m.vbar / (m.sigma * m.sigma);
    vd E = exp(-d * T), P = fma(xi, 1.0 - E, d * (1.0 + E));
    vd s, c;
    sincos(0.5 * d * T, s, c);
    vd Q = fma(xi, s, d * c);
    vi real = D2 >= 0.0;
    vi exists = (real & (P > 0.0)) | (~real & (fma(d, all(0.5 * T), atan2(d, xi)) < PI) & (Q > 0.0));
    vd ratio = pick(real, 0.5 * P, Q) / d, linear = pick(real, xi - d, xi) * T;
    vd b = pick(real, (1.0 - E) / P, s / Q);
    return pick(exists, kv * (linear - 2.0 * log(ratio)) - m.v0 * q * b, all(INF));
}

// ln E[exp(i z X)] = level + v0B and its derivatives; by vbar it is level / vbar, by v0 v0B / v0.
struct LogCf {
    vc level[BATCH], v0B[BATCH], by_kappa[BATCH], by_sigma[BATCH], by_rho[BATCH];
};

// As in the twin's log_cf, for `count` blocks of four z with q = z^2 + i z. Blocks go through each stage in a row: one alone
// leaves the processor waiting for its own results. A block's bits do not depend on the others.
INLINE void log_cf(const vc* z, const vc* q, int count, double T, const Heston& m, LogCf& out) {
    const double s2 = m.sigma * m.sigma, c = m.kappa * m.vbar / s2, cT = c * T, v0T = m.v0 * T;
    vc xi[BATCH], d[BATCH], plus[BATCH], minus[BATCH], E[BATCH], P[BATCH], invd[BATCH], invP[BATCH];
    for (int i = 0; i < count; i++) {
        xi[i] = m.kappa - (m.rho * m.sigma) * times_i(z[i]);
        vc s2q = s2 * q[i];
        d[i] = root(fma(xi[i], xi[i], s2q));
        const vi safe = xi[i].re >= 0.0;
        vc large = d[i] + pick(safe, xi[i], -xi[i]), small = s2q * inverse(large);
        minus[i] = pick(safe, small, large);
        plus[i] = pick(safe, large, small);
    }
    for (int i = 0; i < count; i++) E[i] = exp(-(T * d[i]));
    for (int i = 0; i < count; i++) {
        P[i] = fma(minus[i], E[i], plus[i]), invP[i] = inverse(P[i]), invd[i] = inverse(d[i]);
        out.v0B[i] = -m.v0 * (q[i] * ((1.0 - E[i]) * invP[i]));
    }
    for (int i = 0; i < count; i++) {
        const vc half = 0.5 * invd[i], excess = -(minus[i] * (1.0 - E[i])) * half;  // of P / 2d over one: small with sigma
        out.level[i] = -(fma(cT, minus[i], (2.0 * c) * log(P[i] * half, excess)));
    }
    for (int i = 0; i < count; i++) {
        const vc EP = E[i] * invP[i], R = minus[i] * EP, S = plus[i] * invP[i], qEP = q[i] * EP, s2q = s2 * q[i];
        const vc both = (2.0 + T * xi[i]) * R, bent = fma(minus[i], S, s2 * qEP) - (T * s2q) * R;
        const vc sum_xi = fma(v0T * qEP, -xi[i], fma(out.v0B[i], both, cT * minus[i] - out.v0B[i]));
        const vc sum_d = fma(v0T * qEP, s2q, fma(out.v0B[i], bent, cT * s2q));
        const vc by_xi = fma(2.0 * c, both - minus[i] * invd[i], sum_xi) * invd[i];
        const vc by_d = fma(2.0 * c, bent - s2q * invd[i], sum_d) * invd[i];  // times -sigma^2 q / d
        out.by_rho[i] = m.sigma * (times_i(z[i]) * by_xi);  // negative
        out.by_kappa[i] = fma(1.0 / m.kappa, out.level[i], by_xi);
        out.by_sigma[i] = (-1.0 / m.sigma) * (by_d + fma(m.rho, out.by_rho[i], 2.0 * out.level[i]));
    }
}

// What a variance of Heston's adds to the shape of a slice.
struct Part {
    double variance, asymptote, rate, g, root, core;
};

INLINE Part part_of(double T, const Heston& m) {
    const double variance = m.vbar * T + (m.v0 - m.vbar) * (1.0 - exp1(-m.kappa * T)) / m.kappa;
    const double asymptote = (m.v0 + m.kappa * m.vbar * T) / m.sigma;
    const double rate = (1.0 / T + m.kappa) / m.sigma, spread = 1.0 - m.rho * m.rho, g = 0.5 * variance * rate * rate;
    return {variance, asymptote, rate, g, std::sqrt(spread), asymptote * std::sqrt(spread) * (1.0 + g * spread)};
}

INLINE Slice slice_of(double T, const Heston& m) {
    const Part part = part_of(T, m);
    Slice s = slice_with(T, std::sqrt(part.variance), part.g, part.core);
    s.grid.kstar = -m.rho * part.asymptote;
    s.decay = part.asymptote * part.root, s.root = part.root, s.skew = std::fabs(m.rho);
    return s;
}

// f times the derivatives of ln cf by kappa, vbar, sigma, rho, v0.
INLINE void heston_derivatives(vc f, const LogCf& cf, int i, const Heston& m, vc* by) {
    by[0] = f * cf.by_kappa[i];
    by[1] = (1.0 / m.vbar) * (f * cf.level[i]);
    by[2] = f * cf.by_sigma[i];
    by[3] = -(f * cf.by_rho[i]);
    by[4] = (1.0 / m.v0) * (f * cf.v0B[i]);
}

struct HestonCf {
    LogCf cf;
    void find(const vc* z, const vc* q, int count, double T, const Heston& m) { log_cf(z, q, count, T, m, cf); }
    vc total(int i) const { return cf.level[i] + cf.v0B[i]; }
    void derivatives(vc f, int i, const Heston& m, vc* by) const { heston_derivatives(f, cf, i, m, by); }
};

}  // namespace STRIKEOUT_BUILD
