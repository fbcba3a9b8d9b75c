// The part of Black's formula that is plain arithmetic: kernels/black.py and kernels/normal.py, operation by operation and
// therefore bit for bit; the symbols are explained there. Exponentials and logarithms stay with NumPy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <stdexcept>

namespace nb = nanobind;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Booleans = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr double SQRT_HALF_PI = 1.2533141373155003, SQRT_HALF = 0.7071067811865476,
                 INVERSE_SQRT_TWO_PI = 0.3989422804014327;

struct Erfcx {  // for z >= 0: a polynomial in y, lowest coefficient first
    const double* coefficients;
    size_t last;
    double centre;
    double operator()(double z) const {
        const double y = 1.0 - 2.0 * centre / (z + centre);
        double total = coefficients[last] * y;
        for (size_t k = last - 1; k > 0; k--) total = (total + coefficients[k]) * y;
        total += coefficients[0];
        return total / (1.0 + 2.0 * z);
    }
};

static Erfcx erfcx_of(const Doubles& coefficients, double centre) {
    if (coefficients.shape(0) < 2) throw std::invalid_argument("two coefficients are needed at least");
    return {coefficients.data(), coefficients.shape(0) - 1, centre};
}

// (Y(h + t) - Y(h - t)) / 2t by its Taylor series in t.
static double series(double h, double t, const Erfcx& erfcx) {
    const double t2 = t * t, t4 = t2 * t2, q = h * h * t2;
    double term = 1.0 + SQRT_HALF_PI * h * erfcx(-SQRT_HALF * h);
    double total = term, before = t2;
    for (int n = 1; n < 20; n += 2) {
        const double after = (((2 * n + 1) * t2 + q) * term - before) * (1.0 / ((n + 1) * (n + 2)));
        before = t4 * term;
        term = after;
        total += term;
    }
    return total;
}

struct Normalised {
    double b, b_bar;
};

static Normalised normalised(double x, double h, double t, double e, double b_max, const Erfcx& erfcx) {
    if (x >= -2.0 && t < 0.5) {
        const double b = 2.0 * INVERSE_SQRT_TWO_PI * e * t * series(h, t, erfcx);
        return {b, b_max - b};
    }
    const double outer = erfcx(SQRT_HALF * (t - h)), inner = erfcx(SQRT_HALF * std::fabs(h + t));
    const bool is_high = h + t > 0;
    const double part = 0.5 * e * (is_high ? inner + outer : inner - outer), rest = b_max - part;
    return is_high ? Normalised{rest, part} : Normalised{part, rest};
}

static bool is_positive(double a) { return a > 0 && a < INFINITY; }

static void check(size_t count, std::initializer_list<size_t> lengths) {
    for (size_t length : lengths)
        if (length != count) throw std::invalid_argument("columns of different lengths");
}

static auto rows_of(double* data, size_t rows, size_t count) {
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    return nb::ndarray<nb::numpy, double, nb::ndim<2>>(data, {rows, count}, owner);
}

// |F - K| / min(F, K); s, not-a-number where the row has no price; b_max.
static auto begin(Doubles F, Doubles K, Doubles T, Doubles sigma, Doubles D) {
    const size_t count = F.shape(0);
    check(count, {K.shape(0), T.shape(0), sigma.shape(0), D.shape(0)});
    double *out = new double[3 * count + 1], *s = out + count, *b_max = s + count;
    for (size_t i = 0; i < count; i++) {
        const double f = F(i), k = K(i), low = f < k ? f : (k <= f ? k : NAN), high = f > k ? f : (k >= f ? k : NAN);
        const bool has_price = is_positive(f) && is_positive(k) && is_positive(D(i)) && sigma(i) >= 0;
        out[i] = std::fabs(f - k) / low;
        s[i] = has_price ? sigma(i) * std::sqrt(T(i)) : NAN;
        b_max[i] = std::sqrt(low / high);
    }
    return rows_of(out, 3, count);
}

// h, t, and the exponent whose exponential is e.
static auto middle(Doubles x, Doubles s) {
    const size_t count = x.shape(0);
    check(count, {s.shape(0)});
    double *out = new double[3 * count + 1], *t = out + count, *exponent = t + count;
    for (size_t i = 0; i < count; i++) {
        const double ratio = x(i) / s(i);
        const double h = x(i) == 0 && s(i) >= 0 ? 0.0 : (ratio < -1000.0 ? -1000.0 : ratio);
        out[i] = h, t[i] = 0.5 * s(i), exponent[i] = -0.5 * (h * h + t[i] * t[i]);
    }
    return rows_of(out, 3, count);
}

void bind_black(nb::module_& m) {
    m.def("black_begin", &begin);
    m.def("black_middle", &middle);
    m.def("black_normalised", [](Doubles x, Doubles h, Doubles t, Doubles e, Doubles b_max, Doubles coefficients, double centre) {
        const size_t count = x.shape(0);
        check(count, {h.shape(0), t.shape(0), e.shape(0), b_max.shape(0)});
        const Erfcx erfcx = erfcx_of(coefficients, centre);
        double* out = new double[2 * count + 1];
        for (size_t i = 0; i < count; i++) {
            const Normalised found = normalised(x(i), h(i), t(i), e(i), b_max(i), erfcx);
            out[i] = found.b, out[count + i] = found.b_bar;
        }
        return rows_of(out, 2, count);
    });
    m.def("black_end", [](Doubles F, Doubles K, Doubles D, Booleans is_call, Doubles b) {
        const size_t count = F.shape(0);
        check(count, {K.shape(0), D.shape(0), is_call.shape(0), b.shape(0)});
        double* out = new double[count + 1];
        for (size_t i = 0; i < count; i++) {
            const double away = is_call(i) ? F(i) - K(i) : K(i) - F(i), intrinsic = away < 0.0 ? 0.0 : away;
            const double price = D(i) * (intrinsic + std::sqrt(F(i)) * std::sqrt(K(i)) * b(i));
            const double bound = D(i) * (is_call(i) ? F(i) : K(i));
            out[i] = bound < price ? bound : (price != price || bound == bound ? price : bound);
        }
        nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<double*>(p); });
        return nb::ndarray<nb::numpy, double, nb::ndim<1>>(out, {count}, owner);
    });
}
