// One pass over a slice: find the cell of each run of strikes, expand its polynomials, evaluate.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "heston.hpp"
#include "kernel.hpp"

namespace STRIKEOUT_BUILD {

template <bool WHOLE>
INLINE vd four(const double* p, int count) {
    return WHOLE ? load(p) : load_some(p, count);
}

// What happens to the values of up to eight strikes.
template <int COUNT>
struct FirstRows {  // keep the first of them: out[f * stride + i]
    static constexpr bool SLOPES = false;
    double* out;
    int64_t stride;
    template <bool WHOLE>
    INLINE void take(const FirstRows& self, int64_t i, int count, const vd* x, const vd* y) {
        for (int f = 0; f < COUNT; f++) {
            double* to = self.out + f * self.stride + i;
            if (WHOLE) {
                store(to, x[f]), store(to + 4, y[f]);
            } else {
                for (int j = 0; j < count; j++) to[j] = j < 4 ? x[f][j] : y[f][j - 4];
            }
        }
    }
    INLINE void nothing(const FirstRows& self, int64_t i, double value = 0.0) {
        for (int f = 0; f < COUNT; f++) self.out[f * self.stride + i] = value;
    }
};
using Rows = FirstRows<FUNCTIONS>;

struct RowsAndSlope {  // keep them, and the derivative of the value by log-strike as one more
    static constexpr bool SLOPES = true;
    Rows rows;
    template <bool WHOLE>
    INLINE void take(const RowsAndSlope& self, int64_t i, int count, const vd* x, const vd* y) {
        Rows::template take<WHOLE>(self.rows, i, count, x, y);
    }
    INLINE void take_slopes(const RowsAndSlope& self, int64_t i, int count, vd x, vd y) {
        double* to = self.rows.out + FUNCTIONS * self.rows.stride + i;
        for (int j = 0; j < count; j++) to[j] = j < 4 ? x[j] : y[j - 4];
    }
    INLINE void nothing(const RowsAndSlope& self, int64_t i) {
        Rows::nothing(self.rows, i);
        self.rows.out[FUNCTIONS * self.rows.stride + i] = 0.0;
    }
};

constexpr int SUMS = FUNCTIONS * (FUNCTIONS + 1) / 2;

struct Sums {  // add up a a' for a = (scale J, target - scale value): upper triangle, row by row
    static constexpr bool SLOPES = false;
    static constexpr int COUNT = SUMS;
    const double *scale, *target;
    vd* sum;
    template <bool WHOLE>
    INLINE void take(const Sums& self, int64_t i, int count, const vd* x, const vd* y) {
        // An absent strike has scale and target zero, and adds nothing.
        const vd s0 = four<WHOLE>(self.scale + i, count), s1 = four<WHOLE>(self.scale + i + 4, count - 4);
        const vd t0 = four<WHOLE>(self.target + i, count), t1 = four<WHOLE>(self.target + i + 4, count - 4);
        vd a[FUNCTIONS], b[FUNCTIONS];
#pragma GCC unroll 8
        for (int f = 1; f < FUNCTIONS; f++) a[f - 1] = s0 * x[f], b[f - 1] = s1 * y[f];
        a[FUNCTIONS - 1] = fnma(s0, x[0], t0), b[FUNCTIONS - 1] = fnma(s1, y[0], t1);
        int at = 0;
#pragma GCC unroll 8
        for (int f = 0; f < FUNCTIONS; f++)
#pragma GCC unroll 8
            for (int g = f; g < FUNCTIONS; g++, at++) self.sum[at] = fma(b[f], b[g], fma(a[f], a[g], self.sum[at]));
    }
    INLINE void nothing(const Sums& self, int64_t i) {  // value and derivatives zero
        vd t = {self.target[i], 0.0, 0.0, 0.0};
        self.sum[SUMS - 1] = fma(t, t, self.sum[SUMS - 1]);
    }
};

struct Weighed {  // with d = value - centre: the sums of quadratic J J', (linear - quadratic d) J; linear d, quadratic d d
    static constexpr bool SLOPES = false;
    static constexpr int COUNT = SUMS + 1;
    const double *quadratic, *linear, *centre;
    vd* sum;
    template <bool WHOLE>
    INLINE void take(const Weighed& self, int64_t i, int count, const vd* x, const vd* y) {
        // An absent node weighs nothing.
        add(self.sum, x, four<WHOLE>(self.quadratic + i, count), four<WHOLE>(self.linear + i, count),
            four<WHOLE>(self.centre + i, count));
        add(self.sum, y, four<WHOLE>(self.quadratic + i + 4, count - 4), four<WHOLE>(self.linear + i + 4, count - 4),
            four<WHOLE>(self.centre + i + 4, count - 4));
    }
    INLINE void add(vd* sum, const vd* x, vd q, vd l, vd c) {
        const vd d = x[0] - c, qd = q * d, pull = l - qd;
        int at = 0;
#pragma GCC unroll 8
        for (int f = 1; f < FUNCTIONS; f++) {
            const vd stiff = q * x[f];
#pragma GCC unroll 8
            for (int g = f; g < FUNCTIONS; g++, at++) sum[at] = fma(stiff, x[g], sum[at]);
            sum[at] = fma(pull, x[f], sum[at]), at++;
        }
        sum[at] = fma(l, d, sum[at]);
        sum[at + 1] = fma(qd, d, sum[at + 1]);
    }
    INLINE void nothing(const Weighed& self, int64_t i) {  // value and derivatives zero
        vd none[FUNCTIONS];
        for (int f = 0; f < FUNCTIONS; f++) none[f] = all(0.0);
        add(self.sum, none, vd{self.quadratic[i], 0.0, 0.0, 0.0}, vd{self.linear[i], 0.0, 0.0, 0.0},
            vd{self.centre[i], 0.0, 0.0, 0.0});
    }
};

INLINE bool read_kept(const KeptSlice& kept, double centre, Polynomials<Heston::FUNCTIONS>& out) {
    for (int n = 0; n < kept.count; n++)
        if (kept.cell[n].centre == centre) {
            std::memcpy(out.a, kept.cell[n].a, sizeof out.a);
            out.top = kept.cell[n].top;
            return true;
        }
    return false;
}
INLINE void keep(KeptSlice& kept, double centre, const Polynomials<Heston::FUNCTIONS>& from) {
    static_assert(sizeof from.a == sizeof kept.cell[0].a, "a cell has as many numbers as are kept");
    if (centre != centre || kept.count == KeptSlice::MOST) return;
    KeptCell& cell = kept.cell[kept.count++];
    cell.centre = centre, cell.top = from.top;
    std::memcpy(cell.a, from.a, sizeof cell.a);
}
// The slice of an expiry; if there is no room for another one, all begin anew.
INLINE KeptSlice* kept_slice(Kept* kept, double expiry) {
    if (kept == nullptr) return nullptr;
    for (int n = 0; n < kept->count; n++)
        if (kept->slice[n].expiry == expiry) return &kept->slice[n];
    if (kept->count == Kept::MOST) kept->count = 0;
    KeptSlice& slice = kept->slice[kept->count++];
    slice.expiry = expiry, slice.count = 0;
    return &slice;
}

template <class Law>
struct WorkspaceOf {
    Terms<Law::FUNCTIONS> terms;
    Powers powers;
    Polynomials<Law::FUNCTIONS> polynomials;
};
using Workspace = WorkspaceOf<Heston>;

// The end nearest to k* of the cells of a group's strikes, of which k[0] is the first; `stop` is how many there are at most.
INLINE double nearest_end(const double* k, int64_t stop, const Grid& grid, int group) {
    if (k[0] >= grid.kstar) return cell_at(k[0], grid).begin;
    const double end = group == 0 && grid.kstar > 0.0 ? 0.0 : grid.kstar, next_to = INNER * grid.narrowest;
    int64_t last = std::lower_bound(k, k + stop, end) - k - 1;
    while (last > 0 && grid.kstar - k[last] < next_to) last--;  // those have no price
    return cell_at(k[last], grid).end;
}

// The strikes of one expiry, ascending; the sink knows them as first, first + 1, ...
template <class Law, class Sink>
void run_slice(WorkspaceOf<Law>& w, double T, const double* k, int64_t count, int64_t first, const Law& m, const Sink& sink,
               KeptSlice* kept = nullptr) {
    constexpr int FUNCTIONS = Law::FUNCTIONS;
    Slice s = slice_of(T, m);
    int64_t i = 0, stop = count;
    if (count > 0 && (k[0] < -FAR * s.sd || k[count - 1] > FAR * s.sd)) {
        const Wings wings = wings_of(s, m);
        for (; i < count && k[i] < wings.low; i++) Sink::nothing(sink, first + i);
        stop = std::lower_bound(k + i, k + count, wings.high) - k;
    }
    for (int group = -1; i < stop;) {
        const int its_group = (k[i] >= 0.0) + (k[i] >= s.grid.kstar);
        if constexpr (Law::HAS_KINK) {
            if (std::fabs(k[i] - s.grid.kstar) < INNER * s.grid.narrowest) {
                Sink::nothing(sink, first + i++, NAN);
                continue;
            }
        }
        const Cell cell = cell_at(k[i], s.grid);
        bool is_known = false;
        if constexpr (std::is_same_v<Law, Heston>) is_known = kept != nullptr && read_kept(*kept, cell.centre, w.polynomials);
        if (!is_known) {
            if (its_group != group) {
                group = its_group, w.powers.unit = 0.0;
                contour(w.terms, s, group, m, Law::HAS_KINK ? nearest_end(k + i, stop - i, s.grid, group) : 0.0);
            }
            w.polynomials.expand(w.terms, w.powers, cell.centre - s.shift, cell.half, cell.unit);
            if constexpr (std::is_same_v<Law, Heston>)
                if (kept != nullptr) keep(*kept, cell.centre, w.polynomials);
        }
        const double scale = 1.0 / cell.half;
        vd x[FUNCTIONS], y[FUNCTIONS];
        auto slopes = [&](int64_t at, int count) {
            if constexpr (Sink::SLOPES) {
                vd dx, dy;
                w.polynomials.slope_at((load_some(k + at, count) - cell.centre) * scale,
                                       (load_some(k + at + 4, count - 4) - cell.centre) * scale, dx, dy);
                Sink::take_slopes(sink, first + at, count, scale * dx, scale * dy);
            }
        };
        const int64_t begun = i;
        for (; i + 8 <= stop && k[i + 7] < cell.end; i += 8) {
            w.polynomials.at((load(k + i) - cell.centre) * scale, (load(k + i + 4) - cell.centre) * scale, x, y);
            Sink::template take<true>(sink, first + i, 8, x, y);
            slopes(i, 8);
        }
        int rest = i == begun;  // the strike that the cell was found for, come what may
        while (i + rest < stop && k[i + rest] < cell.end) rest++;
        if (rest == 0) continue;
        w.polynomials.at((load_some(k + i, rest) - cell.centre) * scale,
                         (load_some(k + i + 4, rest - 4) - cell.centre) * scale, x, y);
        Sink::template take<false>(sink, first + i, rest, x, y);
        slopes(i, rest);
        i += rest;
    }
    for (; i < count; i++) Sink::nothing(sink, first + i);
}

}  // namespace STRIKEOUT_BUILD
