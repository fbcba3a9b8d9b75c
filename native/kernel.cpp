// Compiled once for each instruction set, with STRIKEOUT_BUILD naming it.
#include "kernel.hpp"

#include "chunks.hpp"
#include "panels.hpp"

namespace STRIKEOUT_BUILD {

// How a book is laid out: slices of one expiry, sixteen to a chunk, or panels of ln T, each a chunk of its own.
struct SliceLayout {
    using Space = Workspace;
    static constexpr int64_t CHUNK = 16;
    template <class Sink>
    static void run(Space& space, const Book& book, int64_t j, const Heston& m, const Sink& sink) {
        const int64_t first = book.offsets[j];
        run_slice(space, book.expiries[j], book.k + first, book.offsets[j + 1] - first, first, m, sink,
                  kept_slice(book.kept, book.expiries[j]));
    }
};
struct PanelLayout {
    using Space = PanelWorkspace;
    static constexpr int64_t CHUNK = 1;
    template <class Sink>
    static void run(Space& space, const Book& book, int64_t j, const Heston& m, const Sink& sink) {
        run_panel(space, book.expiries[j], book.half, book.k, book.t, book.offsets[j], book.offsets[j + 1], m, sink);
    }
};

// The parts of one chunk, in their order. Strikes that do not ascend would send the search for a cell astray: then false.
template <class Layout, class Sink>
static bool run_chunk(typename Layout::Space& space, const Book& book, int64_t chunk, const Sink& sink) {
    const Heston m = {book.theta[0], book.theta[1], book.theta[2], book.theta[3], book.theta[4]};
    const int64_t end = std::min(book.parts, (chunk + 1) * Layout::CHUNK);
    for (int64_t j = chunk * Layout::CHUNK; j < end; j++) {
        if (!ascending(book.k + book.offsets[j], book.offsets[j + 1] - book.offsets[j])) return false;
        Layout::run(space, book, j, m, sink);
    }
    return true;
}

template <class Layout>
static int64_t chunks_of(const Book& book) {
    return (book.parts + Layout::CHUNK - 1) / Layout::CHUNK;
}

template <class Layout>
static bool rows(const Book& book, double* out, int threads) {
    const Rows sink = {out, book.offsets[book.parts]};
    return over_chunks<typename Layout::Space>(chunks_of<Layout>(book), threads, [&](typename Layout::Space& space, int64_t chunk) {
        return run_chunk<Layout>(space, book, chunk, sink);
    });
}

// `sink(sum)` is what adds up a chunk's quotes into sum[Sink::COUNT]; chunks are then added in their order.
template <class Layout, class Sink, class Make>
static bool sums(const Book& book, const Make& sink, double* out, int threads) {
    const int64_t chunks = chunks_of<Layout>(book);
    std::vector<double> parts(static_cast<size_t>(chunks) * Sink::COUNT);
    const bool sound = over_chunks<typename Layout::Space>(chunks, threads, [&](typename Layout::Space& space, int64_t chunk) {
        vd sum[Sink::COUNT];
        for (int i = 0; i < Sink::COUNT; i++) sum[i] = all(0.0);
        const bool sound = run_chunk<Layout>(space, book, chunk, sink(sum));
        for (int i = 0; i < Sink::COUNT; i++)
            parts[chunk * Sink::COUNT + i] = (sum[i][0] + sum[i][1]) + (sum[i][2] + sum[i][3]);
        return sound;
    });
    for (int i = 0; i < Sink::COUNT; i++) {
        out[i] = 0.0;
        for (int64_t chunk = 0; chunk < chunks; chunk++) out[i] += parts[chunk * Sink::COUNT + i];
    }
    return sound;
}

// The book with what is kept at its theta, for one thread at a time; else without.
class Lent {
    Book lent;

   public:
    Lent(const Book& book, int threads) : lent(book) {
        if (lent.kept == nullptr) return;
        if (threads > 1 || lent.kept->is_used.test_and_set()) {
            lent.kept = nullptr;
            return;
        }
        if (!lent.kept->has_theta) std::memcpy(lent.kept->theta, book.theta, sizeof lent.kept->theta), lent.kept->has_theta = true;
        if (std::memcmp(lent.kept->theta, book.theta, sizeof lent.kept->theta) == 0) return;
        lent.kept->is_used.clear();
        lent.kept = nullptr;
    }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() {
        if (lent.kept != nullptr) lent.kept->is_used.clear();
    }
    const Book& book() const { return lent; }
};

bool heston_rows(const Book& given, double* out, int threads) {
    const Lent lent(given, threads);
    const Book& book = lent.book();
    return book.t == nullptr ? rows<SliceLayout>(book, out, threads) : rows<PanelLayout>(book, out, threads);
}

bool heston_sums(const Book& given, const double* scale, const double* target, double* out, int threads) {
    const Lent lent(given, threads);
    const Book& book = lent.book();
    auto sink = [&](vd* sum) { return Sums{scale, target, sum}; };
    return book.t == nullptr ? sums<SliceLayout, Sums>(book, sink, out, threads)
                             : sums<PanelLayout, Sums>(book, sink, out, threads);
}

bool heston_weighed(const Book& book, const double* quadratic, const double* linear, const double* centre, double* out) {
    auto sink = [&](vd* sum) { return Weighed{quadratic, linear, centre, sum}; };
    return sums<SliceLayout, Weighed>(book, sink, out, 1);
}

}  // namespace STRIKEOUT_BUILD
