// Compiled once for each instruction set, with STRIKEOUT_BUILD naming it.
#include "arrays.hpp"

#include "black.hpp"
#include "elementary.hpp"

namespace STRIKEOUT_BUILD {

INLINE void store_some(double* p, vd x, int64_t count) {
    for (int i = 0; i < LANES && i < count; i++) p[i] = x[i];
}

// Two vectors at a time, so that the processor does not wait for its own results; a number's bits do not depend on its place.
template <class Function>
static void over(const Function& function, const double* x, double* out, int64_t count) {
    int64_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        const vd a = function(load(x + i)), b = function(load(x + i + LANES));
        store(out + i, a), store(out + i + LANES, b);
    }
    for (; i < count; i += LANES) store_some(out + i, function(load_some(x + i, count - i)), count - i);
}

template <class Function>
static void over(const Function& function, const double* x, const double* y, double* out, int64_t count) {
    int64_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        const vd a = function(load(x + i), load(y + i)), b = function(load(x + i + LANES), load(y + i + LANES));
        store(out + i, a), store(out + i + LANES, b);
    }
    for (; i < count; i += LANES)
        store_some(out + i, function(load_some(x + i, count - i), load_some(y + i, count - i)), count - i);
}

template <class Function>
static void over_complex(const Function& function, const double* x, double* out, int64_t count) {
    for (int64_t i = 0; i < count; i += LANES) {
        const int lanes = count - i < LANES ? static_cast<int>(count - i) : LANES;
        vc a = {all(1.0), all(0.0)};
        for (int j = 0; j < lanes; j++) a.re[j] = x[2 * (i + j)], a.im[j] = x[2 * (i + j) + 1];
        const vc found = function(a);
        for (int j = 0; j < lanes; j++) out[2 * (i + j)] = found.re[j], out[2 * (i + j) + 1] = found.im[j];
    }
}

void apply_real(Real function, const double* x, double* out, int64_t count) {
    switch (function) {
        case Real::exp: return over([](vd a) { return elementary::exp(a); }, x, out, count);
        case Real::expm1: return over([](vd a) { return elementary::expm1(a); }, x, out, count);
        case Real::log: return over([](vd a) { return elementary::log(a); }, x, out, count);
        case Real::log1p: return over([](vd a) { return elementary::log1p(a); }, x, out, count);
        case Real::sin: return over([](vd a) { return elementary::sin(a); }, x, out, count);
        case Real::cos: return over([](vd a) { return elementary::cos(a); }, x, out, count);
    }
}

void apply_pair(Pair function, const double* x, const double* y, double* out, int64_t count) {
    switch (function) {
        case Pair::power: return over([](vd a, vd b) { return elementary::power(a, b); }, x, y, out, count);
        case Pair::atan2: return over([](vd a, vd b) { return elementary::atan2(a, b); }, x, y, out, count);
    }
}

void apply_complex(Complex function, const double* x, double* out, int64_t count) {
    switch (function) {
        case Complex::exp: return over_complex([](vc a) { return elementary::exp(a); }, x, out, count);
        case Complex::expm1: return over_complex([](vc a) { return elementary::expm1(a); }, x, out, count);
        case Complex::log: return over_complex([](vc a) { return elementary::log(a); }, x, out, count);
        case Complex::sqrt: return over_complex([](vc a) { return elementary::sqrt(a); }, x, out, count);
    }
}

void normal_cdf(const double* x, const Erfcx& erfcx, double* out, int64_t count) {
    over([&](vd a) { return normal_cdf(a, erfcx); }, x, out, count);
}
void normal_density(const double* x, double* out, int64_t count) {
    over([](vd a) { return normal_density(a); }, x, out, count);
}

INLINE vi calls_of(const Options& given, int64_t i, int64_t left) {
    vi call = {0, 0, 0, 0};
    for (int j = 0; j < LANES && j < left; j++) call[j] = given.is_call[i + j] ? -1 : 0;
    return call;
}

void black_prices(const Options& given, const Erfcx& erfcx, double* out, int64_t count) {
    for (int64_t i = 0; i < count; i += LANES) {
        const int64_t left = count - i;
        const vd found = price(load_some(given.forward + i, left), load_some(given.strike + i, left),
                               load_some(given.expiry + i, left), load_some(given.volatility + i, left),
                               load_some(given.discount + i, left), calls_of(given, i, left), erfcx);
        store_some(out + i, found, left);
    }
}

void black_volatilities(const Options& given, const double* price, const Erfcx& erfcx, double* out, int64_t count) {
    for (int64_t i = 0; i < count; i += LANES) {
        const int64_t left = count - i;
        const vd found = implied_volatility(load_some(price + i, left), load_some(given.forward + i, left),
                                            load_some(given.strike + i, left), load_some(given.expiry + i, left),
                                            load_some(given.discount + i, left), calls_of(given, i, left), erfcx);
        store_some(out + i, found, left);
    }
}

}  // namespace STRIKEOUT_BUILD
