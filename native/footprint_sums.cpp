// Compiled once for each instruction set, with STRIKEOUT_BUILD naming it.
#include "footprint_sums.hpp"

#include <cmath>
#include <vector>

namespace STRIKEOUT_BUILD {

// As exact.quantise and exact.change do it, operation by operation, a block of rows at a time: no row is kept.
FootprintSums footprint_sums(const Footprinted& of, exact::Wide* state) {
    constexpr int64_t BLOCK = 128;
    constexpr double LARGEST = 4611686018427387904.0;  // 2^62
    const int width = of.parameters + 1;
    std::vector<int64_t> rows(static_cast<size_t>(BLOCK * width));
    FootprintSums found = {0, 0};
    for (int64_t begin = 0; begin < of.count; begin += BLOCK) {
        const int64_t many = of.count - begin < BLOCK ? of.count - begin : BLOCK;
        const double* root = of.root_weight + begin;
        bool is_fit[BLOCK], is_left[BLOCK];
        for (int64_t i = 0; i < many; i++) is_fit[i] = true, is_left[i] = false;
        for (int c = 0; c < width; c++) {
            const double* column = (c < of.parameters ? of.jacobian + c * of.count : of.residual) + begin;
            for (int64_t i = 0; i < many; i++) {
                const double scaled = root[i] * column[i] * of.unit[c];
                const bool fits = std::fabs(scaled) < LARGEST;  // false for what is not a number
                const int64_t rounded = std::llrint(fits ? scaled : 0.0);
                rows[static_cast<size_t>(i * width + c)] = rounded;
                is_fit[i] = is_fit[i] && fits, is_left[i] = is_left[i] || rounded != 0;
            }
        }
        for (int64_t i = 0; i < many; i++) found.unfit += !is_fit[i], found.counted += is_left[i];
        exact::accumulate(state, rows.data(), many, width, nullptr, false);
    }
    return found;
}

}  // namespace STRIKEOUT_BUILD
