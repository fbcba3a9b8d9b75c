// Compiled once for each instruction set, with STRIKEOUT_BUILD naming it.
#include "line.hpp"

#include "chunks.hpp"

namespace STRIKEOUT_BUILD {

template <int PARTS, bool JUMPS>
static bool rows(const Book& book, double* out, int threads) {
    const Law<PARTS, JUMPS> law(book.theta);
    const int64_t stride = book.offsets[book.parts];
    return over_chunks<LineWorkspace>(book.parts, threads, [&](LineWorkspace& space, int64_t j) {
        const int64_t begin = book.offsets[j], count = book.offsets[j + 1] - begin;
        if (!ascending(book.k + begin, count)) return false;
        if (count == 0) return true;
        Line line = line_of(book.expiries[j], law);
        find_terms(space, line, book.expiries[j], law);
        vd sum[LineWorkspace::MOST_FUNCTIONS][2];
        line_slice(line, book.k + begin, count, out + begin, stride, sum);
        return true;
    });
}

bool bates_rows(const Book& book, double* out, int threads) { return rows<1, true>(book, out, threads); }
bool double_heston_rows(const Book& book, double* out, int threads) { return rows<2, false>(book, out, threads); }

bool line_rows(const Line& line, const double* k, int64_t count, double* out) {
    if (!ascending(k, count)) return false;
    std::vector<vd> sum(2 * static_cast<size_t>(line.functions));
    line_slice(line, k, count, out, count, reinterpret_cast<vd(*)[2]>(sum.data()));
    return true;
}

}  // namespace STRIKEOUT_BUILD
