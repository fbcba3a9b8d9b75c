// Compiled once for each instruction set, with STRIKEOUT_BUILD naming it. Symbols: kernels/american.py, which is the definition.
#include "american.hpp"

#include "black.hpp"
#include "chunks.hpp"

namespace STRIKEOUT_BUILD {

namespace {

constexpr int GUESSES = 4, ROUNDS = 60, LONG_ROUNDS = 400, TRIALS = 80, HORIZONS = 16, QUOTES_AT_A_TIME = 16;
constexpr double STEEP = 4.0;         // 2 (r - q) / sigma^2: above, the equation of the value converges, below that of the slope
constexpr double PACE = 0.6388;       // ln B = ln B(0) - PACE sigma sqrt(tau) for small times if r < q, and steeper if not
constexpr double LOST = 1e-5;         // a last step of ln B above this is no answer
constexpr double DIFFERENCE = 1e-4;   // of the volatility, for vega
constexpr double SETTLED = 1e-7;      // a step of the implied volatility, relative to it, after which the next is not needed

struct Terms {  // of one option as a put with strike 1
    double r, q, sigma, T, x;  // x = ln(spot / strike)
};

struct Boundary {
    double start, sign;  // ln B at tau = 0; -1 if it falls with tau, 1 if it rises
    alignas(32) double b[MOST_NODES], H[MOST_NODES];
    double c[MOST_NODES + 1];
    double step;
};

struct Workspace {
    alignas(32) double r_weight[MOST_NODES * MOST_POINTS], q_weight[MOST_NODES * MOST_POINTS];
    alignas(32) double drift[MOST_NODES * MOST_POINTS];
    Boundary upper, lower;
    double horizon, meet;  // of two boundaries: the times left they are known for, and where they meet, in sqrt(tau / horizon)
};

INLINE double sum(vd x) { return (x[0] + x[1]) + (x[2] + x[3]); }
INLINE double one_exp(double x) { return elementary::exp(all(x))[0]; }
INLINE double one_log(double x) { return elementary::log(all(x))[0]; }
INLINE double one_root(double x) { return root(all(x))[0]; }
INLINE bool finite(double x) { return x - x == 0.0; }

struct Normal {
    vd density, cdf;
};
INLINE Normal normal(vd x, const Erfcx& of) {
    const vd e = exp(-0.5 * (x * x)), tail = 0.5 * e * erfcx(of, magnitude(x) * SQRT_HALF);
    return {e * INVERSE_SQRT_TWO_PI, pick(x > 0.0, 1.0 - tail, tail)};
}
INLINE vd density(vd x) { return exp(-0.5 * (x * x)) * INVERSE_SQRT_TWO_PI; }

void set_squares(Boundary& of, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const double away = of.b[i] - of.start;
        of.H[i] = away * away;
    }
}

void set_coefficients(Boundary& of, const AmericanNodes& nodes) {
    const size_t n = nodes.n;
    for (size_t k = 0; k <= n; k++) {
        double total = 0.0;
        for (size_t i = 0; i < n; i++) total += nodes.coefficients[k * (n + 1) + i] * of.H[i];
        of.c[k] = total;
    }
}

// ln B from the Chebyshev coefficients; z between -1 and 1.
double at(const Boundary& of, size_t n, double z) {
    double one = 0.0, two = 0.0;
    for (size_t k = n; k > 0; k--) {
        const double next = 2.0 * z * one - two + of.c[k];
        two = one, one = next;
    }
    const double H = z * one - two + of.c[0];
    return of.start + of.sign * one_root(H > 0.0 ? H : 0.0);
}

// Where to begin if there is an exercise region below one boundary: Li's QD+ approximation at every node.
void guess(Boundary& of, const Terms& t, const AmericanNodes& nodes, const Erfcx& erfcx) {
    const double s2 = t.sigma * t.sigma, mu = t.r - t.q - 0.5 * s2, omega = 2.0 * (t.r - t.q) / s2;
    const double slope = (-mu - one_root(mu * mu + 2.0 * t.r * s2)) / s2, lasting = slope / (slope - 1.0);
    const double first = one_exp(of.start), high = 1.0 / first, higher = 1.0 / lasting;
    const double low = one_log(lasting);
    for (size_t i = 0; i < nodes.n; i += 4) {
        const vd x = load(nodes.x + i), tau = t.T * x * x, st = root(tau), vt = t.sigma * st;
        const vd fall = smaller(-((t.q - t.r) * tau + 2.0 * vt) * (high / (higher - high)), all(0.0));
        vd b = -elementary::log(high + (higher - high) * (1.0 - exp(fall)));
        const vd rt = t.r * tau, er = exp(-rt), eq = exp(-t.q * tau), h = -elementary::expm1(-rt);
        const vd a = (2.0 / (s2 * tau)) * pick(rt == 0.0, all(1.0), rt / pick(h == 0.0, all(1.0), h));
        const vd wide = root((omega - 1.0) * (omega - 1.0) + 4.0 * a), lambda = -0.5 * ((omega - 1.0) + wide);
        for (int round = 0; round < GUESSES; round++) {
            const vd B = exp(b), dm = (b + mu * tau) / vt, dp = dm + vt;
            const Normal minus = normal(-dm, erfcx), plus = normal(-dp, erfcx);
            const vd A = eq * plus.cdf, put = er * minus.cdf - B * A, gap = larger(1.0 - B - put, all(1e-10));
            const vd theta = t.r * er * minus.cdf - t.q * B * A - t.sigma * B / (2.0 * st) * eq * plus.density;
            const vd correction = er / wide * ((a - a * a / (wide * wide)) * gap - 2.0 / s2 * theta / er);
            const vd f = (1.0 - A) * B + lambda * gap + correction;
            const vd rise = B * ((1.0 - A) * (1.0 - lambda) + eq * plus.density / vt);
            const vd next = b - f / rise;
            b = smaller(larger(pick(next == next, next, b), all(low)), of.start - PACE * vt);
        }
        store(of.b + i, b);
    }
}

// Where to begin if there are two boundaries: square roots of time, each at most half of the way to the other.
void guess_two(Boundary& of, const Terms& t, const AmericanNodes& nodes) {
    const double half = 0.5 * one_log(t.q / t.r), pace = of.sign < 0.0 ? 1.5 : PACE;
    for (size_t i = 0; i < nodes.n; i++) {
        const double away = pace * t.sigma * one_root(t.T) * nodes.x[i];
        of.b[i] = of.start + of.sign * (away < half ? away : half);
    }
}

// The integrals' weights r exp(-r s) ds and q exp(-q s) ds, and the drift of ln spot: the same in every round.
void set_weights(Workspace& space, const Terms& t, const AmericanNodes& nodes) {
    const double mu = t.r - t.q - 0.5 * t.sigma * t.sigma;
    const double *sine = nodes.angle, *cosine = sine + nodes.l, *weight = cosine + nodes.l;
    for (size_t i = 0; i < nodes.n; i++) {
        const double tau = t.T * nodes.x[i] * nodes.x[i];
        for (size_t j = 0; j < nodes.l; j += 4) {
            const vd sn = load(sine + j), s = tau * sn * sn, ds = 2.0 * tau * sn * load(cosine + j) * load(weight + j);
            store(space.r_weight + i * nodes.l + j, t.r * exp(-t.r * s) * ds);
            store(space.q_weight + i * nodes.l + j, t.q * exp(-t.q * s) * ds);
            store(space.drift + i * nodes.l + j, mu * s);
        }
    }
}

// One round: ln B at every node from the equation of the value (STEEP) or of the slope, with the boundary of the round before.
template <bool VALUE, bool LOWER>
double advance(Boundary& of, const Workspace& space, const Terms& t, const AmericanNodes& nodes, const Erfcx& erfcx) {
    alignas(32) double N[MOST_NODES], D[MOST_NODES];
    const size_t n = nodes.n, l = nodes.l;
    const double mu = t.r - t.q - 0.5 * t.sigma * t.sigma, whole = t.sigma * one_root(t.T);
    set_squares(of, n);
    for (size_t i = 0; i < n; i++) {
        const double vt = whole * nodes.x[i], per_vt = 1.0 / vt;
        vd over = all(0.0), under = all(0.0);
        for (size_t j = 0; j < l; j += 4) {
            const double* basis = nodes.basis + i * n * l + j;
            vd H = all(0.0);
            for (size_t k = 0; k < n; k++) H = fma(load(basis + k * l), all(of.H[k]), H);
            const vd away = root(larger(H, all(0.0))), sn = load(nodes.angle + j), sd = vt * sn, per_sd = per_vt / sn;
            const vd dm = (of.b[i] - (of.start + of.sign * away) + load(space.drift + i * l + j)) * per_sd, dp = dm + sd;
            const vd r_weight = load(space.r_weight + i * l + j), q_weight = load(space.q_weight + i * l + j);
            if (VALUE) {
                over = fma(r_weight, normal(dm, erfcx).cdf, over), under = fma(q_weight, normal(dp, erfcx).cdf, under);
            } else if (LOWER) {
                const Normal plus = normal(-dp, erfcx);
                over = fnma(r_weight * density(dm), per_sd, over);
                under = fma(q_weight, fnma(plus.density, per_sd, plus.cdf), under);
            } else {
                const Normal plus = normal(dp, erfcx);
                over = fma(r_weight * density(dm), per_sd, over);
                under = fma(q_weight, fma(plus.density, per_sd, plus.cdf), under);
            }
        }
        N[i] = sum(over), D[i] = sum(under);
    }
    double step = 0.0;
    for (size_t i = 0; i < n; i += 4) {
        const vd x = load(nodes.x + i), tau = t.T * x * x, vt = whole * x, b = load(of.b + i);
        vd over = load(N + i), under = load(D + i);
        if (!LOWER) {
            const vd dm = (b + mu * tau) / vt, er = exp(-t.r * tau), eq = exp(-t.q * tau);
            const Normal minus = normal(dm, erfcx), plus = normal(dm + vt, erfcx);
            over += er * (VALUE ? minus.cdf : minus.density / vt);
            under += eq * (VALUE ? plus.cdf : plus.cdf + plus.density / vt);
        }
        const vd next = elementary::log(over / under);
        for (int j = 0; j < 4; j++) {
            double to = next[j];
            if (of.sign < 0.0 && to > of.start) to = of.start;
            if (of.sign > 0.0 && to < of.start) to = of.start;
            const double change = to > b[j] ? to - b[j] : b[j] - to;
            if (!(change <= step)) step = change;  // not-a-number stays
            of.b[i + static_cast<size_t>(j)] = to;
        }
    }
    return step;
}

void iterate(Boundary& of, const Workspace& space, const Terms& t, const AmericanNodes& nodes, const Erfcx& erfcx, double wanted,
             int most) {
    const bool steep = 2.0 * (t.r - t.q) > STEEP * t.sigma * t.sigma;
    of.step = elementary::INFINITE;
    if (steep && of.sign < 0.0) wanted *= 0.03;  // it converges slowly: what is left is more than the last step
    for (int round = 0; round < most && of.step > wanted; round++)
        of.step = of.sign > 0.0 ? advance<false, true>(of, space, t, nodes, erfcx)
                  : steep       ? advance<true, false>(of, space, t, nodes, erfcx)
                                : advance<false, false>(of, space, t, nodes, erfcx);
    set_squares(of, nodes.n);
}

enum class Region { none, one, two };

// Where exercising early can pay for a put: nowhere, below a boundary, or between two.
Region region(const Terms& t) {
    if (t.r > 0.0 || (t.r == 0.0 && t.q < 0.0)) return Region::one;
    return t.r < 0.0 && t.q < t.r ? Region::two : Region::none;
}

// The largest of the last three Chebyshev coefficients, over ln B - ln B(0) at expiry: what the boundary is not resolved to.
double tail(Boundary& of, const AmericanNodes& nodes) {
    set_coefficients(of, nodes);
    double most = 0.0;
    for (size_t k = nodes.n - 2; k <= nodes.n; k++) {
        const double size = of.c[k] < 0.0 ? -of.c[k] : of.c[k];
        if (!(size <= most)) most = size;
    }
    return most / one_root(of.H[0]);
}

// The first sqrt(tau / horizon) at which the boundaries meet; 1 if they do not.
double meeting(const Workspace& space, size_t n) {
    constexpr int PARTS = 256;
    double low = 0.0;
    for (int i = 1; i <= PARTS; i++) {
        double high = static_cast<double>(i) / PARTS;
        if (at(space.upper, n, 2.0 * high - 1.0) <= at(space.lower, n, 2.0 * high - 1.0)) {
            for (int j = 0; j < 50; j++) {
                const double middle = 0.5 * (low + high);
                (at(space.upper, n, 2.0 * middle - 1.0) <= at(space.lower, n, 2.0 * middle - 1.0) ? high : low) = middle;
            }
            return low;
        }
        low = high;
    }
    return 1.0;
}

// Two boundaries up to the time left `horizon`: whether both were found.
bool solve_two(Workspace& space, const Terms& t, double horizon, const AmericanNodes& nodes, const Erfcx& erfcx, double wanted) {
    Terms part = t;
    part.T = space.horizon = horizon;
    set_weights(space, part, nodes);
    space.upper.sign = -1.0, space.upper.start = 0.0;
    space.lower.sign = 1.0, space.lower.start = one_log(t.r / t.q);
    for (Boundary* each : {&space.upper, &space.lower}) {
        guess_two(*each, part, nodes);
        iterate(*each, space, part, nodes, erfcx, wanted, LONG_ROUNDS);
        if (!(each->step <= LOST)) return false;
        set_coefficients(*each, nodes);
    }
    space.meet = meeting(space, nodes.n);
    return true;
}

// The boundaries at one resolution. `warm`: begin at the one that is there.
void solve(Workspace& space, const Terms& t, Region kind, const AmericanNodes& nodes, const Erfcx& erfcx, double wanted, bool warm) {
    if (kind == Region::one) {
        set_weights(space, t, nodes);
        space.upper.sign = -1.0, space.upper.start = t.q > 0.0 && t.r < t.q ? one_log(t.r / t.q) : 0.0;
        if (!warm) guess(space.upper, t, nodes, erfcx);
        iterate(space.upper, space, t, nodes, erfcx, wanted, ROUNDS);
        return;
    }
    // Past the time at which they meet the equations may have no solution: then a shorter horizon, which still has the meeting.
    wanted = wanted < 0.1 * LOST ? wanted : 0.1 * LOST;  // whether they meet is decided by what is found
    double known = 0.0, unknown = t.T;
    bool found = solve_two(space, t, t.T, nodes, erfcx, wanted);
    for (int trial = 0; trial < HORIZONS && !(found && (space.meet < 1.0 || space.horizon == t.T)); trial++) {
        (found ? known : unknown) = space.horizon;
        found = solve_two(space, t, 0.5 * (known + unknown), nodes, erfcx, wanted);
    }
    if (!(found && (space.meet < 1.0 || space.horizon == t.T))) space.upper.step = elementary::NOT_A_NUMBER;
}

// The premium of a put with strike 1 with one boundary, if it is not exercised at once.
double premium(const Boundary& of, const Terms& t, const AmericanNodes& nodes, const Erfcx& erfcx) {
    const double mu = t.r - t.q - 0.5 * t.sigma * t.sigma, spot = one_exp(t.x), st = one_root(t.T);
    const double *sine = nodes.price_angle, *cosine = sine + nodes.p, *weight = cosine + nodes.p;
    vd total = all(0.0);
    for (size_t j = 0; j < nodes.p; j += 4) {
        vd H = all(0.0);
        for (size_t k = 0; k < nodes.n; k++) H = fma(load(nodes.price_basis + k * nodes.p + j), all(of.H[k]), H);
        const vd b = of.start + of.sign * root(larger(H, all(0.0))), sn = load(sine + j), s = t.T * sn * sn, sd = t.sigma * st * sn;
        const vd ds = 2.0 * t.T * sn * load(cosine + j) * load(weight + j), dm = (t.x - b + mu * s) / sd;
        const vd gain = t.r * exp(-t.r * s) * normal(-dm, erfcx).cdf;
        total = fma(ds, fnma(spot * t.q * exp(-t.q * s), normal(-dm - sd, erfcx).cdf, gain), total);
    }
    return sum(total);
}

// The premium with two boundaries; with more time left than where they meet nobody exercises.
double premium_between(const Workspace& space, const Terms& t, const AmericanNodes& nodes, const Erfcx& erfcx) {
    const double mu = t.r - t.q - 0.5 * t.sigma * t.sigma, spot = one_exp(t.x);
    const double *sine = nodes.price_angle, *cosine = sine + nodes.p, *weight = cosine + nodes.p;
    const double most = space.horizon * space.meet * space.meet;  // time left; s = T - most + most sin^2
    vd total = all(0.0);
    for (size_t j = 0; j < nodes.p; j += 4) {
        const vd sn = load(sine + j), cs = load(cosine + j), s = (t.T - most) + most * sn * sn, sd = t.sigma * root(s);
        vd high = all(0.0), low = all(0.0);
        for (int i = 0; i < 4; i++) {
            const double z = 2.0 * space.meet * cs[i] - 1.0;
            high[i] = at(space.upper, nodes.n, z), low[i] = at(space.lower, nodes.n, z);
        }
        const vd ds = 2.0 * most * sn * cs * load(weight + j);
        const vd dh = (t.x - high + mu * s) / sd, dl = (t.x - low + mu * s) / sd;
        const vd cash = normal(-dh, erfcx).cdf - normal(-dl, erfcx).cdf;
        const vd stock = normal(-dh - sd, erfcx).cdf - normal(-dl - sd, erfcx).cdf;
        const vd gain = t.r * exp(-t.r * s) * cash;
        total = fma(ds, fnma(spot * t.q * exp(-t.q * s), stock, gain), total);
    }
    return sum(total);
}

double european(const Terms& t, const Erfcx& erfcx) {
    const double discount = one_exp(-t.r * t.T), forward = one_exp(t.x + (t.r - t.q) * t.T);
    return price(all(forward), all(1.0), all(t.T), all(t.sigma), all(discount), vi{0, 0, 0, 0}, erfcx)[0];
}

struct Value {
    double price, premium;  // of a put with strike 1
};

// Price from the boundaries in `space`.
Value valued(Workspace& space, const Terms& t, Region kind, const AmericanNodes& nodes, const Erfcx& erfcx, double most = LOST) {
    const double plain = european(t, erfcx), now = -elementary::expm1(all(t.x))[0];
    if (kind == Region::none) return {plain, 0.0};
    double extra = 0.0;
    if (kind == Region::one) {
        if (!(space.upper.step <= most)) return {elementary::NOT_A_NUMBER, elementary::NOT_A_NUMBER};
        if (t.x <= space.upper.b[0]) return {now, now - plain};
        extra = premium(space.upper, t, nodes, erfcx);
    } else {
        if (!(space.upper.step <= LOST && space.lower.step <= LOST)) return {elementary::NOT_A_NUMBER, elementary::NOT_A_NUMBER};
        if (space.meet == 1.0 && t.x <= space.upper.b[0] && t.x >= space.lower.b[0]) return {now, now - plain};
        extra = premium_between(space, t, nodes, erfcx);
    }
    if (extra < 0.0) extra = 0.0;
    if (plain + extra < now) extra = now - plain;
    return {plain + extra, extra};
}

bool sound(const Terms& t) {
    return t.sigma > 0.0 && t.T > 0.0 && finite(t.sigma) && finite(t.T) && finite(t.r) && finite(t.q) && finite(t.x);
}

// The resolution that this option needs, and its boundaries there.
const AmericanNodes& resolved(Workspace& space, const Terms& t, Region kind, const AmericanAccuracy& accuracy, const Erfcx& erfcx,
                              double wanted) {
    if (kind == Region::none) return accuracy.nodes[0];
    solve(space, t, kind, accuracy.nodes[0], erfcx, wanted, false);
    const bool rough = !(tail(space.upper, accuracy.nodes[0]) <= accuracy.tail && space.upper.step <= wanted) ||
                       (kind == Region::two && !(tail(space.lower, accuracy.nodes[0]) <= accuracy.tail && space.lower.step <= wanted));
    if (!rough) return accuracy.nodes[0];
    solve(space, t, kind, accuracy.nodes[1], erfcx, wanted, false);
    return accuracy.nodes[1];
}

Terms terms(const AmericanOptions& given, int64_t i, double& unit) {
    const double S = given.spot[i], K = given.strike[i], r = given.rate[i], q = given.yield[i];
    const bool call = given.is_call[i];  // a call is a put on the strike, with the yield for a rate: McDonald and Schroder
    const double below = S < K ? S : K, away = elementary::log1p(all((S < K ? K - S : S - K) / below))[0], x = S < K ? -away : away;
    const bool positive = S > 0.0 && K > 0.0 && finite(S) && finite(K);
    unit = call ? S : K;
    const double from = positive ? (call ? -x : x) : elementary::NOT_A_NUMBER;
    return {call ? q : r, call ? r : q, given.volatility[i], given.expiry[i], from};
}

void one_price(Workspace& space, const AmericanOptions& given, const AmericanAccuracy& accuracy, const Erfcx& erfcx, bool with_vega,
               double* out, int64_t i, int64_t count) {
    double unit;
    const Terms t = terms(given, i, unit);
    Value found = {elementary::NOT_A_NUMBER, elementary::NOT_A_NUMBER};
    double vega = elementary::NOT_A_NUMBER;
    if (sound(t)) {
        const Region kind = region(t);
        const AmericanNodes& nodes = resolved(space, t, kind, accuracy, erfcx, accuracy.step);
        found = valued(space, t, kind, nodes, erfcx);
        if (with_vega && found.price == found.price) {
            double side[2];
            for (int k = 0; k < 2; k++) {
                Terms moved = t;
                moved.sigma = t.sigma * (k == 0 ? 1.0 + DIFFERENCE : 1.0 - DIFFERENCE);
                if (kind != Region::none) solve(space, moved, kind, nodes, erfcx, 1e-12, true);
                side[k] = valued(space, moved, kind, nodes, erfcx).price;
            }
            vega = unit * (side[0] - side[1]) / (2.0 * DIFFERENCE * t.sigma);
        }
    }
    out[i] = unit * found.price, out[count + i] = unit * found.premium;
    if (with_vega) out[2 * count + i] = vega;
}

// The volatility at which the American price is `price`: secant steps inside a bracket that only ever shrinks.
double one_volatility(Workspace& space, const AmericanOptions& given, double price, const AmericanAccuracy& accuracy, const Erfcx& erfcx,
                      int64_t i) {
    double unit;
    Terms t = terms(given, i, unit);
    const double target = price / unit, now = -elementary::expm1(all(t.x))[0], start = t.sigma;
    t.sigma = start > 0.0 && start < 20.0 ? start : 0.5;
    if (!sound(t) || !(target > 0.0) || !(target > now)) return elementary::NOT_A_NUMBER;
    const Region kind = region(t);
    if (kind == Region::none) return start;
    double low = 0.0, high = elementary::INFINITE, before = 0.0, before_f = 0.0, change = 0.1 * t.sigma;
    const AmericanNodes* nodes = nullptr;
    for (int trial = 0; trial < TRIALS; trial++) {
        const double share = (change < 0.0 ? -change : change) / t.sigma;
        const bool last = 1e-3 * share <= accuracy.step;
        const double wanted = last ? accuracy.step : 1e-3 * share;
        if (nodes == nullptr || nodes == accuracy.nodes) {
            const bool warm = nodes != nullptr;
            if (!warm) nodes = accuracy.nodes;
            solve(space, t, kind, *nodes, erfcx, wanted, warm && space.upper.step <= 1e-3);
            const bool rough = !(tail(space.upper, *nodes) <= accuracy.tail && space.upper.step <= LOST) ||
                               (kind == Region::two && !(tail(space.lower, *nodes) <= accuracy.tail));
            if (last && rough) {
                nodes = accuracy.nodes + 1;
                solve(space, t, kind, *nodes, erfcx, wanted, false);
            }
        } else {
            solve(space, t, kind, *nodes, erfcx, wanted, space.upper.step <= 1e-3);
        }
        const double f = valued(space, t, kind, *nodes, erfcx, wanted > LOST ? wanted : LOST).price - target;
        if (f != f) return f;
        (f < 0.0 ? low : high) = t.sigma;
        double next;
        if (trial == 0) {  // the European vega
            const double sd = t.sigma * one_root(t.T), d = (t.x + (t.r - t.q) * t.T) / sd + 0.5 * sd;
            const double vega = one_exp(t.x - t.q * t.T - 0.5 * d * d) * INVERSE_SQRT_TWO_PI * one_root(t.T);
            next = t.sigma - f / vega;
        } else {
            next = t.sigma - f * (t.sigma - before) / (f - before_f);
        }
        if (f == 0.0) return t.sigma;
        const bool inside = next > low && next < high;  // not if it is not-a-number
        if (inside && last && share <= 1e-2) {
            const double left = (next < t.sigma ? t.sigma - next : next - t.sigma) / t.sigma;
            if (left <= SETTLED) return next;
        }
        if (!inside) next = high == elementary::INFINITE ? 2.0 * t.sigma : 0.5 * (low + high);
        if (next > 20.0 || next < 1e-4) return elementary::NOT_A_NUMBER;
        before = t.sigma, before_f = f, change = next - t.sigma, t.sigma = next;
        if (!(high - low > 1e-15 * t.sigma)) return t.sigma;
    }
    return elementary::NOT_A_NUMBER;
}

int64_t chunks_of(int64_t count) { return (count + QUOTES_AT_A_TIME - 1) / QUOTES_AT_A_TIME; }

}  // namespace

void american_prices(const AmericanOptions& given, const AmericanAccuracy& accuracy, const Erfcx& erfcx, bool with_vega, double* out,
                     int64_t count, int threads) {
    over_chunks<Workspace>(chunks_of(count), threads, [&](Workspace& space, int64_t chunk) {
        for (int64_t i = chunk * QUOTES_AT_A_TIME; i < count && i < (chunk + 1) * QUOTES_AT_A_TIME; i++)
            one_price(space, given, accuracy, erfcx, with_vega, out, i, count);
        return true;
    });
}

void american_volatilities(const AmericanOptions& given, const double* price, const AmericanAccuracy& accuracy, const Erfcx& erfcx,
                           double* out, int64_t count, int threads) {
    over_chunks<Workspace>(chunks_of(count), threads, [&](Workspace& space, int64_t chunk) {
        for (int64_t i = chunk * QUOTES_AT_A_TIME; i < count && i < (chunk + 1) * QUOTES_AT_A_TIME; i++)
            out[i] = one_volatility(space, given, price[i], accuracy, erfcx, i);
        return true;
    });
}

}  // namespace STRIKEOUT_BUILD
