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
constexpr double LEVEL = 30.5;  // terms below exp(-30.5) are cut

template <int FUNCTIONS>
struct Terms {
    int count = 0;  // a multiple of four
    alignas(32) double re[MOST_NODES], im[MOST_NODES];  // zeta
    alignas(32) double fre[FUNCTIONS][MOST_NODES], fim[FUNCTIONS][MOST_NODES];
    alignas(32) double size[MOST_NODES];  // ln max_f |F_f|
};

// The grid of cells of one slice: edges at k* +- width * integer, widths doubling away from k* up to the widest.
struct Grid {
    double kstar, narrowest;
    int doublings;
};

struct Cell {
    double centre, half, begin, end;  // the strikes begin <= k < end
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
    while (e > 0 && within(std::ldexp(INNER * grid.narrowest, e - 1))) e--;
    while (e < grid.doublings && !within(std::ldexp(INNER * grid.narrowest, e))) e++;
    const double width = std::ldexp(grid.narrowest, e);
    double n = std::floor(distance / width);
    while (!within(width * (n + 1.0))) n += 1.0;
    while (n > 0.0 && within(width * n)) n -= 1.0;
    const double near = width * n, middle = width * (n + 0.5), far = width * (n + 1.0);
    Cell cell = {grid.kstar + middle, 0.5 * width, grid.kstar + near, grid.kstar + far};
    if (left) cell = {grid.kstar - middle, 0.5 * width, grid.kstar - far, grid.kstar - near};
    // A contour is good on its own side of the money, so a cell across it is cut there.
    if (cell.begin < 0.0 && cell.end > 0.0) {
        if (k < 0.0) cell = {0.5 * cell.begin, -0.5 * cell.begin, cell.begin, 0.0};
        else cell = {0.5 * cell.end, 0.5 * cell.end, 0.0, cell.end};
    }
    return cell;
}

template <int FUNCTIONS>
struct Polynomials {
    static constexpr int PADDED = (FUNCTIONS + 3) / 4 * 4;
    alignas(32) double a[DEGREE][PADDED];  // the coefficient of x^p of every function, side by side
    int top;                               // the highest power that matters anywhere in the cell

    void expand(const Terms<FUNCTIONS>& terms, double centre, double half) {
        c4 g[MOST_NODES / 4][FUNCTIONS], step[MOST_NODES / 4], power[MOST_NODES / 4];
        int blocks = 0;
        for (; 4 * blocks < terms.count; blocks++) {
            const int j = 4 * blocks;
            v4 re = load(terms.re + j), im = load(terms.im + j);
            v4 largest = load(terms.size + j) + im * centre + magnitude(im) * half;
            if (!any(largest >= -LEVEL)) break;
            c4 phase = exp(c4{im * centre, -re * centre});
            for (int f = 0; f < FUNCTIONS; f++)
                g[blocks][f] = c4{load(terms.fre[f] + j), load(terms.fim[f] + j)} * phase;
            step[blocks] = {im * half, -re * half};
            power[blocks] = {all(1.0), all(0.0)};
        }
        double inverse_factorial = 1.0;
        top = 1;
        for (int p = 0; p < DEGREE; p++) {
            v4 sum[PADDED];
            for (int f = 0; f < PADDED; f++) sum[f] = all(0.0);
            for (int b = 0; b < blocks; b++) {
                const c4 now = power[b];
#pragma GCC unroll 8
                for (int f = 0; f < FUNCTIONS; f++)
                    sum[f] = fma(g[b][f].im, now.im, fnma(g[b][f].re, now.re, sum[f]));
                power[b] = now * step[b];
            }
            i4 matters = {0, 0, 0, 0};
            for (int f = 0; f < PADDED; f += 4) {
                v4 total = inverse_factorial * totals(sum[f], sum[f + 1], sum[f + 2], sum[f + 3]);
                matters |= ~(magnitude(total) < (f == 0 ? v4{1.0, 30.0, 30.0, 30.0} : all(30.0)) * SMALLEST_COEFFICIENT);
                store(a[p] + f, total);
            }
            if (any(matters)) top = p;
            if (p >= top + 2) break;  // they shrink ever faster from here on
            inverse_factorial /= p + 1;
        }
    }

    // Eight strikes side by side; x and y in [-1, 1].
    INLINE void at(const Polynomials& self, v4 x, v4 y, v4* out_x, v4* out_y) {
        v4 vx[FUNCTIONS], vy[FUNCTIONS];
#pragma GCC unroll 8
        for (int f = 0; f < FUNCTIONS; f++) vx[f] = vy[f] = all(self.a[self.top][f]);
        for (int p = self.top - 1; p >= 0; p--)
#pragma GCC unroll 8
            for (int f = 0; f < FUNCTIONS; f++) {
                const v4 c = all(self.a[p][f]);
                vx[f] = fma(vx[f], x, c);
                vy[f] = fma(vy[f], y, c);
            }
#pragma GCC unroll 8
        for (int f = 0; f < FUNCTIONS; f++) out_x[f] = vx[f], out_y[f] = vy[f];
    }
};

}  // namespace STRIKEOUT_BUILD
