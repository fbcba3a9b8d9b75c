// Books in which hardly two quotes share an expiry: polynomials in log-strike and in ln T.
//
// Panels of ln T lie on a fixed grid. In a panel, strikes are zeta = k / sqrt(T), cells lie on the grid of the slice in
// the panel's middle, and a cell's polynomials are found at NODES expiries and interpolated between them (Chebyshev
// points). As in a slice, a quote's bits follow from its own contract and theta alone. The NumPy twin is
// kernels/heston_twin.py.
//
// With a correlation near one the surface has a kink at k*, which moves within a panel, and eight expiries may be too few
// for a cell that it crosses. A cell asks its own coefficients: those of the highest powers of t say what the next would
// add. Where that is too much, every quote of the cell is priced at its own expiry.
#pragma once
#include "slices.hpp"

namespace STRIKEOUT_BUILD {

constexpr int NODES = 8;
constexpr double UNRESOLVED = 1e-12, UNRESOLVED_SLOPE = 3e-11;  // what a value, and a derivative, may lack in a panel

// Values at the Chebyshev points of [-1, 1] -> coefficients of 1, t, ..., t^7.
struct Interpolation {
    double point[NODES], matrix[NODES][NODES];
    Interpolation() {
        double monomial[NODES][NODES] = {};  // row k: the coefficients of T_k
        monomial[0][0] = monomial[1][1] = 1.0;
        for (int k = 2; k < NODES; k++)
            for (int p = 0; p < NODES; p++)
                monomial[k][p] = (p > 0 ? 2.0 * monomial[k - 1][p - 1] : 0.0) - monomial[k - 2][p];
        for (int j = 0; j < NODES; j++) {
            vd s, c;
            sincos(all(PI * (j + 0.5) / NODES), s, c);
            point[j] = c[0];
        }
        for (int p = 0; p < NODES; p++)
            for (int j = 0; j < NODES; j++) {
                matrix[p][j] = 0.0;
                double before = 1.0, now = point[j];  // T_0, T_1 at the point
                for (int k = 0; k < NODES; k++) {
                    double value = k == 0 ? 1.0 : now;
                    matrix[p][j] += (k == 0 ? 1.0 : 2.0) / NODES * value * monomial[k][p];
                    if (k > 0) {
                        double after = 2.0 * point[j] * now - before;
                        before = now, now = after;
                    }
                }
            }
    }
};

struct PanelWorkspace {
    Interpolation interpolation;
    Terms<FUNCTIONS> terms[NODES][3];
    Powers powers[NODES][3];
    bool ready[NODES][3];
    Polynomials<FUNCTIONS> polynomials[NODES];
    alignas(32) double a[DEGREE][NODES][FUNCTIONS];  // of x^p t^q
    Workspace own;  // for a quote at its own expiry
};

// Whether eight expiries say enough: the last four coefficients by Chebyshev's polynomials of t, two and two, fall as fast
// as the next two will.
INLINE bool resolved(const PanelWorkspace& w, int top) {
    for (int f = 0; f < FUNCTIONS; f++) {
        double size[4] = {0.0, 0.0, 0.0, 0.0};
        for (int p = 0; p <= top; p++) {
            const double c7 = w.a[p][7][f] / 64.0, c6 = w.a[p][6][f] / 32.0;
            const double c5 = (w.a[p][5][f] + 112.0 * c7) / 16.0, c4 = (w.a[p][4][f] + 48.0 * c6) / 8.0;
            size[0] += std::fabs(c4), size[1] += std::fabs(c5), size[2] += std::fabs(c6), size[3] += std::fabs(c7);
        }
        const double before = std::max(size[0], size[1]), last = std::max(size[2], size[3]);
        const double next = last < before ? last * (last / before) : last;
        if (!(next <= (f == 0 ? UNRESOLVED : UNRESOLVED_SLOPE))) return false;
    }
    return true;
}

INLINE void at(const PanelWorkspace& w, int top, vd x, vd t, vd* out) {
    vd value[FUNCTIONS];
#pragma GCC unroll 8
    for (int f = 0; f < FUNCTIONS; f++) value[f] = all(0.0);
    for (int p = top; p >= 0; p--) {
        vd inner[FUNCTIONS];
#pragma GCC unroll 8
        for (int f = 0; f < FUNCTIONS; f++) inner[f] = all(w.a[p][NODES - 1][f]);
#pragma GCC unroll 8
        for (int q = NODES - 2; q >= 0; q--)
#pragma GCC unroll 8
            for (int f = 0; f < FUNCTIONS; f++) inner[f] = fma(inner[f], t, all(w.a[p][q][f]));
#pragma GCC unroll 8
        for (int f = 0; f < FUNCTIONS; f++) value[f] = fma(value[f], x, inner[f]);
    }
#pragma GCC unroll 8
    for (int f = 0; f < FUNCTIONS; f++) out[f] = value[f];
}

// Quotes begin .. end of one panel, ascending in zeta; t = (ln T - middle) / half.
template <class Sink>
void run_panel(PanelWorkspace& w, double middle, double half, const double* zeta, const double* t, int64_t begin,
               int64_t end, const Heston& m, const Sink& sink) {
    Slice node[NODES];
    double root[NODES];
    for (int r = 0; r < NODES; r++) {
        node[r] = slice_of(exp1(middle + half * w.interpolation.point[r]), m);
        root[r] = std::sqrt(node[r].T);
        w.ready[r][0] = w.ready[r][1] = w.ready[r][2] = false;
    }
    const Slice centre = slice_of(exp1(middle), m);
    const double centre_root = std::sqrt(centre.T), shrink = 0.95;  // the widest node's cells are no wider than a slice's
    const Grid grid = {centre.grid.kstar / centre_root, shrink * centre.grid.narrowest / centre_root,
                       centre.grid.doublings};
    int64_t i = begin, stop = end;
    const double near = FAR * (centre.sd / centre_root) * 1.25;
    if (begin < end && (zeta[begin] < -near || zeta[end - 1] > near)) {
        const Wings first = wings_of(node[0], m), last = wings_of(node[NODES - 1], m);
        const double low = std::min({first.low / root[0], last.low / root[NODES - 1], -near});
        const double high = std::max({first.high / root[0], last.high / root[NODES - 1], near});
        for (; i < end && zeta[i] < 1.1 * low; i++) Sink::nothing(sink, i);
        stop = std::lower_bound(zeta + i, zeta + end, 1.1 * high) - zeta;
    }
    while (i < stop) {
        const Cell cell = cell_at(zeta[i], grid);
        const int64_t next = std::lower_bound(zeta + i + 1, zeta + stop, cell.end) - zeta;
        const bool call = zeta[i] >= 0.0;
        int top = 1;
        for (int r = 0; r < NODES; r++) {
            const int group = call + (cell.centre * root[r] >= node[r].grid.kstar);
            if (!w.ready[r][group]) {
                contour(w.terms[r][group], node[r], group, m);
                w.ready[r][group] = true, w.powers[r][group].unit = 0.0;
            }
            w.polynomials[r].expand(w.terms[r][group], w.powers[r][group], cell.centre * root[r], cell.half * root[r],
                                    cell.unit * root[r]);
            top = std::max(top, w.polynomials[r].top);
        }
        for (int p = 0; p <= top; p++)
            for (int q = 0; q < NODES; q++)
                for (int f = 0; f < FUNCTIONS; f++) {
                    double sum = 0.0;
                    for (int r = 0; r < NODES; r++)
                        if (p <= w.polynomials[r].top)
                            sum = __builtin_fma(w.interpolation.matrix[q][r], w.polynomials[r].a[p][f], sum);
                    w.a[p][q][f] = sum;
                }
        if (!resolved(w, top)) {
            for (; i < next; i++) {
                const double T = exp1(middle + half * t[i]), k[8] = {zeta[i] * std::sqrt(T)};  // as many as are loaded at once
                run_slice(w.own, T, k, 1, i, m, sink);
            }
            continue;
        }
        const double scale = 1.0 / cell.half;
        vd vx[FUNCTIONS], vy[FUNCTIONS];
        for (; i + 8 <= next; i += 8) {
            at(w, top, (load(zeta + i) - cell.centre) * scale, load(t + i), vx);
            at(w, top, (load(zeta + i + 4) - cell.centre) * scale, load(t + i + 4), vy);
            Sink::template take<true>(sink, i, 8, vx, vy);
        }
        if (i < next) {
            const int rest = static_cast<int>(next - i);
            at(w, top, (load_some(zeta + i, rest) - cell.centre) * scale, load_some(t + i, rest), vx);
            if (rest > 4) {
                at(w, top, (load_some(zeta + i + 4, rest - 4) - cell.centre) * scale, load_some(t + i + 4, rest - 4), vy);
            } else {
                for (int f = 0; f < FUNCTIONS; f++) vy[f] = all(0.0);
            }
            Sink::template take<false>(sink, i, rest, vx, vy);
        }
        i = next;
    }
    for (; i < end; i++) Sink::nothing(sink, i);
}

}  // namespace STRIKEOUT_BUILD
