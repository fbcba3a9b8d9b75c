// Compiled once for each instruction set, with STRIKEOUT_BUILD naming it.
#include "clock.hpp"

#include "chunks.hpp"

namespace STRIKEOUT_BUILD {

bool variance_gamma_rows(const Book& book, const Erfcx& erfcx, double* out, int threads) {
    return over_chunks<ClockWorkspace>(book.parts, threads, [&](ClockWorkspace& space, int64_t j) {
        const int64_t begin = book.offsets[j], count = book.offsets[j + 1] - begin;
        if (!ascending(book.k + begin, count)) return false;
        if (count > 0)
            clock_slice(space, book.theta, book.expiries[j], erfcx, book.k + begin, count, out + begin, book.offsets[book.parts]);
        return true;
    });
}

}  // namespace STRIKEOUT_BUILD
