// Variance gamma: bent contours, and next to the kink Black's formula averaged over a gamma-distributed clock.
// The NumPy twin, with the derivation and the legend of the symbols, is kernels/variance_gamma.py.
#pragma once
#include <algorithm>

#include "chunks.hpp"
#include "contours.hpp"
#include "elementary.hpp"
#include "kernel.hpp"
#include "slices.hpp"

namespace STRIKEOUT_BUILD {

constexpr double CLOCK_LEVEL = 37.0;  // exp(-37) = 9e-17: what each cut may cost
constexpr double SMALLEST_SHAPE = 1e-15, LARGEST_SHAPE = 1e12;
constexpr int MOST_TICKS = 1 << 15, ANGLES = 400;
constexpr int CLOCK_FUNCTIONS = 4;  // the value and three derivatives
// Standard deviations out of the money beyond which a term is below 1e-290, so it changes no bit of a sum with any value in it.
// It is zero lane by lane: what a quote is worth must not depend on which quotes share its vector. The nodes reach down to clocks
// that have hardly begun, most of whose terms are of this kind.
constexpr double NEVER_EXERCISED = -37.0;
constexpr double INVERSE_ROOT_TWO_PI = 0.3989422804014327, ROOT_HALF = 0.7071067811865476;

INLINE double exp_of(double x) { return elementary::exp(all(x))[0]; }
INLINE double log_of(double x) { return elementary::log(all(x))[0]; }

INLINE double expm1_of(double x) { return elementary::expm1(all(x))[0]; }

struct ClockCf;
struct Clock {
    static constexpr int FUNCTIONS = CLOCK_FUNCTIONS;
    static constexpr bool HAS_KINK = true;
    using Cf = ClockCf;
    double sigma, nu, mean, left, omega, slope;
};

constexpr double FEWEST_STEPS = 1e-4, MOST_STEPS = 1e4;     // shapes T / nu that are priced on contours
constexpr double LEAST_VARIANCE = 1e-12, MOST_VARIANCE = 1e2;  // of X, likewise
constexpr int KINK_DOUBLINGS = 20;

INLINE double variance_of(double T, const Clock& m) { return (m.sigma * m.sigma + m.nu * (m.mean * m.mean)) * T; }

INLINE Slice slice_of(double T, const Clock& m) {
    Slice s;
    const double cosine = exp_of(-MOMENT_CAP * m.nu / T);
    const double angle = elementary::atan2(all(std::sqrt((1.0 - cosine) * (1.0 + cosine))), all(cosine))[0];
    s.T = T, s.sd = std::sqrt(variance_of(T, m));
    s.bend = std::min(std::max(angle, 0.25 * PI), 1.3) - 0.25 * PI;
    s.shift = m.omega * T, s.finer = 5.0;
    s.grid = {s.shift, two_to(-KINK_DOUBLINGS) * widest_cell(s.sd), KINK_DOUBLINGS};
    s.decay = 0.5 * INNER * s.grid.narrowest;
    return s;
}

INLINE vd log_mgf(vd p, double T, const Clock& m) {
    const vd lack = (m.nu * p) * fma(p, all(0.5 * (m.sigma * m.sigma)), m.mean);
    return pick(lack < 1.0, (m.omega * T) * p - (T / m.nu) * elementary::log1p(-pick(lack < 1.0, lack, all(0.0))), all(INF));
}

// ln E[exp(i z (X - omega T))], times what the shift of strikes by omega T leaves of their phase: exp(omega T).
struct ClockCf {
    vc value[BATCH], by[BATCH][CLOCK_FUNCTIONS - 1];
    void find(const vc* z, const vc*, int count, double T, const Clock& m) {
        const double a = T / m.nu, half = 0.5 * (m.sigma * m.sigma), by_nu = -(m.slope / m.left + m.omega) / m.nu * T;
        for (int i = 0; i < count; i++) {
            const vc iz = times_i(z[i]), w = iz * fma(half, iz, vc{all(m.mean), all(0.0)}), lack = m.nu * w, P = 1.0 - lack;
            const vc ln = log(P, -lack), over = inverse(P);
            value[i] = fma(-a, ln, vc{all(m.omega * T), all(0.0)});
            by[i][0] = (m.sigma * T) * (iz * (iz * over - vc{all(1.0 / m.left), all(0.0)}));
            by[i][1] = fma(by_nu, iz, a * fma(1.0 / m.nu, ln, w * over));
            by[i][2] = T * (iz * (over - vc{all(1.0 / m.left), all(0.0)}));
        }
    }
    vc total(int i) const { return value[i]; }
    void derivatives(vc f, int i, const Clock&, vc* out) const {
        for (int p = 0; p < CLOCK_FUNCTIONS - 1; p++) out[p] = f * by[i][p];
    }
};

// The nodes of one expiry: each a value of the clock, how likely it is, and Black's formula as far as no strike is in it.
struct Ticks {
    int64_t count;  // none where there is no price
    double rest, rest_by_shape;
    double bent[MOST_TICKS], w[MOST_TICKS], by_shape[MOST_TICKS];
    double g[MOST_TICKS], s[MOST_TICKS], f[MOST_TICKS], forward[MOST_TICKS];
};

// Where b (x - (e^x - 1)) - share x + constant crosses -LEVEL, between a point inside and one outside.
INLINE double crossing(double b, double share, double constant, double inside, double outside) {
    for (int i = 0; i < 60; i++) {
        const double middle = 0.5 * (inside + outside);
        const bool is_out = b * (middle - expm1_of(middle)) - share * middle + constant < -CLOCK_LEVEL;
        (is_out ? outside : inside) = middle;
    }
    return outside;
}

// Where the Fourier transform, in x, of density times price has fallen to exp(-LEVEL), at the worst strike.
inline double frequency(double a, double haste) {
    const double widest = haste > 0.0 ? elementary::atan2(all(std::sqrt(2.0)), all(std::sqrt(haste)))[0] : 0.5 * PI;
    const double first = log_of(1e-6), step = (log_of(0.995) - first) / (ANGLES - 1);
    vd least = all(INFINITY);
    for (int i = 0; i < ANGLES; i += 4) {
        const vd number = {double(i), double(i + 1), double(i + 2), double(i + 3)};
        const vd t = widest * elementary::exp(fma(number, all(step), first));
        vd s, c;
        elementary::sincos(t, s, c);
        const vd shrunk = c - (0.5 * haste) * (s * s) / c;
        const vd u = (CLOCK_LEVEL - a * elementary::log(shrunk)) / t;
        least = pick((shrunk > 0.0) & (u < least), u, least);
    }
    return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
}

inline void find_ticks(Ticks& ticks, const Clock& m, double T) {
    ticks.count = 0;
    // Of the two halves of Black's formula; that of the forward sees a clock of rate `left`.
    const double s2 = m.sigma * m.sigma, more = m.mean + s2;
    const double haste = std::max(m.mean * m.mean, more * more / m.left) * m.nu / s2, a = T / m.nu, b = a + 1.0;
    const double constant = log_of(a / b * std::sqrt(b / (2.0 * PI))), tilt = log_of(m.left);
    const double half = a + 0.5, peak_low = log_of(half / b);
    const double low = crossing(b, 0.5, constant, peak_low, peak_low - 4.0 * CLOCK_LEVEL / half - 16.0 * std::sqrt(CLOCK_LEVEL / half)) -
                       std::max(tilt, 0.0);
    const double far = log_of((a + 8.0 * CLOCK_LEVEL + 16.0 * std::sqrt(CLOCK_LEVEL * a)) / b);
    const double high = crossing(b, 1.0, constant, log_of(a / b), far) - std::min(tilt, 0.0);
    const double h = 2.0 * PI / frequency(b, haste);
    if (!((high - low) / h < MOST_TICKS - 2)) return;
    const int64_t count = static_cast<int64_t>((high - low) / h) + 2;
    double total = 0.0, first = 0.0;  // of the density of shape a + 1, whose left tail is short at every a
    for (int64_t i = 0; i < count; i++) {
        const double x = low + h * static_cast<double>(i), bent = x - expm1_of(x), longer = exp_of(b * bent);
        ticks.bent[i] = bent, ticks.w[i] = exp_of(b * bent - x), ticks.g[i] = (T + m.nu) * exp_of(x);
        total += longer, first += longer * bent;
    }
    const double mean = first / total - 1.0 / (a * b), scale = a / b / total, falls = -expm1_of(-a * h);
    for (int64_t i = 0; i < count; i++) {
        ticks.w[i] *= scale, ticks.by_shape[i] = ticks.w[i] * (ticks.bent[i] - mean);
        ticks.s[i] = m.sigma * std::sqrt(ticks.g[i]);
        ticks.f[i] = m.omega * T + m.slope * ticks.g[i], ticks.forward[i] = exp_of(ticks.f[i]);
        if (!(ticks.forward[i] < elementary::INFINITE)) return;  // no price on either side of the forward, as in the twin
    }
    ticks.rest = ticks.w[0] * (1.0 - falls) / falls;  // of the nodes before the first
    ticks.rest_by_shape = ticks.rest * (ticks.bent[0] - mean - h / falls);
    ticks.count = count;
}

// The normal distribution of x, and exp(-x^2 / 2). The polynomial of black.hpp, with fused products and one division: it is
// asked for at every node of every strike.
INLINE vd distribution(vd x, const Erfcx& erfcx, vd& bell) {
    bell = exp(-0.5 * (x * x));
    const vd z = ROOT_HALF * magnitude(x), above = z + erfcx.centre, scale = fma(all(2.0), z, 1.0);
    const vd both = 1.0 / (above * scale), y = fnma(all(2.0 * erfcx.centre), scale * both, all(1.0));
    vd sum = all(erfcx.coefficients[erfcx.last]);
    for (size_t i = erfcx.last; i > 0; i--) sum = fma(sum, y, all(erfcx.coefficients[i - 1]));
    const vd tail = 0.5 * (bell * (sum * (above * both)));
    return pick(x > 0.0, 1.0 - tail, tail);
}

// Values and derivatives by sigma, nu, mean at four strikes.
inline void average(const Ticks& ticks, const Clock& m, double T, const Erfcx& erfcx, vd k, vd* out) {
    const vd sign = pick(k >= 0.0, all(1.0), all(-1.0));  // call or put, whichever is out of the money
    const vd strike = elementary::exp(k);
    const double rest_at = m.omega * T, at_rest = exp_of(rest_at);
    const vi inside = sign * (rest_at - k) > 0.0;
    const vd price_0 = pick(inside, sign * (at_rest - strike), all(0.0)), delta_0 = pick(inside, sign * at_rest, all(0.0));
    vd price = all(0.0), delta = all(0.0), moved = all(0.0), vega = all(0.0), shape = all(0.0);
    for (int64_t i = 0; i < ticks.count; i++) {
        const double s = ticks.s[i];
        const vd d = fma(ticks.f[i] - k, all(1.0 / s), 0.5 * s);
        const vi counts = larger(sign * d, sign * (d - s)) > NEVER_EXERCISED;
        if (!any(counts)) continue;
        vd bell, unused;
        const vd whole = sign * (ticks.forward[i] * distribution(sign * d, erfcx, bell)), none = all(0.0);
        const vd black = pick(counts, fnma(sign * strike, distribution(sign * (d - s), erfcx, unused), whole), none);
        const vd here = pick(counts, whole, none);
        bell = pick(counts, bell, none);
        price = fma(all(ticks.w[i]), black, price), shape = fma(all(ticks.by_shape[i]), black, shape);
        delta = fma(all(ticks.w[i]), here, delta);
        moved = fma(all(ticks.w[i] * ticks.g[i]), here, moved);
        vega = fma(all((ticks.w[i] * s) * (ticks.forward[i] * INVERSE_ROOT_TWO_PI)), bell, vega);
    }
    delta = fma(delta_0, all(ticks.rest), delta), shape = fma(price_0, all(ticks.rest_by_shape), shape);
    const double by_sigma = -m.sigma / m.left * T, by_nu = -(m.slope / m.left + m.omega) / m.nu * T, by_mean = -1.0 / m.left * T;
    const double mean_clock = T + m.nu;
    out[0] = fma(price_0, all(ticks.rest), price);
    out[1] = fma(all(by_sigma), delta, fma(all(m.sigma), moved, (1.0 / m.sigma) * vega));
    out[2] = fma(all(by_nu), delta, fma(all(m.slope / mean_clock), moved, fma(all(0.5 / mean_clock), vega, (-T / m.nu / m.nu) * shape)));
    out[3] = fma(all(by_mean), delta, moved);
}

struct ClockWorkspace {
    Ticks ticks;
    WorkspaceOf<Clock> contours;
};

inline void clock_slice(ClockWorkspace& space, const double* theta, double T, const Erfcx& erfcx, const double* k, int64_t count,
                        double* out, int64_t stride) {
    Clock m = {theta[0], theta[1], theta[2], 0.0, 0.0, 0.0};
    m.slope = m.mean + 0.5 * (m.sigma * m.sigma), m.left = 1.0 - m.nu * m.slope;
    const double a = T / m.nu;
    const bool exists = m.left > 0.0 && m.sigma > 0.0 && a > SMALLEST_SHAPE && a < LARGEST_SHAPE;
    if (exists) m.omega = elementary::log1p(all(-m.nu * m.slope))[0] / m.nu;
    const FirstRows<CLOCK_FUNCTIONS> rows = {out, stride};
    const double variance = variance_of(T, m);
    const bool is_usual = a >= FEWEST_STEPS && a <= MOST_STEPS && variance >= LEAST_VARIANCE && variance <= MOST_VARIANCE;
    if (exists && is_usual) run_slice(space.contours, T, k, count, 0, m, rows);
    else
        for (int64_t i = 0; i < count; i++) FirstRows<CLOCK_FUNCTIONS>::nothing(rows, i, NAN);
    if (!exists) return;
    bool is_ready = false;
    for (int64_t i = 0; i < count; i++) {
        if (std::fabs(out[i]) < INF) continue;
        if (!is_ready) find_ticks(space.ticks, m, T), is_ready = true;
        if (space.ticks.count == 0) return;
        const Distinct<4> strikes(k, i, count);
        vd found[CLOCK_FUNCTIONS];
        average(space.ticks, m, T, erfcx, load(strikes.k), found);
        for (; i < strikes.last; i++) {
            if (std::fabs(out[i]) < INF) continue;
            int n = 0;
            while (strikes.end[n] <= i) n++;
            for (int f = 0; f < CLOCK_FUNCTIONS; f++) out[f * stride + i] = found[f][n];
        }
        i--;
    }
}

}  // namespace STRIKEOUT_BUILD
