// Two of Heston's variances on bent contours. The NumPy twin, with the derivation, is kernels/double_heston.py.
#pragma once
#include "heston.hpp"

namespace STRIKEOUT_BUILD {

struct DoubleHestonCf;
struct DoubleHeston {
    static constexpr int ROWS = 11, FUNCTIONS = 12;  // the value, ten derivatives, and an idle one
    static constexpr bool HAS_KINK = false;
    using Cf = DoubleHestonCf;
    Heston part[2];
};

INLINE vd log_mgf(vd p, double T, const DoubleHeston& m) { return log_mgf(p, T, m.part[0]) + log_mgf(p, T, m.part[1]); }

// The real part of the root of 1 + (1 - rho^2) y^2 - 2 i rho y.
INLINE double real_root(double y, double rho) {
    const double re = 1.0 + (1.0 - rho * rho) * (y * y), im = 2.0 * rho * y;
    return std::sqrt(0.5 * (std::sqrt(re * re + im * im) + re));
}

INLINE Slice slice_of(double T, const DoubleHeston& m) {
    const Part part[2] = {part_of(T, m.part[0]), part_of(T, m.part[1])};
    const double variance = part[0].variance + part[1].variance;
    auto decay = [&](double u) {
        double sum = 0.0;
        for (int i = 0; i < 2; i++) sum += 2.0 * part[i].g * (real_root(u / part[i].rate, m.part[i].rho) - 1.0);
        return sum;
    };
    double end = std::sqrt(2.0 * LEVEL / variance);  // where |cf| has fallen to exp(-LEVEL)
    while (decay(end) < LEVEL && end < 1e150) end *= 2.0;
    double below = 0.5 * end;
    for (int step = 0; step < 8; step++) {
        const double middle = 0.5 * (below + end);
        (decay(middle) < LEVEL ? below : end) = middle;
    }
    const double most = 1.5 * (LEVEL / end), core = part[0].core + part[1].core;
    Slice s = slice_with(T, std::sqrt(variance), std::max(part[0].g, part[1].g), core < most ? core : most);
    s.decay = LEVEL / end;
    for (int i = 0; i < 2; i++) {
        const double y = part[i].rate / end;
        s.grid.kstar += -m.part[i].rho * part[i].asymptote / (1.0 + y * y);
    }
    const int steeper = std::fabs(m.part[1].rho) > std::fabs(m.part[0].rho);
    s.root = part[steeper].root, s.skew = std::fabs(m.part[steeper].rho);
    return s;
}

struct DoubleHestonCf {
    LogCf cf[2];
    void find(const vc* z, const vc* q, int count, double T, const DoubleHeston& m) {
        for (int p = 0; p < 2; p++) log_cf(z, q, count, T, m.part[p], cf[p]);
    }
    vc total(int i) const { return (cf[0].level[i] + cf[0].v0B[i]) + (cf[1].level[i] + cf[1].v0B[i]); }
    void derivatives(vc f, int i, const DoubleHeston& m, vc* by) const {
        for (int p = 0; p < 2; p++) heston_derivatives(f, cf[p], i, m.part[p], by + 5 * p);
        by[10] = {all(0.0), all(0.0)};
    }
};

}  // namespace STRIKEOUT_BUILD
