// Compiled once for each instruction set, with STRIKEOUT_BUILD naming it.
#include "line.hpp"

#include "chunks.hpp"
#include "double_heston.hpp"
#include "slices.hpp"

namespace STRIKEOUT_BUILD {

template <int PARTS, bool JUMPS>
static void whole_slice(LineWorkspace& space, double T, const double* k, int64_t count, const Law<PARTS, JUMPS>& law, double* out,
                        int64_t stride) {
    Line line = line_of(T, law);
    find_terms(space, line, T, law);
    vd sum[LineWorkspace::MOST_FUNCTIONS][2];
    line_slice(line, k, count, out, stride, sum);
}

// `slice(space, j)` fills the rows of one slice.
template <class Space, class Slice>
static bool each_slice(const Book& book, int threads, const Slice& slice) {
    return over_chunks<Space>(book.parts, threads, [&](Space& space, int64_t j) {
        const int64_t begin = book.offsets[j], count = book.offsets[j + 1] - begin;
        if (!ascending(book.k + begin, count)) return false;
        if (count > 0) slice(space, book.expiries[j], book.k + begin, count, begin);
        return true;
    });
}

// Strikes whose values without a jump are held at once.
constexpr int HELD = 1024;
struct SplitWorkspace {
    LineWorkspace line;
    Workspace heston;
    double k[HELD], without[FUNCTIONS + 1][HELD];  // shifted by the drift; value, five derivatives, derivative by log-strike
};

// As kernels/jump_split.py has it: paths that never jump are Heston's, of another forward; the others' terms fall quickly.
static void split_slice(SplitWorkspace& space, double T, const double* k, int64_t count, const Law<1, true>& law, double* out,
                        int64_t stride) {
    const Jumps& j = law.jumps;
    const double n = j.lam * T, shift = n * j.less, kept = exp1(-n * j.forward), none = exp1(-n);
    const double by_n[3] = {T, 0.0, 0.0}, by_c[3] = {T * j.less, n * j.forward, (n * j.delta) * j.forward};
    const double by_kept[3] = {-T * j.forward * kept, -n * j.forward * kept, -(n * j.delta) * j.forward * kept};
    constexpr int ALL = Law<1, true>::FUNCTIONS;
    Far far[ALL] = {{1.0 - kept, 1.0 - none}};
    for (int p = 0; p < 3; p++) far[1 + 5 + p] = {-by_kept[p], by_n[p] * none};
    Line line = line_of(T, law);
    find_terms<1, true, true>(space.line, line, T, law);
    vd sum[LineWorkspace::MOST_FUNCTIONS][2];
    const Near near = line_slice(line, k, count, out, stride, sum, far);
    for (int64_t begin = near.first; begin < near.last; begin += HELD) {
        const int some = static_cast<int>(std::min<int64_t>(HELD, near.last - begin));
        for (int i = 0; i < some; i++) space.k[i] = k[begin + i] + shift;
        run_slice(space.heston, T, space.k, some, 0, law.part[0], RowsAndSlope{{space.without[0], HELD}});
        for (int i = 0; i < some; i += 4) {
            const vd at = load(space.k + i), growth = exp(at);  // HELD is a multiple of four
            const vd covered = smaller(growth, all(1.0)) - load(space.without[0] + i);
            const vd slope = pick(at < 0.0, growth, all(0.0)) - load(space.without[FUNCTIONS] + i);
            for (int f = 0; f < ALL; f++) {
                vd more = -kept * covered;
                if (f > 0 && f < FUNCTIONS) more = kept * load(space.without[f] + i);
                if (f >= FUNCTIONS) more = -fma(slope, all(kept * by_c[f - FUNCTIONS]), by_kept[f - FUNCTIONS] * covered);
                for (int side = 0; side < 4 && i + side < some; side++) out[f * stride + begin + i + side] += more[side];
            }
        }
    }
}

bool bates_rows(const Book& book, double* out, int threads) {
    const Law<1, true> law(book.theta);
    const int64_t stride = book.offsets[book.parts];
    return each_slice<SplitWorkspace>(book, threads, [&](SplitWorkspace& space, double T, const double* k, int64_t count, int64_t begin) {
        const bool is_split = (law.jumps.lam * T) * std::max(1.0, law.jumps.forward) <= MOST_JUMPS;
        if (is_split) split_slice(space, T, k, count, law, out + begin, stride);
        else whole_slice(space.line, T, k, count, law, out + begin, stride);
    });
}

struct DoubleWorkspace {
    WorkspaceOf<DoubleHeston> contours;
    LineWorkspace line;
    double k[HELD], found[DoubleHeston::ROWS][HELD];
};

// On bent contours; strikes that have none, on the line.
bool double_heston_rows(const Book& book, double* out, int threads) {
    const Law<2, false> law(book.theta);
    const DoubleHeston bent = {{law.part[0], law.part[1]}};
    constexpr int ROWS = DoubleHeston::ROWS;
    const int64_t stride = book.offsets[book.parts];
    return each_slice<DoubleWorkspace>(book, threads, [&](DoubleWorkspace& space, double T, const double* k, int64_t count, int64_t begin) {
        run_slice(space.contours, T, k, count, 0, bent, FirstRows<ROWS>{out + begin, stride});
        for (int64_t i = 0; i < count;) {
            int some = 0;
            int64_t at[HELD];
            for (; i < count && some < HELD; i++)
                if (!(std::fabs(out[begin + i]) < INF)) at[some] = i, space.k[some++] = k[i];
            if (some == 0) return;
            whole_slice(space.line, T, space.k, some, law, space.found[0], HELD);
            for (int f = 0; f < ROWS; f++)
                for (int n = 0; n < some; n++) out[f * stride + begin + at[n]] = space.found[f][n];
        }
    });
}

bool line_rows(const Line& line, const double* k, int64_t count, double* out) {
    if (!ascending(k, count)) return false;
    std::vector<vd> sum(2 * static_cast<size_t>(line.functions));
    line_slice(line, k, count, out, count, reinterpret_cast<vd(*)[2]>(sum.data()));
    return true;
}

}  // namespace STRIKEOUT_BUILD
