// The Python side of the exact sums.
#include "exact.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace nb = nanobind;
using Rows = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Limbs = nb::ndarray<const uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Cube = nb::ndarray<const uint64_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Exponents = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
static_assert(sizeof(exact::Wide) == 3 * sizeof(uint64_t), "a sum is three words");

static int size_of(size_t width) { return static_cast<int>(width * (width + 1) / 2); }

template <class T, size_t NDIM>
static auto owned(T* data, std::initializer_list<size_t> shape) {
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<NDIM>>(data, shape, owner);
}

static void check(const Limbs& state, const Rows& rows, const std::optional<Places>& pick) {
    if (state.shape(1) != 3 || static_cast<int>(state.shape(0)) != size_of(rows.shape(1)))
        throw std::invalid_argument("the state is not one of rows of this width");
    if (!pick) return;
    for (size_t i = 0; i < pick->shape(0); i++)
        if ((*pick)(i) < 0 || (*pick)(i) >= static_cast<int64_t>(rows.shape(0)))
            throw std::invalid_argument("a picked row is not there");
}

static exact::Wide* changed(const Limbs& state, const Rows& rows, const std::optional<Places>& pick, bool subtract) {
    check(state, rows, pick);
    const size_t size = state.shape(0);
    auto* out = reinterpret_cast<exact::Wide*>(new uint64_t[3 * size]);
    std::memcpy(out, state.data(), 3 * size * sizeof(uint64_t));
    const int64_t count = static_cast<int64_t>(pick ? pick->shape(0) : rows.shape(0));
    exact::accumulate(out, rows.data(), count, static_cast<int>(rows.shape(1)), pick ? pick->data() : nullptr, subtract);
    return out;
}

static void read_into(const exact::Wide* state, const Exponents& exponents, double* out) {
    int at = 0;
    const int width = static_cast<int>(exponents.shape(0));
    for (int i = 0; i < width; i++)
        for (int j = i; j < width; j++, at++) out[at] = exact::nearest(state[at], -(exponents(i) + exponents(j)));
}

// Groups of consecutive rows, each with its first row; none is empty.
static bool are_groups(const Places& starts, size_t rows) {
    const size_t groups = starts.shape(0);
    bool fits = groups > 0 && starts(0) == 0;
    for (size_t g = 0; g < groups && fits; g++)
        fits = starts(g) < (g + 1 < groups ? starts(g + 1) : static_cast<int64_t>(rows));
    return fits;
}

static bool are_finite(const Table& numbers) {
    bool are = true;
    for (size_t i = 0; i < numbers.shape(0) * numbers.shape(1); i++) are = are && std::isfinite(numbers.data()[i]);
    return are;
}

static exact::Table table_of(const Table& keys, const Cube& sums, const Places& counts) {
    const size_t rows = keys.shape(0);
    if (keys.shape(1) != 2 || sums.shape(0) != rows || counts.shape(0) != rows)
        throw std::invalid_argument("keys, sums and counts are not of one table");
    const exact::Table table = {keys.data(), reinterpret_cast<const exact::Wide*>(sums.data()), counts.data(),
                                static_cast<int64_t>(rows)};
    for (int64_t i = 1; i < table.rows; i++)
        if (!table.before(i - 1, table, i)) throw std::invalid_argument("the keys of a table must ascend");
    return table;
}

// A C-contiguous array of numbers of `bytes` bytes each, by Python's own buffer protocol.
class Buffer {
    Py_buffer view;

  public:
    Buffer(nb::handle array, int dimensions, Py_ssize_t bytes) {
        if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
        if (view.ndim == dimensions && view.itemsize == bytes) return;
        PyBuffer_Release(&view);
        throw std::invalid_argument("an array of another shape or type is needed");
    }
    ~Buffer() { PyBuffer_Release(&view); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    int64_t shape(int axis) const { return view.shape[axis]; }
    const void* data() const { return view.buf; }
};

void bind_exact(nb::module_& m) {
    m.def(
        "exact_change",
        [](Limbs state, Rows rows, std::optional<Places> pick, bool subtract) {
            auto* out = changed(state, rows, pick, subtract);
            return owned<uint64_t, 2>(reinterpret_cast<uint64_t*>(out), {state.shape(0), 3});
        },
        nb::arg("state"), nb::arg("rows"), nb::arg("pick").none(), nb::arg("subtract"));
    m.def("exact_read", [](Limbs state, Exponents exponents) {
        const size_t size = state.shape(0);
        if (state.shape(1) != 3 || static_cast<int>(size) != size_of(exponents.shape(0)))
            throw std::invalid_argument("the state is not one of rows of this width");
        double* out = new double[size];
        read_into(reinterpret_cast<const exact::Wide*>(state.data()), exponents, out);
        return owned<double, 1>(out, {size});
    });
    m.def("exact_merge", [](Table keys_a, Cube sums_a, Places counts_a, Table keys_b, Cube sums_b, Places counts_b, bool subtract) {
        const size_t width = sums_a.shape(1), most = keys_a.shape(0) + keys_b.shape(0);
        if (sums_b.shape(1) != width || sums_a.shape(2) != 3 || sums_b.shape(2) != 3)
            throw std::invalid_argument("the sums are not of one width");
        const exact::Table a = table_of(keys_a, sums_a, counts_a), b = table_of(keys_b, sums_b, counts_b);
        auto* keys = new double[2 * most + 1];
        auto* sums = new uint64_t[most * width * 3 + 1];
        auto* counts = new int64_t[most + 1];
        const auto rows = static_cast<size_t>(exact::merge(a, b, static_cast<int64_t>(width), subtract, keys,
                                                           reinterpret_cast<exact::Wide*>(sums), counts));
        return nb::make_tuple(owned<double, 2>(keys, {rows, 2}), owned<uint64_t, 3>(sums, {rows, width, 3}),
                              owned<int64_t, 1>(counts, {rows}));
    });
    m.def("exact_cells", [](Table cells, Table places, Table factors, int64_t along, int64_t across, int basis_grid, int factor_grid) {
        const size_t count = cells.shape(0), axes = places.shape(0);
        if (cells.shape(1) != 2 || places.shape(1) != count || factors.shape(0) != 4 || factors.shape(1) != count ||
            along < 1 || across < 1 || axes != (across > 1 ? 2 : 1))
            throw std::invalid_argument("cells, places and factors are not of the same points");
        if (!are_finite(cells) || !are_finite(places) || !are_finite(factors))  // neither sorted nor rounded without a meaning
            throw std::invalid_argument("a cell, a place or a factor is not finite");
        const double* x = places.data();
        const exact::Points points = {cells.data(), x, axes == 2 ? x + count : nullptr, factors.data(), static_cast<int64_t>(count)};
        exact::Cells found;
        {
            nb::gil_scoped_release free;
            found = exact::resolve(points, along, across, basis_grid, factor_grid);
        }
        const size_t rows = found.counts.size(), width = static_cast<size_t>(2 * along * across + 2);
        auto* keys = new double[2 * rows + 1];
        auto* sums = new uint64_t[rows * width * 3 + 1];
        auto* counts = new int64_t[rows + 1];
        std::copy(found.keys.begin(), found.keys.end(), keys);
        std::copy(found.counts.begin(), found.counts.end(), counts);
        if (rows > 0) std::memcpy(sums, found.sums.data(), found.sums.size() * sizeof(exact::Wide));
        return nb::make_tuple(owned<double, 2>(keys, {rows, 2}), owned<uint64_t, 3>(sums, {rows, width, 3}),
                              owned<int64_t, 1>(counts, {rows}));
    });
    m.def("exact_groups", [](Cube words, Places starts) {
        const size_t rows = words.shape(0), width = words.shape(1), groups = starts.shape(0);
        if (words.shape(2) != 3 || !are_groups(starts, rows)) throw std::invalid_argument("the groups are not those of these words");
        auto* out = new uint64_t[groups * width * 3 + 1]();
        auto* sums = reinterpret_cast<exact::Wide*>(out);
        const auto* from = reinterpret_cast<const exact::Wide*>(words.data());
        for (size_t g = 0, i = 0; g < groups; g++, sums += width)
            for (const size_t end = g + 1 < groups ? static_cast<size_t>(starts(g + 1)) : rows; i < end; i++, from += width)
                for (size_t q = 0; q < width; q++) exact::add(sums[q], from[q]);
        return owned<uint64_t, 3>(out, {groups, width, 3});
    });
    m.def("exact_words", [](Limbs words, int exponent) {
        if (words.shape(1) != 3 || exponent < -900 || exponent > 800)
            throw std::invalid_argument("words come in threes, of an exponent between -900 and 800");
        const size_t count = words.shape(0);
        const auto* sums = reinterpret_cast<const exact::Wide*>(words.data());
        double* out = new double[count + 1];
        const exact::Reader read(exponent);
        for (size_t i = 0; i < count; i++) out[i] = read(sums[i]);
        return owned<double, 1>(out, {count});
    });
    m.def("chebyshev_polynomials", [](nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu> x, size_t count) {
        if (count < 1) throw std::invalid_argument("at least one polynomial is needed");
        double* out = new double[count * x.shape(0) + 1];
        exact::polynomials(x.data(), static_cast<int64_t>(x.shape(0)), static_cast<int64_t>(count), out);
        return owned<double, 2>(out, {count, x.shape(0)});
    });
    m.def("symmetric_solve", [](nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu> triangle, int p) {
        if (static_cast<int>(triangle.shape(0)) != size_of(static_cast<size_t>(p) + 1) || p < 1)
            throw std::invalid_argument("the triangle is not one of p parameters");
        double* x = new double[static_cast<size_t>(p)];
        exact::solve(triangle.data(), p, x);
        return owned<double, 1>(x, {static_cast<size_t>(p)});
    });
    // Take rows away, read the sums and solve for the Gauss-Newton step, in one go. What takes two microseconds of
    // arithmetic must not take two more of conversions: arrays come in as plain buffers, and bytes go out: the state, and
    // the sums followed by the step.
    m.def("exact_downdate", [](nb::handle state, nb::handle rows, nb::handle pick, nb::handle exponents) {
        const Buffer words(state, 2, 8), table(rows, 2, 8), grid(exponents, 1, 4);
        const int64_t size = words.shape(0), width = table.shape(1), all = table.shape(0);
        if (words.shape(1) != 3 || size != size_of(static_cast<size_t>(width)) || grid.shape(0) != width)
            throw std::invalid_argument("the state is not one of rows of this width");
        const auto* numbers = static_cast<const int64_t*>(table.data());
        auto left = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, 24 * size));
        auto solved = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, 8 * (size + width - 1)));
        auto* out = reinterpret_cast<exact::Wide*>(PyBytes_AS_STRING(left.ptr()));
        auto* read = reinterpret_cast<double*>(PyBytes_AS_STRING(solved.ptr()));
        std::memcpy(out, words.data(), 24 * static_cast<size_t>(size));
        if (pick.is_none()) {
            exact::accumulate(out, numbers, all, static_cast<int>(width), nullptr, true);
        } else {
            const Buffer places(pick, 1, 8);
            const auto* at = static_cast<const int64_t*>(places.data());
            for (int64_t i = 0; i < places.shape(0); i++)
                if (at[i] < 0 || at[i] >= all) throw std::invalid_argument("a picked row is not there");
            exact::accumulate(out, numbers, places.shape(0), static_cast<int>(width), at, true);
        }
        const auto* e = static_cast<const int32_t*>(grid.data());
        int64_t place = 0;
        for (int64_t i = 0; i < width; i++)
            for (int64_t j = i; j < width; j++, place++) read[place] = exact::nearest(out[place], -(e[i] + e[j]));
        exact::solve(read, static_cast<int>(width) - 1, read + size);
        return nb::make_tuple(left, solved);
    }, nb::arg("state"), nb::arg("rows"), nb::arg("pick").none(), nb::arg("exponents"));
}
