// Bent contours: geometry of a slice and contour terms of its three groups of strikes, from theta and T alone.
// The NumPy twin, with the derivation and the legend of the symbols, is kernels/contours.py.
//
// A law has the number of its FUNCTIONS (the value, and a derivative by every parameter), log_mgf, slice_of, and a Cf: `find` for
// some nodes, then the logarithm's `total` and f times its `derivatives` at each. HAS_KINK: |cf| falls like a power only, so
// contours end as far out as the strikes that are asked for need them, and next to k* there is no price.
#pragma once
#include <limits>

#include "cells.hpp"

namespace STRIKEOUT_BUILD {

constexpr double LOG_TOLERANCE = 27.5, MOMENT_CAP = 4.0, MIDDLE = 3.0;
constexpr double INF = std::numeric_limits<double>::infinity();

// Scalars go through the vector functions too: their bits must not depend on the C library.
INLINE double exp1(double x) { return exp(all(x))[0]; }
INLINE double log1(double x) { return log(all(x))[0]; }

// Where the contours of a slice run, one group of strikes beside the other: 0 left, 1 middle, 2 right (cut at 0 and at k*).
//     z(y) = i offset + b sinh(y + i omega), less i on the call's side
struct Paths {
    vd b, h, sine, cosine, offset;  // of omega, sine and cosine; b is not above zero where there is no contour
    vd likely, nodes;               // blocks that are likely to matter, nodes that could
};

struct Slice {
    double T, sd, bend, decay;     // the twin's Shape
    double root = 0.0, skew = 1.0;  // whose angle is the largest on the side on which the phase does not help
    double shift = 0.0;            // the law's characteristic function is that of X less this
    double finer = 0.0;            // added to the tolerance
    Grid grid;
    bool has_paths = false;  // found when first asked for
    Paths paths;

    // Whether the contour of this group crosses the imaginary axis on the call's side.
    bool is_call(int group) const { return group == 2 || (group == 1 && grid.kstar > 0.0); }
};

INLINE double widest_cell(double sd) {
    // Wider, and 16 powers of x do not suffice; what they miss grows with sd, as prices do.
    const double wide = 0.9 * sd, narrower = 0.03 + 0.7 * sd, most = wide < narrower ? wide : narrower;
    return most < 1.0 ? most : 1.0;
}

// A slice that is Gaussian by g, with cells as narrow as the core asks for.
INLINE Slice slice_with(double T, double sd, double g, double core) {
    Slice s;
    s.T = T, s.sd = sd, s.bend = (1.3 - 0.25 * PI) / (1.0 + 4.0 * g * g);
    int doublings = 0;
    while (doublings < 60 && two_to(doublings) * core < 8.0 * (sd < 1.0 ? sd : 1.0)) doublings++;
    s.grid = {0.0, two_to(-doublings) * widest_cell(sd), doublings};
    return s;
}

// Strikes outside [low, high) are worth nothing: Chernoff's bound on a few slopes. Never nearer than FAR standard
// deviations, so that ordinary strikes need not ask.
constexpr double FAR = 4.0;
struct Wings {
    double low, high;
};

template <class Law>
INLINE Wings wings_of(const Slice& s, const Law& m) {
    Wings w = {-INF, INF};
    const double r = 1.4142135623730951;
    vd slope = (0.5 / s.sd) * 0.25 * vd{1.0, r, 2.0, 2.0 * r};
    for (int i = 0; i < 4; i++, slope *= 4.0) {
        vd high = (log_mgf(1.0 + slope, s.T, m) + LEVEL) / slope;
        vd low = -((log_mgf(-slope, s.T, m) + LEVEL) / (1.0 + slope));
        for (int j = 0; j < 4; j++) {
            if (high[j] < w.high) w.high = high[j];
            if (low[j] > w.low) w.low = low[j];
        }
    }
    if (w.low > -FAR * s.sd) w.low = -FAR * s.sd;
    if (w.high < FAR * s.sd) w.high = FAR * s.sd;
    return w;
}

// The strip's half-width in units of 2 / sd: 2^-40 ... 2^-5 by doublings, then 2^-4 ... 2^8.75 by quarters of one.
constexpr int STRIP_STEPS = 88;
INLINE double strip_step(int i) {
    if (i < 36) return two_to(i - 40);
    constexpr double quarter[4] = {1.0, 1.1892071150027210667, 1.4142135623730950488, 1.6817928305074290861};
    return quarter[(i - 36) & 3] * two_to(((i - 36) >> 2) - 4);
}

// The largest step whose moment stays below the cap, on the put's side and on the call's; the moments rise with the step, so
// five-way search, begun around the step of a Gaussian (the 54th). 0 if none does. Both sides at once: one alone leaves the
// processor waiting for its own results.
template <class Law>
INLINE void find_strips(const Slice& s, const Law& m, double* width) {
    int inside[2] = {-1, -1}, outside[2] = {STRIP_STEPS, STRIP_STEPS}, at[2][4] = {{46, 50, 54, 58}, {46, 50, 54, 58}};
    const double unit = 2.0 / s.sd;
    while (outside[0] - inside[0] > 1 || outside[1] - inside[1] > 1) {
        vd step[2], moment[2];
        for (int side = 0; side < 2; side++)
            for (int j = 0; j < 4; j++) step[side][j] = unit * strip_step(at[side][j]);
        moment[0] = log_mgf(-step[0], s.T, m), moment[1] = log_mgf(1.0 + step[1], s.T, m);
        for (int side = 0; side < 2; side++) {
            for (int j = 0; j < 4; j++) {
                if (moment[side][j] <= MOMENT_CAP) {
                    if (at[side][j] > inside[side]) inside[side] = at[side][j];
                } else if (at[side][j] < outside[side]) {
                    outside[side] = at[side][j];
                }
            }
            for (int j = 0; j < 4; j++) {
                const int i = inside[side] + ((outside[side] - inside[side]) * (j + 1)) / 5;
                at[side][j] = i <= inside[side] ? inside[side] + 1 : i;
            }
        }
    }
    for (int side = 0; side < 2; side++) width[side] = inside[side] < 0 ? 0.0 : unit * strip_step(inside[side]);
}

template <class Law>
INLINE Paths paths_of(const Slice& s, const Law& m) {
    double width[2];
    find_strips(s, m, width);
    const double kstar = s.grid.kstar;
    // Along a ray at the last of these angles a Gaussian cf of total variance V grows to exp(MOMENT_CAP) at most: its phase
    // grows like exp(V |z| sin / 2), it falls like exp(-V |z|^2 cos(2 angle) / 2). For small V that is pi / 4.
    const double most = 8.0 * MOMENT_CAP / (s.sd * s.sd);
    double reach = std::fabs(kstar) / s.sd;
    reach = (reach < 6.0 ? reach : 6.0) + 1e-9;
    const double t = 2.0 / (reach * reach);
    const vd angle = atan2(vd{s.root, std::sqrt(t), std::sqrt(most), 0.0},
                           vd{s.skew, std::sqrt(1.0 + t), std::sqrt(1.0 + most), 1.0});
    const double main = angle[2] + s.bend;
    const double back = 0.9 * (main < angle[0] ? main : angle[0]), narrow = angle[1] < main ? angle[1] : main;
    // Bent to the side on which the phase of exp(-i z k) helps.
    const bool call = s.is_call(1);
    const vd up = {main, call ? narrow : back, 0.0, 0.0}, lo = {0.0, call ? -back : -narrow, -main, -main};
    vd sine_up, sine_lo, unused;
    Paths p;
    sincos(up, sine_up, unused), sincos(lo, sine_lo, unused), sincos(0.5 * (up + lo), p.sine, p.cosine);
    p.b = vd{width[0], width[call], width[1], width[1]} / (sine_up - sine_lo);
    // z and zeta = z + i are small, and must be exact, on either side of the strip: each has its own offset.
    p.offset = -p.b * vd{sine_lo[0], call ? sine_up[1] : sine_lo[1], sine_up[2], sine_up[3]};
    p.h = PI * (up - lo) / (LOG_TOLERANCE + MOMENT_CAP + s.finer + vd{0.0, MIDDLE, 0.0, 0.0});
    // Terms fall like a Gaussian's, then exponentially; the outer contours, less confined, need not be quite so long.
    const double gaussian = std::sqrt(2.0 * LEVEL) / s.sd, exponential = LEVEL / s.decay;
    const vd per = 1.0 / (p.b * p.cosine), longest = 3.0 * (larger(all(gaussian), all(exponential)) * per);
    const vd usual = larger(all(gaussian), vd{0.8, 1.0, 0.8, 0.8} * exponential) * per;
    p.nodes = log(longest + root(fma(longest, longest, 1.0))) / p.h;
    p.likely = (log(usual + root(fma(usual, usual, 1.0))) / p.h + 0.5) / 4.0;
    return p;
}

template <int FUNCTIONS>
void no_price(Terms<FUNCTIONS>& out) {
    out.blocks = 1;
    out.block[0].zeta = {all(0.0), all(0.0)}, out.block[0].mass = all(INF);
    for (int j = 0; j < FUNCTIONS; j++) out.block[0].F[j] = {all(NAN), all(NAN)};
}

constexpr int BATCH = 16;  // blocks of four nodes that go through each stage in a row

// The terms of a group's contour. Not-a-number where no contour exists.
// `nearest`: of a law with a kink, the end nearest to k* of the cells that are asked for.
template <class Law>
void contour(Terms<Law::FUNCTIONS>& out, Slice& s, int group, const Law& m, double nearest = 0.0) {
    constexpr int FUNCTIONS = Law::FUNCTIONS;
    if (!s.has_paths) s.paths = paths_of(s, m), s.has_paths = true;
    const double b = s.paths.b[group], h = s.paths.h[group], so = s.paths.sine[group], co = s.paths.cosine[group];
    const double T = s.T, kstar = s.grid.kstar, offset = s.paths.offset[group];
    const bool call = s.is_call(group);
    out.blocks = 0;
    if (!(b > 0.0)) return no_price(out);  // no strip, no contour

    const double likely = std::ceil(s.paths.likely[group]), nodes = std::ceil(s.paths.nodes[group]) + 1.0;
    const int most = nodes < MOST_NODES ? static_cast<int>(nodes) : MOST_NODES;
    // A term is largest at the end of its group that is nearest to k*, or at the other end of the middle one.
    const double left = kstar < 0.0 ? kstar : 0.0, right = kstar > 0.0 ? kstar : 0.0;
    double first = (group == 2 ? right : left) - s.shift, last = (group == 0 ? left : right) - s.shift;
    if (Law::HAS_KINK && (group != 1 || kstar < 0.0)) first = nearest - s.shift;
    if (Law::HAS_KINK && (group != 1 || !(kstar < 0.0))) last = nearest - s.shift;

    const double weight = h / PI * b;
    // The first batch is what the contour is likely to need.
    int count = likely < BATCH ? (likely > 1.0 ? static_cast<int>(likely) : 1) : BATCH;
    vd grown = exp(h * vd{0.0, 1.0, 2.0, 3.0});  // exp(y) of the next four nodes
    const vd growth = exp(all(4.0 * h));
    for (int done = 0; 4 * done < most; done += count, count = 2) {
        if (count > (most + 3) / 4 - done) count = (most + 3) / 4 - done;
        vc z[BATCH], zeta[BATCH], dz[BATCH], q[BATCH], f[BATCH];
        typename Law::Cf cf;
        for (int i = 0; i < count; i++, grown *= growth) {
            const vd shrunk = 1.0 / grown, sinh = 0.5 * (grown - shrunk), cosh = 0.5 * (grown + shrunk);
            vd re = (b * co) * sinh, im = fma(all(b * so), cosh, offset);
            z[i] = {re, call ? im - 1.0 : im};
            zeta[i] = {re, call ? im : im + 1.0};
            dz[i] = {co * cosh, so * sinh};
            q[i] = z[i] * zeta[i];
        }
        cf.find(z, q, count, T, m);
        for (int i = 0; i < count; i++) f[i] = exp(cf.total(i));
        for (int i = 0; i < count; i++) f[i] = weight * (dz[i] * inverse(q[i]) * f[i]);
        if (done == 0) f[0] = vd{0.5, 1.0, 1.0, 1.0} * f[0];
        bool more = false;
        for (int i = 0; i < count; i++) {
            vc F[FUNCTIONS];
            F[0] = f[i];
            cf.derivatives(f[i], i, m, F + 1);
            vd size = all(0.0);
            for (int j = 1; j < FUNCTIONS; j++) size = larger(magnitude(F[j].re) + magnitude(F[j].im), size);
            const vd mass = log_at_most(larger(magnitude(f[i].re) + magnitude(f[i].im), (1.0 / SLACK) * size));
            const vd im = zeta[i].im;
            const int64_t at = 4 * (done + i);
            // What overflowed on its way to zero compares false here, and counts as negligible too.
            vi needed = mass + larger(im * first, im * last) >= -CUT;
            needed &= vi{at, at + 1, at + 2, at + 3} < int64_t(most);
            auto& block = out.block[done + i];
            for (int j = 0; j < FUNCTIONS; j++)
                // How far a contour with a kink goes depends on the strikes that are asked for; what is in a node must not.
                block.F[j] = Law::HAS_KINK ? F[j] : vc{pick(needed, F[j].re, all(0.0)), pick(needed, F[j].im, all(0.0))};
            block.zeta = {z[i].re, im}, block.mass = mass;
            if (any(needed)) out.blocks = done + i + 1;
            more = needed[3] != 0;  // terms shrink along the contour: once the last is negligible, so is the rest
        }
        if (!more) return;
    }
    if (nodes > MOST_NODES) no_price(out);  // the contour would have had to go on
}

}  // namespace STRIKEOUT_BUILD
