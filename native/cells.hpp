// From a contour to many strikes: Taylor polynomials on cells of log-strike (the NumPy twin is kernels/taylor_cells.py).
//
// Knows no model: it is given contour terms (zeta_j, F_j) for a group of strikes and evaluates
//     value_f(k) = -Re sum_j F_fj exp(-i zeta_j k)
// A strike's bits follow from its own k and the terms alone, never from its neighbours.
#pragma once
#include "simd.hpp"

namespace STRIKEOUT_BUILD {

constexpr int DEGREE = 16;      // coefficients a polynomial
constexpr int MOST_NODES = 512;
constexpr double INNER = 8.0;   // narrowest cells on each side of k*
constexpr int THRIFTY = 12;      // as many do where Chebyshev's polynomials replace the highest powers
constexpr double ECONOMY = 1e-13, SLACK = 30.0;  // of a value, what may be given up for it; of a derivative, times the slack
constexpr double LOST = -29.9336;  // ln ECONOMY: what a thrifty term may leave out before signs are looked at
constexpr double LEVEL = 30.5;  // terms below exp(-30.5) are cut
constexpr double CUT = LEVEL + 1.0;  // a term's mass, which counts derivatives less, is cut later

// x^n = sum_p instead[n][p] x^p + gap[n] T_n(x), p < n: exact in doubles.
struct Chebyshev {
    double instead[DEGREE][DEGREE] = {}, gap[DEGREE] = {};
    constexpr Chebyshev() {
        double before[DEGREE] = {1.0}, now[DEGREE] = {0.0, 1.0};  // T_{n-1}, T_n
        gap[0] = gap[1] = 1.0;
        for (int n = 2; n < DEGREE; n++) {
            double after[DEGREE] = {};
            for (int p = 0; p < DEGREE; p++) after[p] = (p > 0 ? 2.0 * now[p - 1] : 0.0) - before[p];
            for (int p = 0; p < DEGREE; p++) before[p] = now[p], now[p] = after[p];
            gap[n] = 0.5 * gap[n - 1];
            for (int p = 0; p < n; p++) instead[n][p] = -gap[n] * now[p];
        }
    }
};
constexpr Chebyshev CHEBYSHEV;
constexpr double INVERSE_FACTORIAL[DEGREE] = {
    1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
    1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200, 1.0 / 1307674368000};

// Contour terms, four nodes to a block: whatever belongs to a node lies together, in as few lines of the cache as can be.
template <int FUNCTIONS>
struct Terms {
    struct Block {
        vc zeta;
        vd mass;  // ln max |F_f|, or a little more, derivatives divided by their slack
        vc F[FUNCTIONS];
    };
    int blocks = 0;
    Block block[MOST_NODES / 4];
};

// (-i zeta unit)^p / p! of the nodes of a contour, found once for all cells that share the contour and their unit, as far along
// as any of them needs: all DEGREE of them, or THRIFTY and what they then leave out at most of a term of size one.
struct Powers {
    double unit = 0.0;  // none yet
    int blocks, whole_blocks;     // found so far
    vd left_out[MOST_NODES / 4];  // ln (|zeta unit|^12 / 12! / 2^11)
    alignas(32) double thrifty[MOST_NODES][2][THRIFTY], whole[MOST_NODES][2][DEGREE];  // real parts, imaginary parts

    void begin(double new_unit) { unit = new_unit, blocks = whole_blocks = 0; }
    // The next block.
    __attribute__((always_inline)) void find(vc zeta) {
        const int b = blocks++;
        vc power[DEGREE];
        fill(power, zeta);
        left_out[b] = fma(log_at_most(fma(power[1].im, power[1].im, power[1].re * power[1].re)), all(6.0), -27.6118);
        for (int n = DEGREE - 1; n >= THRIFTY; n--)
            for (int p = n - 2; p >= 0; p -= 2) power[p] = fma(CHEBYSHEV.instead[n][p], power[n], power[p]);
        keep<THRIFTY>(power, thrifty + 4 * b);
    }
    __attribute__((always_inline)) void find_whole(vc zeta) {
        vc power[DEGREE];
        fill(power, zeta);
        keep<DEGREE>(power, whole + 4 * whole_blocks++);
    }

   private:
    __attribute__((always_inline)) void fill(vc* power, vc zeta) const {
        const vc step = {zeta.im * unit, -(zeta.re * unit)}, square = step * step, fourth = square * square;
        power[0] = {all(1.0), all(0.0)}, power[1] = step, power[2] = square, power[3] = square * step;
#pragma GCC unroll 16
        for (int p = 4; p < DEGREE; p++) power[p] = power[p - 4] * fourth;
#pragma GCC unroll 16
        for (int p = 2; p < DEGREE; p++) power[p] = INVERSE_FACTORIAL[p] * power[p];
    }
    template <int COUNT>
    INLINE void keep(const vc* power, double (*to)[2][COUNT]) {
        for (int p = 0; p < COUNT; p += 4) {
            vd re[4], im[4];
            for (int i = 0; i < 4; i++) re[i] = power[p + i].re, im[i] = power[p + i].im;
            transpose(re[0], re[1], re[2], re[3]);
            transpose(im[0], im[1], im[2], im[3]);
            for (int i = 0; i < 4; i++) store(to[i][0] + p, re[i]), store(to[i][1] + p, im[i]);
        }
    }
};

// The grid of cells of one slice: edges at k* +- width * integer, widths doubling away from k* up to the widest.
struct Grid {
    double kstar, narrowest;
    int doublings;
};

struct Cell {
    double centre, half, begin, end;  // the strikes begin <= k < end
    double unit;                      // half the width before it was cut
};

// Which cell holds k. Divisions only guess; k is then compared with the edges themselves, and an edge is the same number
// seen from either side, so every k has exactly one cell whoever asks.
INLINE Cell cell_at(double k, const Grid& grid) {
    const bool left = k < grid.kstar;
    const double distance = std::fabs(k - grid.kstar);
    auto within = [&](double radius) { return left ? k >= grid.kstar - radius : k < grid.kstar + radius; };
    int e = 0;
    if (distance > INNER * grid.narrowest) std::frexp(distance / (INNER * grid.narrowest), &e);
    if (e > grid.doublings) e = grid.doublings;
    while (e > 0 && within(two_to(e - 1) * (INNER * grid.narrowest))) e--;
    while (e < grid.doublings && !within(two_to(e) * (INNER * grid.narrowest))) e++;
    const double width = two_to(e) * grid.narrowest;
    double n = std::floor(distance / width);
    // The quotient is off by rounding, one cell at most. Where it is not a cell number at all (a variance of 1e200), there
    // is no cell, and no price.
    for (int tries = 0; tries < 2 && !within(width * (n + 1.0)); tries++) n += 1.0;
    for (int tries = 0; tries < 2 && n > 0.0 && within(width * n); tries++) n -= 1.0;
    if (!within(width * (n + 1.0))) return {NAN, NAN, k, k, width};
    const double near = width * n, middle = width * (n + 0.5), far = width * (n + 1.0);
    Cell cell = {grid.kstar + middle, 0.5 * width, grid.kstar + near, grid.kstar + far, 0.5 * width};
    if (left) cell = {grid.kstar - middle, 0.5 * width, grid.kstar - far, grid.kstar - near, 0.5 * width};
    // A contour is good on its own side of the money, so a cell across it is cut there.
    if (cell.begin < 0.0 && cell.end > 0.0) {
        // What is left may be narrower than any number is precise; the polynomial's own unit must stay one to divide by.
        const double least = two_to(-40) * cell.unit;
        if (k < 0.0) cell = {0.5 * cell.begin, std::fmax(-0.5 * cell.begin, least), cell.begin, 0.0, cell.unit};
        else cell = {0.5 * cell.end, std::fmax(0.5 * cell.end, least), 0.0, cell.end, cell.unit};
    }
    return cell;
}

template <int FUNCTIONS>
struct Polynomials {
    static constexpr int PADDED = (FUNCTIONS + 3) / 4 * 4;
    static constexpr int AT_ONCE = FUNCTIONS % 6 == 0 ? 3 : 2;  // functions whose sums stay in the registers
    static_assert(FUNCTIONS % (2 * AT_ONCE) == 0);
    alignas(32) double a[DEGREE][PADDED];  // the coefficient of x^p of every function, side by side
    int top;                               // the highest power that matters anywhere in the cell

    // half <= unit
    void expand(const Terms<FUNCTIONS>& terms, Powers& powers, double centre, double half, double unit) {
        if (powers.unit != unit) powers.begin(unit);
        vc phase[MOST_NODES / 4], G[MOST_NODES / 4][FUNCTIONS];
        vd lost = all(-INFINITY);
        int blocks = 0, nodes = 0;  // nodes: those before the first block of which none matters
        for (; blocks < terms.blocks; blocks++) {
            const auto& block = terms.block[blocks];
            const vd im = block.zeta.im, growth = im * centre;
            const int matter = up_to(block.mass + growth + magnitude(im) * half >= -CUT);
            if (matter == 0) break;
            if (blocks == powers.blocks) powers.find(block.zeta);
            nodes = 4 * blocks + matter;
            lost = larger(block.mass + growth + powers.left_out[blocks], lost);
            phase[blocks] = {growth, -(block.zeta.re * centre)};
        }
        for (int b = 0; b < blocks; b++) phase[b] = exp(phase[b]);
        for (int b = 0; b < blocks; b++)
            for (int f = 0; f < FUNCTIONS; f++) G[b][f] = terms.block[b].F[f] * phase[b];
        if (any(lost > LOST)) {
            while (powers.whole_blocks < blocks) powers.find_whole(terms.block[powers.whole_blocks].zeta);
            add_up<0, 3, AT_ONCE>(G, powers.whole, nodes, half / unit);
            add_up<12, 1, 2 * AT_ONCE>(G, powers.whole, nodes, half / unit);
            top = DEGREE - 1;
        } else {
            add_up<0, 3, AT_ONCE>(G, powers.thrifty, nodes, half / unit);
            top = THRIFTY - 1;
        }
        shorten();
    }

    // On [-1, 1] a polynomial of lower degree comes as near to x^p as 2^(1 - p): Chebyshev's, which replaces the highest
    // powers one after the other, for as long as all that was given up stays small.
    void shorten() {
        vd lost[PADDED / 4], most[PADDED / 4];
        for (int g = 0; g < PADDED / 4; g++) lost[g] = all(0.0), most[g] = all(ECONOMY * SLACK);
        most[0][0] = ECONOMY;
        for (; top > 1; top--) {
            vd x[PADDED / 4];
            vi too_much = {0, 0, 0, 0};
            for (int g = 0; g < PADDED / 4; g++) {
                x[g] = load(a[top] + 4 * g);
                lost[g] += CHEBYSHEV.gap[top] * magnitude(x[g]);
                too_much |= ~(lost[g] < most[g]);
            }
            if (any(too_much)) return;
            for (int p = top - 2; p >= 0; p -= 2)
                for (int g = 0; g < PADDED / 4; g++)
                    store(a[p] + 4 * g, fma(x[g], all(CHEBYSHEV.instead[top][p]), load(a[p] + 4 * g)));
        }
    }

    // a[p] = -Re sum_j G_j power_jp ratio^p for 4 COUNT powers. Side by side are powers, not nodes, so that nothing is left
    // to be added across; SOME functions are as many sums as the registers hold and enough not to wait for any of them.
    template <int FIRST, int COUNT, int SOME, int STRIDE>
    void add_up(const vc (*G)[FUNCTIONS], const double (*power)[2][STRIDE], int nodes, double ratio) {
        vd sum[PADDED][COUNT];
        for (int f = FUNCTIONS; f < PADDED; f++)
            for (int i = 0; i < COUNT; i++) sum[f][i] = all(0.0);
#pragma GCC unroll 8
        for (int first = 0; first < FUNCTIONS; first += SOME) {
            vd part[SOME][COUNT], other[SOME];
            for (int f = 0; f < SOME; f++) {
                other[f] = all(0.0);
                for (int i = 0; i < COUNT; i++) part[f][i] = all(0.0);
            }
            for (int n = 0; n < nodes; n++) {
                const double* g = reinterpret_cast<const double*>(G[n / 4] + first) + n % 4;
                vd re[COUNT], im[COUNT];
#pragma GCC unroll 8
                for (int i = 0; i < COUNT; i++)
                    re[i] = load(power[n][0] + FIRST + 4 * i), im[i] = load(power[n][1] + FIRST + 4 * i);
#pragma GCC unroll 8
                for (int f = 0; f < SOME; f++) {
                    const vd x = all(g[8 * f]), y = all(g[8 * f + 4]);
                    if (COUNT == 1) part[f][0] = fnma(x, re[0], part[f][0]), other[f] = fma(y, im[0], other[f]);
#pragma GCC unroll 8
                    for (int i = 0; COUNT > 1 && i < COUNT; i++) part[f][i] = fma(y, im[i], fnma(x, re[i], part[f][i]));
                }
            }
            for (int f = 0; f < SOME; f++)
                for (int i = 0; i < COUNT; i++) sum[first + f][i] = part[f][i] + other[f];
        }
        const double square = ratio * ratio, fourth = square * square;
        vd weight = (FIRST == 12 ? fourth * fourth * fourth : 1.0) * vd{1.0, ratio, square, square * ratio};
        for (int i = 0; i < COUNT; i++, weight *= fourth)
            for (int f = 0; f < PADDED; f += 4) {
                vd x[4] = {weight * sum[f][i], weight * sum[f + 1][i], weight * sum[f + 2][i], weight * sum[f + 3][i]};
                transpose(x[0], x[1], x[2], x[3]);
                for (int j = 0; j < 4; j++) store(a[FIRST + 4 * i + j] + f, x[j]);
            }
    }

    // Eight strikes side by side; x and y in [-1, 1].
    __attribute__((always_inline)) void at(vd x, vd y, vd* out_x, vd* out_y) const {
        vd vx[FUNCTIONS], vy[FUNCTIONS];
#pragma GCC unroll 12
        for (int f = 0; f < FUNCTIONS; f++) vx[f] = vy[f] = all(a[top][f]);
        for (int p = top - 1; p >= 0; p--)
#pragma GCC unroll 12
            for (int f = 0; f < FUNCTIONS; f++) {
                const vd c = all(a[p][f]);
                vx[f] = fma(vx[f], x, c);
                vy[f] = fma(vy[f], y, c);
            }
#pragma GCC unroll 12
        for (int f = 0; f < FUNCTIONS; f++) out_x[f] = vx[f], out_y[f] = vy[f];
    }

    // The derivative of the first function by x.
    __attribute__((always_inline)) void slope_at(vd x, vd y, vd& out_x, vd& out_y) const {
        out_x = out_y = all(0.0);
        for (int p = top; p > 0; p--) out_x = fma(out_x, x, all(p * a[p][0])), out_y = fma(out_y, y, all(p * a[p][0]));
    }
};

}  // namespace STRIKEOUT_BUILD
