// From a contour to many strikes: Taylor polynomials on cells of log-strike (the NumPy twin is kernels/cells.py).
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
constexpr double SMALLEST_COEFFICIENT = 1e-13;  // of the value; thirty times that of a derivative
constexpr double ECONOMY = 2e-14;  // given up by shortening a polynomial; again thirty times that of a derivative
constexpr double LEVEL = 30.5;  // terms below exp(-30.5) are cut

// Contour terms, four nodes to a block: whatever belongs to a node lies together, in as few lines of the cache as can be.
template <int FUNCTIONS>
struct Terms {
    struct Block {
        c4 zeta;
        v4 size;  // ln max_f |F_f|, or a little more
        c4 F[FUNCTIONS];
    };
    int blocks = 0;
    Block block[MOST_NODES / 4];
};

// (-i zeta unit)^p of every node of a contour, p < DEGREE: all cells that share its contour and their unit share them.
struct Powers {
    double unit = 0.0;  // none yet
    alignas(32) double re[MOST_NODES][DEGREE], im[MOST_NODES][DEGREE];

    template <int FUNCTIONS>
    void find(const Terms<FUNCTIONS>& terms, double new_unit) {
        unit = new_unit;
        for (int b = 0; b < terms.blocks; b++) {
            const c4 zeta = terms.block[b].zeta, step = {zeta.im * unit, -(zeta.re * unit)}, square = step * step;
            const c4 fourth = square * square;
            c4 now[4] = {{all(1.0), all(0.0)}, step, square, square * step};
            for (int p = 0; p < DEGREE; p += 4) {
                v4 x[4], y[4];
                for (int i = 0; i < 4; i++) x[i] = now[i].re, y[i] = now[i].im, now[i] = now[i] * fourth;
                transpose(x[0], x[1], x[2], x[3]);
                transpose(y[0], y[1], y[2], y[3]);
                for (int i = 0; i < 4; i++) store(re[4 * b + i] + p, x[i]), store(im[4 * b + i] + p, y[i]);
            }
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
    while (!within(width * (n + 1.0))) n += 1.0;
    while (n > 0.0 && within(width * n)) n -= 1.0;
    const double near = width * n, middle = width * (n + 0.5), far = width * (n + 1.0);
    Cell cell = {grid.kstar + middle, 0.5 * width, grid.kstar + near, grid.kstar + far, 0.5 * width};
    if (left) cell = {grid.kstar - middle, 0.5 * width, grid.kstar - far, grid.kstar - near, 0.5 * width};
    // A contour is good on its own side of the money, so a cell across it is cut there.
    if (cell.begin < 0.0 && cell.end > 0.0) {
        if (k < 0.0) cell = {0.5 * cell.begin, -0.5 * cell.begin, cell.begin, 0.0, cell.unit};
        else cell = {0.5 * cell.end, 0.5 * cell.end, 0.0, cell.end, cell.unit};
    }
    return cell;
}

constexpr double INVERSE_FACTORIAL[DEGREE] = {
    1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
    1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200, 1.0 / 1307674368000};

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
const v4 FIRST_FOUR = {1.0, 30.0, 30.0, 30.0};  // the value first, then derivatives

template <int FUNCTIONS>
struct Polynomials {
    static constexpr int PADDED = (FUNCTIONS + 3) / 4 * 4;
    alignas(32) double a[DEGREE][PADDED];  // the coefficient of x^p of every function, side by side
    int top;                               // the highest power that matters anywhere in the cell

    // Only the first time on a contour, or with another unit, are the powers found. half <= unit.
    void expand(const Terms<FUNCTIONS>& terms, Powers& powers, double centre, double half, double unit) {
        if (powers.unit != unit) powers.find(terms, unit);
        c4 G[MOST_NODES / 4][FUNCTIONS];
        int blocks = 0;
        for (; blocks < terms.blocks; blocks++) {
            const auto& block = terms.block[blocks];
            const v4 im = block.zeta.im;
            if (!any(block.size + im * centre + magnitude(im) * half >= -LEVEL)) break;
            const c4 phase = exp(c4{im * centre, -(block.zeta.re * centre)});
            for (int f = 0; f < FUNCTIONS; f++) G[blocks][f] = block.F[f] * phase;
        }
        const double r = half / unit, r2 = r * r;
        v4 ratio = {1.0, r, r2, r2 * r};
        add_up<0, 3, 3>(G, powers, blocks, ratio, r2 * r2);
        top = 11;
        if (matters(10) || matters(11)) {  // else they shrink ever faster from here on
            add_up<12, 1, 6>(G, powers, blocks, ratio * ((r2 * r2) * (r2 * r2) * (r2 * r2)), 0.0);
            top = 15;
        }
        shorten();
    }

    bool matters(int p) const {
        return any(~(magnitude(load(a[p])) < SMALLEST_COEFFICIENT * FIRST_FOUR) |
                   ~(magnitude(load(a[p] + 4)) < all(30.0 * SMALLEST_COEFFICIENT)));
    }

    // Chebyshev's economy: on [-1, 1] a polynomial of lower degree is nearer to x^p than 2^(1 - p), so the highest powers
    // are replaced by it, one after the other, for as long as all that was given up stays small.
    void shorten() {
        v4 lost = all(0.0), lost_too = all(0.0);
        for (; top > 1; top--) {
            const v4 x = load(a[top]), y = load(a[top] + 4);
            lost += CHEBYSHEV.gap[top] * magnitude(x), lost_too += CHEBYSHEV.gap[top] * magnitude(y);
            if (any(~(lost < ECONOMY * FIRST_FOUR) | ~(lost_too < all(30.0 * ECONOMY)))) return;
            for (int p = top - 2; p >= 0; p -= 2) {
                store(a[p], fma(x, all(CHEBYSHEV.instead[top][p]), load(a[p])));
                store(a[p] + 4, fma(y, all(CHEBYSHEV.instead[top][p]), load(a[p] + 4)));
            }
        }
    }

    // a[p] = -Re sum_j G_j power_j^p / p! for 4 COUNT powers. Side by side are powers, not nodes, so that nothing is left
    // to be added across. AT_ONCE functions of COUNT (one if 1) sums each: what sixteen registers hold without waiting.
    template <int FIRST, int COUNT, int AT_ONCE>
    void add_up(const c4 (*G)[FUNCTIONS], const Powers& powers, int blocks, v4 ratio, double next) {
        v4 sum[PADDED][COUNT];
        for (int f = FUNCTIONS; f < PADDED; f++)
            for (int i = 0; i < COUNT; i++) sum[f][i] = all(0.0);
#pragma GCC unroll 8
        for (int first = 0; first < FUNCTIONS; first += AT_ONCE) {
            v4 part[AT_ONCE][COUNT], other[AT_ONCE][COUNT];
            for (int f = 0; f < AT_ONCE; f++)
                for (int i = 0; i < COUNT; i++) part[f][i] = other[f][i] = all(0.0);
            for (int n = 0; n < 4 * blocks; n++) {
                const double* g = reinterpret_cast<const double*>(G[n / 4] + first) + n % 4;
                v4 re[COUNT], im[COUNT];
#pragma GCC unroll 8
                for (int i = 0; i < COUNT; i++)
                    re[i] = load(powers.re[n] + FIRST + 4 * i), im[i] = load(powers.im[n] + FIRST + 4 * i);
#pragma GCC unroll 8
                for (int f = 0; f < AT_ONCE; f++) {
                    const v4 x = all(g[8 * f]), y = all(g[8 * f + 4]);
#pragma GCC unroll 8
                    for (int i = 0; i < COUNT; i++) {
                        if (COUNT == 1) {
                            part[f][i] = fnma(x, re[i], part[f][i]), other[f][i] = fma(y, im[i], other[f][i]);
                        } else {
                            part[f][i] = fma(y, im[i], fnma(x, re[i], part[f][i]));
                        }
                    }
                }
            }
            for (int f = 0; f < AT_ONCE; f++)
                for (int i = 0; i < COUNT; i++) sum[first + f][i] = COUNT == 1 ? part[f][i] + other[f][i] : part[f][i];
        }
        for (int i = 0; i < COUNT; i++, ratio *= next) {
            const v4 weight = ratio * load(INVERSE_FACTORIAL + FIRST + 4 * i);
            for (int f = 0; f < PADDED; f += 4) {
                v4 x[4] = {weight * sum[f][i], weight * sum[f + 1][i], weight * sum[f + 2][i], weight * sum[f + 3][i]};
                transpose(x[0], x[1], x[2], x[3]);
                for (int j = 0; j < 4; j++) store(a[FIRST + 4 * i + j] + f, x[j]);
            }
        }
    }

    // Eight strikes side by side; x and y in [-1, 1].
    __attribute__((always_inline)) void at(v4 x, v4 y, v4* out_x, v4* out_y) const {
        v4 vx[FUNCTIONS], vy[FUNCTIONS];
#pragma GCC unroll 8
        for (int f = 0; f < FUNCTIONS; f++) vx[f] = vy[f] = all(a[top][f]);
        for (int p = top - 1; p >= 0; p--)
#pragma GCC unroll 8
            for (int f = 0; f < FUNCTIONS; f++) {
                const v4 c = all(a[p][f]);
                vx[f] = fma(vx[f], x, c);
                vy[f] = fma(vy[f], y, c);
            }
#pragma GCC unroll 8
        for (int f = 0; f < FUNCTIONS; f++) out_x[f] = vx[f], out_y[f] = vy[f];
    }
};

}  // namespace STRIKEOUT_BUILD
