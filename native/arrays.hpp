// Elementary functions over arrays; one namespace for each instruction set, the same bits from all of them.
#pragma once
#include <cstdint>

enum class Real { exp, expm1, log, log1p, sin, cos };
enum class Pair { power, atan2 };
enum class Complex { exp, expm1, log, sqrt };

#define STRIKEOUT_DECLARE_ARRAYS(build)                                                                                \
    namespace build {                                                                                                  \
    void apply_real(Real function, const double* x, double* out, int64_t count);                                       \
    void apply_pair(Pair function, const double* x, const double* y, double* out, int64_t count);                      \
    /* real and imaginary part by turns */                                                                             \
    void apply_complex(Complex function, const double* x, double* out, int64_t count);                                 \
    }
STRIKEOUT_DECLARE_ARRAYS(plain)
STRIKEOUT_DECLARE_ARRAYS(avx2)
STRIKEOUT_DECLARE_ARRAYS(avx512)
