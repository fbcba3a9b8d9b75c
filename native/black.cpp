// The Python side of Black's formula and of the normal distribution.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <stdexcept>

#include "black_arrays.hpp"
#include "column.hpp"
#include "dispatch.hpp"

namespace nb = nanobind;
using Doubles = Column<double>;
using Booleans = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static Erfcx erfcx_of(const Doubles& coefficients, double centre) {
    if (coefficients.size() < 2) throw std::invalid_argument("two coefficients are needed at least");
    return {coefficients.data(), coefficients.size() - 1, centre};
}

static void check(size_t count, std::initializer_list<size_t> lengths) {
    for (size_t length : lengths)
        if (length != count) throw std::invalid_argument("columns of different lengths");
}

void bind_black(nb::module_& m) {
    m.def("normal_cdf", [](nb::handle x, nb::handle coefficients, double centre, nb::handle out) {
        const Doubles from(x), c(coefficients);
        const Result to(out, from.size());
        DISPATCH_ARRAYS(normal_cdf)(from.data(), erfcx_of(c, centre), to.data(), static_cast<int64_t>(from.size()));
    });
    m.def("normal_density", [](nb::handle x, nb::handle out) {
        const Doubles from(x);
        const Result to(out, from.size());
        DISPATCH_ARRAYS(normal_density)(from.data(), to.data(), static_cast<int64_t>(from.size()));
    });
    m.def("black_price", [](nb::handle F, nb::handle K, nb::handle T, nb::handle sigma, nb::handle D, Booleans is_call,
                            nb::handle coefficients, double centre, nb::handle out) {
        const Doubles f(F), k(K), t(T), s(sigma), d(D), c(coefficients);
        check(f.size(), {k.size(), t.size(), s.size(), d.size(), is_call.shape(0)});
        const Result to(out, f.size());
        const Options given = {f.data(), k.data(), t.data(), s.data(), d.data(), is_call.data()};
        DISPATCH_ARRAYS(black_prices)(given, erfcx_of(c, centre), to.data(), static_cast<int64_t>(f.size()));
    });
    m.def("black_volatilities", [](nb::handle price, nb::handle F, nb::handle K, nb::handle T, nb::handle D, Booleans is_call,
                                   nb::handle coefficients, double centre, nb::handle out) {
        const Doubles p(price), f(F), k(K), t(T), d(D), c(coefficients);
        check(p.size(), {f.size(), k.size(), t.size(), d.size(), is_call.shape(0)});
        const Result to(out, p.size());
        const Options given = {f.data(), k.data(), t.data(), nullptr, d.data(), is_call.data()};
        DISPATCH_ARRAYS(black_volatilities)(given, p.data(), erfcx_of(c, centre), to.data(), static_cast<int64_t>(p.size()));
    });
}
