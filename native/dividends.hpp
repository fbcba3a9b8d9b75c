// American options with cash dividends on a grid; one namespace for each instruction set, the same bits from all.
#pragma once
#include <cstddef>
#include <cstdint>

constexpr size_t DIVIDEND_NODES = 200;
constexpr double DIVIDEND_WIDTH = 5.0;  // of the grid on both sides, in standard deviations

// The steps of a slice from expiry to now, made by kernels/dividends.py, where the symbols are explained.
struct DividendSteps {
    size_t count;
    double T, rate, drops;
    const double *half, *whole, *fresh, *drift, *discount, *carry, *cash, *amount;  // count each
    const double* pv;                                                               // count + 1
};

#define STRIKEOUT_DECLARE_DIVIDENDS(build)                                                                             \
    namespace build {                                                                                                  \
    /* `sign` 1 for puts, -1 for calls; `out` the American values, then the European ones */                           \
    void dividend_values(const DividendSteps& steps, const double* spot, const double* strike, const double* sigma,    \
                         double sign, double* out, int64_t count, int threads);                                        \
    }
STRIKEOUT_DECLARE_DIVIDENDS(plain)
STRIKEOUT_DECLARE_DIVIDENDS(avx2)
