// The Python side of the exact sums.
#include "exact.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "cell_sums.hpp"
#include "dispatch.hpp"
#include "footprint_sums.hpp"

namespace nb = nanobind;
using Rows = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Limbs = nb::ndarray<const uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Cube = nb::ndarray<const uint64_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Exponents = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
static_assert(sizeof(exact::Wide) == 3 * sizeof(uint64_t), "a sum is three words");

constexpr size_t MOST_COLUMNS = 1 << 15;     // of a row: places in a triangle are then counted by an int
constexpr int64_t MOST_POLYNOMIALS = 4096;   // of a point
constexpr int32_t WIDEST_EXPONENT = 1000;    // of a column: doubles go no further
constexpr int SUM_BITS = 191, MOST_BITS = 57;  // of the size of a sum; of a basis value on its grid

// Whether a triangle of this size is that of rows of this width.
static bool is_triangle(size_t size, size_t width) { return width <= MOST_COLUMNS && size == width * (width + 1) / 2; }

static void check_exponents(const int32_t* exponents, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (exponents[i] < -WIDEST_EXPONENT || exponents[i] > WIDEST_EXPONENT)
            throw std::invalid_argument("the exponents of columns lie between -1000 and 1000");
}

template <class T, size_t NDIM>
static auto owned(T* data, std::initializer_list<size_t> shape) {
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<NDIM>>(data, shape, owner);
}

static void check(const Limbs& state, const Rows& rows, const std::optional<Places>& pick) {
    if (state.shape(1) != 3 || !is_triangle(state.shape(0), rows.shape(1)))
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

// False for what is not a number.
static bool are_below(const double* numbers, size_t count, double most) {
    bool are = true;
    for (size_t i = 0; i < count; i++) are = are && std::fabs(numbers[i]) < most;
    return are;
}

// That no sum of these points can leave its words: a basis value is below two, `count` of them below 2^bits.
static void check_points(const exact::Points& p, int basis_grid, int factor_grid) {
    const auto count = static_cast<size_t>(p.count);
    if (!are_below(p.cells, 2 * count, INFINITY) || !are_below(p.factors, 4 * count, INFINITY))
        throw std::invalid_argument("a cell or a factor is not finite");
    const double most = 1.0 + std::ldexp(1.0, -30);  // so that T_4096 is below 1.02
    if (!are_below(p.x, count, most) || (p.t != nullptr && !are_below(p.t, count, most)))
        throw std::invalid_argument("places must lie between -1 and 1");
    int bits = 0;
    while (p.count >> bits > 0) bits++;
    const int room = SUM_BITS - bits - factor_grid;
    if (!are_below(p.factors, 2 * count, std::ldexp(1.0, room - basis_grid - 1)) ||
        !are_below(p.factors + 2 * count, 2 * count, std::ldexp(1.0, room)))
        throw std::invalid_argument("a factor is too large: its sums would not fit into 192 bits");
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

// A C-contiguous array of integers of type T, by Python's own buffer protocol.
template <class T>
class Buffer {
    Py_buffer view;

    bool holds_such() const {  // a letter by itself: of this machine's byte order
        const char* letters = std::is_same_v<T, uint64_t> ? "LQN" : std::is_same_v<T, int64_t> ? "lqn" : "il";
        return view.itemsize == sizeof(T) && std::strlen(view.format) == 1 && std::strchr(letters, view.format[0]) != nullptr;
    }

  public:
    Buffer(nb::handle array, int dimensions) {
        if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
        const bool fits = view.ndim == dimensions, is_such = holds_such();
        if (fits && is_such) return;
        PyBuffer_Release(&view);
        if (!is_such) throw nb::type_error("words are uint64, rows and picks int64, exponents int32");
        throw std::invalid_argument("words and rows are tables, picks and exponents columns");
    }
    ~Buffer() { PyBuffer_Release(&view); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    int64_t shape(int axis) const { return view.shape[axis]; }
    const T* data() const { return static_cast<const T*>(view.buf); }
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
        if (state.shape(1) != 3 || !is_triangle(size, exponents.shape(0)))
            throw std::invalid_argument("the state is not one of rows of this width");
        check_exponents(exponents.data(), exponents.shape(0));
        double* out = new double[size];
        read_into(reinterpret_cast<const exact::Wide*>(state.data()), exponents, out);
        return owned<double, 1>(out, {size});
    });
    m.def("exact_footprints", [](Table jacobian, Numbers residual, Numbers root_weight, Exponents exponents) {
        const size_t width = exponents.shape(0), count = residual.shape(0);
        if (width < 1 || width > MOST_COLUMNS || jacobian.shape(0) + 1 != width || jacobian.shape(1) != count ||
            root_weight.shape(0) != count)
            throw std::invalid_argument("sensitivities, residuals, weights and exponents are not of the same quotes");
        check_exponents(exponents.data(), width);
        std::vector<double> unit(width);
        for (size_t c = 0; c < width; c++) unit[c] = std::ldexp(1.0, exponents(c));
        const size_t size = width * (width + 1) / 2;
        auto* out = new uint64_t[3 * size]();
        auto words = owned<uint64_t, 2>(out, {size, 3});
        const Footprinted of = {jacobian.data(), residual.data(), root_weight.data(), unit.data(), static_cast<int64_t>(count),
                                static_cast<int>(width) - 1};
        const FootprintSums found = DISPATCH(footprint_sums)(of, reinterpret_cast<exact::Wide*>(out));
        return nb::make_tuple(words, found.counted, found.unfit);
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
            axes != (across > 1 ? 2 : 1))
            throw std::invalid_argument("cells, places and factors are not of the same points");
        if (along < 1 || across < 1 || along > MOST_POLYNOMIALS || across > MOST_POLYNOMIALS)
            throw std::invalid_argument("one polynomial at least, along and across, and 4,096 at most");
        if (basis_grid < 0 || basis_grid > MOST_BITS || factor_grid < 0 || factor_grid > SUM_BITS)
            throw std::invalid_argument("the grids are finer than words of 192 bits hold, or too coarse");
        const double* x = places.data();
        const exact::Points points = {cells.data(), x, axes == 2 ? x + count : nullptr, factors.data(), static_cast<int64_t>(count)};
        check_points(points, basis_grid, factor_grid);
        exact::Cells found;
        {
            nb::gil_scoped_release free;
            found = exact::resolve(points, along, across, basis_grid, factor_grid, DISPATCH_ARRAYS(add_cell));
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
        if (count < 1 || count > static_cast<size_t>(MOST_POLYNOMIALS))
            throw std::invalid_argument("one polynomial at least, and 4,096 at most");
        double* out = new double[count * x.shape(0) + 1];
        exact::polynomials(x.data(), static_cast<int64_t>(x.shape(0)), static_cast<int64_t>(count), out);
        return owned<double, 2>(out, {count, x.shape(0)});
    });
    m.def("chebyshev_transform", [](nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> matrix,
                                    nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu> values) {
        const size_t rows = matrix.shape(0), terms = matrix.shape(1), outer = values.shape(0), inner = values.shape(2);
        if (terms < 1 || values.shape(1) != terms) throw std::invalid_argument("the matrix does not fit the values");
        double* out = new double[outer * rows * inner + 1];
        exact::transform(matrix.data(), static_cast<int64_t>(rows), static_cast<int64_t>(terms), values.data(),
                         static_cast<int64_t>(outer), static_cast<int64_t>(inner), out);
        return owned<double, 3>(out, {outer, rows, inner});
    });
    m.def("symmetric_solve", [](nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu> triangle, int p) {
        if (p < 1 || !is_triangle(triangle.shape(0), static_cast<size_t>(p) + 1))
            throw std::invalid_argument("the triangle is not one of p parameters");
        double* x = new double[static_cast<size_t>(p)];
        exact::solve(triangle.data(), p, x);
        return owned<double, 1>(x, {static_cast<size_t>(p)});
    });
    // Take rows away, read the sums and solve for the Gauss-Newton step, in one go. What takes two microseconds of
    // arithmetic must not take two more of conversions: arrays come in as plain buffers, and bytes go out: the state, and
    // the sums followed by the step.
    m.def("exact_downdate", [](nb::handle state, nb::handle rows, nb::handle pick, nb::handle exponents) {
        const Buffer<uint64_t> words(state, 2);
        const Buffer<int64_t> table(rows, 2);
        const Buffer<int32_t> grid(exponents, 1);
        const int64_t size = words.shape(0), width = table.shape(1), all = table.shape(0);
        if (words.shape(1) != 3 || width < 1 || !is_triangle(static_cast<size_t>(size), static_cast<size_t>(width)) ||
            grid.shape(0) != width)
            throw std::invalid_argument("the state is not one of rows of this width");
        const int32_t* e = grid.data();
        check_exponents(e, static_cast<size_t>(width));
        auto left = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, 24 * size));
        auto solved = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, 8 * (size + width - 1)));
        if (!left.is_valid() || !solved.is_valid()) throw nb::python_error();
        auto* out = reinterpret_cast<exact::Wide*>(PyBytes_AS_STRING(left.ptr()));
        auto* read = reinterpret_cast<double*>(PyBytes_AS_STRING(solved.ptr()));
        std::memcpy(out, words.data(), 24 * static_cast<size_t>(size));
        if (pick.is_none()) {
            exact::accumulate(out, table.data(), all, static_cast<int>(width), nullptr, true);
        } else {
            const Buffer<int64_t> places(pick, 1);
            const int64_t* at = places.data();
            for (int64_t i = 0; i < places.shape(0); i++)
                if (at[i] < 0 || at[i] >= all) throw std::invalid_argument("a picked row is not there");
            exact::accumulate(out, table.data(), places.shape(0), static_cast<int>(width), at, true);
        }
        int64_t place = 0;
        for (int64_t i = 0; i < width; i++)
            for (int64_t j = i; j < width; j++, place++) read[place] = exact::nearest(out[place], -(e[i] + e[j]));
        exact::solve(read, static_cast<int>(width) - 1, read + size);
        return nb::make_tuple(left, solved);
    }, nb::arg("state"), nb::arg("rows"), nb::arg("pick").none(), nb::arg("exponents"));
}
