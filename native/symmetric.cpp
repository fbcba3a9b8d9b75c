// Small symmetric positive definite systems on Python lists of floats: kernels/symmetric.py, operation by operation and
// therefore bit for bit, without the interpreter in between.
#include <nanobind/nanobind.h>

#include <cmath>
#include <stdexcept>
#include <vector>

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
    const Py_ssize_t p = PyList_GET_SIZE(A.ptr());
    std::vector<double> d(p), L(p * p);
    for (Py_ssize_t i = 0; i < p; i++) {
        const double diagonal = at(checked(PyList_GET_ITEM(A.ptr(), i), i + 1), i);
        d[i] = diagonal > 0.0 ? 1.0 / std::sqrt(diagonal) : diagonal == 0.0 ? 0.0 : NAN;
    }
    const double unit = 1.0 + damping;
    nb::list rows = nb::steal<nb::list>(PyList_New(p));
    for (Py_ssize_t i = 0; i < p; i++) {
        PyObject* row = PyList_GET_ITEM(A.ptr(), i);
        double pivot = unit, *out = &L[i * p];
        for (Py_ssize_t j = 0; j < i; j++) {
            double t = at(row, j) * d[i] * d[j];
            for (Py_ssize_t k = 0; k < j; k++) t -= out[k] * L[j * p + k];
            t /= L[j * p + j];
            out[j] = t;
            pivot -= t * t;
        }
        out[i] = pivot > 0.0 ? std::sqrt(pivot) : NAN;
        PyList_SET_ITEM(rows.ptr(), i, list_of(out, i + 1).release().ptr());
    }
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

void bind_symmetric(nb::module_& m) {
    m.def("symmetric_factor", &factor);
    m.def("symmetric_forward", &forward);
}
