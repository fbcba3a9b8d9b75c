// Exact sums over the points of one cell; one namespace for each instruction set. They are integers, so all builds, whatever
// their number of lanes, have the same bits.
#pragma once
#include <cstdint>

#include "exact.hpp"

#define STRIKEOUT_DECLARE_CELL_SUMS(build)                                                                             \
    namespace build {                                                                                                  \
    void add_cell(const exact::CellPoints& points, int along, int basis_grid, int factor_grid, exact::Wide* sums);     \
    }
STRIKEOUT_DECLARE_CELL_SUMS(plain)
STRIKEOUT_DECLARE_CELL_SUMS(avx2)
STRIKEOUT_DECLARE_CELL_SUMS(avx512)
