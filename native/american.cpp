// Compiled once for each instruction set, with STRIKEOUT_BUILD naming it. Symbols: kernels/american.py, which is the definition.
#include "american.hpp"

#include "black.hpp"
#include "chunks.hpp"

namespace STRIKEOUT_BUILD {

namespace {

constexpr int GUESSES = 4, ROUNDS = 120, LONG_ROUNDS = 400, TRIALS = 80, HORIZONS = 40, QUOTES_AT_A_TIME = 16;
constexpr double ROUGHLY = 1e-5;      // a last step of ln B after which the boundary's Chebyshev coefficients show its resolution
constexpr double NEAR = 3e-3;         // a step of the implied volatility, relative to it, after which the resolution is chosen
constexpr double STEEP = 4.0;         // 2 (r - q) / sigma^2: above, the equation of the value converges, below that of the slope
constexpr double PACE = 0.6388;       // ln B = ln B(0) - PACE sigma sqrt(tau) for small times if r < q, and steeper if not
constexpr double LOST = 1e-5;         // a last step of ln B above this is no answer
constexpr double DIFFERENCE = 1e-4;   // of the volatility, for vega
constexpr double SETTLED = 2e-5;      // one after which the next is not needed: its slope is known to a thousandth or better

struct Terms {  // of one option as a put with strike 1
    double r, q, sigma, T, x;  // x = ln(spot / strike)
    double share;              // spot over the unit of the price, 1 at most: errors are counted in spots
};

struct Boundary {
    double start, sign;  // ln B at tau = 0; -1 if it falls with tau, 1 if it rises
    alignas(32) double b[MOST_NODES], H[MOST_NODES];
    double c[MOST_NODES + 1];
    double step;
};

struct Workspace {
    // Weights of the integrals of the boundary and of the premium. They do not depend on the volatility.
    alignas(32) double r_weight[MOST_NODES * MOST_POINTS], q_weight[MOST_NODES * MOST_POINTS];
    alignas(32) double cash_weight[MOST_PRICE_POINTS], stock_weight[MOST_PRICE_POINTS];
    const AmericanNodes *weighted, *price_weighted;  // the resolution they are of; none before an option's first
    double weighted_horizon;
    const AmericanNodes* solved;  // the resolution of `upper`, and its volatility
    double sigma;
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
// erfcx of black.hpp with its polynomial summed pairwise: its 24 steps one after the other are most of a round's time.
INLINE vd quick_erfcx(const Erfcx& of, vd z) {
    z = smaller(all(1e8), z);  // below, infinity times zero; there the density is zero
    const vd per = 1.0 / ((z + of.centre) * (1.0 + 2.0 * z)), y = 1.0 - 2.0 * of.centre * (1.0 + 2.0 * z) * per;
    const vd y2 = y * y, y4 = y2 * y2, y8 = y4 * y4;
    const double* c = of.coefficients;
    vd part[ERFCX_TERMS / 4];
    for (size_t k = 0; k < ERFCX_TERMS / 4; k++) {
        const vd low = fma(y, all(c[4 * k + 1]), all(c[4 * k])), high = fma(y, all(c[4 * k + 3]), all(c[4 * k + 2]));
        part[k] = fma(y2, high, low);
    }
    const vd first = fma(y4, part[1], part[0]), second = fma(y4, part[3], part[2]), third = fma(y4, part[5], part[4]);
    return fma(y8, fma(y8, third, second), first) * ((z + of.centre) * per);
}
INLINE Normal normal(vd x, const Erfcx& of) {
    const vd e = exp(-0.5 * (x * x)), tail = 0.5 * e * quick_erfcx(of, magnitude(x) * SQRT_HALF);
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
    of.step = elementary::INFINITE;
}

// Where to begin if there are two boundaries: square roots of time, each at most half of the way to the other.
void guess_two(Boundary& of, const Terms& t, const AmericanNodes& nodes) {
    const double half = 0.5 * one_log(t.q / t.r), pace = of.sign < 0.0 ? 1.5 : PACE;
    for (size_t i = 0; i < nodes.n; i++) {
        const double away = pace * t.sigma * one_root(t.T) * nodes.x[i];
        of.b[i] = of.start + of.sign * (away < half ? away : half);
    }
    of.step = elementary::INFINITE;
}

// The integrals' weights r exp(-r s) ds and q exp(-q s) ds: the same in every round and for every volatility.
void set_weights(Workspace& space, const Terms& t, const AmericanNodes& nodes) {
    if (space.weighted == &nodes && space.weighted_horizon == t.T) return;
    space.weighted = &nodes, space.weighted_horizon = t.T;
    const double *sine = nodes.angle, *cosine = sine + nodes.l, *weight = cosine + nodes.l;
    for (size_t i = 0; i < nodes.n; i++) {
        const double tau = t.T * nodes.x[i] * nodes.x[i];
        for (size_t j = 0; j < nodes.l; j += 4) {
            const vd sn = load(sine + j), s = tau * sn * sn, ds = 2.0 * tau * sn * load(cosine + j) * load(weight + j);
            store(space.r_weight + i * nodes.l + j, t.r * exp(-t.r * s) * ds);
            store(space.q_weight + i * nodes.l + j, t.q * exp(-t.q * s) * ds);
        }
    }
}

// H at `points` points from its values at the nodes. Eight points at a time: a sum alone waits for each of its steps.
INLINE void interpolate(const Boundary& of, const double* basis, size_t n, size_t points, double* out) {
    for (size_t j = 0; j < points; j += 8) {
        vd one = all(0.0), two = all(0.0);
        for (size_t k = 0; k < n; k++) {
            const vd H = all(of.H[k]);
            one = fma(load(basis + k * points + j), H, one), two = fma(load(basis + k * points + j + 4), H, two);
        }
        store(out + j, one), store(out + j + 4, two);
    }
}

// One round: ln B at every node from the equation of the value (STEEP) or of the slope, with the boundary of the round before.
template <bool VALUE, bool LOWER>
double advance(Boundary& of, const Workspace& space, const Terms& t, const AmericanNodes& nodes, const Erfcx& erfcx) {
    alignas(32) double N[MOST_NODES], D[MOST_NODES], squares[MOST_POINTS];
    const size_t n = nodes.n, l = nodes.l;
    const double mu = t.r - t.q - 0.5 * t.sigma * t.sigma, whole = t.sigma * one_root(t.T);
    set_squares(of, n);
    for (size_t i = 0; i < n; i++) {
        const double vt = whole * nodes.x[i], per_vt = 1.0 / vt, drift = mu * t.T * nodes.x[i] * nodes.x[i];
        interpolate(of, nodes.basis + i * n * l, n, l, squares);
        vd over = all(0.0), under = all(0.0);
        for (size_t j = 0; j < l; j += 4) {
            const vd H = load(squares + j);
            const vd away = root(larger(H, all(0.0))), sn = load(nodes.angle + j), sd = vt * sn, per_sd = per_vt / sn;
            const vd dm = (of.b[i] - (of.start + of.sign * away) + drift * (sn * sn)) * per_sd, dp = dm + sd;
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
    if (steep && of.sign < 0.0) wanted *= 0.001;  // it converges slowly: what is left is more than the last step
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

// Begins the single boundary at the one that is there, of another volatility or resolution.
void carry(Workspace& space, const Terms& t, const AmericanNodes& nodes) {
    Boundary& of = space.upper;
    const double ratio = t.sigma / space.sigma;  // ln B - ln B(0) is about proportional to the volatility
    if (space.solved != &nodes) {
        set_coefficients(of, *space.solved);
        for (size_t i = 0; i < nodes.n; i++) of.b[i] = at(of, space.solved->n, 2.0 * nodes.x[i] - 1.0);
    }
    for (size_t i = 0; i < nodes.n; i++) of.b[i] = of.start + ratio * (of.b[i] - of.start);
    of.step = elementary::INFINITE;
}

// The boundaries at one resolution. A single one is begun at the option's last, if it has one.
void solve(Workspace& space, const Terms& t, Region kind, const AmericanNodes& nodes, const Erfcx& erfcx, double wanted) {
    if (kind == Region::one) {
        set_weights(space, t, nodes);
        space.upper.sign = -1.0, space.upper.start = t.q > 0.0 && t.r < t.q ? one_log(t.r / t.q) : 0.0;
        if (space.solved == nullptr || !(space.upper.step <= 1e-3))
            guess(space.upper, t, nodes, erfcx);
        else if (space.solved != &nodes || space.sigma != t.sigma)
            carry(space, t, nodes);
        iterate(space.upper, space, t, nodes, erfcx, wanted, ROUNDS);
        space.solved = &nodes, space.sigma = t.sigma;
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

void set_price_weights(Workspace& space, const Terms& t, const AmericanNodes& nodes) {
    if (space.price_weighted == &nodes) return;
    space.price_weighted = &nodes;
    const double *sine = nodes.price_angle, *cosine = sine + nodes.p, *weight = cosine + nodes.p;
    for (size_t j = 0; j < nodes.p; j += 4) {
        const vd sn = load(sine + j), s = t.T * sn * sn, ds = 2.0 * t.T * sn * load(cosine + j) * load(weight + j);
        store(space.cash_weight + j, t.r * exp(-t.r * s) * ds);
        store(space.stock_weight + j, t.q * exp(-t.q * s) * ds);
    }
}

// The premium of a put with strike 1 with one boundary, if it is not exercised at once.
double premium(Workspace& space, const Terms& t, const AmericanNodes& nodes, const Erfcx& erfcx) {
    set_price_weights(space, t, nodes);
    const Boundary& of = space.upper;
    const double mu = t.r - t.q - 0.5 * t.sigma * t.sigma, whole = t.sigma * one_root(t.T);
    alignas(32) double squares[MOST_PRICE_POINTS];
    interpolate(of, nodes.price_basis, nodes.n, nodes.p, squares);
    vd cash = all(0.0), stock = all(0.0);
    for (size_t j = 0; j < nodes.p; j += 4) {
        const vd H = load(squares + j);
        const vd b = of.start + of.sign * root(larger(H, all(0.0))), sn = load(nodes.price_angle + j), sd = whole * sn;
        const vd dm = (t.x - b + mu * t.T * (sn * sn)) / sd;
        cash = fma(load(space.cash_weight + j), normal(-dm, erfcx).cdf, cash);
        stock = fma(load(space.stock_weight + j), normal(-dm - sd, erfcx).cdf, stock);
    }
    return sum(cash) - one_exp(t.x) * sum(stock);
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
        extra = premium(space, t, nodes, erfcx);
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

// Whether the price needs more nodes: the tail times how much the premium depends on the boundary.
bool is_rough(Boundary& of, const Terms& t, const AmericanNodes& nodes, const AmericanAccuracy& accuracy) {
    const double rates = (t.r < 0.0 ? -t.r : t.r) + (t.q < 0.0 ? -t.q : t.q);
    return !(tail(of, nodes) * rates * one_root(t.T) <= accuracy.tail * t.share * t.sigma);
}

// The resolution that this option needs, and its boundaries there.
size_t resolved(Workspace& space, const Terms& t, Region kind, const AmericanAccuracy& accuracy, const Erfcx& erfcx) {
    const double wanted = accuracy.step * t.share;
    for (size_t level = 0;; level++) {
        const AmericanNodes& nodes = accuracy.nodes[level];
        const bool last = level + 1 == LEVELS;
        if (kind == Region::one && !last) {  // whether it is enough shows before the last rounds
            solve(space, t, kind, nodes, erfcx, wanted > ROUGHLY ? wanted : ROUGHLY);
            if (is_rough(space.upper, t, nodes, accuracy)) continue;
        }
        solve(space, t, kind, nodes, erfcx, wanted);
        if (last) return level;
        if (kind == Region::one && space.upper.step <= LOST) return level;
        if (kind == Region::two && !is_rough(space.upper, t, nodes, accuracy) && !is_rough(space.lower, t, nodes, accuracy)) return level;
    }
}

Terms terms(const AmericanOptions& given, int64_t i, double& unit) {
    const double S = given.spot[i], K = given.strike[i], r = given.rate[i], q = given.yield[i];
    const bool call = given.is_call[i];  // a call is a put on the strike, with the yield for a rate: McDonald and Schroder
    const double below = S < K ? S : K, away = elementary::log1p(all((S < K ? K - S : S - K) / below))[0], x = S < K ? -away : away;
    const bool positive = S > 0.0 && K > 0.0 && finite(S) && finite(K);
    unit = call ? S : K;
    const double share = S < unit ? S / unit : 1.0;
    const double from = positive ? (call ? -x : x) : elementary::NOT_A_NUMBER;
    return {call ? q : r, call ? r : q, given.volatility[i], given.expiry[i], from, share};
}

void begin(Workspace& space) {
    space.weighted = nullptr, space.price_weighted = nullptr, space.solved = nullptr;
}

void one_price(Workspace& space, const AmericanOptions& given, const AmericanAccuracy& accuracy, const Erfcx& erfcx, bool with_vega,
               double* out, int64_t i, int64_t count) {
    double unit;
    const Terms t = terms(given, i, unit);
    Value found = {elementary::NOT_A_NUMBER, elementary::NOT_A_NUMBER};
    double vega = elementary::NOT_A_NUMBER;
    if (sound(t)) {
        const Region kind = region(t);
        begin(space);
        const AmericanNodes& nodes = accuracy.nodes[kind == Region::none ? 0 : resolved(space, t, kind, accuracy, erfcx)];
        found = valued(space, t, kind, nodes, erfcx);
        if (with_vega && found.price == found.price) {
            double side[2];
            for (int k = 0; k < 2; k++) {
                Terms moved = t;
                moved.sigma = t.sigma * (k == 0 ? 1.0 + DIFFERENCE : 1.0 - DIFFERENCE);
                if (kind != Region::none) solve(space, moved, kind, nodes, erfcx, 1e-12);
                side[k] = valued(space, moved, kind, nodes, erfcx).price;
            }
            vega = unit * (side[0] - side[1]) / (2.0 * DIFFERENCE * t.sigma);
        }
    }
    out[i] = unit * found.price, out[count + i] = unit * found.premium;
    if (with_vega) out[2 * count + i] = vega;
}

// The volatility at which the American price is `price`: secant steps inside a bracket that only ever shrinks, at the lowest
// resolution until they are short, then at the one that the option needs.
double one_volatility(Workspace& space, const AmericanOptions& given, double price, const AmericanAccuracy& accuracy, const Erfcx& erfcx,
                      int64_t i) {
    double unit;
    Terms t = terms(given, i, unit);
    const double target = price / unit, now = -elementary::expm1(all(t.x))[0], start = t.sigma;
    t.sigma = start > 0.0 && start < 20.0 ? start : 0.5;
    if (!sound(t) || !(target > 0.0) || !(target > now)) return elementary::NOT_A_NUMBER;
    const Region kind = region(t);
    if (kind == Region::none) return start;
    begin(space);
    const double least = accuracy.step * t.share;
    double low = 0.0, high = elementary::INFINITE, before = 0.0, before_f = 0.0, change = 0.1 * t.sigma, slope = 0.0, apart = 1.0;
    size_t level = 0;
    bool chosen = false;  // the resolution
    for (int trial = 0; trial < TRIALS; trial++) {
        const double share = (change < 0.0 ? -change : change) / t.sigma;
        const bool choose = !chosen && trial > 0 && share <= NEAR;
        const double wanted = chosen || 1e-3 * share <= least ? least : 1e-3 * share;
        if (choose) {
            level = resolved(space, t, kind, accuracy, erfcx);
            chosen = true, low = 0.0, high = elementary::INFINITE;
        } else {
            solve(space, t, kind, accuracy.nodes[level], erfcx, wanted);
        }
        const Value found = valued(space, t, kind, accuracy.nodes[level], erfcx, wanted > LOST ? wanted : LOST);
        const double f = found.price - target;
        if (f != f) return f;
        if (f == 0.0) return t.sigma;
        (f < 0.0 ? low : high) = t.sigma;
        if (trial == 0) {  // the European vega
            const double sd = t.sigma * one_root(t.T), d = (t.x + (t.r - t.q) * t.T) / sd + 0.5 * sd;
            slope = one_exp(t.x - t.q * t.T - 0.5 * d * d) * INVERSE_SQRT_TWO_PI * one_root(t.T);
            if (found.premium <= 0.01 * least) chosen = true;  // every resolution gives it to a share of itself
        } else if (choose && level > 0) {
            apart += share;  // the slope of the lowest resolution is better than one between two resolutions
        } else {
            slope = (f - before_f) / (t.sigma - before), apart = share;
        }
        double next = t.sigma - f / slope;
        const bool inside = next > low && next < high;  // not if it is not-a-number
        if (inside && chosen) {
            const double left = (next < t.sigma ? t.sigma - next : next - t.sigma) / t.sigma;
            if (left <= SETTLED && left * apart <= accuracy.settled) return next;
        }
        if (!inside) next = high == elementary::INFINITE ? 2.0 * t.sigma : 0.5 * (low + high);
        if (next > 20.0 || next < 1e-4) return elementary::NOT_A_NUMBER;
        before = t.sigma, before_f = f, change = next - t.sigma, t.sigma = next;
        if (chosen && !(high - low > 1e-15 * t.sigma)) return t.sigma;
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
