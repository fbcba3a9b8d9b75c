// The Python side of the kernel: shapes are checked here, arithmetic is not.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>

#include "kernel.hpp"

namespace nb = nanobind;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Times = std::optional<Doubles>;
constexpr size_t FUNCTIONS = 6, SUMS = 21, WEIGHED = 22;

static bool has_avx2() {
#if defined(STRIKEOUT_AVX2)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}
static bool use_avx2 = has_avx2();
#if defined(STRIKEOUT_AVX2)
#define DISPATCH(function) (use_avx2 ? avx2::function : plain::function)
#else
#define DISPATCH(function) plain::function
#endif

static Book book_of(const Doubles& theta, const Doubles& expiries, const Integers& offsets, const Doubles& k,
                    const Times& t, double half) {
    const size_t parts = expiries.shape(0), n = k.shape(0);
    if (theta.shape(0) != 5 || offsets.shape(0) != parts + 1 || (t && t->shape(0) != n))
        throw std::invalid_argument("shapes do not fit together");
    if (offsets(0) != 0 || offsets(parts) != static_cast<int64_t>(n))
        throw std::invalid_argument("offsets must run from zero to the number of strikes");
    for (size_t j = 0; j < parts; j++)
        if (offsets(j + 1) < offsets(j)) throw std::invalid_argument("offsets must not fall");
    return {theta.data(),   expiries.data(), k.data(), t ? t->data() : nullptr, offsets.data(),
            static_cast<int64_t>(parts), half};
}

using Out = std::unique_ptr<double[]>;

template <size_t NDIM>
static auto owned(Out out, std::initializer_list<size_t> shape) {
    double* data = out.release();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    return nb::ndarray<nb::numpy, double, nb::ndim<NDIM>>(data, shape, owner);
}

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

static auto heston_rows(Doubles theta, Doubles expiries, Integers offsets, Doubles k, Times t, double half, int threads) {
    const Book book = book_of(theta, expiries, offsets, k, t, half);
    const size_t n = k.shape(0);
    Out out(new double[FUNCTIONS * n + 1]);
    run([&] { return DISPATCH(heston_rows)(book, out.get(), threads); });
    return owned<2>(std::move(out), {FUNCTIONS, n});
}

static auto heston_sums(Doubles theta, Doubles expiries, Integers offsets, Doubles k, Times t, double half,
                        Doubles scale, Doubles target, int threads) {
    const Book book = book_of(theta, expiries, offsets, k, t, half);
    if (scale.shape(0) != k.shape(0) || target.shape(0) != k.shape(0))
        throw std::invalid_argument("scale and target must be as long as k");
    Out out(new double[SUMS]);
    run([&] { return DISPATCH(heston_sums)(book, scale.data(), target.data(), out.get(), threads); });
    return owned<1>(std::move(out), {SUMS});
}

static auto heston_weighed(Doubles theta, Doubles expiries, Integers offsets, Doubles k, Doubles quadratic, Doubles linear,
                           Doubles centre) {
    const Book book = book_of(theta, expiries, offsets, k, std::nullopt, 0.0);
    if (quadratic.shape(0) != k.shape(0) || linear.shape(0) != k.shape(0) || centre.shape(0) != k.shape(0))
        throw std::invalid_argument("the weights must be as long as k");
    Out out(new double[WEIGHED]);
    run([&] { return DISPATCH(heston_weighed)(book, quadratic.data(), linear.data(), centre.data(), out.get()); });
    return owned<1>(std::move(out), {WEIGHED});
}

void bind_exact(nb::module_& m);
void bind_symmetric(nb::module_& m);

NB_MODULE(_native, m) {
    bind_exact(m);
    bind_symmetric(m);
    m.def("heston_rows", &heston_rows, nb::arg("theta"), nb::arg("expiries"), nb::arg("offsets"), nb::arg("k"),
          nb::arg("t").none(), nb::arg("half"), nb::arg("threads"));
    m.def("heston_sums", &heston_sums, nb::arg("theta"), nb::arg("expiries"), nb::arg("offsets"), nb::arg("k"),
          nb::arg("t").none(), nb::arg("half"), nb::arg("scale"), nb::arg("target"), nb::arg("threads"));
    m.def("heston_weighed", &heston_weighed, nb::arg("theta"), nb::arg("expiries"), nb::arg("offsets"), nb::arg("k"),
          nb::arg("quadratic"), nb::arg("linear"), nb::arg("centre"));
    m.def("instructions", [] { return use_avx2 ? "avx2" : "plain"; });
    m.def("use_instructions", [](const char* name) {  // for the test that all of them give the same bits
        use_avx2 = std::strcmp(name, "avx2") == 0 && has_avx2();
    });
}
