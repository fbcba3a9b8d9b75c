// The trapezoid rule on the line Im z = -1/2, and independent Heston variances and lognormal jumps on it.
// The NumPy twin, with the derivation and the legend of the symbols, is kernels/fourier_trapezoid.py and kernels/affine.py.
#pragma once
#include <algorithm>

#include "chunks.hpp"
#include "elementary.hpp"
#include "heston.hpp"
#include "kernel.hpp"

namespace STRIKEOUT_BUILD {

constexpr double LINE_LEVEL = 31.0;  // exp(-31) = 3e-14: what each cut may cost, of the forward
constexpr double FARTHEST = 12.0;    // |k| beyond which no price is given
constexpr int PROBES = 56, MOST_ON_LINE = 1 << 14;
constexpr int STRETCH = 16;  // nodes whose powers of w are products with that of the first
constexpr double ROOT_TWO = 1.4142135623730951;

INLINE double expm1_1(double x) { return elementary::expm1(all(x))[0]; }

// What holds of |E[exp(i z X)]| and of each derivative of its logarithm at z = u - i/2.
struct Bound {
    vd log_size;  // never rises with u
    vd slope;
};

// B and its integral over 0..T for B' = -q/2 - kappa B + sigma^2 B^2 / 2, B(0) = 0.
INLINE void riccati(vd q, double kappa, double sigma, double T, vd& B, vd& integral) {
    const double s2 = sigma * sigma;
    const vd s2q = s2 * q, d = root(s2q + kappa * kappa), E = exp(-d * T);
    const vd large = d + std::fabs(kappa), small = s2q / large, minus = kappa < 0.0 ? large : small;
    const vd P = fma(minus, E, kappa < 0.0 ? small : large);
    B = -(q * (1.0 - E) / P);
    integral = -(fma(all(T), minus, 2.0 * log(0.5 * P / d)) / s2);
}

INLINE Bound bound_of(vd u, double T, const Heston& m) {
    const double kappa = m.kappa - 0.5 * (m.rho * m.sigma), weight = fma(all(m.kappa * m.vbar), all(T), m.v0)[0];
    const vd u2 = u * u, a = root(u2 + 0.25);
    vd B, integral, least, unused;
    riccati(fma(u2, all(1.0 - m.rho * m.rho), 0.25), kappa, m.sigma, T, B, integral);
    riccati(u2 + 0.25, kappa, m.sigma, T, least, unused);
    const vd y = (m.rho / m.sigma) * u, size = root(fma(least, least, y * y));
    const vd by_kappa = ((m.vbar + weight) * T) * size, by_rho = ((weight * m.sigma) * T) * (a * size);
    const vd by_sigma = (weight * T) * (size * fma(all(m.sigma), size, std::fabs(m.rho) * a));
    const vd by_levels = larger(size, (m.kappa * T) * size);
    return {fma(all(m.v0), B, (m.kappa * m.vbar) * integral), larger(larger(by_levels, by_kappa), larger(by_rho, by_sigma))};
}

struct Jumps {
    double lam, mu, delta, less, forward;  // less = E[e^jump] - 1
    Jumps(double lam_, double mu_, double delta_) : lam(lam_), mu(mu_), delta(delta_) {
        const double mean = mu + 0.5 * (delta * delta);
        less = expm1_1(mean), forward = exp1(mean);
    }
    INLINE vd log_mgf(vd p, double T, const Jumps& j) {
        const vd jump = exp(fma(p * p, all(0.5 * (j.delta * j.delta)), j.mu * p));
        return (j.lam * T) * ((jump - 1.0) - j.less * p);
    }
    INLINE Bound bound(vd u, double T, const Jumps& j) {
        const double d2 = j.delta * j.delta;
        const vd u2 = u * u, a = root(u2 + 0.25), jump = exp(fma(u2, all(-0.5 * d2), 0.5 * j.mu + 0.125 * d2));
        const vd by_lam = T * fma(a, all(std::fabs(j.less)), jump + 1.0), by_mu = (j.lam * T) * (a * (jump + j.forward));
        const vd by_delta = ((j.lam * T) * j.delta) * (a * fma(a, jump, all(j.forward)));
        return {(j.lam * T) * (jump - (1.0 + 0.5 * j.less)), larger(larger(by_lam, by_mu), by_delta)};
    }
};

// X as a sum of independent parts: Heston's, and compensated jumps.
template <int PARTS, bool JUMPS>
struct Law {
    static constexpr int FUNCTIONS = 1 + 5 * PARTS + 3 * JUMPS, PARAMETERS = FUNCTIONS - 1;
    Heston part[PARTS];
    Jumps jumps;

    explicit Law(const double* theta)
        : jumps(JUMPS ? theta[5 * PARTS] : 0.0, JUMPS ? theta[5 * PARTS + 1] : 0.0, JUMPS ? theta[5 * PARTS + 2] : 0.0) {
        for (int i = 0; i < PARTS; i++) {
            const double* t = theta + 5 * i;
            part[i] = {t[0], t[1], t[2], t[3], t[4]};
        }
    }

    vd log_moment(vd p, double T) const {
        vd sum = log_mgf(p, T, part[0]);
        for (int i = 1; i < PARTS; i++) sum += log_mgf(p, T, part[i]);
        return JUMPS ? sum + Jumps::log_mgf(p, T, jumps) : sum;
    }

    Bound bound(vd u, double T) const {
        Bound all_parts = bound_of(u, T, part[0]);
        for (int i = 1; i <= PARTS - !JUMPS; i++) {
            const Bound b = i < PARTS ? bound_of(u, T, part[i < PARTS ? i : 0]) : Jumps::bound(u, T, jumps);
            all_parts = {all_parts.log_size + b.log_size, larger(all_parts.slope, b.slope)};
        }
        return all_parts;
    }
};

// What is left of Bates' law without the paths that never jump: see kernels/jump_split.py.
struct AtLeastOne {
    const Law<1, true>& law;
    Bound bound(vd u, double T) const {
        const Jumps& j = law.jumps;
        const Bound heston = bound_of(u, T, law.part[0]);
        const double d2 = j.delta * j.delta, n = j.lam * T;
        const vd u2 = u * u, a = root(u2 + 0.25), log_jump = fma(u2, all(-0.5 * d2), 0.5 * j.mu + 0.125 * d2);
        const vd by_lam = fma(all(n * T), fma(a, all(std::fabs(j.less)), 1.0), T);
        const vd by_mu = n * (a * (1.0 + n * j.forward)), by_delta = (n * j.delta) * (a * (a + n * j.forward));
        return {heston.log_size + n * (exp(log_jump) - (1.0 + 0.5 * j.less)) + log_jump,
                larger(larger(n * larger(heston.slope, all(1.0)), by_lam), larger(by_mu, by_delta))};
    }
};
constexpr double MOST_JUMPS = 16.0;  // expected, beyond which hardly a path has none

// Step and ends of a line, from the moments: images of the period, and strikes that are worth nothing, by Chernoff's bound.
template <class LawOf>
Line line_of(double T, const LawOf& law) {
    vd s[PROBES / 4], rising[PROBES / 4], falling[PROBES / 4];
    vd high = all(INF), low = all(LINE_LEVEL);
    for (int i = 0; i < PROBES / 4; i++) {
        s[i] = two_to(2 * i - 6) * vd{1.0, ROOT_TWO, 2.0, 2.0 * ROOT_TWO};
        rising[i] = law.log_moment(1.0 + s[i], T) + LINE_LEVEL, falling[i] = law.log_moment(-s[i], T) + LINE_LEVEL;
        high = smaller(rising[i] / s[i], high), low = smaller(falling[i] / (1.0 + s[i]), low);
    }
    auto least = [](vd x) { return std::min(std::min(x[0], x[1]), std::min(x[2], x[3])); };
    Line line = {};
    line.high = least(high), line.low = -least(low);
    const double lowest = std::max(line.low, -FARTHEST), highest = std::min(line.high, FARTHEST);
    vd above = all(2.0 * LINE_LEVEL), below = all(2.0 * (LINE_LEVEL + highest));  // the images at k + L and at k - L
    for (int i = 0; i < PROBES / 4; i++) {
        above = smaller(fma(s[i], all(-lowest), rising[i]) / (s[i] + 0.5), above);
        below = smaller(fma(1.0 + s[i], all(highest), falling[i]) / (s[i] + 0.5), below);
    }
    const double period = std::max(least(above), least(below));
    line.h = 2.0 * PI / period, line.image = 1.0 / expm1_1(0.5 * period);
    return line;
}

// How many nodes there must be for the terms behind them to sum to less than exp(-LEVEL) at every strike, or a number above
// MOST_ON_LINE. |cf| is at most its bound, which never rises; what grows with u, a slope does, at most like u^3.
template <class LawOf>
int64_t count_of(double T, const LawOf& law, double h, double growth) {
    auto enough = [&](const int64_t* at) {
        const vd u = h * vd{double(at[0]), double(at[1]), double(at[2]), double(at[3])};
        const Bound here = law.bound(u, T), beyond = law.bound(2.0 * u, T);
        const vd falls = larger(here.log_size - beyond.log_size, all(1e-300));
        const vd slope = log(larger(here.slope, all(1.0)) / u), lasts = log(1.0 + 1.0 / falls);
        return here.log_size + slope + 2.0 * lasts + (growth + LINE_LEVEL) <= 0.0;
    };
    int64_t outside = MOST_ON_LINE + 1, inside = 0, at[4] = {64, 256, 2048, MOST_ON_LINE};
    while (true) {
        const vi holds = enough(at);
        for (int j = 3; j >= 0; j--)
            if (holds[j]) outside = at[j];
        for (int j = 0; j < 4; j++)
            if (at[j] < outside && at[j] > inside) inside = at[j];
        if (outside - inside <= 1) return outside;
        for (int j = 0; j < 4; j++) at[j] = std::max(inside + 1, inside + (outside - inside) * (j + 1) / 5);
    }
}

struct LineWorkspace {
    static constexpr int MOST_FUNCTIONS = 11;
    double F[MOST_ON_LINE * MOST_FUNCTIONS * 2];
    double mass[MOST_ON_LINE];
};

// The terms, from 0 on; the last ones that matter nowhere are left out. SPLIT: of the paths that jump at least once.
template <int PARTS, bool JUMPS, bool SPLIT = false>
void find_terms(LineWorkspace& space, Line& line, double T, const Law<PARTS, JUMPS>& law) {
    constexpr int FUNCTIONS = Law<PARTS, JUMPS>::FUNCTIONS;
    static_assert(FUNCTIONS <= LineWorkspace::MOST_FUNCTIONS);
    const double growth = 0.5 * std::min(line.high, FARTHEST);  // of a term, at the highest strike
    line.F = space.F, line.functions = FUNCTIONS, line.nodes = 0;
    int64_t count;
    if constexpr (SPLIT) count = count_of(T, AtLeastOne{law}, line.h, growth);
    else count = count_of(T, law, line.h, growth);
    if (count > MOST_ON_LINE) return;
    vi absurd = {0, 0, 0, 0};
    const int64_t blocks = (count + 3) / 4;
    for (int64_t done = 0; done < blocks; done += BATCH) {
        const int some = static_cast<int>(std::min<int64_t>(BATCH, blocks - done));
        vc z[BATCH], q[BATCH], f[BATCH], jump[BATCH], each[BATCH], jumped[BATCH];
        LogCf cf[PARTS];
        for (int i = 0; i < some; i++) {
            const double first = 4.0 * double(done + i);
            const vd u = line.h * vd{first, first + 1.0, first + 2.0, first + 3.0};
            z[i] = {u, all(-0.5)}, q[i] = {fma(u, u, 0.25), all(0.0)};
        }
        for (int p = 0; p < PARTS; p++) log_cf(z, q, some, T, law.part[p], cf[p]);
        for (int i = 0; i < some; i++) {
            f[i] = cf[0].level[i] + cf[0].v0B[i];
            for (int p = 1; p < PARTS; p++) f[i] = f[i] + (cf[p].level[i] + cf[p].v0B[i]);
        }
        if constexpr (JUMPS) {
            const Jumps& j = law.jumps;
            const double half = 0.5 * (j.delta * j.delta);
            for (int i = 0; i < some; i++) {  // exp(i z mu - z^2 delta^2 / 2)
                const vd u = z[i].re;
                jump[i] = exp(vc{fma(fma(u, u, -0.25), all(-half), 0.5 * j.mu), u * (j.mu + half)});
                if constexpr (SPLIT) each[i] = {all(-1.0 - 0.5 * j.less), -(u * j.less)};
                else each[i] = {(jump[i].re - 1.0) - 0.5 * j.less, fnma(u, all(j.less), jump[i].im)};
                f[i] = fma(j.lam * T, each[i], f[i]);
            }
        }
        for (int i = 0; i < some; i++) f[i] = ((line.h / PI) / q[i].re) * exp(f[i]);
        if constexpr (SPLIT)
            for (int i = 0; i < some; i++) {
                const vc grown = exp((law.jumps.lam * T) * jump[i]);
                jumped[i] = f[i] * (grown * jump[i]), f[i] = f[i] * vc{grown.re - 1.0, grown.im};
            }
        if (SPLIT && done == 0) jumped[0] = vd{0.5, 1.0, 1.0, 1.0} * jumped[0];
        if (done == 0) f[0] = vd{0.5, 1.0, 1.0, 1.0} * f[0];
        for (int i = 0; i < some; i++) {
            vc F[FUNCTIONS];
            F[0] = f[i];
            for (int p = 0; p < PARTS; p++) heston_derivatives(f[i], cf[p], i, law.part[p], F + 1 + 5 * p);
            if constexpr (JUMPS) {
                const Jumps& j = law.jumps;
                const vd u = z[i].re;
                const vc iz = {all(0.5), u}, square = {fma(u, u, -0.25), -u};
                vc* by = F + 1 + 5 * PARTS;
                if constexpr (SPLIT) {
                    by[0] = T * fma(f[i], each[i], jumped[i]);
                    by[1] = (j.lam * T) * (iz * (jumped[i] - j.forward * f[i]));
                    by[2] = (-(j.lam * T) * j.delta) * fma(square, jumped[i], j.forward * (iz * f[i]));
                } else {
                    by[0] = T * (f[i] * each[i]);
                    by[1] = (j.lam * T) * (f[i] * (iz * vc{jump[i].re - j.forward, jump[i].im}));
                    by[2] = (-(j.lam * T) * j.delta) * (f[i] * fma(square, jump[i], j.forward * iz));
                }
            }
            vd size = all(0.0);
            for (int g = 0; g < FUNCTIONS; g++) {
                size = larger(magnitude(F[g].re) + magnitude(F[g].im), size);
                absurd |= ~(magnitude(F[g].re) + magnitude(F[g].im) < INF);
            }
            const int64_t node = 4 * (done + i);
            store(space.mass + node, size);
            double* to = space.F + node * (2 * FUNCTIONS);
            for (int n = 0; n < 4; n++)
                for (int g = 0; g < FUNCTIONS; g++, to += 2) to[0] = F[g].re[n], to[1] = F[g].im[n];
        }
    }
    if (any(absurd)) return;
    const double most = exp1(-LINE_LEVEL - growth);
    double lost = 0.0;
    int64_t used = count;
    while (used > 1 && (lost += space.mass[used - 1]) < most) used--;
    line.nodes = used;
}

// sum_f += Re sum_j F_fj w^j over some nodes, for eight strikes; powers of w side by side: real and imaginary, twice.
template <int COUNT>
INLINE void add_nodes(const double* F, int functions, int nodes, const vd (*power)[4], vd (*sum)[2]) {
    vd x[COUNT], y[COUNT];
#pragma GCC unroll 8
    for (int f = 0; f < COUNT; f++) x[f] = sum[f][0], y[f] = sum[f][1];
    for (int j = 0; j < nodes; j++) {
        const vd xr = power[j][0], xi = power[j][1], yr = power[j][2], yi = power[j][3];
        const double* at = F + j * (2 * functions);
#pragma GCC unroll 8
        for (int f = 0; f < COUNT; f++) {
            const vd re = all(at[2 * f]), im = all(at[2 * f + 1]);
            x[f] = fnma(im, xi, fma(re, xr, x[f]));
            y[f] = fnma(im, yi, fma(re, yr, y[f]));
        }
    }
#pragma GCC unroll 8
    for (int f = 0; f < COUNT; f++) sum[f][0] = x[f], sum[f][1] = y[f];
}

constexpr int MOST_AT_ONCE = 5;  // functions whose sums stay in the registers

// Re sum_j F_fj exp(-i j h k) for every function and eight strikes; sum has room for `functions`.
inline void sum_line(const Line& line, vd kx, vd ky, vd (*sum)[2]) {
    for (int f = 0; f < line.functions; f++) sum[f][0] = sum[f][1] = all(0.0);
    const vd phase[2] = {-line.h * kx, -line.h * ky};
    vc small[2][STRETCH];
    for (int side = 0; side < 2; side++) {
        small[side][0] = {all(1.0), all(0.0)};
        for (int i : {1, 2, 3, 4, 8, 12}) sincos(double(i) * phase[side], small[side][i].im, small[side][i].re);
        for (int i = 5; i < STRETCH; i++)
            if (i % 4 != 0) small[side][i] = small[side][i & ~3] * small[side][i & 3];
    }
    for (int64_t begin = 0; begin < line.nodes; begin += STRETCH) {
        const int some = static_cast<int>(std::min<int64_t>(STRETCH, line.nodes - begin));
        vd power[STRETCH][4];
        for (int side = 0; side < 2; side++) {
            vc first;
            sincos(double(begin) * phase[side], first.im, first.re);
            for (int i = 0; i < some; i++) {
                const vc w = first * small[side][i];
                power[i][2 * side] = w.re, power[i][2 * side + 1] = w.im;
            }
        }
        const int turns = (line.functions + MOST_AT_ONCE - 1) / MOST_AT_ONCE;
        for (int turn = 0, f = 0; turn < turns; turn++) {
            const int count = (line.functions - f + turns - turn - 1) / (turns - turn);
            const double* F = line.F + (begin * line.functions + f) * 2;
            if (count == 5) add_nodes<5>(F, line.functions, some, power, sum + f);
            else if (count == 4) add_nodes<4>(F, line.functions, some, power, sum + f);
            else if (count == 3) add_nodes<3>(F, line.functions, some, power, sum + f);
            else if (count == 2) add_nodes<2>(F, line.functions, some, power, sum + f);
            else add_nodes<1>(F, line.functions, some, power, sum + f);
            f += count;
        }
    }
}

// What the far ends of the images are in units of line.image: forward + mass e^k of each function. Of a whole law: 1 and 1.
struct Far {
    double forward, mass;
};

// Out-of-the-money values and derivatives at ascending k, out[f * stride + i]; `sum` has room for the functions. Returns the
// strikes, from the first to behind the last, that were not found worthless or without a price.
struct Near {
    int64_t first, last;
};
inline Near line_slice(const Line& line, const double* k, int64_t count, double* out, int64_t stride, vd (*sum)[2],
                       const Far* far = nullptr) {
    const double *low = std::lower_bound(k, k + count, line.low), *high = std::lower_bound(low, k + count, line.high);
    const double* first = std::min(std::max(std::lower_bound(k, k + count, -FARTHEST), low), high);
    const double* last = std::min(std::max(std::lower_bound(k, k + count, FARTHEST), low), high);
    if (line.nodes == 0) last = first;
    for (int64_t i = 0; i < count; i++) {
        const double* at = k + i;
        if (at >= first && at < last) continue;
        for (int f = 0; f < line.functions; f++) out[f * stride + i] = at >= low && at < high ? NAN : 0.0;
    }
    for (int64_t i = first - k; i < last - k;) {
        const Distinct<8> strikes(k, i, last - k);
        const vd side[2] = {load(strikes.k), load(strikes.k + 4)};
        i = strikes.last;
        sum_line(line, side[0], side[1], sum);
        for (int half = 0; half < 2; half++) {
            const vd growth = exp(side[half]), root_growth = exp(0.5 * side[half]);
            for (int f = 0; f < line.functions; f++) {
                vd value = -(root_growth * sum[f][half]);
                if (far != nullptr) value += fma(growth, all(far[f].mass), far[f].forward) * line.image;
                if (f == 0) value += far != nullptr ? smaller(growth, all(1.0)) : fma(1.0 + growth, all(line.image), smaller(growth, all(1.0)));
                for (int n = 0; n < 4 && 4 * half + n < strikes.count; n++) strikes.write(4 * half + n, value[n], out + f * stride);
            }
        }
    }
    return {first - k, last - k};
}

}  // namespace STRIKEOUT_BUILD
