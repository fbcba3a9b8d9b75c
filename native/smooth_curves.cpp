// What smooth curves leave of residuals, slice by slice: kernels/smooth_curves.py, where the symbols are explained, in one pass
// per polynomial and in the order of the rows.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "column.hpp"

namespace nb = nanobind;
using Doubles = Column<double>;
using Integers = Column<int64_t>;

struct Room {
    std::vector<double> polynomial, last, rest;
};

// Of one slice: the sum of w r^2 that is left, and the number of polynomials.
static std::pair<double, int64_t> left_of(const double* x, const double* r, const double* w, size_t n, int64_t most, Room& room) {
    int64_t different = 0;
    for (size_t i = 0; i < n; i++) different += i == 0 || x[i] != x[i - 1];
    const int64_t terms = std::min(different / 2, most);
    room.polynomial.assign(n, 1.0), room.last.assign(n, 0.0), room.rest.assign(r, r + n);
    double *p = room.polynomial.data(), *q = room.last.data(), *rest = room.rest.data(), last_norm = 1.0;
    for (int64_t degree = 0; degree < terms; degree++) {
        double norm = 0.0, shared = 0.0, first = 0.0;
        for (size_t i = 0; i < n; i++) {
            const double weighted = w[i] * p[i], square = weighted * p[i];
            norm += square, shared += weighted * rest[i], first += square * x[i];
        }
        if (!(norm > 0.0)) break;
        const double share = shared / norm, centre = first / norm, ratio = norm / last_norm;
        for (size_t i = 0; i < n; i++) {
            rest[i] -= share * p[i];
            q[i] = (x[i] - centre) * p[i] - ratio * q[i];
        }
        std::swap(p, q), last_norm = norm;
    }
    double left = 0.0;
    for (size_t i = 0; i < n; i++) left += w[i] * rest[i] * rest[i];
    return {left, terms};
}

// Of one slice, from sums over nodes: what the polynomials explain, and how many there are.
static std::pair<double, int64_t> explained_of(const double* x, const double* linear, const double* quadratic, size_t n, int64_t terms,
                                               Room& room) {
    constexpr double LEAST = 1e-9;  // of the norm of the first polynomial, as in the twin
    room.polynomial.assign(n, 1.0), room.last.assign(n, 0.0), room.rest.assign(linear, linear + n);
    double *p = room.polynomial.data(), *q = room.last.data(), *rest = room.rest.data(), last_norm = 1.0, least = 0.0, total = 0.0;
    int64_t degree = 0;
    for (; degree < terms; degree++) {
        double norm = 0.0, shared = 0.0, first = 0.0;
        for (size_t i = 0; i < n; i++) {
            const double square = quadratic[i] * p[i] * p[i];
            norm += square, shared += rest[i] * p[i], first += square * x[i];
        }
        if (degree == 0) least = LEAST * norm;
        if (!(norm > least)) break;
        const double share = shared / norm, centre = first / norm, ratio = norm / last_norm;
        total += share * share * norm;
        for (size_t i = 0; i < n; i++) {
            rest[i] -= share * (quadratic[i] * p[i]);
            q[i] = (x[i] - centre) * p[i] - ratio * q[i];
        }
        std::swap(p, q), last_norm = norm;
    }
    return {total, degree};
}

static void check_offsets(const Integers& ends, size_t count) {
    bool fits = ends.size() > 0 && ends[0] == 0 && ends[ends.size() - 1] == static_cast<int64_t>(count);
    for (size_t j = 1; j < ends.size(); j++) fits = fits && ends[j - 1] <= ends[j];
    if (!fits) throw std::invalid_argument("offsets run from zero to the number of rows, and do not fall");
}

void bind_smooth_curves(nb::module_& m) {
    m.def("smooth_sums", [](nb::handle x, nb::handle offsets, nb::handle linear, nb::handle quadratic, nb::handle terms) {
        const Doubles at(x), sums(linear), weight(quadratic);
        const Integers ends(offsets), most(terms);
        const size_t count = at.size();
        if (sums.size() != count || weight.size() != count) throw std::invalid_argument("columns of different lengths");
        check_offsets(ends, count);
        if (most.size() + 1 != ends.size()) throw std::invalid_argument("one number of terms per slice");
        Room room;
        double total = 0.0;
        int64_t used = 0;
        for (size_t j = 0; j + 1 < ends.size(); j++) {
            const auto begin = static_cast<size_t>(ends[j]), n = static_cast<size_t>(ends[j + 1]) - begin;
            const auto [own, own_terms] = explained_of(at.data() + begin, sums.data() + begin, weight.data() + begin, n, most[j], room);
            total += own, used += own_terms;
        }
        return nb::make_tuple(total, used);
    });
    m.def("smooth_curves", [](nb::handle x, nb::handle offsets, nb::handle r, nb::handle w, int64_t most) {
        const Doubles at(x), residual(r), weight(w);
        const Integers ends(offsets);
        const size_t count = at.size();
        if (residual.size() != count || weight.size() != count) throw std::invalid_argument("columns of different lengths");
        check_offsets(ends, count);
        Room room;
        double left = 0.0;
        int64_t used = 0;
        for (size_t j = 0; j + 1 < ends.size(); j++) {
            const auto begin = static_cast<size_t>(ends[j]), n = static_cast<size_t>(ends[j + 1]) - begin;
            const auto [own, terms] = left_of(at.data() + begin, residual.data() + begin, weight.data() + begin, n, most, room);
            left += own, used += terms;
        }
        return nb::make_tuple(left, used);
    });
}
