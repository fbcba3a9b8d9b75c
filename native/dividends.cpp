// Compiled once for each instruction set, with STRIKEOUT_BUILD naming it. Symbols: kernels/dividends.py, which is the definition.
#include "dividends.hpp"

#include "chunks.hpp"
#include "elementary.hpp"

namespace STRIKEOUT_BUILD {

namespace {

constexpr size_t N = DIVIDEND_NODES;

struct Grid {  // of LANES options with the same right: a lane never sees another
    alignas(32) vd spot[N], value[2][N], right[N], inverse[N], weight[N], moved[N];
};

INLINE vd at_least_zero(vd x) { return larger(x, all(0.0)); }

// Cubic Lagrange interpolation at `at` (in steps of the grid) of one lane.
double interpolated(const vd* value, int lane, double at) {
    double base = static_cast<double>(static_cast<int64_t>(at)) - 1.0;
    const double last = static_cast<double>(N - 4);
    base = base < 0.0 ? 0.0 : base > last ? last : base;
    const size_t j = static_cast<size_t>(base);
    const double u = at - base;
    const double a = value[j][lane], b = value[j + 1][lane], c = value[j + 2][lane], d = value[j + 3][lane];
    const double one = u - 1.0, two = u - 2.0, three = u - 3.0;
    return ((a * (one * two * three)) * (-1.0 / 6.0) + (b * (u * two * three)) * 0.5) +
           ((c * (u * one * three)) * -0.5 + (d * (u * one * two)) * (1.0 / 6.0));
}

void solve(Grid& g, const DividendSteps& steps, vd spot, vd strike, vd sigma, double sign, vd& american, vd& european) {
    const vd start = elementary::log(spot - steps.pv[0]), x0 = sign * start, xk = sign * elementary::log(strike);
    const vd wide = DIVIDEND_WIDTH * sigma * root(all(steps.T));
    const vd lowest = smaller(x0, xk) - wide, highest = larger(x0, xk) + wide;
    const vd h = (highest - lowest) / static_cast<double>(N - 1);
    vi unused;
    const vd place = nearest((x0 - lowest) / h, unused), low = x0 - place * h;
    const vd edge = exp(sign * (0.5 * h)), other = 1.0 / edge;
    for (size_t j = 0; j < N; j++) {
        const vd x = low + static_cast<double>(j) * h;
        g.spot[j] = exp(sign * x);
        // The payoff's mean over the cell, which moves the kink off the grid.
        const vd from = x - 0.5 * h, to = smaller(x + 0.5 * h, xk);
        const vd part = at_least_zero(to - from) / h;
        const vd end = pick(x + 0.5 * h <= xk, g.spot[j] * edge, strike), begin = g.spot[j] * other;
        const vd mean = at_least_zero(sign * (strike * (part * h) - sign * (end - begin)) / h);
        g.value[0][j] = pick(part > 0.0, mean, all(0.0));
        g.value[1][j] = g.value[0][j];
    }
    const vd s2 = sigma * sigma, alpha = 0.5 * s2 / (h * h);
    for (size_t step = 0; step < steps.count; step++) {
        const double k = steps.half[step];
        const vd beta = (sign * (steps.drift[step] - 0.5 * s2)) / (2.0 * h);
        const vd below = alpha - beta, above = alpha + beta, lower = -k * below, upper = -k * above, centre = 1.0 + k * (2.0 * alpha + steps.rate);
        if (steps.fresh[step] != 0.0) {
            vd pivot = centre;
            g.inverse[N - 2] = 1.0 / pivot, g.weight[N - 2] = all(0.0);
            for (size_t j = N - 3; j > 0; j--) {
                g.weight[j] = upper * g.inverse[j + 1];
                pivot = fnma(g.weight[j], lower, centre);
                g.inverse[j] = 1.0 / pivot;
            }
        }
        const bool explicit_half = steps.whole[step] != 0.0;
        const vd held = sign * (strike * steps.discount[step] - at_least_zero(g.spot[0] * steps.carry[step] - steps.cash[step]));
        for (int side = 0; side < 2; side++) {  // American, European
            vd* value = g.value[side];
            for (size_t j = 1; j + 1 < N; j++)
                g.right[j] = explicit_half ? fma(k * above, value[j + 1], fma(k * below, value[j - 1], (2.0 - centre) * value[j])) : value[j];
            vd carried = g.right[N - 2];
            for (size_t j = N - 3; j > 0; j--) {
                carried = fnma(g.weight[j], carried, g.right[j]);
                g.right[j] = carried;
            }
            const vd near = sign * (strike - g.spot[0] - steps.pv[step + 1]);
            vd before = side == 0 ? larger(at_least_zero(held), near) : at_least_zero(held);
            value[0] = before, value[N - 1] = all(0.0);
            for (size_t j = 1; j + 1 < N; j++) {
                before = fnma(lower, before, g.right[j]) * g.inverse[j];
                if (side == 0) before = larger(before, sign * (strike - g.spot[j] - steps.pv[step + 1]));
                value[j] = before;
            }
        }
        if (steps.amount[step] == 0.0) continue;
        const double amount = steps.amount[step];
        if (steps.drops != 0.0) {
            for (int side = 0; side < 2; side++) {
                vd* value = g.value[side];
                for (size_t j = 0; j < N; j++) {
                    const vd left = g.spot[j] - amount, inside = larger(left, all(1e-300));
                    const vd at = (sign * elementary::log(inside) - low) / h;
                    for (int lane = 0; lane < LANES; lane++) {
                        double found;
                        if (left[lane] > 0.0 && at[lane] >= 0.0 && at[lane] <= static_cast<double>(N - 1)) {
                            found = interpolated(value, lane, at[lane]);
                        } else {  // beyond the grid: what holding to the end is worth, or exercising now
                            const double rest = left[lane] > 0.0 ? left[lane] : 0.0, stock = rest * steps.carry[step] - steps.cash[step];
                            const double hold = sign * (strike[lane] * steps.discount[step] - (stock > 0.0 ? stock : 0.0));
                            const double now = sign * (strike[lane] - rest);
                            found = hold > 0.0 ? hold : 0.0;
                            if (side == 0 && now > found) found = now;
                        }
                        g.moved[j][lane] = found;
                    }
                }
                for (size_t j = 0; j < N; j++) value[j] = at_least_zero(g.moved[j]);
            }
        }
        const double gone = steps.drops != 0.0 ? 0.0 : steps.pv[step + 1] + amount;
        for (size_t j = 0; j < N; j++) g.value[0][j] = larger(g.value[0][j], sign * (strike - g.spot[j] - gone));
    }
    for (int lane = 0; lane < LANES; lane++) {
        const double at = place[lane];
        const bool sound = at >= 0.0 && at < static_cast<double>(N);
        const size_t j = sound ? static_cast<size_t>(at) : 0;
        american[lane] = sound ? g.value[0][j][lane] : elementary::NOT_A_NUMBER;
        european[lane] = sound ? g.value[1][j][lane] : elementary::NOT_A_NUMBER;
    }
}

}  // namespace

void dividend_values(const DividendSteps& steps, const double* spot, const double* strike, const double* sigma, double sign, double* out,
                     int64_t count, int threads) {
    over_chunks<Grid>((count + LANES - 1) / LANES, threads, [&](Grid& g, int64_t chunk) {
        vd S = all(0.0), K = all(0.0), v = all(0.0), american = all(0.0), european = all(0.0);
        for (int lane = 0; lane < LANES; lane++) {  // the last option fills the lanes that are left
            const int64_t i = chunk * LANES + lane < count ? chunk * LANES + lane : count - 1;
            S[lane] = spot[i], K[lane] = strike[i], v[lane] = sigma[i];
        }
        solve(g, steps, S, K, v, sign, american, european);
        for (int lane = 0; lane < LANES && chunk * LANES + lane < count; lane++)
            out[chunk * LANES + lane] = american[lane], out[count + chunk * LANES + lane] = european[lane];
        return true;
    });
}

}  // namespace STRIKEOUT_BUILD
