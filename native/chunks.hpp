// Work in chunks, on as many threads as there may be.
#pragma once
#include <atomic>
#include <cmath>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "simd.hpp"

namespace STRIKEOUT_BUILD {

// Finite, and none below the one before. Asked part by part, just before the part is run: it is then in the cache.
inline bool ascending(const double* k, int64_t count) {
    if (count == 0) return true;
    if (!std::isfinite(k[0]) || !std::isfinite(k[count - 1])) return false;
    int64_t i = 0;
    vi falls = {0, 0, 0, 0};
    for (; i + 4 < count; i += 4) falls |= ~(load(k + i) <= load(k + i + 1));  // so that what is not a number falls
    bool sound = !any(falls);
    for (; i + 1 < count; i++) sound &= k[i] <= k[i + 1];
    return sound;
}

// The next distinct numbers of an ascending column, at most MOST of them, and where the run of each ends. A call and a put, or
// the same option of two series, share a strike: its values are found once and written to every row of its run.
template <int MOST>
struct Distinct {
    double k[MOST] = {};  // zero behind the last
    int64_t begin, end[MOST] = {};
    int64_t last;  // behind the last run
    int count = 0;
    Distinct(const double* column, int64_t begin_, int64_t size) : begin(begin_), last(begin_) {
        for (; last < size; end[count - 1] = ++last) {
            if (count > 0 && column[last] == k[count - 1]) continue;
            if (count == MOST) return;
            k[count++] = column[last];
        }
    }
    void write(int n, double value, double* out) const {
        for (int64_t i = n == 0 ? begin : end[n - 1]; i < end[n]; i++) out[i] = value;
    }
};

// Calls work(space, chunk) for every chunk; true if all of them were sound. Which thread takes which chunk is left open:
// chunks are the same whatever the number of threads, and so is what comes out of each. Nothing in a thread asks for
// memory, and where there is none for another thread, or no thread, those there are do all the work.
template <class Space, class Work>
bool over_chunks(int64_t chunks, int threads, const Work& work) {
    std::atomic<int64_t> next{0};
    std::atomic<bool> sound{true};
    auto run = [&](Space* space) {
        for (int64_t chunk; (chunk = next.fetch_add(1)) < chunks;)
            if (!work(*space, chunk)) sound = false;
    };
    const std::unique_ptr<Space> own(new Space);  // not make_unique, which clears it
    std::vector<std::unique_ptr<Space>> spaces;
    std::vector<std::thread> others;
    try {
        for (int i = 1; i < threads && i < chunks; i++) {
            spaces.push_back(std::unique_ptr<Space>(new Space));
            others.emplace_back(run, spaces.back().get());
        }
    } catch (const std::exception&) {  // of memory or of the system
    }
    run(own.get());
    for (auto& thread : others) thread.join();
    return sound;
}

}  // namespace STRIKEOUT_BUILD
