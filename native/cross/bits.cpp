// The bits of the kernel without Python: prints one digest a line, to be compared between machines (python3 go.py aarch64).
//
// Compiled with STRIKEOUT_BUILD naming the build that is asked and STRIKEOUT_ERFCX the numbers of kernels/normal.py: the centre,
// then the coefficients. All else that goes in is made of whole numbers, sums, products, square roots and the kernel's own
// functions, which are compared first.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "../american.hpp"
#include "../arrays.hpp"
#include "../black_arrays.hpp"
#include "../cell_sums.hpp"
#include "../dividends.hpp"
#include "../exact.hpp"
#include "../kernel.hpp"

using Doubles = std::vector<double>;
constexpr int64_t POINTS = 1'000'000;

// FNV-1a over eight bytes at a time. What is not a number has many patterns, and is one here.
class Digest {
    uint64_t hash = 0xcbf29ce484222325;

   public:
    void take(uint64_t word) {
        for (int i = 0; i < 8; i++) hash = (hash ^ (word >> (8 * i) & 0xff)) * 0x100000001b3;
    }
    void take(double x) {
        uint64_t word;
        std::memcpy(&word, &x, sizeof word);
        take(x == x ? word : uint64_t{0x7ff8000000000000});
    }
    // `finite` of them are numbers: to be read beside the digest, which would be the same for none.
    void print(const std::string& name, int64_t finite) const {
        std::printf("%s\t%lld\t%016llx\n", name.c_str(), static_cast<long long>(finite), static_cast<unsigned long long>(hash));
    }
};

static void print(const std::string& name, const Doubles& numbers) {
    Digest digest;
    int64_t finite = 0;
    for (double x : numbers) digest.take(x), finite += std::isfinite(x);
    digest.print(name, finite);
}

// splitmix64 (S. Vigna, 2015): numbers that look random, the same everywhere.
class Draw {
    uint64_t state;

   public:
    explicit Draw(uint64_t seed) : state(seed) {}
    uint64_t word() {
        uint64_t z = state += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    double between(double low, double high) { return low + (high - low) * (static_cast<double>(word() >> 11) * 0x1p-53); }
    double any() {  // any pattern of bits: infinities, the smallest numbers and what is not a number among them
        const uint64_t w = word();
        double x;
        std::memcpy(&x, &w, sizeof x);
        return x;
    }
};

// Every fourth is any double at all, every other fourth is near zero, the rest lie between.
static Doubles points(uint64_t seed, double low, double high, int64_t count = POINTS) {
    Draw draw(seed);
    Doubles out(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; i++)
        out[i] = i % 4 == 0 ? draw.any() : i % 4 == 1 ? draw.between(low, high) * 0x1p-12 : draw.between(low, high);
    return out;
}

static void elementary_functions() {
    const struct { const char* name; Real function; double low, high; } reals[] = {
        {"exp", Real::exp, -750.0, 715.0}, {"expm1", Real::expm1, -50.0, 715.0}, {"log", Real::log, 0.0, 1e3},
        {"log1p", Real::log1p, -1.0, 1e3}, {"sin", Real::sin, -1e4, 1e4},        {"cos", Real::cos, -1e4, 1e4},
    };
    Doubles out(POINTS);
    for (const auto& each : reals) {
        const Doubles x = points(1, each.low, each.high);
        STRIKEOUT_BUILD::apply_real(each.function, x.data(), out.data(), POINTS);
        print(each.name, out);
    }
    const struct { const char* name; Pair function; double low, high; } pairs[] = {
        {"power", Pair::power, 0.0, 50.0}, {"atan2", Pair::atan2, -10.0, 10.0},
    };
    for (const auto& each : pairs) {
        const Doubles x = points(2, each.low, each.high), y = points(3, -10.0, 10.0);
        STRIKEOUT_BUILD::apply_pair(each.function, x.data(), y.data(), out.data(), POINTS);
        print(each.name, out);
    }
    const struct { const char* name; Complex function; } complexes[] = {
        {"complex exp", Complex::exp}, {"complex expm1", Complex::expm1}, {"complex log", Complex::log}, {"complex sqrt", Complex::sqrt},
    };
    const Doubles z = points(4, -30.0, 30.0, 2 * POINTS);
    Doubles both(2 * POINTS);
    for (const auto& each : complexes) {
        STRIKEOUT_BUILD::apply_complex(each.function, z.data(), both.data(), POINTS);
        print(each.name, both);
    }
}

static void black_formula(const Erfcx& erfcx) {
    Draw draw(5);
    Doubles columns[5], out(POINTS);
    for (auto& column : columns) column.resize(POINTS);
    std::vector<uint8_t> is_call(POINTS);
    for (int64_t i = 0; i < POINTS; i++) {
        const double values[] = {draw.between(50.0, 200.0), draw.between(20.0, 400.0), draw.between(0.001, 5.0),
                                 draw.between(0.0, 2.0), draw.between(0.5, 1.0)};
        for (int c = 0; c < 5; c++) columns[c][i] = values[c];
        is_call[i] = static_cast<uint8_t>(i % 2);
    }
    const Options given = {columns[0].data(), columns[1].data(), columns[2].data(), columns[3].data(), columns[4].data(),
                           reinterpret_cast<const bool*>(is_call.data())};
    STRIKEOUT_BUILD::black_prices(given, erfcx, out.data(), POINTS);
    print("Black prices", out);
    const Doubles prices = out;
    STRIKEOUT_BUILD::black_volatilities(given, prices.data(), erfcx, out.data(), POINTS);
    print("Black volatilities", out);
    const Doubles x = points(6, -40.0, 40.0);
    STRIKEOUT_BUILD::normal_cdf(x.data(), erfcx, out.data(), POINTS);
    print("normal cdf", out);
    STRIKEOUT_BUILD::normal_density(x.data(), out.data(), POINTS);
    print("normal density", out);
}

// A book of strikes: slices where the expiries are shared, panels of ln T where they are not.
struct Made {
    Doubles expiries, k, t;
    std::vector<int64_t> offsets = {0};
};

static Made book(bool panels) {
    Draw draw(7);
    Made made;
    for (int j = 0; j < 24; j++) {
        const double year = 0.01 * (1 + j * j);
        made.expiries.push_back(panels ? -4.0 + 0.25 * j : year);
        double k = panels ? -1.5 : -1.2 * std::sqrt(year);
        const int count = 1 + 17 * (j % 5);
        for (int i = 0; i < count; i++) {
            k += (panels ? 3.0 : 2.0 * std::sqrt(year)) * draw.between(0.2, 1.0) / count;
            made.k.push_back(k);
            if (panels) made.t.push_back(draw.between(-1.0, 1.0));
        }
        made.offsets.push_back(static_cast<int64_t>(made.k.size()));
    }
    return made;
}

static bool heston(const char* name, bool panels) {
    const double thetas[][5] = {
        {2.0, 0.06, 0.3, -0.6, 0.06}, {0.2, 0.02, 1.5, -0.95, 0.01}, {8.0, 0.2, 0.1, 0.4, 0.5}, {1.0, 0.04, 4.0, 0.0, 0.04},
    };
    const Made made = book(panels);
    const size_t n = made.k.size();
    Draw draw(8);
    bool sound = true;
    Doubles scale(n), target(n), rows, sums, weighed;
    for (size_t i = 0; i < n; i++) scale[i] = draw.between(0.5, 2.0), target[i] = draw.between(0.0, 0.2);
    for (const auto& theta : thetas) {
        const Book at = {theta, made.expiries.data(), made.k.data(), panels ? made.t.data() : nullptr, made.offsets.data(),
                         static_cast<int64_t>(made.expiries.size()), 0.125, nullptr};
        Doubles out(6 * n);
        sound = STRIKEOUT_BUILD::heston_rows(at, out.data(), 2) && sound;
        rows.insert(rows.end(), out.begin(), out.end());
        out.resize(21);
        sound = STRIKEOUT_BUILD::heston_sums(at, scale.data(), target.data(), out.data(), 2) && sound;
        sums.insert(sums.end(), out.begin(), out.end());
        if (panels) continue;
        out.resize(22);
        sound = STRIKEOUT_BUILD::heston_weighed(at, scale.data(), target.data(), target.data(), out.data()) && sound;
        weighed.insert(weighed.end(), out.begin(), out.end());
    }
    print(std::string(name) + ": rows", rows);
    print(std::string(name) + ": sums", sums);
    if (!panels) print(std::string(name) + ": weighed", weighed);
    return sound;
}

// The other characteristic functions, on slices.
static bool fourier(const Erfcx& erfcx) {
    const Made made = book(false);
    const size_t n = made.k.size();
    const auto at = [&](const double* theta) {
        return Book{theta, made.expiries.data(), made.k.data(), nullptr, made.offsets.data(), static_cast<int64_t>(made.expiries.size()), 0.0, nullptr};
    };
    const double bates[] = {2.0, 0.04, 0.4, -0.5, 0.05, 1.5, -0.1, 0.08};
    const double both[] = {1.0, 0.03, 0.3, -0.7, 0.03, 6.0, 0.03, 0.8, -0.4, 0.04};
    const double clock[] = {0.15, 0.3, -0.2};
    Doubles rows(9 * n), more(11 * n), ticks(4 * n);
    const bool sound = STRIKEOUT_BUILD::bates_rows(at(bates), rows.data(), 2) &&
                       STRIKEOUT_BUILD::double_heston_rows(at(both), more.data(), 2) &&
                       STRIKEOUT_BUILD::variance_gamma_rows(at(clock), erfcx, ticks.data(), 2);
    print("Bates rows", rows);
    print("double Heston rows", more);
    print("variance gamma rows", ticks);
    return sound;
}

static void take(Digest& digest, const std::vector<exact::Wide>& sums) {
    for (const auto& sum : sums)
        for (uint64_t word : sum.w) digest.take(word);
}

static void moments(const char* name, int64_t across) {
    constexpr int64_t COUNT = 20'000, ALONG = 32;
    Draw draw(9);
    Doubles cells(2 * COUNT), x(COUNT), t(COUNT), factors(4 * COUNT);
    for (int64_t i = 0; i < COUNT; i++) {
        cells[2 * i] = static_cast<double>(draw.word() % 5), cells[2 * i + 1] = static_cast<double>(draw.word() % 3);
        x[i] = draw.between(-1.0, 1.0), t[i] = draw.between(-1.0, 1.0);
    }
    for (double& factor : factors) factor = draw.between(-1e6, 1e6) * draw.between(0.0, 1.0);
    const exact::Points given = {cells.data(), x.data(), across > 1 ? t.data() : nullptr, factors.data(), COUNT};
    const exact::Cells found = exact::resolve(given, ALONG, across, 48, 72, STRIKEOUT_BUILD::add_cell);
    Digest digest;
    take(digest, found.sums);
    const exact::Reader read(-120);
    for (const auto& sum : found.sums) digest.take(read(sum)), digest.take(exact::nearest(sum, -120));
    digest.print(name, static_cast<int64_t>(found.sums.size()));
}

static void state() {
    constexpr int WIDTH = 6;
    constexpr int64_t COUNT = 5'000;
    Draw draw(10);
    std::vector<int64_t> rows(WIDTH * COUNT);
    for (auto& entry : rows) entry = static_cast<int64_t>(draw.word()) >> 9;
    std::vector<exact::Wide> sums(WIDTH * (WIDTH + 1) / 2, exact::Wide{});
    exact::accumulate(sums.data(), rows.data(), COUNT, WIDTH, nullptr, false);
    exact::accumulate(sums.data(), rows.data(), 17, WIDTH, nullptr, true);
    Digest digest;
    take(digest, sums);
    Doubles triangle, step(WIDTH - 1);
    for (const auto& sum : sums) triangle.push_back(exact::nearest(sum, -80));
    exact::solve(triangle.data(), WIDTH - 1, step.data());
    for (double number : triangle) digest.take(number);
    for (double number : step) digest.take(number);
    digest.print("state and step", COUNT);
}

static Doubles of(Real function, Doubles x) {
    STRIKEOUT_BUILD::apply_real(function, x.data(), x.data(), static_cast<int64_t>(x.size()));
    return x;
}
static double of(Real function, double x) { return of(function, Doubles{x})[0]; }

// The tables of one resolution, made as kernels/american.py makes them.
struct Resolution {
    Doubles x, coefficients, angle, basis, price_angle, price_basis;

    Resolution(size_t n, size_t l, size_t p) : coefficients((n + 1) * (n + 1)), angle(angles(l)), price_angle(angles(p)) {
        Doubles z(n + 1);
        for (size_t i = 0; i <= n; i++) z[i] = of(Real::cos, PI * static_cast<double>(i) / static_cast<double>(n));
        for (size_t i = 0; i <= n; i++)
            for (size_t k = 0; k <= n; k++) {
                const double turned = static_cast<double>(i * k % (2 * n)), ends = (k % n == 0 ? 0.5 : 1.0) * (i % n == 0 ? 0.5 : 1.0);
                coefficients[i * (n + 1) + k] = of(Real::cos, PI * turned / static_cast<double>(n)) * (2.0 / static_cast<double>(n)) * ends;
            }
        for (size_t i = 0; i < n; i++) x.push_back(0.5 * (1.0 + z[i]));
        for (double x_i : x) lagrange(basis, z, x_i, angle);
        lagrange(price_basis, z, 1.0, price_angle);
    }
    AmericanNodes nodes() const {
        return {x.size(), angle.size() / 3, price_angle.size() / 3, x.data(), coefficients.data(), angle.data(), basis.data(),
                price_angle.data(), price_basis.data()};
    }

   private:
    static constexpr double PI = 3.141592653589793;

    static Doubles angles(size_t count) {
        Doubles out(3 * count);
        const double all = static_cast<double>(count);
        for (size_t j = 0; j < count; j++) {
            double t = of(Real::cos, PI * (static_cast<double>(j) + 0.75) / (all + 0.5)), slope = 1.0;
            for (int turn = 0; turn < 8; turn++) {
                double now = t, before = 1.0;
                for (size_t k = 2; k <= count; k++) {
                    const double after = (static_cast<double>(2 * k - 1) * t * now - static_cast<double>(k - 1) * before) / static_cast<double>(k);
                    before = now, now = after;
                }
                slope = all * (t * now - before) / (t * t - 1.0);
                t = t - now / slope;
            }
            const double a = 0.25 * PI * (1.0 - t);
            out[j] = of(Real::sin, a), out[count + j] = of(Real::cos, a), out[2 * count + j] = 0.5 * PI / ((1.0 - t * t) * slope * slope);
        }
        return out;
    }
    // The Lagrange polynomials of all nodes but the last, at 2 x cos(angle) - 1: one row a node.
    static void lagrange(Doubles& out, const Doubles& z, double x, const Doubles& angle) {
        const size_t n = z.size() - 1, count = angle.size() / 3, begin = out.size();
        out.resize(begin + n * count);
        for (size_t j = 0; j < count; j++) {
            const double at = 2.0 * x * angle[count + j] - 1.0;
            Doubles share(n + 1);
            double total = 0.0;
            size_t hit = n + 1;
            for (size_t k = 0; k <= n; k++) {
                if (at == z[k]) hit = k;
                share[k] = (k % 2 == 0 ? 1.0 : -1.0) * (k % n == 0 ? 0.5 : 1.0) / (at == z[k] ? 1.0 : at - z[k]);
                total = total + share[k];
            }
            for (size_t k = 0; k < n; k++) out[begin + k * count + j] = hit <= n ? (hit == k ? 1.0 : 0.0) : share[k] / total;
        }
    }
};

static void american(const char* name, const Erfcx& erfcx, int64_t count, const std::vector<Resolution>& levels, const double (&limits)[3]) {
    std::vector<AmericanNodes> nodes;
    for (const auto& level : levels) nodes.push_back(level.nodes());
    const AmericanAccuracy accuracy = {nodes.data(), limits[0], limits[1], limits[2]};
    Draw draw(11);
    Doubles columns[6], out(static_cast<size_t>(3 * count)), found(static_cast<size_t>(count));
    std::vector<uint8_t> is_call;
    for (int64_t i = 0; i < count; i++) {  // every eighth with rate and yield below zero: two boundaries among them
        const double sunk = i % 8 == 0 ? -0.1 : 0.0;
        const double values[] = {100.0, draw.between(60.0, 160.0), draw.between(0.003, 5.0), draw.between(-0.02, 0.15) + sunk,
                                 draw.between(0.0, 0.1) + sunk, draw.between(0.05, 1.5)};
        for (int c = 0; c < 6; c++) columns[c].push_back(values[c]);
        is_call.push_back(static_cast<uint8_t>(draw.word() % 2));
    }
    const AmericanOptions given = {columns[0].data(), columns[1].data(), columns[2].data(), columns[3].data(), columns[4].data(),
                                   columns[5].data(), reinterpret_cast<const bool*>(is_call.data())};
    STRIKEOUT_BUILD::american_prices(given, accuracy, erfcx, true, out.data(), count, 2);
    print(std::string(name) + ": prices", out);
    for (double& sigma : columns[5]) sigma = 0.3;  // where the search begins
    STRIKEOUT_BUILD::american_volatilities(given, out.data(), accuracy, erfcx, found.data(), count, 2);
    print(std::string(name) + ": vols", found);
}

// One dividend in each half of a year, escrowed and dropping; calls and puts.
static void cash_dividends() {
    constexpr size_t STEPS = 96, QUARTER = STEPS / 4;
    constexpr int64_t COUNT = 100;
    constexpr double T = 1.0, RATE = 0.05, COST = 0.04, AMOUNT = 1.5;
    Draw draw(12);
    Doubles spot(COUNT, 100.0), strike(COUNT), sigma(COUNT), all;
    for (int64_t i = 0; i < COUNT; i++) strike[i] = draw.between(70.0, 140.0), sigma[i] = draw.between(0.1, 0.8);
    for (const bool drops : {false, true}) {
        Doubles half(STEPS, 0.5 * T / STEPS), whole(STEPS, 1.0), fresh(STEPS, 0.0), drift(STEPS, COST), discount, carry, cash, amount(STEPS, 0.0), pv;
        for (size_t n = 0; n <= STEPS; n++) {
            const double left = T * static_cast<double>(n) / STEPS, elapsed = T - left;
            double worth = 0.0, taken = 0.0;
            for (const double paid : {0.25, 0.75}) {
                if (paid <= elapsed) continue;
                worth += AMOUNT * of(Real::exp, -COST * (paid - elapsed));
                taken += AMOUNT * of(Real::exp, COST * (T - paid) - RATE * left);
            }
            if (n == 0) pv.push_back(0.0);  // that of now, put in below
            else {
                discount.push_back(of(Real::exp, -RATE * left)), carry.push_back(of(Real::exp, (COST - RATE) * left));
                cash.push_back(drops ? taken : 0.0), pv.push_back(drops ? 0.0 : worth);
            }
        }
        pv[0] = pv[STEPS];
        amount[QUARTER - 1] = amount[3 * QUARTER - 1] = AMOUNT;
        for (const size_t first : {size_t{0}, QUARTER, 3 * QUARTER}) fresh[first] = 1.0, whole[first] = 0.0, fresh[first + 1] = 1.0;
        const DividendSteps steps = {STEPS, T, RATE, drops ? 1.0 : 0.0, half.data(), whole.data(), fresh.data(), drift.data(),
                                     discount.data(), carry.data(), cash.data(), amount.data(), pv.data()};
        for (const double sign : {1.0, -1.0}) {
            Doubles out(2 * COUNT);
            STRIKEOUT_BUILD::dividend_values(steps, spot.data(), strike.data(), sigma.data(), sign, out.data(), COUNT, 2);
            all.insert(all.end(), out.begin(), out.end());
        }
    }
    print("cash dividends", all);
}

int main() {
    const Doubles numbers = {STRIKEOUT_ERFCX};
    const Erfcx erfcx = {numbers.data() + 1, numbers.size() - 2, numbers[0]};
    elementary_functions();
    black_formula(erfcx);
    const bool sound = heston("Heston slices", false) & heston("Heston panels", true) & fourier(erfcx);
    american("American, 1e-8", erfcx, 1'000, {{8, 8, 32}, {12, 16, 64}, {16, 16, 64}, {24, 24, 128}, {48, 48, 192}}, {1e-7, 4e-6, 3e-9});
    american("American, 1e-10", erfcx, 100, {{12, 16, 128}, {16, 24, 128}, {24, 24, 192}, {32, 32, 256}, {56, 56, 256}}, {1e-10, 3e-8, 1e-11});
    cash_dividends();
    moments("moments", 1);
    moments("scattered moments", 12);
    state();
    return sound ? 0 : 1;
}
