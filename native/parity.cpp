// Forwards by put-call parity, slice by slice: kernels/parity.py, where the symbols are explained, with the same operations in
// the same order, so the same bits.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "column.hpp"

namespace nb = nanobind;
using Doubles = Column<double>;
using Integers = Column<int64_t>;
using Bools = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr double NONE = std::numeric_limits<double>::quiet_NaN();

struct Rule {
    int64_t nearest, passes;
    double tick, huber, normal;
};

struct Quote {
    double strike, observed, spread;
    bool is_call;
};

struct Line {
    double forward, discount, r_squared, slope, error;
    int64_t pairs;
};

// Not-a-number sorts last, as NumPy has it.
static bool below(double a, double b) { return a < b || (b != b && a == a); }

static bool before(const Quote& a, const Quote& b) {
    if (below(a.strike, b.strike)) return true;
    if (below(b.strike, a.strike)) return false;
    if (a.is_call != b.is_call) return b.is_call;
    if (below(a.observed, b.observed)) return true;
    if (below(b.observed, a.observed)) return false;
    return below(a.spread, b.spread);
}

// Files have the strikes of a slice in order, or nearly; others are sorted in the general way.
static void sort(std::vector<Quote>& quotes) {
    size_t moves = 4 * quotes.size();
    for (size_t i = 1; i < quotes.size(); i++) {
        const Quote quote = quotes[i];
        size_t at = i;
        for (; at > 0 && before(quote, quotes[at - 1]); at--) quotes[at] = quotes[at - 1];
        quotes[at] = quote;
        if (i - at > moves) return std::stable_sort(quotes.begin(), quotes.end(), before);
        moves -= i - at;
    }
}

// The pairs of one slice, one column each, and room to work in.
struct Pairs {
    std::vector<double> K, y, width, sigma, x, u, w, some;
    std::vector<size_t> ranked;

    void clear() { K.clear(), y.clear(), width.clear(); }
    void keep(size_t from, size_t to) { K[to] = K[from], y[to] = y[from], width[to] = width[from]; }
    void shorten(size_t count) { K.resize(count), y.resize(count), width.resize(count); }
};

static double median(std::vector<double>& values) {
    const size_t n = values.size();
    if (n == 0) return NONE;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(n / 2);
    std::nth_element(values.begin(), middle, values.end(), below);
    const double upper = *middle;
    return 0.5 * ((n % 2 == 1 ? upper : *std::max_element(values.begin(), middle, below)) + upper);
}

// The median of |u|. From pass to pass it hardly moves: if it lies near the last one, only values near that are sorted.
static double median_size(const std::vector<double>& u, double last, std::vector<double>& some) {
    constexpr double NEAR = 0.03;
    const size_t n = u.size();
    const double low = last * (1.0 - NEAR), high = last * (1.0 + NEAR);
    some.resize(n);
    size_t smaller = 0, found = 0;
    for (size_t i = 0; i < n; i++) {
        const double size = std::fabs(u[i]);
        smaller += size < low;
        some[found] = size;
        found += (size >= low) & (size <= high);
    }
    const size_t lower = (n - 1) / 2, upper = n / 2;  // ranks whose mean is the median
    if (n > 0 && smaller <= lower && upper < smaller + found) {
        const auto begin = some.begin(), end = begin + static_cast<std::ptrdiff_t>(found);
        const auto middle = begin + static_cast<std::ptrdiff_t>(upper - smaller);
        std::nth_element(begin, middle, end);
        return 0.5 * ((lower == upper ? *middle : *std::max_element(begin, middle)) + *middle);
    }
    for (size_t i = 0; i < n; i++) some[i] = std::fabs(u[i]);
    return median(some);
}

// Every strike with a call and a put. Several quotes of one contract count as their mean.
static void find_pairs(const std::vector<Quote>& quotes, Pairs& out) {
    struct Mean {
        double strike, price, spread;
        bool is_call;
    };
    Mean last = {NONE, 0.0, 0.0, false};
    out.clear();
    for (size_t i = 0; i < quotes.size();) {
        const Quote& first = quotes[i];
        double price = 0.0, spread = 0.0;
        size_t end = i;
        do
            price += quotes[end].observed, spread += quotes[end].spread, end++;
        while (end < quotes.size() && quotes[end].strike == first.strike && quotes[end].is_call == first.is_call);
        const double many = static_cast<double>(end - i);
        const Mean mean = {first.strike, price / many, spread / many, first.is_call};
        if (last.strike == mean.strike) {  // the put sorts before its call
            out.K.push_back(last.strike), out.y.push_back(mean.price - last.price);
            out.width.push_back(0.5 * (mean.spread + last.spread));
        }
        last = mean, i = end;
    }
}

static double crossing(Pairs& p, double D) {
    const size_t n = p.K.size();
    p.some.resize(n);
    for (size_t i = 0; i < n; i++) p.some[i] = p.K[i] + p.y[i] / D;
    return median(p.some);
}

static void keep_near_the_money(Pairs& p, double F, double band, size_t nearest) {
    const size_t n = p.K.size();
    std::vector<double>& away = p.some;
    away.resize(n);
    size_t inside = 0, kept = 0;
    for (size_t i = 0; i < n; i++) away[i] = std::fabs(p.K[i] / F - 1.0), inside += away[i] <= band;
    if (inside >= nearest) {  // the nearest ones are among them
        for (size_t i = 0; i < n; i++)
            if (away[i] <= band) p.keep(i, kept++);
        return p.shorten(kept);
    }
    p.ranked.resize(n);
    for (size_t i = 0; i < n; i++) p.ranked[i] = i;
    std::stable_sort(p.ranked.begin(), p.ranked.end(), [&](size_t a, size_t b) {
        if (below(away[a], away[b])) return true;
        return !below(away[b], away[a]) && below(p.K[a], p.K[b]);
    });
    p.ranked.resize(std::min(n, nearest));  // those inside the band are the first of these
    std::sort(p.ranked.begin(), p.ranked.end());
    for (const size_t i : p.ranked) p.keep(i, kept++);
    p.shorten(kept);
}

struct Slice {
    double discount, band, leaning, expected, prior;
};

static Line fit(Pairs& p, const Slice& slice, const Rule& rule) {
    const bool known = std::isfinite(slice.discount);
    double D = known ? slice.discount : 1.0, F = crossing(p, D);
    keep_near_the_money(p, F, slice.band, static_cast<size_t>(rule.nearest));
    const size_t n = p.K.size();
    F = crossing(p, D);
    bool unknown = false;
    for (size_t i = 0; i < n; i++) unknown = unknown || !std::isfinite(p.width[i]);
    p.sigma.resize(n), p.x.resize(n), p.u.resize(n), p.w.resize(n);
    for (size_t i = 0; i < n; i++) {
        const double width = unknown ? 0.0 : p.width[i], least = rule.tick * p.K[i];
        p.sigma[i] = std::sqrt(width * width + least * least), p.x[i] = p.K[i] - F;
    }
    const double *K = p.K.data(), *y = p.y.data(), *sigma = p.sigma.data(), *x = p.x.data();
    double *u = p.u.data(), *w = p.w.data();
    const double begin = F;
    double middle = 0.0, scale = NONE, slope = NONE, x_mean = NONE, y_mean = NONE, total = NONE, squares = NONE, error = NONE;
    for (int64_t pass = 0; pass < rule.passes; pass++) {
        for (size_t i = 0; i < n; i++) u[i] = (y[i] - D * (F - K[i])) / sigma[i];
        middle = median_size(p.u, middle, p.some);
        scale = rule.normal * middle;
        scale = scale <= 1e-9 ? 1e-9 : scale;
        for (size_t i = 0; i < n; i++) {
            const double ratio = rule.huber * scale / std::fabs(u[i]), square = sigma[i] * sigma[i];
            const double weight = (ratio >= 1.0 ? 1.0 : ratio) / square;
            w[i] = std::isfinite(weight) ? weight : 1.0 / square;  // a pair on the line itself
        }
        double x_sum = 0.0, y_sum = 0.0, shared = 0.0, wide = 0.0;
        total = squares = 0.0;
        for (size_t i = 0; i < n; i++) total += w[i], x_sum += w[i] * x[i], y_sum += w[i] * y[i], wide += w[i] * sigma[i];
        x_mean = x_sum / total, y_mean = y_sum / total;
        for (size_t i = 0; i < n; i++) {
            const double apart = x[i] - x_mean, weighted = w[i] * apart;
            squares += weighted * apart, shared += weighted * (y[i] - y_mean);
        }
        slope = shared / squares;
        const double lean = slice.leaning * wide / total;
        error = (scale * scale + lean * lean * total) / squares;
        const double D_before = D, F_before = F;
        if (!known) D = (slice.prior * -slope + error * slice.expected) / (slice.prior + error);
        F = begin + x_mean + y_mean / D;
        if (D == D_before && F == F_before) break;  // every further pass would repeat this one
    }
    const double trust = known ? 0.0 : slice.prior / (slice.prior + error), away = F - begin - x_mean;
    const double by_slope = trust * away / squares, by_own = trust / squares;
    double missed = 0.0, about = 0.0, holding = 0.0, wrong = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double left = y[i] - D * (F - K[i]), off = y[i] - y_mean, beside = x[i] - x_mean;
        missed += w[i] * left * left, about += w[i] * off * off;
        const double effect = w[i] * (1.0 / total + by_slope * beside), own = w[i] * (1.0 / total + by_own * beside * beside);
        holding += std::fabs(u[i]) <= rule.huber * scale ? w[i] : 0.0;
        const double without = effect * left / (1.0 - own);
        wrong += without * without;
    }
    holding /= total;
    wrong /= holding * holding;
    const double doubt = (1.0 - trust) * away;
    wrong = std::sqrt(wrong + (known ? 0.0 : slice.prior * (doubt * doubt))) / std::fabs(D);
    return {F, D, 1.0 - missed / about, slope, wrong, static_cast<int64_t>(n)};
}

// Rows by slice, in their order.
static std::vector<size_t> by_slice(const Integers& s, std::vector<size_t>& ends) {
    for (size_t i = 0; i < s.size(); i++) ends[static_cast<size_t>(s[i]) + 1]++;
    for (size_t j = 1; j < ends.size(); j++) ends[j] += ends[j - 1];
    std::vector<size_t> rows(s.size()), place(ends.begin(), ends.end() - 1);
    for (size_t i = 0; i < s.size(); i++) rows[place[static_cast<size_t>(s[i])]++] = i;
    return rows;
}

using Table = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

static Table parity_lines(nb::handle s_, nb::handle strike_, Bools is_call, nb::handle observed_, nb::handle spread_,
                          nb::handle slices_, nb::tuple rule_) {
    const Integers s(s_);
    const Doubles strike(strike_), observed(observed_), spread(spread_), slices(slices_, Shape::any);
    const size_t rows = s.size(), count = slices.size() / 5;
    if (strike.size() != rows || is_call.shape(0) != rows || observed.size() != rows || spread.size() != rows)
        throw std::invalid_argument("columns of different lengths");
    if (slices.size() % 5 != 0) throw std::invalid_argument("a slice has five numbers");
    for (size_t i = 0; i < rows; i++)
        if (s[i] < 0 || static_cast<size_t>(s[i]) >= count) throw std::invalid_argument("a row of no slice");
    const Rule rule = {nb::cast<int64_t>(rule_[0]), nb::cast<int64_t>(rule_[1]), nb::cast<double>(rule_[2]),
                       nb::cast<double>(rule_[3]), nb::cast<double>(rule_[4])};
    double* out = new double[6 * count + 1];
    nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    {
        nb::gil_scoped_release free;
        std::vector<size_t> ends(count + 1);
        const std::vector<size_t> order = by_slice(s, ends);
        std::vector<Quote> quotes;
        Pairs pairs;
        for (size_t j = 0; j < count; j++) {
            quotes.clear();
            for (size_t at = ends[j]; at < ends[j + 1]; at++) {
                const size_t i = order[at];
                quotes.push_back({strike[i], observed[i], spread[i], is_call.data()[i]});
            }
            sort(quotes);
            find_pairs(quotes, pairs);
            const double* own = slices.data();
            const Slice slice = {own[j], own[count + j], own[2 * count + j], own[3 * count + j], own[4 * count + j]};
            const Line line = fit(pairs, slice, rule);
            const double found[] = {line.forward, line.discount, line.r_squared, line.slope, line.error,
                                    static_cast<double>(line.pairs)};
            for (size_t f = 0; f < 6; f++) out[f * count + j] = found[f];
        }
    }
    return Table(out, {6, count}, owner);
}

void bind_parity(nb::module_& m) {
    m.def("parity_lines", &parity_lines, nb::arg("s"), nb::arg("strike"), nb::arg("is_call"), nb::arg("observed"),
          nb::arg("spread"), nb::arg("slices"), nb::arg("rule"));
}
