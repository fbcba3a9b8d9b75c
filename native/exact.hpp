// Exact sums of products of integers: what quotes leave behind, to be added and taken away without a trace.
//
// A row is `width` int64; a state is the upper triangle, row by row, of the sum of all products of two columns, each in
// 192-bit two's complement (three uint64, lowest first): 504 bytes for six columns, room for 2^66 rows. The NumPy twin is
// kernels/exact.py. Integers only, but for the last step: rounding a sum once to a double, and solving.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cholesky.hpp"

namespace exact {

struct Wide {  // 192 bits, two's complement
    uint64_t w[3];
};

static inline void add(Wide& sum, unsigned __int128 low, uint64_t high) {
    const unsigned __int128 a = static_cast<unsigned __int128>(sum.w[0]) + static_cast<uint64_t>(low);
    const unsigned __int128 b =
        static_cast<unsigned __int128>(sum.w[1]) + static_cast<uint64_t>(low >> 64) + static_cast<uint64_t>(a >> 64);
    sum.w[0] = static_cast<uint64_t>(a);
    sum.w[1] = static_cast<uint64_t>(b);
    sum.w[2] += high + static_cast<uint64_t>(b >> 64);
}

static inline void add(Wide& sum, const Wide& part) {
    add(sum, (static_cast<unsigned __int128>(part.w[1]) << 64) | part.w[0], part.w[2]);
}

static inline Wide negative(const Wide& a) {
    Wide out = {{~a.w[0], ~a.w[1], ~a.w[2]}};
    add(out, 1, 0);
    return out;
}

// sum +- the products of these rows; `pick` chooses rows by number, all of them where it is null.
static inline void accumulate(Wide* state, const int64_t* rows, int64_t count, int width, const int64_t* pick, bool subtract) {
    constexpr int64_t BLOCK = 128;  // rows that stay in the first cache while the sums, one at a time, stay in registers
    const int64_t* at[BLOCK];
    for (int64_t begin = 0; begin < count; begin += BLOCK) {
        const int64_t many = count - begin < BLOCK ? count - begin : BLOCK;
        for (int64_t n = 0; n < many; n++) at[n] = rows + (pick == nullptr ? begin + n : pick[begin + n]) * width;
        Wide* sum = state;
        for (int i = 0; i < width; i++)
            for (int j = i; j < width; j++, sum++) {
                unsigned __int128 low = 0;
                uint64_t high = 0;
                for (int64_t n = 0; n < many; n++) {
                    const __int128 product = static_cast<__int128>(at[n][i]) * at[n][j];
                    const auto term = static_cast<unsigned __int128>(product);
                    low += term;
                    high += static_cast<uint64_t>(product >> 127) + (low < term);  // sign extension and carry
                }
                Wide part = {{static_cast<uint64_t>(low), static_cast<uint64_t>(low >> 64), high}};
                if (subtract) part = negative(part);
                add(*sum, part);
            }
    }
}

// sum + product * 2^shift.
static inline void add_shifted(Wide& sum, __int128 product, int shift) {
    const auto low = static_cast<unsigned __int128>(product);
    const auto sign = static_cast<uint64_t>(product >> 127);  // the word that goes on above it
    const uint64_t from[3] = {static_cast<uint64_t>(low), static_cast<uint64_t>(low >> 64), sign};
    uint64_t to[3] = {0, 0, 0};
    const int skip = shift / 64, bits = shift % 64;
    for (int i = skip; i < 3; i++) {
        to[i] = from[i - skip] << bits;
        if (bits > 0 && i > skip) to[i] |= from[i - skip - 1] >> (64 - bits);
    }
    add(sum, (static_cast<unsigned __int128>(to[1]) << 64) | to[0], to[2]);
}

// sum[q] + factor * value[q], the factor rounded to a multiple of 2^-factor_grid, ties to even; rounded it stays below
// 2^190, and values below 2^58 (the caller sees to both).
inline void add_products(Wide* sum, double factor, int factor_grid, const int64_t* value, int64_t rows) {
    const double whole = std::nearbyint(std::ldexp(factor, factor_grid));
    int shift = 0;
    const double mantissa = std::frexp(whole, &shift);
    const bool large = shift > 53;  // then the last bits are zero: 53 of them and a shift say it all
    const auto digits = static_cast<int64_t>(large ? std::ldexp(mantissa, 53) : whole);
    shift = large ? shift - 53 : 0;
    if (digits == 0) return;
    for (int64_t q = 0; q < rows; q++) add_shifted(sum[q], static_cast<__int128>(digits) * value[q], shift);
}

// out[a][j][b] = sum over i of matrix[j][i] values[a][i][b], products rounded and added in the order of i.
inline void transform(const double* matrix, int64_t m, int64_t n, const double* values, int64_t outer, int64_t inner,
                      double* out) {
    std::vector<double> columns(static_cast<size_t>(m * n));  // matrix', for values of one number
    for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < n; i++) columns[static_cast<size_t>(i * m + j)] = matrix[j * n + i];
    for (int64_t a = 0; a < outer; a++) {
        const double* from = values + a * n * inner;
        double* to = out + a * m * inner;
        if (inner == 1) {
            for (int64_t j = 0; j < m; j++) to[j] = columns[static_cast<size_t>(j)] * from[0];
            for (int64_t i = 1; i < n; i++) {
                const double* column = columns.data() + i * m;
                for (int64_t j = 0; j < m; j++) to[j] += column[j] * from[i];
            }
            continue;
        }
        for (int64_t j = 0; j < m; j++) {
            double* row = to + j * inner;
            for (int64_t b = 0; b < inner; b++) row[b] = matrix[j * n] * from[b];
            for (int64_t i = 1; i < n; i++) {
                const double factor = matrix[j * n + i], *value = from + i * inner;
                for (int64_t b = 0; b < inner; b++) row[b] += factor * value[b];
            }
        }
    }
}

// The Chebyshev polynomials T_0 .. T_{count-1} at n points, out[q * n + i], in the order of kernels/chebyshev.py.
inline void polynomials(const double* x, int64_t n, int64_t count, double* out) {
    for (int64_t i = 0; i < n; i++) out[i] = 1.0;
    if (count > 1) std::memcpy(out + n, x, static_cast<size_t>(n) * sizeof(double));
    for (int64_t q = 2; q < count; q++)
        for (int64_t i = 0; i < n; i++) out[q * n + i] = 2.0 * x[i] * out[(q - 1) * n + i] - out[(q - 2) * n + i];
}

// What points leave behind, by cell: the cells in ascending order, of each the sums of two factors times its polynomials,
// the sums of two further factors, and how many points it has. Polynomials are T_a(t) T_b(x), or T_b(x) where there is no t.
struct Points {
    const double *cells, *x, *t;  // count x 2, count, count or none
    const double* factors;        // 4 x count
    int64_t count;
};

struct Cells {
    std::vector<double> keys;
    std::vector<Wide> sums;
    std::vector<int64_t> counts;
};

// Points by cell: those of the g-th cell, in ascending order of cells, are order[begin[g]] .. order[begin[g + 1] - 1].
struct Grouping {
    std::vector<int64_t> order, begin;
};

// The numbers of cells by their keys: open addressing.
class CellNumbers {
    const double* cells;
    std::vector<int64_t> slots = std::vector<int64_t>(1024, -1);

    // Where the key of point i is, or where it belongs. -0.0 + 0.0 is 0.0: equal keys have equal bits.
    size_t slot_of(int64_t i) const {
        const double key[2] = {cells[2 * i] + 0.0, cells[2 * i + 1] + 0.0};
        uint64_t word[2];
        std::memcpy(word, key, sizeof word);
        size_t slot = (word[0] * 0x9e3779b97f4a7c15 ^ word[1]) * 0xbf58476d1ce4e5b9 >> 20;
        for (;; slot++) {
            slot &= slots.size() - 1;
            if (slots[slot] < 0 || is_same(firsts[slots[slot]], i)) return slot;
        }
    }

   public:
    std::vector<int64_t> firsts;  // the first point of each cell

    explicit CellNumbers(const double* given) : cells(given) {}
    bool is_same(int64_t i, int64_t j) const {
        return cells[2 * i] == cells[2 * j] && cells[2 * i + 1] == cells[2 * j + 1];
    }
    int64_t of(int64_t i) {
        const size_t slot = slot_of(i);
        if (slots[slot] >= 0) return slots[slot];
        const auto made = static_cast<int64_t>(firsts.size());
        slots[slot] = made;
        firsts.push_back(i);
        if (2 * firsts.size() > slots.size()) {
            slots.assign(4 * slots.size(), -1);
            for (size_t g = 0; g < firsts.size(); g++) slots[slot_of(firsts[g])] = static_cast<int64_t>(g);
        }
        return made;
    }
};

// Cells are numbered as they come, and then sorted: there are far fewer of them than points.
inline Grouping grouped(const double* cells, int64_t count) {
    CellNumbers numbers(cells);
    std::vector<int64_t> number(static_cast<size_t>(count)), sizes;
    for (int64_t i = 0; i < count; i++) {
        number[i] = i > 0 && numbers.is_same(i - 1, i) ? number[i - 1] : numbers.of(i);
        sizes.resize(numbers.firsts.size());
        sizes[number[i]]++;
    }
    const std::vector<int64_t>& firsts = numbers.firsts;
    std::vector<int64_t> ascending(firsts.size()), next(firsts.size());
    for (size_t g = 0; g < firsts.size(); g++) ascending[g] = static_cast<int64_t>(g);
    std::sort(ascending.begin(), ascending.end(), [&](int64_t g, int64_t h) {
        const double *a = cells + 2 * firsts[g], *b = cells + 2 * firsts[h];
        return a[0] < b[0] || (a[0] == b[0] && a[1] < b[1]);
    });
    Grouping out;
    out.begin.push_back(0);
    for (const int64_t g : ascending) {
        next[g] = out.begin.back();
        out.begin.push_back(out.begin.back() + sizes[g]);
    }
    out.order.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; i++) out.order[next[number[i]]++] = i;
    return out;
}

// The points of one cell, one after the other.
struct CellPoints {
    const double* x;
    const double* factors[4];
    int64_t count;
};
using AddCell = void (*)(const CellPoints& points, int along, int basis_grid, int factor_grid, Wide* sums);
constexpr int64_t FEW = 6;  // points of a cell for which a product at a time is quicker than add_cell

// add_cell: the sums of a cell without t, in one of its builds (cell_sums.hpp). It needs a basis grid of at most 48 bits.
inline Cells resolve(const Points& p, int64_t along, int64_t across, int basis_grid, int factor_grid, AddCell add_cell) {
    const Grouping groups = grouped(p.cells, p.count);
    const std::vector<int64_t>& order = groups.order;
    const int64_t size = along * across, width = 2 * size + 2;
    const double unit = std::ldexp(1.0, basis_grid);
    std::vector<double> values(static_cast<size_t>(size)), first(static_cast<size_t>(along)), second(static_cast<size_t>(across));
    std::vector<int64_t> rounded(static_cast<size_t>(size));
    const int64_t one = 1;
    auto add_point = [&](int64_t i, Wide* sum) {
        polynomials(p.x + i, 1, along, p.t == nullptr ? values.data() : first.data());
        if (p.t != nullptr) {
            polynomials(p.t + i, 1, across, second.data());
            for (int64_t a = 0; a < across; a++)
                for (int64_t b = 0; b < along; b++) values[a * along + b] = second[a] * first[b];
        }
        for (int64_t q = 0; q < size; q++) rounded[q] = static_cast<int64_t>(std::nearbyint(values[q] * unit));
        for (int64_t c = 0; c < 2; c++)
            add_products(sum + c * size, p.factors[c * p.count + i], factor_grid, rounded.data(), size);
        for (int64_t c = 2; c < 4; c++)
            add_products(sum + 2 * size + c - 2, p.factors[c * p.count + i], factor_grid, &one, 1);
    };
    std::vector<double> columns;  // x and the four factors of a cell
    Cells out;
    for (size_t g = 0; g + 1 < groups.begin.size(); g++) {
        const int64_t n = groups.begin[g], end = groups.begin[g + 1], i = order[n], count = end - n;
        out.keys.insert(out.keys.end(), {p.cells[2 * i], p.cells[2 * i + 1]});
        out.sums.resize(out.sums.size() + static_cast<size_t>(width), Wide{});
        out.counts.push_back(count);
        Wide* sum = &out.sums[out.sums.size() - static_cast<size_t>(width)];
        if (p.t != nullptr || basis_grid > 48 || count < FEW) {
            for (int64_t m = n; m < end; m++) add_point(order[m], sum);
            continue;
        }
        columns.resize(static_cast<size_t>(5 * count));
        double* to = columns.data();
        for (int64_t m = 0; m < count; m++) {
            const int64_t at = order[n + m];
            to[m] = p.x[at];
            for (int c = 0; c < 4; c++) to[(c + 1) * count + m] = p.factors[c * p.count + at];
        }
        const CellPoints points = {to, {to + count, to + 2 * count, to + 3 * count, to + 4 * count}, count};
        add_cell(points, static_cast<int>(along), basis_grid, factor_grid, sum);
    }
    return out;
}

// The nearest double to sum * 2^exponent, ties to even.
inline double nearest(const Wide& sum, int exponent) {
    const bool below = (sum.w[2] >> 63) != 0;
    const Wide a = below ? negative(sum) : sum;
    int top = 2;
    while (top >= 0 && a.w[top] == 0) top--;
    if (top < 0) return 0.0;
    const int lead = __builtin_clzll(a.w[top]);
    // The highest 64 bits, and whether anything is left below them.
    uint64_t high = a.w[top] << lead;
    bool rest = false;
    if (top > 0) {
        if (lead > 0) high |= a.w[top - 1] >> (64 - lead);
        rest = (lead > 0 ? a.w[top - 1] << lead : a.w[top - 1]) != 0;
        if (top > 1) rest = rest || a.w[0] != 0;
    }
    uint64_t mantissa = high >> 11;
    const uint64_t tail = high & 0x7ff;
    if (tail > 0x400 || (tail == 0x400 && (rest || (mantissa & 1)))) mantissa++;
    const double value = std::ldexp(static_cast<double>(mantissa), 64 * top - lead + 11 + exponent);
    return below ? -value : value;
}

// sum * 2^exponent to within 1.5 units in the last place: the three words of its size as doubles, highest first. The bits
// are those of kernels/int192.py. Powers of two are multiplied by, exactly, while exponents stay in -900 .. 800.
struct Reader {
    double unit[3];
    explicit Reader(int exponent) {
        for (int i = 0; i < 3; i++) unit[i] = std::ldexp(1.0, exponent + 64 * i);
    }
    double operator()(const Wide& sum) const {
        const uint64_t flip = (sum.w[2] >> 63) != 0 ? ~uint64_t{0} : 0;
        double part[3];
        for (int i = 0; i < 3; i++) part[i] = static_cast<double>(sum.w[i] ^ flip) * unit[i];
        const double value = part[2] + (part[1] + part[0]);
        return flip != 0 ? -value : value;
    }
};

// Two tables by ascending key (a pair of numbers, none of them twice in a table), made one: where both have a key its sums
// are added, or the second's taken from the first's. Returns how many rows there are.
struct Table {
    const double* keys;     // rows x 2
    const Wide* sums;       // rows x width
    const int64_t* counts;  // rows
    int64_t rows;
    bool before(int64_t i, const Table& other, int64_t j) const {
        const double *a = keys + 2 * i, *b = other.keys + 2 * j;
        return a[0] < b[0] || (a[0] == b[0] && a[1] < b[1]);
    }
};

inline int64_t merge(const Table& a, const Table& b, int64_t width, bool subtract, double* keys, Wide* sums,
                     int64_t* counts) {
    int64_t i = 0, j = 0, n = 0;
    for (; i < a.rows || j < b.rows; n++) {
        const bool first = j == b.rows || (i < a.rows && !b.before(j, a, i));  // a has the lowest key that is left
        const bool second = i == a.rows || (j < b.rows && !a.before(i, b, j));
        const double* key = first ? a.keys + 2 * i : b.keys + 2 * j;
        keys[2 * n] = key[0], keys[2 * n + 1] = key[1];
        Wide* to = sums + n * width;
        counts[n] = 0;
        if (first) {
            std::memcpy(to, a.sums + i * width, static_cast<size_t>(width) * sizeof(Wide));
            counts[n] = a.counts[i++];
        } else {
            std::memset(to, 0, static_cast<size_t>(width) * sizeof(Wide));
        }
        if (!second) continue;
        const Wide* from = b.sums + j * width;
        for (int64_t q = 0; q < width; q++) add(to[q], subtract ? negative(from[q]) : from[q]);
        counts[n] += subtract ? -b.counts[j] : b.counts[j];
        j++;
    }
    return n;
}

// x with A x = b by a Jacobi-scaled Cholesky factorisation in the order of kernels/symmetric.py, bit for bit; A is the
// upper triangle, row by row, of (A, b; b', c) as doubles. Not-a-number where A is not positive definite.
inline void solve(const double* triangle, int p, double* x) {
    const int n = p + 1;
    auto A = [&](int i, int j) { return i <= j ? triangle[i * n - i * (i - 1) / 2 + (j - i)] : triangle[j * n - j * (j - 1) / 2 + (i - j)]; };
    double few[8 + 64];  // room for the usual handful of parameters without asking for memory
    std::vector<double> many(p > 8 ? static_cast<size_t>(p) * (p + 1) : 0);
    double *d = p > 8 ? many.data() : few, *L = d + p;
    cholesky::factor(A, p, 0.0, d, L);
    cholesky::solve([&](int i) { return A(i, p); }, p, d, L, x);
}

}  // namespace exact
