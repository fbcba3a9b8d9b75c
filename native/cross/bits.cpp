// The bits of the kernel without Python: prints one digest a line, to be compared between machines (python3 go.py aarch64).
//
// Compiled with STRIKEOUT_BUILD naming the build that is asked. All that goes in is made of whole numbers, sums, products
// and square roots, which are the same everywhere.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "../arrays.hpp"
#include "../black_arrays.hpp"
#include "../cell_sums.hpp"
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
                         static_cast<int64_t>(made.expiries.size()), 0.125};
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
        return Book{theta, made.expiries.data(), made.k.data(), nullptr, made.offsets.data(), static_cast<int64_t>(made.expiries.size()), 0.0};
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

int main() {
    Doubles coefficients(24);  // any polynomial will do here: it is the order of its terms that counts
    for (size_t k = 0; k < coefficients.size(); k++) coefficients[k] = 1.0 / static_cast<double>((k + 1) * (k + 1));
    const Erfcx erfcx = {coefficients.data(), coefficients.size() - 1, 1.25};
    elementary_functions();
    black_formula(erfcx);
    const bool sound = heston("Heston slices", false) & heston("Heston panels", true) & fourier(erfcx);
    moments("moments", 1);
    moments("scattered moments", 12);
    state();
    return sound ? 0 : 1;
}
