// Compiled once for each instruction set, with STRIKEOUT_BUILD naming it.
#include "arrays.hpp"

#include "black.hpp"
#include "elementary.hpp"

namespace STRIKEOUT_BUILD {

INLINE void store_some(double* p, v4 x, int64_t count) {
    for (int i = 0; i < 4 && i < count; i++) p[i] = x[i];
}

// Eight at a time, so that the processor does not wait for its own results; a number's bits do not depend on its place.
template <class Function>
static void over(const Function& function, const double* x, double* out, int64_t count) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const v4 a = function(load(x + i)), b = function(load(x + i + 4));
        store(out + i, a), store(out + i + 4, b);
    }
    for (; i < count; i += 4) store_some(out + i, function(load_some(x + i, count - i)), count - i);
}

template <class Function>
static void over(const Function& function, const double* x, const double* y, double* out, int64_t count) {
    for (int64_t i = 0; i < count; i += 4)
        store_some(out + i, function(load_some(x + i, count - i), load_some(y + i, count - i)), count - i);
}

template <class Function>
static void over_complex(const Function& function, const double* x, double* out, int64_t count) {
    for (int64_t i = 0; i < count; i += 4) {
        const int lanes = count - i < 4 ? static_cast<int>(count - i) : 4;
        c4 a = {all(1.0), all(0.0)};
        for (int j = 0; j < lanes; j++) a.re[j] = x[2 * (i + j)], a.im[j] = x[2 * (i + j) + 1];
        const c4 found = function(a);
        for (int j = 0; j < lanes; j++) out[2 * (i + j)] = found.re[j], out[2 * (i + j) + 1] = found.im[j];
    }
}

void apply_real(Real function, const double* x, double* out, int64_t count) {
    switch (function) {
        case Real::exp: return over([](v4 a) { return elementary::exp(a); }, x, out, count);
        case Real::expm1: return over([](v4 a) { return elementary::expm1(a); }, x, out, count);
        case Real::log: return over([](v4 a) { return elementary::log(a); }, x, out, count);
        case Real::log1p: return over([](v4 a) { return elementary::log1p(a); }, x, out, count);
        case Real::sin: return over([](v4 a) { return elementary::sin(a); }, x, out, count);
        case Real::cos: return over([](v4 a) { return elementary::cos(a); }, x, out, count);
    }
}

void apply_pair(Pair function, const double* x, const double* y, double* out, int64_t count) {
    switch (function) {
        case Pair::power: return over([](v4 a, v4 b) { return elementary::power(a, b); }, x, y, out, count);
        case Pair::atan2: return over([](v4 a, v4 b) { return elementary::atan2(a, b); }, x, y, out, count);
    }
}

void apply_complex(Complex function, const double* x, double* out, int64_t count) {
    switch (function) {
        case Complex::exp: return over_complex([](c4 a) { return elementary::exp(a); }, x, out, count);
        case Complex::expm1: return over_complex([](c4 a) { return elementary::expm1(a); }, x, out, count);
        case Complex::log: return over_complex([](c4 a) { return elementary::log(a); }, x, out, count);
        case Complex::sqrt: return over_complex([](c4 a) { return elementary::sqrt(a); }, x, out, count);
    }
}

void normal_cdf(const double* x, const Erfcx& erfcx, double* out, int64_t count) {
    over([&](v4 a) { return normal_cdf(a, erfcx); }, x, out, count);
}
void normal_density(const double* x, double* out, int64_t count) {
    over([](v4 a) { return normal_density(a); }, x, out, count);
}

void black_prices(const Options& given, const Erfcx& erfcx, double* out, int64_t count) {
    for (int64_t i = 0; i < count; i += 4) {
        const int64_t left = count - i;
        i4 call = {0, 0, 0, 0};
        for (int j = 0; j < 4 && j < left; j++) call[j] = given.is_call[i + j] ? -1 : 0;
        const v4 found = price(load_some(given.forward + i, left), load_some(given.strike + i, left),
                               load_some(given.expiry + i, left), load_some(given.volatility + i, left),
                               load_some(given.discount + i, left), call, erfcx);
        store_some(out + i, found, left);
    }
}

void black_normalised(const double* x, const double* s, const double* b_max, const Erfcx& erfcx, double* out,
                      int64_t count) {
    for (int64_t i = 0; i < count; i += 4) {
        const int64_t left = count - i;
        const Normalised found = normalised(load_some(x + i, left), load_some(s + i, left), load_some(b_max + i, left), erfcx);
        store_some(out + i, found.b, left), store_some(out + count + i, found.b_bar, left);
        store_some(out + 2 * count + i, found.e, left);
    }
}

}  // namespace STRIKEOUT_BUILD
