// What the module calls; one namespace for each instruction set, the same bits from all of them.
#pragma once
#include <atomic>
#include <cstdint>

#include "black_arrays.hpp"

// Polynomials of cells at one theta, kept from book to book: the books of a fleet have their starts and many expiries in common,
// and a cell depends on nothing else. One that was kept has the bits of one that is found again. Plain data: code for it is in
// slices.hpp, in the namespace of each build.
struct KeptCell {
    double centre;
    int top;
    double a[16 * 8];
};
struct KeptSlice {
    static constexpr int MOST = 24;
    double expiry;
    int count;
    KeptCell cell[MOST];
};
struct Kept {
    static constexpr int MOST = 32;
    std::atomic_flag is_used = ATOMIC_FLAG_INIT;
    bool has_theta = false;
    double theta[5];
    int count = 0;
    KeptSlice slice[MOST];
};

// Strikes in parts: part j holds k[offsets[j]] .. k[offsets[j + 1] - 1], ascending.
//   slices: expiries[j] is the expiry of all of them, k = ln(K / F), t is null;
//   panels: expiries[j] is the middle of a panel of ln T, k = ln(K / F) / sqrt(T), t = (ln T - middle) / half.
struct Book {
    const double *theta, *expiries, *k, *t;
    const int64_t* offsets;
    int64_t parts;
    double half;
    Kept* kept;  // of slices; null if nothing is kept
};

// The terms of one slice on the line Im z = -1/2, and what they are good for: see line.hpp.
struct Line {
    double h, image, low, high;  // below low and from high on, an option is worth nothing
    int64_t nodes;               // none where there is no price
    int functions;
    const double* F;  // [node][function][real, imaginary]
};

// Each says whether the strikes of every part were finite and ascending; if not, `out` is good for nothing. `threads` is
// how many there may be, the caller's own included; no bit depends on how many there are.
#define STRIKEOUT_DECLARE(build)                                                                                       \
    namespace build {                                                                                                  \
    bool heston_rows(const Book& book, double* out, int threads);                                                      \
    bool heston_sums(const Book& book, const double* scale, const double* target, double* out, int threads);           \
    bool heston_weighed(const Book& book, const double* quadratic, const double* linear, const double* centre,         \
                        double* out);                                                                                  \
    bool bates_rows(const Book& book, double* out, int threads);                                                       \
    bool double_heston_rows(const Book& book, double* out, int threads);                                               \
    bool variance_gamma_rows(const Book& book, const Erfcx& erfcx, double* out, int threads);                          \
    bool line_rows(const Line& line, const double* k, int64_t count, double* out);                                     \
    }
STRIKEOUT_DECLARE(plain)
STRIKEOUT_DECLARE(avx2)
