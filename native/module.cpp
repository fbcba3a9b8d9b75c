// The Python side of the kernel: shapes are checked here, arithmetic is not.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "arrays.hpp"
#include "column.hpp"
#include "dispatch.hpp"
#include "kernel.hpp"

namespace nb = nanobind;
using Doubles = Column<double>;
using Integers = Column<int64_t>;
constexpr size_t FUNCTIONS = 6, SUMS = 21, WEIGHED = 22;

static bool has_avx2() {
#if defined(STRIKEOUT_AVX2)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}
bool use_avx2 = has_avx2();

// The strikes of a book, and the arrays they lie in. Offsets are copied: memory is safe whatever becomes of the arrays.
class Strikes {
    Doubles expiries;
    std::vector<int64_t> offsets;
    Doubles k;
    std::optional<Doubles> t;
    double half;

   public:
    Strikes(nb::handle expiries_, nb::handle offsets_, nb::handle k_, nb::handle t_, double half_)
        : expiries(expiries_), k(k_), half(half_) {
        const Integers given(offsets_);
        offsets.assign(given.data(), given.data() + given.size());
        if (!t_.is_none()) t.emplace(t_);
        const size_t parts = expiries.size(), n = k.size();
        if (offsets.size() != parts + 1 || (t && t->size() != n)) throw std::invalid_argument("shapes do not fit together");
        if (offsets[0] != 0 || offsets[parts] != static_cast<int64_t>(n))
            throw std::invalid_argument("offsets must run from zero to the number of strikes");
        for (size_t j = 0; j < parts; j++)
            if (offsets[j + 1] < offsets[j]) throw std::invalid_argument("offsets must not fall");
    }
    size_t size() const { return k.size(); }
    Book at(const Doubles& theta) const {
        if (theta.size() != 5) throw std::invalid_argument("shapes do not fit together: theta is five numbers");
        return {theta.data(),   expiries.data(), k.data(), t ? t->data() : nullptr, offsets.data(),
                static_cast<int64_t>(expiries.size()), half};
    }
};

// Runs the kernel without Python's lock.
template <class Run>
static void run(const Run& kernel) {
    bool sound;
    {
        nb::gil_scoped_release free;
        sound = kernel();
    }
    if (!sound) throw std::invalid_argument("strikes must be finite and ascending in each part");
}

static auto heston_rows(nb::handle theta, nb::handle expiries, nb::handle offsets, nb::handle k, nb::handle t, double half,
                        int threads) {
    const Strikes strikes(expiries, offsets, k, t, half);
    const Doubles at(theta);
    const Book book = strikes.at(at);
    const size_t n = strikes.size();
    std::unique_ptr<double[]> out(new double[FUNCTIONS * n + 1]);
    run([&] { return DISPATCH(heston_rows)(book, out.get(), threads); });
    double* data = out.release();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    return nb::ndarray<nb::numpy, double, nb::ndim<2>>(data, {FUNCTIONS, n}, owner);
}

// The sums over one book, for one theta after the other: its arrays are kept.
class HestonSums {
    Strikes strikes;
    Doubles scale, target;
    int threads;

   public:
    HestonSums(nb::handle expiries, nb::handle offsets, nb::handle k, nb::handle t, double half, nb::handle scale_,
               nb::handle target_, int threads_)
        : strikes(expiries, offsets, k, t, half), scale(scale_), target(target_), threads(threads_) {
        if (scale.size() != strikes.size() || target.size() != strikes.size())
            throw std::invalid_argument("scale and target must be as long as k");
    }
    void at(nb::handle theta, nb::handle out) {
        const Doubles at(theta);
        const Book book = strikes.at(at);
        const Result result(out, SUMS);
        run([&] { return DISPATCH(heston_sums)(book, scale.data(), target.data(), result.data(), threads); });
    }
};

static void heston_weighed(nb::handle theta, nb::handle expiries, nb::handle offsets, nb::handle k, nb::handle quadratic,
                           nb::handle linear, nb::handle centre, nb::handle out) {
    const Strikes strikes(expiries, offsets, k, nb::none(), 0.0);
    const Doubles at(theta), q(quadratic), l(linear), c(centre);
    const Book book = strikes.at(at);
    const size_t n = strikes.size();
    if (q.size() != n || l.size() != n || c.size() != n) throw std::invalid_argument("the weights must be as long as k");
    const Result result(out, WEIGHED);
    run([&] { return DISPATCH(heston_weighed)(book, q.data(), l.data(), c.data(), result.data()); });
}

// Arrays go in and out flat; a complex one as a real one of twice the length.
template <Real function>
static void real(nb::handle x, nb::handle out) {
    const Doubles from(x);
    const Result to(out, from.size());
    DISPATCH(apply_real)(function, from.data(), to.data(), static_cast<int64_t>(from.size()));
}
template <Pair function>
static void pair(nb::handle x, nb::handle y, nb::handle out) {
    const Doubles first(x), second(y);
    if (first.size() != second.size()) throw std::invalid_argument("columns of different lengths");
    const Result to(out, first.size());
    DISPATCH(apply_pair)(function, first.data(), second.data(), to.data(), static_cast<int64_t>(first.size()));
}
template <Complex function>
static void complex(nb::handle x, nb::handle out) {
    const Doubles from(x);
    if (from.size() % 2 != 0) throw std::invalid_argument("a complex number has two parts");
    const Result to(out, from.size());
    DISPATCH(apply_complex)(function, from.data(), to.data(), static_cast<int64_t>(from.size() / 2));
}

static void bind_arrays(nb::module_& m) {
    m.def("exp", &real<Real::exp>);
    m.def("expm1", &real<Real::expm1>);
    m.def("log", &real<Real::log>);
    m.def("log1p", &real<Real::log1p>);
    m.def("sin", &real<Real::sin>);
    m.def("cos", &real<Real::cos>);
    m.def("power", &pair<Pair::power>);
    m.def("atan2", &pair<Pair::atan2>);
    m.def("complex_exp", &complex<Complex::exp>);
    m.def("complex_expm1", &complex<Complex::expm1>);
    m.def("complex_log", &complex<Complex::log>);
    m.def("complex_sqrt", &complex<Complex::sqrt>);
}

void bind_black(nb::module_& m);
void bind_exact(nb::module_& m);
void bind_sorting(nb::module_& m);
void bind_symmetric(nb::module_& m);

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // a book still held when Python ends is nobody's business
    bind_arrays(m);
    bind_black(m);
    bind_exact(m);
    bind_sorting(m);
    bind_symmetric(m);
    m.def("heston_rows", &heston_rows, nb::arg("theta"), nb::arg("expiries"), nb::arg("offsets"), nb::arg("k"),
          nb::arg("t").none(), nb::arg("half"), nb::arg("threads"));
    nb::class_<HestonSums>(m, "HestonSums")
        .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, double, nb::handle, nb::handle, int>(),
             nb::arg("expiries"), nb::arg("offsets"), nb::arg("k"), nb::arg("t").none(), nb::arg("half"), nb::arg("scale"),
             nb::arg("target"), nb::arg("threads"))
        .def("at", &HestonSums::at, nb::arg("theta"), nb::arg("out"));
    m.def("heston_weighed", &heston_weighed, nb::arg("theta"), nb::arg("expiries"), nb::arg("offsets"), nb::arg("k"),
          nb::arg("quadratic"), nb::arg("linear"), nb::arg("centre"), nb::arg("out"));
    m.def("instructions", [] { return use_avx2 ? "avx2" : "plain"; });
    m.def("use_instructions", [](const char* name) {  // for the test that all of them give the same bits
        const bool wanted = std::strcmp(name, "avx2") == 0;
        if (!wanted && std::strcmp(name, "plain") != 0) throw std::invalid_argument("instructions are avx2 or plain");
        use_avx2 = wanted && has_avx2();
    });
}
