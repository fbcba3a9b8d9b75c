// Compiled once for each instruction set, with STRIKEOUT_BUILD naming it.
#include "kernel.hpp"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "panels.hpp"

namespace STRIKEOUT_BUILD {

constexpr int64_t WORTH_THREADS = 50000;  // in quotes; a slice or a panel's node costs about as much as 300 of them

static Heston model_of(const double* theta) { return {theta[0], theta[1], theta[2], theta[3], theta[4]}; }

// How a book is laid out: slices of one expiry, sixteen to a chunk, or panels of ln T, each a chunk of its own.
struct SliceLayout {
    using Space = Workspace;
    static constexpr int64_t CHUNK = 16, COST = 300;
    template <class Sink>
    static void run(Space& space, const Book& book, int64_t j, const Heston& m, const Sink& sink) {
        run_slice(space, book.expiries[j], book.k, book.offsets[j], book.offsets[j + 1], m, sink);
    }
};
struct PanelLayout {
    using Space = PanelWorkspace;
    static constexpr int64_t CHUNK = 1, COST = 300 * NODES;
    template <class Sink>
    static void run(Space& space, const Book& book, int64_t j, const Heston& m, const Sink& sink) {
        run_panel(space, book.expiries[j], book.half, book.k, book.t, book.offsets[j], book.offsets[j + 1], m, sink);
    }
};

// Calls work(space, chunk) for every chunk. Which thread takes which chunk is left open: chunks are the same whatever the
// number of threads, and so is what comes out of each.
template <class Layout, class Work>
static void over_chunks(const Book& book, int threads, const Work& work) {
    const int64_t chunks = (book.parts + Layout::CHUNK - 1) / Layout::CHUNK;
    std::atomic<int64_t> next{0};
    auto run = [&] {
        std::unique_ptr<typename Layout::Space> space(new typename Layout::Space);  // not make_unique, which clears it
        for (int64_t chunk; (chunk = next.fetch_add(1)) < chunks;) work(*space, chunk);
    };
    std::vector<std::thread> others;
    if (book.offsets[book.parts] + Layout::COST * book.parts >= WORTH_THREADS)
        for (int i = 1; i < threads && i < chunks; i++) others.emplace_back(run);
    run();
    for (auto& thread : others) thread.join();
}

template <class Layout>
static void rows(const Book& book, double* out, int threads) {
    const Heston m = model_of(book.theta);
    const Rows sink = {out, book.offsets[book.parts]};
    over_chunks<Layout>(book, threads, [&](typename Layout::Space& space, int64_t chunk) {
        const int64_t end = std::min(book.parts, (chunk + 1) * Layout::CHUNK);
        for (int64_t j = chunk * Layout::CHUNK; j < end; j++) Layout::run(space, book, j, m, sink);
    });
}

// `sink(sum)` is what adds up a chunk's quotes into sum[Sink::COUNT]; chunks are then added in their order.
template <class Layout, class Sink, class Make>
static void sums(const Book& book, const Make& sink, double* out, int threads) {
    const Heston m = model_of(book.theta);
    const int64_t chunks = (book.parts + Layout::CHUNK - 1) / Layout::CHUNK;
    std::vector<double> parts(static_cast<size_t>(chunks) * Sink::COUNT);
    over_chunks<Layout>(book, threads, [&](typename Layout::Space& space, int64_t chunk) {
        v4 sum[Sink::COUNT];
        for (int i = 0; i < Sink::COUNT; i++) sum[i] = all(0.0);
        const int64_t end = std::min(book.parts, (chunk + 1) * Layout::CHUNK);
        for (int64_t j = chunk * Layout::CHUNK; j < end; j++) Layout::run(space, book, j, m, sink(sum));
        for (int i = 0; i < Sink::COUNT; i++)
            parts[chunk * Sink::COUNT + i] = (sum[i][0] + sum[i][1]) + (sum[i][2] + sum[i][3]);
    });
    for (int i = 0; i < Sink::COUNT; i++) {
        out[i] = 0.0;
        for (int64_t chunk = 0; chunk < chunks; chunk++) out[i] += parts[chunk * Sink::COUNT + i];
    }
}

void heston_rows(const Book& book, double* out, int threads) {
    book.t == nullptr ? rows<SliceLayout>(book, out, threads) : rows<PanelLayout>(book, out, threads);
}

void heston_sums(const Book& book, const double* scale, const double* target, double* out, int threads) {
    auto sink = [&](v4* sum) { return Sums{scale, target, sum}; };
    book.t == nullptr ? sums<SliceLayout, Sums>(book, sink, out, threads) : sums<PanelLayout, Sums>(book, sink, out, threads);
}

void heston_weighed(const Book& book, const double* quadratic, const double* linear, const double* centre, double* out) {
    auto sink = [&](v4* sum) { return Weighed{quadratic, linear, centre, sum}; };
    sums<SliceLayout, Weighed>(book, sink, out, 1);
}

}  // namespace STRIKEOUT_BUILD
