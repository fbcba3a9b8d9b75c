// Where any of many byte strings (needles) occurs in a block of bytes, in one pass whose speed does not depend on their number.
//
//   anchor   the window of 8 bytes of a needle (4 if it is shorter than 8) that the fewest needles share
//   filter   two bits per anchor, in one word: rejects almost every position of the block with one multiplication and one load
//   shapes   per anchor: the pairs (length of the needle, place of the anchor in it), few even if many needles share it
//   whole    needles by the hash of all their bytes: at a known anchor each shape costs one hash, however many needles have it
//
// The rarest window matters: names made of the same date and source share their first and last bytes. Every match is compared
// byte by byte before it is reported, so a collision of hashes costs time and never an answer.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

namespace nb = nanobind;
using Offsets = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Found = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;

constexpr uint64_t MIX = 0x9E3779B97F4A7C15u;
constexpr size_t LONG = 8, SHORT = 4;
constexpr size_t LOOKED_AT = 64;         // windows of a long needle among which its anchor is chosen
constexpr int COUNTER_BITS = 22;         // counters of windows, by hash
constexpr int64_t NONE = -1;

static uint64_t load(const uint8_t* at, size_t size) {
    uint64_t word = 0;
    std::memcpy(&word, at, size);
    return word;
}

static uint64_t mixed(uint64_t word) {
    word *= MIX;
    return word ^ (word >> 32);
}

// Two of 64 bits, by parts of a hash that do not choose the word they are in.
static uint64_t two_bits(uint64_t hash) { return uint64_t{1} << ((hash >> 26) & 63) | uint64_t{1} << ((hash >> 20) & 63); }

static uint64_t hash_of(const uint8_t* at, size_t size) {
    uint64_t hash = size;
    for (; size >= 8; at += 8, size -= 8) hash = mixed(hash ^ load(at, 8)) * MIX;
    return size == 0 ? hash : mixed(hash ^ load(at, size)) * MIX;
}

static int bits_for(size_t count, int least) {
    int bits = least;
    while (bits < 30 && (size_t{1} << bits) < count) bits++;
    return bits;
}

struct Shape {
    uint32_t length, place;
    bool operator<(const Shape& other) const { return length != other.length ? length < other.length : place < other.place; }
    bool operator==(const Shape& other) const { return length == other.length && place == other.place; }
};

// The anchors of one width in bytes, and the shapes of needles that have them.
template <size_t width>
class Anchors {
    struct Slot {
        uint64_t word;
        int64_t first, last;  // of its shapes
    };
    int filter_shift = 64, slot_bits = 0;
    std::vector<uint64_t> filter;
    std::vector<Slot> slots;
    std::vector<Shape> shapes;

    size_t slot_of(uint64_t word) const {
        const size_t last = slots.size() - 1;
        size_t at = (mixed(word) * MIX) >> (64 - slot_bits);
        while (slots[at].first != NONE && slots[at].word != word) at = (at + 1) & last;
        return at;
    }

   public:
    bool empty() const { return shapes.empty(); }
    void fill(std::vector<std::pair<uint64_t, Shape>>& anchored) {
        if (anchored.empty()) return;
        std::sort(anchored.begin(), anchored.end());
        anchored.erase(std::unique(anchored.begin(), anchored.end()), anchored.end());
        const int filter_bits = bits_for(16 * anchored.size(), 12);
        filter_shift = 64 - (filter_bits - 6);
        filter.assign(size_t{1} << (filter_bits - 6), 0);
        slot_bits = bits_for(2 * anchored.size(), 4);
        slots.assign(size_t{1} << slot_bits, Slot{0, NONE, NONE});
        for (const auto& [word, shape] : anchored) {
            const uint64_t hash = word * MIX;
            filter[hash >> filter_shift] |= two_bits(hash);
            Slot& slot = slots[slot_of(word)];
            if (slot.first == NONE) slot = {word, static_cast<int64_t>(shapes.size()), 0};
            shapes.push_back(shape);
            slot.last = static_cast<int64_t>(shapes.size());
        }
    }
    // Calls seen(position of an anchor, its shape) wherever one is.
    template <class Seen>
    void scan(const uint8_t* data, size_t size, const Seen& seen) const {
        if (empty() || size < width) return;
        const uint64_t* bits = filter.data();
        for (size_t p = 0; p + width <= size; p++) {
            const uint64_t word = load(data + p, width), hash = word * MIX, wanted = two_bits(hash);
            if ((bits[hash >> filter_shift] & wanted) != wanted) continue;
            const Slot& slot = slots[slot_of(word)];
            for (int64_t s = slot.first; s != NONE && s < slot.last; s++) seen(p, shapes[static_cast<size_t>(s)]);
        }
    }
};

class ByteSearch {
    std::vector<uint8_t> bytes;
    std::vector<size_t> ends;
    Anchors<LONG> words;
    Anchors<SHORT> halves;
    int whole_bits = 0;
    std::vector<int64_t> whole;  // needle numbers, by hash

    size_t begin_of(size_t n) const { return n == 0 ? 0 : ends[n - 1]; }

    // The place in a needle of the window that the fewest needles share.
    size_t rarest(size_t n, const std::vector<uint32_t>& counters) const {
        const size_t begin = begin_of(n), windows = std::min(ends[n] - begin - LONG + 1, LOOKED_AT);
        size_t best = 0;
        uint32_t fewest = UINT32_MAX;
        for (size_t at = 0; at < windows; at++) {
            const uint32_t count = counters[(load(&bytes[begin + at], LONG) * MIX) >> (64 - COUNTER_BITS)];
            if (count < fewest) fewest = count, best = at;
        }
        return best;
    }

    int64_t needle_at(const uint8_t* at, size_t length) const {
        const size_t last = whole.size() - 1;
        for (size_t slot = hash_of(at, length) >> (64 - whole_bits); whole[slot] != NONE; slot = (slot + 1) & last) {
            const size_t n = static_cast<size_t>(whole[slot]), begin = begin_of(n);
            if (ends[n] - begin == length && std::memcmp(&bytes[begin], at, length) == 0) return whole[slot];
        }
        return NONE;
    }

   public:
    ByteSearch(nb::bytes blob, Offsets ends_) {
        const auto* data = reinterpret_cast<const uint8_t*>(blob.c_str());
        bytes.assign(data, data + blob.size());
        size_t before = 0;
        for (size_t n = 0; n < ends_.shape(0); n++) {
            const int64_t end = ends_.data()[n];
            if (end < 0 || static_cast<size_t>(end) > bytes.size() || static_cast<size_t>(end) < before + SHORT)
                throw std::invalid_argument("needles have four bytes or more, and end where the next begins");
            if (static_cast<size_t>(end) - before > UINT32_MAX) throw std::invalid_argument("a needle is too long");
            ends.push_back(before = static_cast<size_t>(end));
        }
        if (before != bytes.size()) throw std::invalid_argument("bytes after the last needle");
        std::vector<uint32_t> counters(size_t{1} << COUNTER_BITS, 0);
        for (size_t n = 0; n < ends.size(); n++) {
            const size_t begin = begin_of(n), length = ends[n] - begin;
            for (size_t at = 0; at + LONG <= length && at < LOOKED_AT; at++)
                counters[(load(&bytes[begin + at], LONG) * MIX) >> (64 - COUNTER_BITS)]++;
        }
        std::vector<std::pair<uint64_t, Shape>> long_anchors, short_anchors;
        whole_bits = bits_for(2 * ends.size(), 4);
        whole.assign(size_t{1} << whole_bits, NONE);
        for (size_t n = 0; n < ends.size(); n++) {
            const size_t begin = begin_of(n), length = ends[n] - begin;
            const auto size = static_cast<uint32_t>(length);
            if (length < LONG) {
                short_anchors.push_back({load(&bytes[begin], SHORT), Shape{size, 0}});
            } else {
                const size_t at = rarest(n, counters);
                long_anchors.push_back({load(&bytes[begin + at], LONG), Shape{size, static_cast<uint32_t>(at)}});
            }
            if (needle_at(&bytes[begin], length) != NONE) throw std::invalid_argument("a needle is given twice");
            size_t slot = hash_of(&bytes[begin], length) >> (64 - whole_bits);
            while (whole[slot] != NONE) slot = (slot + 1) & (whole.size() - 1);
            whole[slot] = static_cast<int64_t>(n);
        }
        words.fill(long_anchors);
        halves.fill(short_anchors);
    }

    nb::tuple find(nb::bytes block) const {
        const auto* data = reinterpret_cast<const uint8_t*>(block.c_str());
        const size_t size = block.size();
        std::vector<std::pair<int64_t, int64_t>> found;
        {
            nb::gil_scoped_release free;
            const auto seen = [&](size_t p, const Shape& shape) {
                if (p < shape.place || size - (p - shape.place) < shape.length) return;
                const size_t begin = p - shape.place;
                const int64_t needle = needle_at(data + begin, shape.length);
                if (needle != NONE) found.push_back({static_cast<int64_t>(begin), needle});
            };
            words.scan(data, size, seen);
            halves.scan(data, size, seen);
            std::sort(found.begin(), found.end());
            found.erase(std::unique(found.begin(), found.end()), found.end());
        }
        auto* out = new int64_t[2 * found.size() + 1];
        nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<int64_t*>(p); });
        for (size_t i = 0; i < found.size(); i++) out[i] = found[i].first, out[found.size() + i] = found[i].second;
        return nb::make_tuple(Found(out, {found.size()}, owner), Found(out + found.size(), {found.size()}, owner));
    }
};

void bind_search(nb::module_& m) {
    nb::class_<ByteSearch>(m, "ByteSearch")
        .def(nb::init<nb::bytes, Offsets>(), nb::arg("blob"), nb::arg("ends"))
        .def("find", &ByteSearch::find, nb::arg("block"));
}
