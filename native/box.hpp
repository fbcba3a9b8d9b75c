// Damped Gauss-Newton steps that stay in a box: Box.step of calibration/loop.py, operation by operation and therefore bit for
// bit. Matrices are p x p, row after row.
#pragma once
#include <cmath>
#include <utility>
#include <vector>

#include "cholesky.hpp"

namespace box {

using Numbers = std::vector<double>;

struct Box {
    Numbers low, high;
    std::vector<std::pair<int, int>> pairs;  // coordinate i acts through the product u_i u_j
    double factor, share, near;              // how far one step may go: FACTOR, SHARE, NEAR

    int size() const { return static_cast<int>(low.size()); }
    // The coordinates on a wall that the cost pushes against.
    std::vector<int> pushed(const Numbers& u, const Numbers& G) const {
        std::vector<int> held;
        for (int i = 0; i < size(); i++)
            if ((G[i] < 0.0 && u[i] <= low[i]) || (G[i] > 0.0 && u[i] >= high[i])) held.push_back(i);
        return held;
    }
};

// sqrt(b' (A + damping diag(A))^-1 b) over the rows and columns in `free`.
inline double length(const Numbers& A, const Numbers& b, const std::vector<int>& free, double damping) {
    const int n = static_cast<int>(free.size()), p = static_cast<int>(b.size());
    Numbers d(n), L(static_cast<size_t>(n) * n), z(n);
    cholesky::factor([&](int i, int j) { return A[free[i] * p + free[j]]; }, n, damping, d.data(), L.data());
    double total = 0.0;
    for (int i = 0; i < n; i++) {
        double t = d[i] * b[free[i]];
        for (int j = 0; j < i; j++) t -= L[i * n + j] * z[j];
        z[i] = t / L[i * n + i];
        total += z[i] * z[i];
    }
    return std::sqrt(total);
}

// All coordinates but those held.
inline std::vector<int> others(int p, const std::vector<int>& held) {
    std::vector<int> free;
    for (int i = 0; i < p; i++) {
        bool is_held = false;
        for (int k : held) is_held = is_held || k == i;
        if (!is_held) free.push_back(i);
    }
    return free;
}

// Solves A x = G for the coordinates that are free, given the steps of those that have stopped.
inline void solve_free(const Numbers& A, const Numbers& G, const std::vector<int>& free, const std::vector<int>& stops,
                       const Numbers& s, Numbers& x) {
    const int n = static_cast<int>(free.size()), p = static_cast<int>(G.size());
    Numbers d(n), L(static_cast<size_t>(n) * n);
    cholesky::factor([&](int i, int j) { return A[free[i] * p + free[j]]; }, n, 0.0, d.data(), L.data());
    auto right = [&](int i) {
        double moved = 0.0;
        for (int j : stops) moved += A[free[i] * p + j] * s[j];
        return G[free[i]] - moved;
    };
    cholesky::solve(right, n, d.data(), L.data(), x.data());
}

// The steps that solve A s = G within their strides; `stops` grows by the coordinates that stop, which then stand at to[i].
inline void stride(const Numbers& u, const Numbers& A, const Numbers& G, const Numbers& lower, const Numbers& upper,
                   std::vector<int>& stops, Numbers& s, Numbers& to) {
    std::vector<int> free = others(static_cast<int>(u.size()), stops);
    Numbers x(u.size());
    for (int k : stops) to[k] = u[k];
    while (!free.empty()) {
        solve_free(A, G, free, stops, s, x);
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
}

inline double clamped(double x, double low, double high) {  // what is not a number stays so
    x = low > x ? low : x;
    return high < x ? high : x;
}

// Where the step leads, and the fall of the cost it promises; damping is relative to `scale`, or to the diagonal of H.
inline std::pair<Numbers, double> step(const Box& walls, const Numbers& u, const Numbers& H, const Numbers& G, double damping,
                                       const Numbers* scale = nullptr) {
    const int p = walls.size();
    Numbers A = H;
    if (scale == nullptr) {
        Numbers extra(p);
        for (int i = 0; i < p; i++) extra[i] = H[i * p + i];
        for (auto [i, j] : walls.pairs) {
            const double r = u[i] / u[j], h = damping * H[i * p + i];
            extra[i] = 0.0;
            extra[j] = extra[j] + r * (r * H[i * p + i] - 2.0 * H[i * p + j]);
            extra[j] = 0.0 > extra[j] ? 0.0 : extra[j];
            A[i * p + i] += h;
            A[i * p + j] += h * r;
            A[j * p + i] += h * r;
            A[j * p + j] += h * r * r;
        }
        for (int k = 0; k < p; k++) A[k * p + k] += damping * extra[k];
    } else {
        for (int k = 0; k < p; k++) A[k * p + k] += damping * (*scale)[k];
    }
    Numbers lower(p), upper(p), s(p), to(p);
    for (int i = 0; i < p; i++) {
        const double x = u[i], lo = walls.low[i], hi = walls.high[i];
        if (lo > 0.0) {
            lower[i] = x / walls.factor > lo ? x / walls.factor : lo;
            upper[i] = x * walls.factor < hi ? x * walls.factor : hi;
        } else {
            const double edge = walls.near * (hi - lo);
            lower[i] = x - lo < edge ? lo : x + walls.share * (lo - x);
            upper[i] = hi - x < edge ? hi : x + walls.share * (hi - x);
        }
    }
    std::vector<int> stops = walls.pushed(u, G);
    stride(u, A, G, lower, upper, stops, s, to);
    std::vector<bool> stopped(p, false);
    for (int i : stops) stopped[i] = true;
    for (int i = 0; i < p; i++)
        if (!stopped[i]) to[i] = clamped(u[i] + s[i], lower[i], upper[i]);
    for (auto [i, j] : walls.pairs)  // straight in the product is curved in u
        if (!stopped[i]) to[i] = clamped(u[i] + s[i] * (u[j] / to[j]), lower[i], upper[i]);
    double promised = 0.0;
    for (int i = 0; i < p; i++) {
        double inner = 2.0 * G[i];
        for (int j = 0; j < p; j++) inner -= H[i * p + j] * s[j];
        promised += s[i] * inner;
    }
    return {to, promised};
}

}  // namespace box
