// Compiled once for each instruction set, with STRIKEOUT_BUILD naming it.
#include "kernel.hpp"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "slices.hpp"

namespace STRIKEOUT_BUILD {

constexpr int64_t CHUNK = 16;           // slices at a time
constexpr int64_t WORTH_THREADS = 50000;  // in quotes; a slice costs about as much as 300 of them

static Heston model_of(const double* theta) { return {theta[0], theta[1], theta[2], theta[3], theta[4]}; }

// Calls work(workspace, chunk) for every chunk of slices. Which thread takes which chunk is left open: chunks are the same
// whatever the number of threads, and so is what comes out of each.
template <class Work>
static void over_chunks(int64_t slices, int64_t quotes, int threads, const Work& work) {
    const int64_t chunks = (slices + CHUNK - 1) / CHUNK;
    std::atomic<int64_t> next{0};
    auto run = [&] {
        std::unique_ptr<Workspace> workspace(new Workspace);  // not make_unique, which would clear it
        for (int64_t chunk; (chunk = next.fetch_add(1)) < chunks;) work(*workspace, chunk);
    };
    std::vector<std::thread> others;
    if (quotes + 300 * slices >= WORTH_THREADS)
        for (int i = 1; i < threads && i < chunks; i++) others.emplace_back(run);
    run();
    for (auto& thread : others) thread.join();
}

void heston_rows(const Book& book, double* out, int threads) {
    const Heston m = model_of(book.theta);
    const int64_t quotes = book.offsets[book.slices];
    over_chunks(book.slices, quotes, threads, [&](Workspace& workspace, int64_t chunk) {
        const int64_t end = std::min(book.slices, (chunk + 1) * CHUNK);
        for (int64_t j = chunk * CHUNK; j < end; j++)
            run_slice(workspace, book.expiries[j], book.k, book.offsets[j], book.offsets[j + 1], m, Rows{out, quotes});
    });
}

void heston_sums(const Book& book, const double* scale, const double* target, double* out, int threads) {
    const Heston m = model_of(book.theta);
    const int64_t chunks = (book.slices + CHUNK - 1) / CHUNK;
    std::vector<double> parts(static_cast<size_t>(chunks) * SUMS);
    over_chunks(book.slices, book.offsets[book.slices], threads, [&](Workspace& workspace, int64_t chunk) {
        v4 sum[SUMS];
        for (int i = 0; i < SUMS; i++) sum[i] = all(0.0);
        const int64_t end = std::min(book.slices, (chunk + 1) * CHUNK);
        for (int64_t j = chunk * CHUNK; j < end; j++)
            run_slice(workspace, book.expiries[j], book.k, book.offsets[j], book.offsets[j + 1], m,
                      Sums{scale, target, sum});
        for (int i = 0; i < SUMS; i++)
            parts[chunk * SUMS + i] = (sum[i][0] + sum[i][1]) + (sum[i][2] + sum[i][3]);
    });
    for (int i = 0; i < SUMS; i++) {
        out[i] = 0.0;
        for (int64_t chunk = 0; chunk < chunks; chunk++) out[i] += parts[chunk * SUMS + i];
    }
}

}  // namespace STRIKEOUT_BUILD
