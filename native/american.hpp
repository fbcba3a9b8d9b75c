// American options by collocation of the exercise boundary; one namespace for each instruction set, the same bits from all.
#pragma once
#include <cstddef>
#include <cstdint>

#include "black_arrays.hpp"

// Nodes of one resolution, made by kernels/american.py, where the symbols are explained. n is a multiple of four, l and p are multiples of eight.
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

constexpr size_t MOST_NODES = 64, MOST_POINTS = 64, MOST_PRICE_POINTS = 256;  // n, l and p at most: the size of the workspace
constexpr size_t LEVELS = 5;                                                   // resolutions, from coarse to fine
constexpr size_t ERFCX_TERMS = 24;

struct AmericanAccuracy {
    const AmericanNodes* nodes;  // LEVELS of them
    double step, tail;           // the last step of ln B at most; what is not resolved of it at most, else more nodes
    double settled;              // what is left of an implied volatility, relative to it
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
