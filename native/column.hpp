// A one-dimensional array from Python, read where it lies.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

// `any` takes a contiguous array of any number of dimensions for the row of its numbers.
enum class Shape { column, any };

// NumPy's columns come through the buffer protocol; whatever is not one, not contiguous or of another type is converted.
// (nanobind alone asks for a DLPack capsule, which arrays that are read-only, as ours are, first refuse: half a
// microsecond a column, and a pass over thousands of quotes takes forty.)
template <class T>
class Column {
    static_assert(std::is_same_v<T, double> || std::is_same_v<T, int64_t>);
    using Array = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

    Py_buffer view = {};
    std::optional<Array> converted;
    const T* first = nullptr;
    size_t count = 0;

    bool fits(Shape shape) const {
        if ((shape == Shape::column && view.ndim != 1) || view.itemsize != sizeof(T) || std::strlen(view.format) != 1) return false;
        return std::strchr(std::is_same_v<T, double> ? "d" : "lqn", view.format[0]) != nullptr;
    }

   public:
    explicit Column(nanobind::handle from, Shape shape = Shape::column) {
        if (PyObject_GetBuffer(from.ptr(), &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) == 0) {
            if (fits(shape)) {
                first = static_cast<const T*>(view.buf), count = static_cast<size_t>(view.len) / sizeof(T);
                return;
            }
            PyBuffer_Release(&view);
        }
        PyErr_Clear();
        Array array;
        if (!nanobind::try_cast(from, array)) throw nanobind::type_error("a column of numbers is needed");
        converted = array;
        first = array.data(), count = array.shape(0);
    }
    Column(const Column&) = delete;
    Column& operator=(const Column&) = delete;
    ~Column() {
        if (view.obj != nullptr) PyBuffer_Release(&view);
    }

    const T* data() const { return first; }
    size_t size() const { return count; }
    T operator[](size_t i) const { return first[i]; }
};

// A column of doubles of Python's that is written to: cheaper than to make one here and hand it over.
class Result {
    Py_buffer view = {};

   public:
    Result(nanobind::handle to, size_t count, Shape shape = Shape::column) {
        if (PyObject_GetBuffer(to.ptr(), &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0)
            throw nanobind::python_error();
        const bool is_shaped = shape == Shape::any || view.ndim == 1;
        if (is_shaped && std::strcmp(view.format, "d") == 0 && static_cast<size_t>(view.len) == count * sizeof(double)) return;
        PyBuffer_Release(&view);
        throw nanobind::type_error("out must hold as many doubles as there are sums");
    }
    Result(const Result&) = delete;
    Result& operator=(const Result&) = delete;
    ~Result() { PyBuffer_Release(&view); }

    double* data() const { return static_cast<double*>(view.buf); }
};
