// Small symmetric positive definite systems on Python lists of floats: kernels/symmetric.py, operation by operation and
// therefore bit for bit, without the interpreter in between.
#include <nanobind/nanobind.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "cholesky.hpp"

namespace nb = nanobind;

static double at(PyObject* row, Py_ssize_t j) { return PyFloat_AsDouble(PyList_GET_ITEM(row, j)); }

static PyObject* checked(PyObject* list, Py_ssize_t least) {
    if (!PyList_CheckExact(list) || PyList_GET_SIZE(list) < least) throw std::invalid_argument("lists of floats are needed");
    return list;
}

static nb::list list_of(const double* values, Py_ssize_t count) {
    nb::list out = nb::steal<nb::list>(PyList_New(count));
    for (Py_ssize_t i = 0; i < count; i++) PyList_SET_ITEM(out.ptr(), i, PyFloat_FromDouble(values[i]));
    return out;
}

static void raise_if_bad() {
    if (PyErr_Occurred()) throw nb::python_error();
}

static nb::tuple factor(nb::list A, double damping) {
    const int p = static_cast<int>(PyList_GET_SIZE(A.ptr()));
    std::vector<double> d(p), L(static_cast<size_t>(p) * p);
    for (int i = 0; i < p; i++) checked(PyList_GET_ITEM(A.ptr(), i), i + 1);
    cholesky::factor([&](int i, int j) { return at(PyList_GET_ITEM(A.ptr(), i), j); }, p, damping, d.data(), L.data());
    nb::list rows = nb::steal<nb::list>(PyList_New(p));
    for (int i = 0; i < p; i++) PyList_SET_ITEM(rows.ptr(), i, list_of(&L[i * p], i + 1).release().ptr());
    raise_if_bad();
    return nb::make_tuple(list_of(d.data(), p), rows);
}

static nb::list forward(nb::list d, nb::list L, nb::list b) {
    const Py_ssize_t p = PyList_GET_SIZE(L.ptr());
    checked(d.ptr(), p), checked(b.ptr(), p);
    std::vector<double> z(p);
    for (Py_ssize_t i = 0; i < p; i++) {
        PyObject* row = checked(PyList_GET_ITEM(L.ptr(), i), i + 1);
        double t = at(d.ptr(), i) * at(b.ptr(), i);
        for (Py_ssize_t j = 0; j < i; j++) t -= at(row, j) * z[j];
        z[i] = t / at(row, i);
    }
    raise_if_bad();
    return list_of(z.data(), p);
}

// Solves A x = G for the coordinates that are free, given the steps of those that have stopped; the order of operations is
// that of calibration/box.py.
static void solve_free(const double* A, const double* G, const std::vector<int>& free, const std::vector<int>& stops,
                       const double* s, int p, double* x) {
    const int n = static_cast<int>(free.size());
    std::vector<double> d(n), L(static_cast<size_t>(n) * n);
    cholesky::factor([&](int i, int j) { return A[free[i] * p + free[j]]; }, n, 0.0, d.data(), L.data());
    auto right = [&](int i) {
        double moved = 0.0;
        for (int j : stops) moved += A[free[i] * p + j] * s[j];
        return G[free[i]] - moved;
    };
    cholesky::solve(right, n, d.data(), L.data(), x);
}

static std::vector<double> numbers(PyObject* list, Py_ssize_t count) {
    std::vector<double> out(count);
    for (Py_ssize_t i = 0; i < count; i++) out[i] = at(checked(list, count), i);
    return out;
}

static std::vector<double> matrix(PyObject* rows, Py_ssize_t p) {
    std::vector<double> out(p * p);
    for (Py_ssize_t i = 0; i < p; i++)
        for (Py_ssize_t j = 0; j < p; j++) out[i * p + j] = at(checked(PyList_GET_ITEM(checked(rows, p), i), p), j);
    return out;
}

// The damped step within its stride: the steps, and where the coordinates that stopped stand, one after the other.
static nb::tuple strides(nb::list u_, nb::list A_, nb::list G_, nb::list lower_, nb::list upper_, nb::list held) {
    const Py_ssize_t p = PyList_GET_SIZE(u_.ptr());
    const auto u = numbers(u_.ptr(), p), G = numbers(G_.ptr(), p), lower = numbers(lower_.ptr(), p),
               upper = numbers(upper_.ptr(), p), A = matrix(A_.ptr(), p);
    std::vector<double> s(p, 0.0), x(p), to(p);
    std::vector<int> stops, free;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(held.ptr()); i++) {
        const long k = PyLong_AsLong(PyList_GET_ITEM(held.ptr(), i));
        if (k < 0 || k >= p) throw std::invalid_argument("a held coordinate is not there");
        stops.push_back(static_cast<int>(k));
        to[k] = u[k];
    }
    for (int i = 0; i < p; i++) {
        bool is_held = false;
        for (int k : stops) is_held = is_held || k == i;
        if (!is_held) free.push_back(i);
    }
    while (!free.empty()) {
        solve_free(A.data(), G.data(), free, stops, s.data(), static_cast<int>(p), x.data());
        double over = 1.0;
        int worst = -1;
        for (size_t n = 0; n < free.size(); n++) {
            const int i = free[n];
            s[i] = x[n];
            const double room = x[n] > 0.0 ? upper[i] - u[i] : lower[i] - u[i];
            if (std::fabs(x[n]) > over * std::fabs(room)) over = room != 0.0 ? x[n] / room : INFINITY, worst = i;
        }
        if (worst < 0) break;
        to[worst] = s[worst] > 0.0 ? upper[worst] : lower[worst];
        s[worst] = to[worst] - u[worst];
        stops.push_back(worst);
        for (size_t n = 0; n < free.size(); n++)
            if (free[n] == worst) {
                free.erase(free.begin() + static_cast<long>(n));
                break;
            }
    }
    raise_if_bad();
    nb::dict stopped;
    for (int i : stops) stopped[nb::int_(i)] = nb::float_(to[i]);
    return nb::make_tuple(list_of(s.data(), p), stopped);
}

void bind_symmetric(nb::module_& m) {
    m.def("symmetric_factor", &factor);
    m.def("symmetric_forward", &forward);
    m.def("box_strides", &strides);
}
