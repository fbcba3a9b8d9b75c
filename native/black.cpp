// The part of Black's formula that is plain arithmetic: kernels/black.py and kernels/normal.py, operation by operation and
// therefore bit for bit. Exponentials and logarithms stay with NumPy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

namespace nb = nanobind;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// erfcx for z >= 0: a polynomial in y, lowest coefficient first.
static double erfcx_right(double z, const Doubles& coefficients, double centre) {
    const size_t last = coefficients.shape(0) - 1;
    const double y = 1.0 - 2.0 * centre / (z + centre);
    double total = coefficients(last) * y;
    for (size_t k = last - 1; k > 0; k--) total = (total + coefficients(k)) * y;
    total += coefficients(0);
    return total / (1.0 + 2.0 * z);
}

// (Y(h + t) - Y(h - t)) / 2t by its Taylor series in t, as in kernels/black.py.
static auto series(Doubles h, Doubles t, Doubles coefficients, double centre, double sqrt_half, double sqrt_half_pi) {
    const size_t count = h.shape(0);
    if (t.shape(0) != count || coefficients.shape(0) < 2) throw std::invalid_argument("shapes do not fit together");
    double* out = new double[count + 1];
    for (size_t i = 0; i < count; i++) {
        const double t2 = t(i) * t(i), t4 = t2 * t2, q = h(i) * h(i) * t2;
        double term = 1.0 + sqrt_half_pi * h(i) * erfcx_right(-sqrt_half * h(i), coefficients, centre);
        double total = term, before = t2;
        for (int n = 1; n < 20; n += 2) {
            const double after = (((2 * n + 1) * t2 + q) * term - before) * (1.0 / ((n + 1) * (n + 2)));
            before = t4 * term;
            term = after;
            total += term;
        }
        out[i] = total;
    }
    nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    return nb::ndarray<nb::numpy, double, nb::ndim<1>>(out, {count}, owner);
}

void bind_black(nb::module_& m) {
    m.def("black_series", &series, nb::arg("h"), nb::arg("t"), nb::arg("coefficients"), nb::arg("centre"),
          nb::arg("sqrt_half"), nb::arg("sqrt_half_pi"));
}
