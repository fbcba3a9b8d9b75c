// A Jacobi-scaled Cholesky factorisation in the order of kernels/symmetric.py, bit for bit. One copy for all who solve.
#pragma once
#include <cmath>

namespace cholesky {

// The scaling d and the rows of L (n x n, lower) of d A d + damping I; A(i, j) gives an entry. Not-a-number from the first
// bad pivot on; a zero diagonal gets d = 0 and a unit pivot.
template <class Matrix>
void factor(const Matrix& A, int n, double damping, double* d, double* L) {
    for (int i = 0; i < n; i++) d[i] = A(i, i) > 0.0 ? 1.0 / std::sqrt(A(i, i)) : A(i, i) == 0.0 ? 0.0 : NAN;
    const double unit = 1.0 + damping;
    for (int i = 0; i < n; i++) {
        double pivot = unit;
        for (int j = 0; j < i; j++) {
            double t = A(i, j) * d[i] * d[j];
            for (int k = 0; k < j; k++) t -= L[i * n + k] * L[j * n + k];
            t /= L[j * n + j];
            L[i * n + j] = t;
            pivot -= t * t;
        }
        L[i * n + i] = pivot > 0.0 ? std::sqrt(pivot) : NAN;
    }
}

// x with A x = b, b(i) giving the right-hand side.
template <class Vector>
void solve(const Vector& b, int n, const double* d, const double* L, double* x) {
    for (int i = 0; i < n; i++) {
        double t = d[i] * b(i);
        for (int j = 0; j < i; j++) t -= L[i * n + j] * x[j];
        x[i] = t / L[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        x[i] = x[i] / L[i * n + i];
        for (int j = 0; j < i; j++) x[j] -= L[i * n + j] * x[i];
    }
    for (int i = 0; i < n; i++) x[i] = d[i] * x[i];
}

}  // namespace cholesky
