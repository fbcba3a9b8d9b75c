// Small symmetric positive definite systems on Python lists of floats: kernels/symmetric.py, operation by operation and
// therefore bit for bit, without the interpreter in between.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "box.hpp"
#include "cholesky.hpp"
#include "column.hpp"

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

static int place(PyObject* pair, Py_ssize_t which, Py_ssize_t p) {
    const long k = PyTuple_CheckExact(pair) && PyTuple_GET_SIZE(pair) == 2 ? PyLong_AsLong(PyTuple_GET_ITEM(pair, which)) : -1;
    if (k < 0 || k >= p) throw std::invalid_argument("a pair is not one of coordinates");
    return static_cast<int>(k);
}

// Where the damped Gauss-Newton step leads, and the fall of the cost it promises: Box.step of calibration/loop.py.
static nb::tuple step(nb::list u_, nb::list H_, nb::list G_, double damping, nb::handle scale, nb::list low_, nb::list high_,
                      nb::tuple pairs_, double factor, double share, double near) {
    const Py_ssize_t p = PyList_GET_SIZE(u_.ptr());
    const auto u = numbers(u_.ptr(), p), G = numbers(G_.ptr(), p), H = matrix(H_.ptr(), p);
    box::Box walls = {numbers(low_.ptr(), p), numbers(high_.ptr(), p), {}, factor, share, near};
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(pairs_.ptr()); n++) {
        PyObject* pair = PyTuple_GET_ITEM(pairs_.ptr(), n);
        walls.pairs.emplace_back(place(pair, 0, p), place(pair, 1, p));
    }
    const auto size = scale.is_none() ? std::vector<double>() : numbers(scale.ptr(), p);
    raise_if_bad();
    const auto [to, promised] = box::step(walls, u, H, G, damping, scale.is_none() ? nullptr : &size);
    return nb::make_tuple(list_of(to.data(), p), promised);
}

static double length(nb::list A, nb::list b, double damping) {
    const Py_ssize_t p = PyList_GET_SIZE(A.ptr());
    const auto right = numbers(b.ptr(), p), H = matrix(A.ptr(), p);
    raise_if_bad();
    return box::length(H, right, box::others(static_cast<int>(p), {}), damping);
}

// A^-1 by the columns of L^-1 d; not-a-number throughout where a diagonal is zero. `space` holds 2 p p + p numbers.
static void invert(const double* A, int p, double* space, double* out) {
    double *d = space, *L = d + p, *columns = L + p * p;
    cholesky::factor([&](int i, int j) { return A[i * p + j]; }, p, 0.0, d, L);
    bool is_known = true;
    for (int j = 0; j < p; j++) {
        is_known = is_known && d[j] != 0.0;
        double* z = columns + j * p;
        for (int i = 0; i < p; i++) {
            double t = d[i] * (i == j ? 1.0 : 0.0);
            for (int k = 0; k < i; k++) t -= L[i * p + k] * z[k];
            z[i] = t / L[i * p + i];
        }
    }
    for (int i = 0; i < p; i++)
        for (int j = i; j < p; j++) {
            double t = 0.0;
            for (int k = j; k < p; k++) t += columns[i * p + k] * columns[j * p + k];
            out[i * p + j] = out[j * p + i] = is_known ? t : NAN;
        }
}

static nb::list inverse(nb::list A) {
    const Py_ssize_t p = PyList_GET_SIZE(A.ptr());
    const auto H = matrix(A.ptr(), p);
    raise_if_bad();
    std::vector<double> space(2 * p * p + p), out(p * p);
    invert(H.data(), static_cast<int>(p), space.data(), out.data());
    nb::list rows = nb::steal<nb::list>(PyList_New(p));
    for (Py_ssize_t i = 0; i < p; i++) PyList_SET_ITEM(rows.ptr(), i, list_of(&out[i * p], p).release().ptr());
    return rows;
}

// What a Gauss-Newton step comes to: judged_twin of kernels/symmetric.py. `solved` is the triangle and the step, `limits` five
// numbers for each parameter, the parameters of one kind together.
static nb::tuple judged(nb::handle solved_, nb::handle limits_, int64_t freedom, double inflation, double far) {
    const Column<double> solved(solved_), limits(limits_);
    const size_t p = limits.size() / 5, triangle = (p + 1) * (p + 2) / 2;
    if (p < 1 || p > 1 << 12 || limits.size() != 5 * p || solved.size() != triangle + p)
        throw std::invalid_argument("five limits are needed for every parameter of the step");
    double few[4 * 64 + 8];  // room for the usual handful of parameters without asking for memory
    std::vector<double> many(p > 8 ? 4 * p * p + p : 0);
    double *A = p > 8 ? many.data() : few, *unscaled = A + p * p, *space = unscaled + p * p;
    const double *from = solved.data(), *d = from + triangle;
    const double *reference = limits.data(), *size = reference + p, *beyond = size + p, *low = beyond + p, *high = low + p;
    double taken = 0.0;
    bool is_near = true;
    for (size_t i = 0; i < p; i++, from++) {  // the last of a row is the score
        for (size_t j = i; j < p; j++) A[i * p + j] = A[j * p + i] = *from++;
        taken += *from * d[i];
        const double change = std::fabs(d[i]), share = size[i] > 0.0 ? change / size[i] : change == 0.0 ? 0.0 : INFINITY;
        is_near = is_near && std::isfinite(share) && share <= far;
    }
    invert(A, static_cast<int>(p), space, unscaled);
    const double cost = is_near ? *from - taken : *from;
    const double noise = freedom <= 0 ? INFINITY : (0.0 > cost ? 0.0 : cost) / static_cast<double>(freedom);
    nb::list values = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(p)));
    nb::list errors = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(p)));
    nb::list free, outside;
    for (size_t i = 0; i < p; i++) {
        const double each = unscaled[i * p + i], variance = each * noise, value = reference[i] + d[i];
        const double error = variance >= 0.0 ? std::sqrt(variance) : INFINITY;
        PyList_SET_ITEM(values.ptr(), static_cast<Py_ssize_t>(i), PyFloat_FromDouble(value));
        PyList_SET_ITEM(errors.ptr(), static_cast<Py_ssize_t>(i), PyFloat_FromDouble(error));
        const bool is_lost = freedom <= 0 || !(each * A[i * p + i] < inflation);
        if (is_lost || (is_near && !(error <= beyond[i]))) free.append(i);
        if (!(low[i] < value && value < high[i])) outside.append(i);
    }
    return nb::make_tuple(values, errors, is_near, free, outside);
}

// How many p x p matrices lie in an array.
static size_t count_of(const Column<double>& A, int p) {
    if (p < 1 || p > 1 << 14 || A.size() % (static_cast<size_t>(p) * p) != 0)
        throw std::invalid_argument("matrices of p rows and columns are needed");
    return A.size() / (static_cast<size_t>(p) * p);
}

static void inverses(nb::handle A_, int p, nb::handle out_) {
    const Column<double> A(A_);
    const size_t count = count_of(A, p), size = static_cast<size_t>(p) * p;
    const Result out(out_, A.size());
    std::vector<double> space(2 * size + p);
    for (size_t g = 0; g < count; g++) invert(A.data() + g * size, p, space.data(), out.data() + g * size);
}

// Blocks of q x q numbers, shared parameters first, then one latent parameter: ArrowBlocks of kernels/arrow.py.
struct Arrow {
    const double *B, *held;
    size_t count, q;

    const double* block(size_t g) const { return B + g * q * q; }
    double pivot(size_t g) const { return block(g)[q * q - 1]; }
    double over(size_t g) const { return pivot(g) > 0.0 && held[g] == 0.0 ? 1.0 / pivot(g) : 0.0; }
    double side(size_t g, size_t i) const { return block(g)[i * q + q - 1]; }

    bool is_determined() const {
        for (size_t g = 0; g < count; g++)
            if (held[g] == 0.0 && !(pivot(g) > 0.0)) return false;
        return true;
    }
    // The sum of the Schur complements; the upper half of each counts.
    void reduce(double* out) const {
        const size_t k = q - 1;
        std::fill(out, out + k * k, 0.0);
        for (size_t g = 0; g < count; g++) {
            const double by = held[g] == 0.0 && pivot(g) > 0.0 ? pivot(g) : INFINITY;
            for (size_t i = 0; i < k; i++) {
                const double along = side(g, i) / by;
                for (size_t j = i; j < k; j++) out[i * k + j] += block(g)[i * q + j] - along * block(g)[k * q + j];
            }
        }
        for (size_t i = 0; i < k; i++)
            for (size_t j = 0; j < i; j++) out[i * k + j] = out[j * k + i];
    }
};

static double share(double apart, double error) {
    const double found = std::fabs(apart) / error;
    return apart == 0.0 ? 0.0 : std::isnan(found) ? INFINITY : found;
}

// By how many standard errors a step misses the optimum to second order: missed_twin of kernels/arrow.py.
static nb::tuple arrow_missed(nb::handle H_, nb::handle S_, nb::handle T_, nb::handle d_, nb::handle held_, double noise,
                              int q_, nb::handle there_) {
    const Column<double> H(H_), S(S_), T(T_), d(d_), held(held_);
    const size_t count = count_of(H, q_), q = static_cast<size_t>(q_), k = q - 1, size = q * q;
    if (q < 2 || S.size() != H.size() || T.size() != H.size() * q || d.size() != count * q || held.size() != count)
        throw std::invalid_argument("every group needs q q curvatures, q q and q q q sums and q steps");
    const Result there(there_, k * k);
    std::vector<double> around(H.size()), after(size), turned(size), end(H.size()), m(d.size());
    std::vector<double> whole(k * k), right(k, 0.0), x(k), scale(k), L(k * k), C(k * k), space(2 * k * k + k), p(k);
    for (size_t g = 0; g < count; g++) {
        const double *t = T.data() + g * size * q, *step = d.data() + g * q, *h = H.data() + g * size;
        for (size_t n = 0; n < size; n++) {
            double along = 0.0, across = 0.0;
            for (size_t a = 0; a < q; a++) along += t[a * size + n] * step[a];
            for (size_t a = 0; a < q; a++) across += t[n * q + a] * step[a];
            after[n] = S[g * size + n] - along, turned[n] = across;
            around[g * size + n] = h[n] - after[n];
        }
        for (size_t i = 0; i < q; i++) {
            double first = 0.0, second = 0.0;
            for (size_t j = 0; j < q; j++) first += after[i * q + j] * step[j], second += turned[i * q + j] * step[j];
            for (size_t j = 0; j < q; j++) end[g * size + i * q + j] = h[i * q + j] + turned[i * q + j] + turned[j * q + i];
            m[g * q + i] = first - 0.5 * second;
        }
    }
    const Arrow curve = {around.data(), held.data(), count, q}, now = {H.data(), held.data(), count, q};
    curve.reduce(whole.data());
    bool is_solved = curve.is_determined();
    for (double number : whole) is_solved = is_solved && std::isfinite(number);
    for (size_t i = 0; i < k; i++) is_solved = is_solved && whole[i * k + i] > 0.0;
    for (size_t g = 0; g < count; g++) {
        const double latent = m[g * q + k] * curve.over(g);
        for (size_t i = 0; i < k; i++) right[i] += m[g * q + i] - curve.side(g, i) * latent;
    }
    cholesky::factor([&](int i, int j) { return whole[i * k + j]; }, static_cast<int>(k), 0.0, scale.data(), L.data());
    cholesky::solve([&](int i) { return right[i]; }, static_cast<int>(k), scale.data(), L.data(), x.data());
    now.reduce(whole.data());
    invert(whole.data(), static_cast<int>(k), space.data(), C.data());
    double worst = is_solved ? 0.0 : INFINITY;
    for (size_t i = 0; i < k; i++) worst = std::max(worst, share(x[i], noise * std::sqrt(C[i * k + i])));
    for (size_t g = 0; g < count; g++) {
        if (held[g] != 0.0) continue;
        double along = 0.0, spread = 0.0;
        for (size_t i = 0; i < k; i++) along += curve.side(g, i) * x[i];
        for (size_t j = 0; j < k; j++) {
            p[j] = 0.0;
            for (size_t i = 0; i < k; i++) p[j] += now.side(g, i) * now.over(g) * C[i * k + j];
        }
        for (size_t j = 0; j < k; j++) spread += p[j] * (now.side(g, j) * now.over(g));
        worst = std::max(worst, share((m[g * q + k] - along) * curve.over(g), noise * std::sqrt(now.over(g) + spread)));
    }
    const Arrow last = {end.data(), held.data(), count, q};
    last.reduce(there.data());
    return nb::make_tuple(worst, last.is_determined());
}

// One rotation that takes the entry (i, j) of S away; its lower triangle is not looked at.
static void turn(double* S, int p, int i, int j) {
    const double off = S[i * p + j], tau = (S[j * p + j] - S[i * p + i]) / (2.0 * off);
    const double t = (tau >= 0.0 ? 1.0 : -1.0) / (std::fabs(tau) + std::sqrt(1.0 + tau * tau));
    const double c = 1.0 / std::sqrt(1.0 + t * t), s = t * c;
    S[i * p + i] -= t * off;
    S[j * p + j] += t * off;
    S[i * p + j] = 0.0;
    for (int k = 0; k < p; k++) {
        if (k == i || k == j) continue;
        double &a = i < k ? S[i * p + k] : S[k * p + i], &b = j < k ? S[j * p + k] : S[k * p + j];
        const double before = a;
        a = c * before - s * b;
        b = s * before + c * b;
    }
}

// Eigenvalues, ascending, of symmetric matrices by Jacobi's rotations: eigenvalues_twin of kernels/symmetric.py.
static void eigenvalues(nb::handle A_, int p, nb::handle out_) {
    constexpr int SWEEPS = 60;
    const Column<double> A(A_);
    const size_t count = count_of(A, p), size = static_cast<size_t>(p) * p;
    const Result out(out_, count * p);
    std::vector<double> S(size);
    for (size_t g = 0; g < count; g++) {
        double *values = out.data() + g * p, largest = 0.0;
        bool is_finite = true;
        for (size_t k = 0; k < size; k++) {
            S[k] = A[g * size + k];
            is_finite = is_finite && std::isfinite(S[k]);
            largest = std::fabs(S[k]) > largest ? std::fabs(S[k]) : largest;
        }
        const double small = 0x1p-60 * largest;
        bool moved = is_finite;
        for (int sweep = 0; sweep < SWEEPS && moved; sweep++) {
            moved = false;
            for (int i = 0; i + 1 < p; i++)
                for (int j = i + 1; j < p; j++)
                    if (std::fabs(S[i * p + j]) > small) turn(S.data(), p, i, j), moved = true;
        }
        for (int i = 0; i < p; i++) {  // sorted as they come, which no value that is not a number can upset
            const double value = is_finite ? S[i * p + i] : NAN;
            int at = i;
            for (; at > 0 && values[at - 1] > value; at--) values[at] = values[at - 1];
            values[at] = value;
        }
    }
}

void bind_symmetric(nb::module_& m) {
    m.def("symmetric_factor", &factor);
    m.def("symmetric_forward", &forward);
    m.def("symmetric_length", &length);
    m.def("symmetric_inverse", &inverse);
    m.def("judged", &judged, nb::arg("solved"), nb::arg("limits"), nb::arg("freedom"), nb::arg("inflation"), nb::arg("far"));
    m.def("symmetric_inverses", &inverses, nb::arg("A"), nb::arg("p"), nb::arg("out"));
    m.def("arrow_missed", &arrow_missed, nb::arg("H"), nb::arg("S"), nb::arg("T"), nb::arg("d"), nb::arg("held"),
          nb::arg("noise"), nb::arg("q"), nb::arg("there"));
    m.def("symmetric_eigenvalues", &eigenvalues, nb::arg("A"), nb::arg("p"), nb::arg("out"));
    m.def("box_step", &step, nb::arg("u"), nb::arg("H"), nb::arg("G"), nb::arg("damping"), nb::arg("scale").none(),
          nb::arg("low"), nb::arg("high"), nb::arg("pairs"), nb::arg("factor"), nb::arg("share"), nb::arg("near"));
}
