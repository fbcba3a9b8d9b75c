// Exact sums of footprints, straight from sensitivities and prices; one namespace for each instruction set, the same bits from all.
#pragma once
#include <cstdint>

#include "exact.hpp"

// Columns of one length: sensitivities, one parameter after the other, and residuals.
struct Footprinted {
    const double *jacobian, *residual, *root_weight;
    const double* unit;  // 2^exponent of each column, the residual last
    int64_t count;
    int parameters;
};

struct FootprintSums {
    int64_t counted, unfit;  // rows that leave something behind; rows too large for the grid, or not numbers
};

#define STRIKEOUT_DECLARE_FOOTPRINTS(build)                                                                            \
    namespace build {                                                                                                  \
    FootprintSums footprint_sums(const Footprinted& of, exact::Wide* state);                                           \
    }
STRIKEOUT_DECLARE_FOOTPRINTS(plain)
STRIKEOUT_DECLARE_FOOTPRINTS(avx2)
