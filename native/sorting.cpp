// Row numbers by one column of finite numbers, then the next, and so on: the same rows in the same order as np.lexsort.
//
// A stable radix sort, the last column first. A double's bits, as an integer, ascend with it once the sign is dealt with:
// all bits of a negative number are flipped, of any other the first. Bytes in which all rows agree are skipped: expiries of
// a book are few, and strikes near each other.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

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

static void sort_by(const double* column, std::vector<Entry>& rows, std::vector<Entry>& room) {
    constexpr int BYTES = 8, VALUES = 256;
    const size_t count = rows.size();
    std::vector<uint32_t> tally(BYTES * VALUES, 0);
    for (Entry& entry : rows) {
        entry.key = ascending(column[entry.row]);
        for (int b = 0; b < BYTES; b++) tally[b * VALUES + ((entry.key >> (8 * b)) & 255)]++;
    }
    for (int b = 0; b < BYTES; b++) {
        uint32_t* many = &tally[b * VALUES];
        if (many[(rows[0].key >> (8 * b)) & 255] == count) continue;
        uint32_t place = 0;
        for (int v = 0; v < VALUES; v++) {
            const uint32_t here = many[v];
            many[v] = place;
            place += here;
        }
        for (const Entry& entry : rows) room[many[(entry.key >> (8 * b)) & 255]++] = entry;
        rows.swap(room);
    }
}

void bind_sorting(nb::module_& m) {
    m.def("sorted_rows", [](nb::args columns) {
        std::vector<Doubles> given;
        for (nb::handle column : columns) {
            Doubles found;
            if (!nb::try_cast(column, found)) throw nb::type_error("columns of doubles are needed");
            given.push_back(found);
        }
        const size_t count = given.empty() ? 0 : given[0].shape(0);
        for (const Doubles& column : given)
            if (column.shape(0) != count) throw std::invalid_argument("columns of different lengths");
        if (count > UINT32_MAX) throw std::invalid_argument("more rows than are counted here, four billion");
        std::vector<Entry> rows(count), room(count);
        for (size_t i = 0; i < count; i++) rows[i].row = static_cast<int64_t>(i);
        for (size_t c = given.size(); c-- > 0 && count > 1;) sort_by(given[c].data(), rows, room);
        auto* out = new int64_t[count + 1];
        for (size_t i = 0; i < count; i++) out[i] = rows[i].row;
        nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<int64_t*>(p); });
        return nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>(out, {count}, owner);
    });
}
