// American options by collocation of the exercise boundary; one namespace for each instruction set, the same bits from all.
#pragma once
#include <cstddef>
#include <cstdint>

#include "black_arrays.hpp"

// Nodes of one resolution, made by kernels/american.py, where the symbols are explained. n, l and p are multiples of four.
struct AmericanNodes {
    size_t n, l, p;
    const double* x;              // n: sqrt(tau / T) of the boundary's nodes, from 1 down
    const double* coefficients;   // (n + 1) (n + 1): nodal values to Chebyshev coefficients
    const double* angle;          // 3 l: sine, cosine and weight of the integrals of the boundary
    const double* basis;          // n n l: [i][k][j], the k-th Lagrange polynomial at the j-th point of the i-th integral
    const double* price_angle;    // 3 p: the same of the integral of the premium
    const double* price_basis;    // n p: [k][j]
};

struct AmericanOptions {
    const double *spot, *strike, *expiry, *rate, *yield, *volatility;
    const bool* is_call;
};

constexpr size_t MOST_NODES = 48, MOST_POINTS = 48;  // n and l at most: the size of the workspace

struct AmericanAccuracy {
    const AmericanNodes* nodes;  // coarse and fine
    double step, tail;           // the last step of ln B at most; Chebyshev's last coefficients at most, else the fine nodes
};

#define STRIKEOUT_DECLARE_AMERICAN(build)                                                                              \
    namespace build {                                                                                                  \
    /* price, premium over the European one, vega (if asked for): one column after the other */                       \
    void american_prices(const AmericanOptions& given, const AmericanAccuracy& accuracy, const Erfcx& erfcx,           \
                         bool with_vega, double* out, int64_t count, int threads);                                     \
    /* `given.volatility` is where to begin: the European implied volatility, or not-a-number */                       \
    void american_volatilities(const AmericanOptions& given, const double* price, const AmericanAccuracy& accuracy,    \
                               const Erfcx& erfcx, double* out, int64_t count, int threads);                           \
    }
STRIKEOUT_DECLARE_AMERICAN(plain)
STRIKEOUT_DECLARE_AMERICAN(avx2)
