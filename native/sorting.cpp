// Row numbers by one column of finite numbers, then the next, and so on: the same rows in the same order as np.lexsort.
//
// A double's bits, as an integer, ascend with it once the sign is dealt with: all bits of a negative number are flipped, of any
// other the first. If the first column has few values, as the expiries of a book, rows are divided by them, and each part, small
// enough for the first caches, is sorted by the next columns. A last column is sorted by buckets of equal width, as many as rows,
// unless they hold too many different ones. Otherwise a stable radix sort, the last column first, without the bytes in which all rows agree.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static uint64_t ascending(double x) {
    const double plain = x + 0.0;  // minus zero is zero
    uint64_t bits;
    std::memcpy(&bits, &plain, sizeof bits);
    return bits ^ ((bits >> 63) != 0 ? ~uint64_t{0} : uint64_t{1} << 63);
}

struct Entry {
    uint64_t key;
    int64_t row;
};

// Some of the rows, and as much room; after a sort the rows may lie in either.
struct Part {
    Entry *rows, *room;
    size_t count;
};

// Both of these are stable. The first gives up, with rows of one key still in their order, once it has moved rows too often.
static bool sort_few(Part& part, size_t moves) {
    for (size_t i = 1; i < part.count; i++) {
        const Entry entry = part.rows[i];
        size_t at = i;
        for (; at > 0 && part.rows[at - 1].key > entry.key; at--) part.rows[at] = part.rows[at - 1];
        part.rows[at] = entry;
        if (i - at > moves) return false;
        moves -= i - at;
    }
    return true;
}

static void sort_many(Part& part) {
    constexpr int BYTES = 8, VALUES = 256;
    uint32_t tally[BYTES][VALUES] = {};
    for (size_t i = 0; i < part.count; i++)
        for (int b = 0; b < BYTES; b++) tally[b][(part.rows[i].key >> (8 * b)) & 255]++;
    for (int b = 0; b < BYTES; b++) {
        uint32_t* many = tally[b];
        if (many[(part.rows[0].key >> (8 * b)) & 255] == part.count) continue;
        uint32_t place = 0;
        for (int v = 0; v < VALUES; v++) {
            const uint32_t here = many[v];
            many[v] = place;
            place += here;
        }
        for (size_t i = 0; i < part.count; i++) part.room[many[(part.rows[i].key >> (8 * b)) & 255]++] = part.rows[i];
        std::swap(part.rows, part.room);
    }
}

constexpr size_t FEW = 24, MOVES = 4;  // rows that are sorted in place; moves per row in buckets

static void sort_by(const double* column, Part& part) {
    for (size_t i = 0; i < part.count; i++) part.rows[i].key = ascending(column[part.rows[i].row]);
    if (part.count <= FEW)
        sort_few(part, FEW * FEW);
    else
        sort_many(part);
}

// Buckets ascend with the column: a difference and a product with a positive number round to nothing that falls.
static void sort_by_buckets(const double* column, Part& part, std::vector<uint32_t>& ends) {
    const size_t n = part.count;
    double low = column[part.rows[0].row], high = low;
    for (size_t i = 1; i < n; i++) {
        const double x = column[part.rows[i].row];
        low = x < low ? x : low, high = x > high ? x : high;
    }
    const double width = high - low, scale = static_cast<double>(n - 1) / width;
    if (!(width > 0.0) || !(scale < 1e300) || !(width < 1e300)) return sort_by(column, part);
    const auto bucket = [&](double x) { return std::min(static_cast<size_t>((x - low) * scale), n - 1); };
    ends.assign(n + 1, 0);
    for (size_t i = 0; i < n; i++) ends[bucket(column[part.rows[i].row]) + 1]++;
    for (size_t b = 0; b < n; b++) ends[b + 1] += ends[b];
    for (size_t i = 0; i < n; i++) {
        const int64_t row = part.rows[i].row;
        part.room[ends[bucket(column[row])]++] = {ascending(column[row]), row};
    }
    std::swap(part.rows, part.room);
    if (!sort_few(part, MOVES * n)) sort_many(part);
}

// Different keys in the order in which they were first seen, up to MOST of them.
class Values {
    static constexpr size_t SLOTS = 4096;
    static constexpr uint32_t NONE = UINT32_MAX;
    std::vector<uint32_t> slots = std::vector<uint32_t>(SLOTS, NONE);

   public:
    static constexpr size_t MOST = 1024;
    std::vector<uint64_t> keys;
    // The number of a key; MOST if there are too many.
    size_t number(uint64_t key) {
        size_t at = (key * 0x9E3779B97F4A7C15u) >> 52;
        for (; slots[at] != NONE; at = (at + 1) % SLOTS)
            if (keys[slots[at]] == key) return slots[at];
        if (keys.size() < MOST) slots[at] = static_cast<uint32_t>(keys.size()), keys.push_back(key);
        return keys.size() < MOST ? keys.size() - 1 : MOST;
    }
};

// Rows divided by the first column: where each part begins, and the end. Empty if it has too many values.
static std::vector<size_t> divided(const double* column, size_t count, std::vector<Entry>& rows) {
    Values values;
    std::vector<uint16_t> number(count);
    for (size_t i = 0; i < count; i++) {
        const size_t found = values.number(ascending(column[i]));
        if (found == Values::MOST) return {};
        number[i] = static_cast<uint16_t>(found);
    }
    const size_t many = values.keys.size();
    std::vector<size_t> sorted(many), size(many), place(many), begins(many + 1);
    for (size_t v = 0; v < many; v++) sorted[v] = v;
    std::sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) { return values.keys[a] < values.keys[b]; });
    for (size_t i = 0; i < count; i++) size[number[i]]++;
    for (size_t v = 0; v < many; v++) place[sorted[v]] = begins[v], begins[v + 1] = begins[v] + size[sorted[v]];
    for (size_t i = 0; i < count; i++) rows[place[number[i]]++].row = static_cast<int64_t>(i);
    return begins;
}

static void sort(const std::vector<const double*>& columns, size_t count, int64_t* out) {
    std::vector<Entry> rows(count), room(count);
    std::vector<uint32_t> ends;
    std::vector<size_t> begins = count > 1 ? divided(columns[0], count, rows) : std::vector<size_t>();
    const size_t first = begins.empty() ? 0 : 1;  // column that is left to sort by
    if (begins.empty()) {
        for (size_t i = 0; i < count; i++) rows[i].row = static_cast<int64_t>(i);
        begins = {0, count};
    }
    for (size_t p = 0; p + 1 < begins.size(); p++) {
        Part part = {&rows[begins[p]], &room[begins[p]], begins[p + 1] - begins[p]};
        if (columns.size() == first + 1 && part.count > FEW)
            sort_by_buckets(columns[first], part, ends);
        else
            for (size_t c = columns.size(); c-- > first && part.count > 1;) sort_by(columns[c], part);
        for (size_t i = 0; i < part.count; i++) out[begins[p] + i] = part.rows[i].row;
    }
}

void bind_sorting(nb::module_& m) {
    m.def("sorted_rows", [](nb::args columns) {
        std::vector<Doubles> given;
        std::vector<const double*> data;
        for (nb::handle column : columns) {
            Doubles found;
            if (!nb::try_cast(column, found)) throw nb::type_error("columns of doubles are needed");
            given.push_back(found), data.push_back(found.data());
        }
        const size_t count = given.empty() ? 0 : given[0].shape(0);
        for (const Doubles& column : given)
            if (column.shape(0) != count) throw std::invalid_argument("columns of different lengths");
        if (count > UINT32_MAX) throw std::invalid_argument("more rows than are counted here, four billion");
        auto* out = new int64_t[count + 1];
        nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<int64_t*>(p); });
        if (count > 0) sort(data, count, out);
        return nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>(out, {count}, owner);
    });
}
