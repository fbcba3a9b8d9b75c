// What the module calls; one namespace for each instruction set, the same bits from all of them.
#pragma once
#include <cstdint>

// Log-strikes in slices of one expiry each: slice j holds k[offsets[j]] .. k[offsets[j + 1] - 1], ascending.
struct Book {
    const double *theta, *expiries, *k;
    const int64_t* offsets;
    int64_t slices;
};

#define STRIKEOUT_DECLARE(build)                                                                                       \
    namespace build {                                                                                                  \
    void heston_rows(const Book& book, double* out, int threads);                                                      \
    void heston_sums(const Book& book, const double* scale, const double* target, double* out, int threads);           \
    }
STRIKEOUT_DECLARE(plain)
STRIKEOUT_DECLARE(avx2)
