// The Python side of the kernel: shapes are checked here, arithmetic is not.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "column.hpp"
#include "descent.hpp"
#include "dispatch.hpp"
#include "kernel.hpp"

namespace nb = nanobind;
using Doubles = Column<double>;
using Integers = Column<int64_t>;
constexpr size_t HESTON = 5, BATES = 8, DOUBLE_HESTON = 10, VARIANCE_GAMMA = 3, SUMS = 21, WEIGHED = 22;  // parameters; sums

static const char* const NAMES[] = {"plain", "avx2", "avx512"};  // in the order of Instructions

// The best that this processor and this build have.
static Instructions best_instructions() {
#if defined(STRIKEOUT_X86)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Instructions::plain;
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
    return wide ? Instructions::avx512 : Instructions::avx2;
#else
    return Instructions::plain;
#endif
}
Instructions instructions = best_instructions();

// For the tests that all of them give the same bits.
static nb::list available_instructions() {
    nb::list names;
    for (int i = 0; i <= static_cast<int>(best_instructions()); i++) names.append(NAMES[i]);
    return names;
}
static void use_instructions(const char* name) {
    for (int i = 0; i <= static_cast<int>(best_instructions()); i++)
        if (std::strcmp(name, NAMES[i]) == 0) {
            instructions = static_cast<Instructions>(i);
            return;
        }
    throw std::invalid_argument("instructions are one of available_instructions()");
}

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
    Book at(const Doubles& theta, size_t parameters = HESTON, Kept* kept = nullptr) const {
        if (theta.size() != parameters)
            throw std::invalid_argument("shapes do not fit together: theta is " + std::to_string(parameters) + " numbers");
        return at(theta.data(), kept);
    }
    Book at(const double* theta, Kept* kept) const {
        return {theta, expiries.data(), k.data(), t ? t->data() : nullptr, offsets.data(),
                static_cast<int64_t>(expiries.size()), half, kept};
    }
};

static const char* const NOT_ASCENDING = "strikes must be finite and ascending in each part";

// Runs the kernel without Python's lock.
template <class Run>
static void run(const Run& kernel) {
    bool sound;
    {
        nb::gil_scoped_release free;
        sound = kernel();
    }
    if (!sound) throw std::invalid_argument(NOT_ASCENDING);
}

using Rows = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

static Rows owned(std::unique_ptr<double[]> rows, size_t functions, size_t n) {
    double* data = rows.release();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    return Rows(data, {functions, n}, owner);
}

// Values and derivatives of a book: one row a function, one column a strike.
template <class Kernel>
static Rows rows_of(const Kernel& kernel, size_t parameters, const Strikes& strikes, nb::handle theta, int threads,
                    Kept* kept = nullptr) {
    const Doubles at(theta);
    const Book book = strikes.at(at, parameters, kept);
    std::unique_ptr<double[]> out(new double[(1 + parameters) * strikes.size() + 1]);
    run([&] { return kernel(book, out.get(), threads); });
    return owned(std::move(out), 1 + parameters, strikes.size());
}

static Rows heston_rows(nb::handle theta, nb::handle expiries, nb::handle offsets, nb::handle k, nb::handle t, double half,
                        int threads, Kept* kept) {
    return rows_of(DISPATCH(heston_rows), HESTON, Strikes(expiries, offsets, k, t, half), theta, threads, kept);
}

static Rows bates_rows(nb::handle theta, nb::handle expiries, nb::handle offsets, nb::handle k, int threads) {
    return rows_of(DISPATCH(bates_rows), BATES, Strikes(expiries, offsets, k, nb::none(), 0.0), theta, threads);
}

static Rows double_heston_rows(nb::handle theta, nb::handle expiries, nb::handle offsets, nb::handle k, int threads) {
    return rows_of(DISPATCH(double_heston_rows), DOUBLE_HESTON, Strikes(expiries, offsets, k, nb::none(), 0.0), theta, threads);
}

static Rows variance_gamma_rows(nb::handle theta, nb::handle expiries, nb::handle offsets, nb::handle k, nb::handle coefficients,
                                double centre, int threads) {
    const Doubles polynomial(coefficients);
    if (polynomial.size() == 0) throw std::invalid_argument("at least one coefficient is needed");
    const Erfcx erfcx = {polynomial.data(), polynomial.size() - 1, centre};
    auto kernel = [&](const Book& book, double* out, int count) { return DISPATCH(variance_gamma_rows)(book, erfcx, out, count); };
    return rows_of(kernel, VARIANCE_GAMMA, Strikes(expiries, offsets, k, nb::none(), 0.0), theta, threads);
}

// The values of one slice from its terms, whoever found them.
static Rows line_rows(nb::ndarray<const std::complex<double>, nb::ndim<2>, nb::c_contig, nb::device::cpu> F, double h,
                      double image, double low, double high, nb::handle k) {
    const Doubles strikes(k);
    const size_t n = strikes.size(), functions = F.shape(1);
    const Line line = {h, image, low, high, static_cast<int64_t>(F.shape(0)), static_cast<int>(functions),
                       reinterpret_cast<const double*>(F.data())};
    std::unique_ptr<double[]> out(new double[functions * n + 1]);
    run([&] { return DISPATCH(line_rows)(line, strikes.data(), static_cast<int64_t>(n), out.get()); });
    return owned(std::move(out), functions, n);
}

using descent::Numbers;
using Walls = std::tuple<Numbers, Numbers, std::vector<std::pair<int, int>>, std::vector<int>, std::tuple<double, double, double, double>>;
using Limits = std::tuple<double, double, double, int>;  // freedom, rounding, tolerance, cap
using Known = std::optional<std::tuple<Numbers, Numbers, double, bool, Numbers, Numbers, Numbers, Numbers>>;

static void check_places(const std::vector<int>& places, size_t size) {
    for (int i : places)
        if (i < 0 || static_cast<size_t>(i) >= size) throw std::invalid_argument("a place is not one of the parameters");
}

// Whether Heston's model has a price at these parameters: Heston._vector of models/heston.py.
static bool is_heston(const Numbers& theta) {
    constexpr double SMALLEST_VOL_OF_VOL = 1e-3;
    for (double x : theta)
        if (!std::isfinite(x)) return false;
    return theta[0] > 0.0 && theta[1] > 0.0 && theta[2] >= SMALLEST_VOL_OF_VOL && theta[4] > 0.0 && -1.0 < theta[3] && theta[3] < 1.0;
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
    // One start of a search, where nothing needs Python: see descent.hpp. `theta` has the values of parameters that are fixed.
    nb::tuple descend(Numbers theta, Kept* kept, const std::vector<int>& free, const Walls& walls, const Limits& limits,
                      const Known& known) const {
        if (theta.size() != HESTON) throw std::invalid_argument("theta is five numbers");
        auto [low, high, pairs, edges, steps] = walls;
        const auto [factor, share, near, edge] = steps;
        const auto [freedom, rounding, tolerance, cap] = limits;
        const size_t p = free.size();
        if (low.size() != p || high.size() != p) throw std::invalid_argument("bounds are needed for every free parameter");
        check_places(free, HESTON), check_places(edges, p);
        for (auto [i, j] : pairs) check_places({i, j}, p);
        const descent::Room room = {{low, high, pairs, factor, share, near}, edges, edge};
        std::optional<descent::Basin> basin;
        if (known) {
            const auto& [point, H, cost, is_held, near_low, near_high, within_low, within_high] = *known;
            basin = descent::Basin{point, H, cost, is_held, near_low, near_high, within_low, within_high};
            for (const Numbers* each : {&point, &near_low, &near_high, &within_low, &within_high})
                if (each->size() != p || H.size() != p * p) throw std::invalid_argument("an optimum has every free parameter");
        }
        Numbers start;
        for (int i : free) start.push_back(theta[static_cast<size_t>(i)]);
        const auto evaluate = [&](const Numbers& u) {
            for (size_t n = 0; n < p; n++) theta[static_cast<size_t>(free[n])] = u[n];
            Numbers sums(SUMS, NAN);
            if (is_heston(theta)) {
                const Book book = strikes.at(theta.data(), kept);
                if (!DISPATCH(heston_sums)(book, scale.data(), target.data(), sums.data(), threads))
                    throw std::invalid_argument(NOT_ASCENDING);
            }
            return descent::Evaluation(std::move(sums), HESTON + 1, free);
        };
        const auto search = [&] {
            nb::gil_scoped_release released;
            return descent::descend(evaluate, start, room, {freedom, rounding, tolerance}, cap, basin ? &*basin : nullptr);
        };
        const descent::Descent end = search();
        nb::list visits;
        for (const auto& visit : end.visits)
            visits.append(nb::make_tuple(visit.cost, visit.gradient, visit.damping, nb::tuple(nb::cast(visit.point)), visit.evaluations));
        return nb::make_tuple(end.ended, end.point, nb::tuple(nb::cast(end.at.triangle)), visits, end.evaluations,
                              nb::tuple(nb::cast(end.held)));
    }
    void at(nb::handle theta, nb::handle out, Kept* kept) {
        const Doubles at(theta);
        const Book book = strikes.at(at, HESTON, kept);
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

// Contiguous arrays of any shape; a complex one flat, as a real one of twice the length.
template <Real function>
static void real(nb::handle x, nb::handle out) {
    const Doubles from(x, Shape::any);
    const Result to(out, from.size(), Shape::any);
    DISPATCH_ARRAYS(apply_real)(function, from.data(), to.data(), static_cast<int64_t>(from.size()));
}
template <Pair function>
static void pair(nb::handle x, nb::handle y, nb::handle out) {
    const Doubles first(x, Shape::any), second(y, Shape::any);
    if (first.size() != second.size()) throw std::invalid_argument("columns of different lengths");
    const Result to(out, first.size(), Shape::any);
    DISPATCH_ARRAYS(apply_pair)(function, first.data(), second.data(), to.data(), static_cast<int64_t>(first.size()));
}
template <Complex function>
static void complex(nb::handle x, nb::handle out) {
    const Doubles from(x);
    if (from.size() % 2 != 0) throw std::invalid_argument("a complex number has two parts");
    const Result to(out, from.size());
    DISPATCH_ARRAYS(apply_complex)(function, from.data(), to.data(), static_cast<int64_t>(from.size() / 2));
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

void bind_american(nb::module_& m);
void bind_black(nb::module_& m);
void bind_exact(nb::module_& m);
void bind_parity(nb::module_& m);
void bind_search(nb::module_& m);
void bind_smooth_curves(nb::module_& m);
void bind_sorting(nb::module_& m);
void bind_symmetric(nb::module_& m);

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // a book still held when Python ends is nobody's business
    bind_arrays(m);
    bind_american(m);
    bind_black(m);
    bind_exact(m);
    bind_parity(m);
    bind_search(m);
    bind_smooth_curves(m);
    bind_sorting(m);
    bind_symmetric(m);
    nb::class_<Kept>(m, "HestonKept").def(nb::init<>());
    m.def("heston_rows", &heston_rows, nb::arg("theta"), nb::arg("expiries"), nb::arg("offsets"), nb::arg("k"),
          nb::arg("t").none(), nb::arg("half"), nb::arg("threads"), nb::arg("kept").none() = nb::none());
    m.def("bates_rows", &bates_rows, nb::arg("theta"), nb::arg("expiries"), nb::arg("offsets"), nb::arg("k"),
          nb::arg("threads"));
    m.def("double_heston_rows", &double_heston_rows, nb::arg("theta"), nb::arg("expiries"), nb::arg("offsets"), nb::arg("k"),
          nb::arg("threads"));
    m.def("variance_gamma_rows", &variance_gamma_rows, nb::arg("theta"), nb::arg("expiries"), nb::arg("offsets"), nb::arg("k"),
          nb::arg("coefficients"), nb::arg("centre"), nb::arg("threads"));
    m.def("line_rows", &line_rows, nb::arg("F"), nb::arg("h"), nb::arg("image"), nb::arg("low"), nb::arg("high"),
          nb::arg("k"));
    nb::class_<HestonSums>(m, "HestonSums")
        .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, double, nb::handle, nb::handle, int>(),
             nb::arg("expiries"), nb::arg("offsets"), nb::arg("k"), nb::arg("t").none(), nb::arg("half"), nb::arg("scale"),
             nb::arg("target"), nb::arg("threads"))
        .def("descend", &HestonSums::descend, nb::arg("theta"), nb::arg("kept").none(), nb::arg("free"), nb::arg("walls"),
             nb::arg("limits"), nb::arg("known").none())
        .def("at", &HestonSums::at, nb::arg("theta"), nb::arg("out"), nb::arg("kept").none() = nb::none());
    m.def("heston_weighed", &heston_weighed, nb::arg("theta"), nb::arg("expiries"), nb::arg("offsets"), nb::arg("k"),
          nb::arg("quadratic"), nb::arg("linear"), nb::arg("centre"), nb::arg("out"));
    m.def("instructions", [] { return NAMES[static_cast<int>(instructions)]; });
    m.def("available_instructions", &available_instructions);
    m.def("use_instructions", &use_instructions);
}
