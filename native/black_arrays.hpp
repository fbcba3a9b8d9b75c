// Black's formula and the normal distribution over arrays; one namespace for each instruction set, the same bits from all.
#pragma once
#include <cstddef>
#include <cstdint>

struct Erfcx {  // (1 + 2 z) erfcx(z) as a polynomial in (z - centre) / (z + centre)
    const double* coefficients;
    size_t last;
    double centre;
};

struct Options {
    const double *forward, *strike, *expiry, *volatility, *discount;
    const bool* is_call;
};

#define STRIKEOUT_DECLARE_BLACK(build)                                                                                 \
    namespace build {                                                                                                  \
    void black_prices(const Options& given, const Erfcx& erfcx, double* out, int64_t count);                           \
    void normal_cdf(const double* x, const Erfcx& erfcx, double* out, int64_t count);                                  \
    void normal_density(const double* x, double* out, int64_t count);                                                  \
    /* `given.volatility` is not read */                                                                               \
    void black_volatilities(const Options& given, const double* price, const Erfcx& erfcx, double* out,                \
                            int64_t count);                                                                            \
    }
STRIKEOUT_DECLARE_BLACK(plain)
STRIKEOUT_DECLARE_BLACK(avx2)
STRIKEOUT_DECLARE_BLACK(avx512)
