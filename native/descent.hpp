// From one start to an optimum without Python: descend of calibration/loop.py and the watch of calibration/basin.py for a plain
// least-squares search, operation by operation and therefore bit for bit. Constants have the names that they have there.
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "box.hpp"

namespace descent {

using box::Numbers;

// Of which parts of a triangle, row after row, a search is made: the free ones of `size - 1` parameters.
inline int place_of(int size, int i, int j) { return i <= j ? i * size - i * (i - 1) / 2 - i + j : place_of(size, j, i); }

struct Evaluation {
    Numbers triangle, H, G;
    double cost;

    Evaluation(Numbers given, int size, const std::vector<int>& free) : triangle(std::move(given)), cost(triangle.back()) {
        for (int i : free) {
            for (int j : free) H.push_back(triangle[place_of(size, i, j)]);
            G.push_back(triangle[place_of(size, i, size - 1)]);
        }
    }
};

inline double dot(const double* a, const double* b, size_t p) {
    double total = 0.0;
    for (size_t i = 0; i < p; i++) total += a[i] * b[i];
    return total;
}

inline Numbers times(const Numbers& A, const Numbers& x) {
    Numbers out;
    for (size_t i = 0; i < x.size(); i++) out.push_back(dot(&A[i * x.size()], x.data(), x.size()));
    return out;
}

inline Numbers minus(const Numbers& a, const Numbers& b) {
    Numbers out;
    for (size_t i = 0; i < a.size(); i++) out.push_back(a[i] - b[i]);
    return out;
}

constexpr double RIDGE = 1e-14;

struct Convergence {
    double freedom, rounding, tolerance;

    double noise(double cost) const { return std::sqrt((cost > 0.0 ? cost : 0.0) / freedom); }
    double standard_errors(double reach, double cost) const {
        const double size = noise(cost);
        return size > 0.0 ? reach / size : reach == 0.0 ? 0.0 : INFINITY;
    }
    double blur(double cost) const {
        return 1e-14 * cost + 2.0 * rounding * std::sqrt(cost > 0.0 ? cost : 0.0) + rounding * rounding;
    }
    const char* ended(double reach, double cost) const {
        constexpr double NOTHING = 2e-3;
        if (!std::isfinite(cost)) return "NOT_FINITE";
        if (reach <= tolerance * noise(cost)) return "CONVERGED";
        return reach <= NOTHING * rounding ? "CONVERGED_TO_ROUNDING" : nullptr;
    }
    bool is_rounding(double reach, double cost) const {
        constexpr double SMALL = 1e-5;
        return reach <= SMALL * noise(cost) || reach <= rounding;
    }
};

struct Damping {
    static constexpr double SMALLEST = 1e-15, FIRST_GROWTH = 4.0;
    double value = 1e-3, growth = FIRST_GROWTH;

    Damping after_success(double gain) const {
        double factor = gain > 0.9 ? 0.02 : gain > 0.5 ? 0.2 : gain > 0.2 ? 1.0 : 4.0;
        if (growth > FIRST_GROWTH) factor = std::max(factor, 0.3);
        return {std::max(value * factor, SMALLEST)};
    }
    Damping after_failure() const { return {std::max(value, 1e-6) * growth, growth * 2.0}; }
};

// Room of a search: the box, and coordinates whose lower bounds stand for zero.
struct Room {
    box::Box walls;
    std::vector<int> edges;
    double edge;  // EDGE

    double reach(const Numbers& u, const Evaluation& at) const {
        return box::length(at.H, at.G, box::others(walls.size(), walls.pushed(u, at.G)), RIDGE);
    }
    std::pair<Numbers, double> step(const Numbers& u, const Numbers& H, const Numbers& G, double damping) const {
        auto [to, promised] = box::step(walls, u, H, G, damping);
        for (int i : edges)
            if (to[i] <= u[i] / walls.factor && to[i] < edge * walls.low[i]) to[i] = walls.low[i];
        return {to, promised};
    }
};

// An optimum that is known: Basin of calibration/basin.py.
struct Basin {
    Numbers point, H;
    double cost;
    bool is_held;
    Numbers near_low, near_high, within_low, within_high;

    static bool between(const Numbers& u, const Numbers& low, const Numbers& high) {
        for (size_t i = 0; i < u.size(); i++)
            if (!(low[i] <= u[i] && u[i] <= high[i])) return false;
        return true;
    }
    bool is_joined(const Numbers& u, const Evaluation& at, const box::Box& walls) const {
        constexpr double AIM = 0.2, KEPT = 0.1;
        const size_t p = u.size();
        const double gap = at.cost - cost;
        if (!(gap > 0.0) || !between(u, within_low, within_high)) return false;
        if (between(u, near_low, near_high)) {
            const Numbers d = minus(u, point);
            const double way = dot(d.data(), times(H, d).data(), p);
            if (std::fabs(gap - way) <= KEPT * way + 1e-9 * cost) return true;
        }
        if (is_held) return false;
        Numbers s = minus(point, u);
        for (auto [i, j] : walls.pairs) s[i] *= point[j] / u[j];
        const Numbers moved = times(at.H, s);
        const double way = dot(s.data(), moved.data(), p), promised = 2.0 * dot(at.G.data(), s.data(), p);
        if (!(std::fabs(gap - (promised - way)) <= KEPT * gap)) return false;
        const double miss = box::length(at.H, minus(at.G, moved), box::others(walls.size(), {}), RIDGE);
        return miss * miss <= AIM * AIM * way;
    }
    const char* watch(const Numbers& u, const Evaluation& at, const box::Box& walls, int evaluations) const {
        constexpr int PATIENCE = 60;
        if (is_joined(u, at, walls)) return "JOINED";
        return evaluations >= PATIENCE && at.cost > 4.0 * cost ? "ABANDONED" : nullptr;
    }
};

// What Gauss-Newton leaves out of the curvature; empty if nothing is known.
inline Numbers corrected(const Numbers& H, const Numbers& S) {
    Numbers out = H;
    for (size_t i = 0; i < S.size(); i++) out[i] = H[i] + S[i];
    return out;
}

inline void update(Numbers& S, const Numbers& H, const Numbers& s, const Numbers& y) {
    constexpr double SMALLEST_COSINE = 1e-6;
    const size_t p = s.size();
    const Numbers known = S.empty() ? Numbers(p * p, 0.0) : S;
    const Numbers v = minus(y, times(corrected(H, known), s));
    const double along = dot(v.data(), s.data(), p);
    double own = 0.0, fresh = 0.0;
    for (size_t i = 0; i < p; i++) {
        const double d = H[i * p + i];
        own += d * s[i] * s[i];
        fresh += d > 0.0 ? v[i] * v[i] / d : 0.0;
    }
    const double lengths = fresh * own;
    if (!(along * along > SMALLEST_COSINE * SMALLEST_COSINE * lengths)) return;
    S = known;
    for (size_t i = 0; i < p; i++)
        for (size_t j = 0; j < p; j++) S[i * p + j] += v[i] * v[j] / along;
}

struct Visit {
    double cost, gradient, damping;
    Numbers point;
    int evaluations;
};

struct Descent {
    Numbers point;
    Evaluation at;
    const char* ended;
    std::vector<Visit> visits;
    int evaluations;
    std::vector<int> held;
};

// `evaluate(u)` is the Evaluation there.
template <class Evaluate>
Descent descend(const Evaluate& evaluate, Numbers u, const Room& room, const Convergence& convergence, int cap,
                const Basin* known) {
    constexpr double LOCAL = 1.0, SLOW = 0.01;
    constexpr int PATIENCE = 25;
    Evaluation at = evaluate(u);
    Damping damping;
    int evaluations = 1, refused = 0;
    Numbers S;
    double reach = room.reach(u, at);
    std::vector<Visit> visits = {{at.cost, convergence.standard_errors(reach, at.cost), damping.value, u, 1}};
    const char* ended;
    while (true) {
        ended = convergence.ended(reach, at.cost);
        if (known != nullptr && refused == 0) {
            const char* reason = known->watch(u, at, room.walls, evaluations);
            if (reason != nullptr) ended = reason;
        }
        if (ended == nullptr && evaluations >= cap) ended = "CAP";
        if (ended != nullptr) break;
        auto [trial, promised] = room.step(u, corrected(at.H, S), at.G, damping.value);
        if (!S.empty() && !(promised > 0.0)) {  // the correction made the curvature indefinite: forget it
            S.clear();
            continue;
        }
        const double blur = convergence.blur(at.cost);
        if (promised > 0.0 && trial != u) {
            Evaluation fresh = evaluate(trial);
            evaluations++;
            const double fall = at.cost - fresh.cost;
            bool accepted = false;
            double gain = 1.0;
            if (promised > blur)
                accepted = fall > 1e-3 * promised, gain = fall / promised;
            else if (fall > -2.0 * blur)  // the cost no longer resolves the difference; the score does
                accepted = room.reach(trial, fresh) < 0.9 * reach;
            if (accepted) {
                const double before = reach;
                reach = room.reach(trial, fresh);
                const double gradient = convergence.standard_errors(reach, fresh.cost);
                if (!(gradient < LOCAL))
                    S.clear();
                else if (visits.back().gradient < LOCAL && reach > SLOW * before)
                    update(S, fresh.H, minus(trial, u), minus(at.G, fresh.G));
                u = trial, at = std::move(fresh), refused = 0;
                damping = damping.after_success(gain);
                visits.push_back({at.cost, gradient, damping.value, u, evaluations});
                continue;
            }
        }
        refused++;
        damping = damping.after_failure();
        if (!S.empty()) {
            S.clear();
        } else if (trial == u || promised <= blur || refused > PATIENCE) {
            const bool is_rounding = convergence.is_rounding(reach, at.cost);
            ended = is_rounding ? "CONVERGED_TO_ROUNDING" : "STALLED";
            if (is_rounding || trial == u || refused > PATIENCE) break;
        }
    }
    const std::vector<int> held = room.walls.pushed(u, at.G);
    return {u, std::move(at), ended, std::move(visits), evaluations, held};
}

}  // namespace descent
