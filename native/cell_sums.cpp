// Compiled once for each instruction set, with STRIKEOUT_BUILD naming it.
//
// Sums of factor * T_q(x) in digits so small that doubles multiply and add them without rounding:
//
//   symbol  meaning                                                             size
//   r       T_q(x) 2^basis_grid, rounded to even                                |r| < 2^49
//   hi, lo  r = hi 2^24 + lo                                                    |hi| <= 2^25, |lo| <= 2^23
//   digit   factor 2^factor_grid, rounded to even, is the sum of digit_p 2^18p  |digit| < 2^18, all of one sign
//
// A product is below 2^43, so 1,024 of them in one lane stay below 2^53: exact, in any order. A block has fewer.
#include "cell_sums.hpp"

#include <cmath>

#include "simd.hpp"

namespace STRIKEOUT_BUILD {

constexpr int BLOCK = 256;         // points at a time: what they need stays in the first cache
constexpr int DIGIT = 18;          // bits
constexpr int DIGITS = 11;         // of a factor: 198 bits, more than a sum has
constexpr double HALF = 16777216;  // 2^24
// Added and subtracted it rounds a number below 2^51 to an integer, ties to even; no flag lets the compiler leave it out.
constexpr double ROUNDING = 6755399441055744;  // 1.5 * 2^52

INLINE vd rounded(vd x) { return (x + all(ROUNDING)) - all(ROUNDING); }

static int64_t whole(vd x) {
    int64_t sum = 0;
    for (int i = 0; i < LANES; i++) sum += static_cast<int64_t>(x[i]);
    return sum;
}

// The digits of the factors of a block that are not all zero: first <= p < last.
struct Digits {
    alignas(64) double value[DIGITS][BLOCK];
    int first, last;

    void take(const double* factor, int count, int padded, double unit) {
        alignas(64) double rest[BLOCK];
        double top = 0.0;
        for (int i = 0; i < count; i++) {
            rest[i] = std::nearbyint(factor[i] * unit);
            top = std::fmax(top, std::fabs(rest[i]));
        }
        for (int i = count; i < padded; i++) rest[i] = 0.0;
        int exponent = 0;
        std::frexp(top, &exponent);
        first = last = top == 0.0 ? 0 : (exponent - 1) / DIGIT + 1;
        while (top != 0.0) {
            const int p = --first;
            const double down = two_to(-DIGIT * p), up = two_to(DIGIT * p);
            top = 0.0;
            for (int i = 0; i < padded; i++) {
                const double digit = std::trunc(rest[i] * down);
                value[p][i] = digit;
                rest[i] -= digit * up;
                top = std::fmax(top, std::fabs(rest[i]));
            }
        }
    }
};

// sums + the products of a block's hi and lo with all digits of a factor.
static void add_digits(const double* hi, const double* lo, const Digits& digits, int padded, exact::Wide& sum) {
    int p = digits.first;
    for (; p + 2 <= digits.last; p += 2) {
        const double *one = digits.value[p], *two = digits.value[p + 1];
        vd a = all(0.0), b = a, c = a, d = a;
        for (int i = 0; i < padded; i += LANES) {
            const vd h = load(hi + i), l = load(lo + i), x = load(one + i), y = load(two + i);
            a += l * x, b += h * x, c += l * y, d += h * y;
        }
        exact::add_shifted(sum, whole(a), DIGIT * p), exact::add_shifted(sum, whole(b), DIGIT * p + 24);
        exact::add_shifted(sum, whole(c), DIGIT * (p + 1)), exact::add_shifted(sum, whole(d), DIGIT * (p + 1) + 24);
    }
    if (p < digits.last) {
        vd a = all(0.0), b = a;
        for (int i = 0; i < padded; i += LANES) {
            const vd x = load(digits.value[p] + i);
            a += load(lo + i) * x, b += load(hi + i) * x;
        }
        exact::add_shifted(sum, whole(a), DIGIT * p), exact::add_shifted(sum, whole(b), DIGIT * p + 24);
    }
}

void add_cell(const exact::CellPoints& points, int along, int basis_grid, int factor_grid, exact::Wide* sums) {
    static thread_local Digits digits[2];
    const double unit = two_to(factor_grid);
    const vd basis = all(two_to(basis_grid));
    alignas(64) double x[BLOCK], before[BLOCK], now[BLOCK], hi[BLOCK], lo[BLOCK];
    for (int64_t from = 0; from < points.count; from += BLOCK) {
        const int count = static_cast<int>(points.count - from < BLOCK ? points.count - from : BLOCK);
        const int padded = (count + LANES - 1) / LANES * LANES;
        for (int f = 2; f < 4; f++)
            for (int i = 0; i < count; i++) {
                const int64_t one = 1;
                exact::add_products(sums + 2 * along + f - 2, points.factors[f][from + i], factor_grid, &one, 1);
            }
        for (int f = 0; f < 2; f++) digits[f].take(points.factors[f] + from, count, padded, unit);
        for (int i = 0; i < padded; i++) x[i] = now[i] = i < count ? points.x[from + i] : 0.0, before[i] = 1.0;
        for (int q = 0; q < along; q++) {
            // before is T_q, now T_q+1; the recurrence is that of exact::polynomials.
            for (int i = 0; i < padded; i += LANES) {
                const vd T = load(before + i), next = load(now + i);
                const vd r = rounded(T * basis), h = rounded(r * all(1.0 / HALF));
                store(hi + i, h), store(lo + i, r - h * all(HALF));
                store(before + i, next), store(now + i, all(2.0) * load(x + i) * next - T);
            }
            for (int f = 0; f < 2; f++) add_digits(hi, lo, digits[f], padded, sums[f * along + q]);
        }
    }
}

}  // namespace STRIKEOUT_BUILD
