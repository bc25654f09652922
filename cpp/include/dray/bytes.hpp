// Loads and checks of bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace dray {

static_assert(std::endian::native == std::endian::little, "pages are read where they lie");
static_assert(sizeof(void*) == 8, "pages and files may be larger than 32 bits can address");

using Bytes = std::span<const std::byte>;

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

namespace detail {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using usize = std::size_t;

template <class T>
inline T load(const std::byte* at) noexcept {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

template <class T>
inline void store(std::byte* at, T value) noexcept {
    std::memcpy(at, &value, sizeof value);
}

// x rounded up to a multiple of a power of two.
constexpr usize pad(usize x, usize multiple) noexcept {
    return (x + multiple - 1) & ~(multiple - 1);
}

inline bool bit_at(const std::byte* bits, usize bit) noexcept {
    return (std::to_integer<unsigned>(bits[bit / 8]) >> (bit % 8) & 1) != 0;
}

inline void set_bit(std::byte* bits, usize bit) noexcept {
    bits[bit / 8] |= std::byte{1} << (bit % 8);
}

inline void clear_bit(std::byte* bits, usize bit) noexcept {
    bits[bit / 8] &= ~(std::byte{1} << (bit % 8));
}

inline bool is_zero(const std::byte* at, usize count) noexcept {
    u64 any = 0;
    usize i = 0;
    for (; i + 32 <= count; i += 32) {
        any |= load<u64>(at + i) | load<u64>(at + i + 8) | load<u64>(at + i + 16) |
               load<u64>(at + i + 24);
        if (any != 0) return false;
    }
    for (; i + 8 <= count; i += 8) any |= load<u64>(at + i);
    for (; i < count; ++i) any |= std::to_integer<u64>(at[i]);
    return any == 0;
}

constexpr u64 HIGH_BITS = 0x8080808080808080;

// Not 0 if a byte has its highest bit set.
[[gnu::always_inline]] inline u64 high_bits(const std::byte* at, usize count) noexcept {
    if (count >= 16) {
#if defined(__SSE2__)
        auto block = [at](usize i) {
            return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i));
        };
        auto four = [&block](usize a, usize b, usize c, usize d) {
            return _mm_or_si128(_mm_or_si128(block(a), block(b)), _mm_or_si128(block(c), block(d)));
        };
        // Blocks overlap, so that up to 64 bytes need no loop.
        usize last = count - 16;
        __m128i any = four(0, std::min<usize>(16, last), std::min<usize>(32, last), last);
        for (usize i = 48; i < last; i += 64) {
            any = _mm_or_si128(any, four(i, std::min(i + 16, last), std::min(i + 32, last),
                                         std::min(i + 48, last)));
        }
        return static_cast<u64>(_mm_movemask_epi8(any));
#else
        u64 any = load<u64>(at + count - 16) | load<u64>(at + count - 8);
        for (usize i = 0; i + 16 < count; i += 16) any |= load<u64>(at + i) | load<u64>(at + i + 8);
        return any & HIGH_BITS;
#endif
    }
    if (count >= 8) return (load<u64>(at) | load<u64>(at + count - 8)) & HIGH_BITS;
    u64 any = 0;
    for (usize i = 0; i < count; ++i) any |= std::to_integer<u64>(at[i]);
    return any & HIGH_BITS;
}

// Whether bytes are UTF-8: neither overlong nor surrogates, up to U+10FFFF.
inline bool is_utf8(const std::byte* text, usize count) noexcept {
    const auto* at = reinterpret_cast<const u8*>(text);
    const auto* end = at + count;
    while (at < end) {
        while (end - at >= 8 &&
               (load<u64>(reinterpret_cast<const std::byte*>(at)) & HIGH_BITS) == 0) {
            at += 8;
        }
        if (at == end) return true;
        u8 first = *at;
        if (first < 0x80) {
            ++at;
            continue;
        }
        auto continues = [&](int i, unsigned from, unsigned to) {
            return end - at > i && at[i] >= from && at[i] <= to;
        };
        if (first >= 0xC2 && first <= 0xDF) {
            if (!continues(1, 0x80, 0xBF)) return false;
            at += 2;
        } else if (first >= 0xE0 && first <= 0xEF) {
            unsigned from = first == 0xE0 ? 0xA0 : 0x80, to = first == 0xED ? 0x9F : 0xBF;
            if (!continues(1, from, to) || !continues(2, 0x80, 0xBF)) return false;
            at += 3;
        } else if (first >= 0xF0 && first <= 0xF4) {
            unsigned from = first == 0xF0 ? 0x90 : 0x80, to = first == 0xF4 ? 0x8F : 0xBF;
            if (!continues(1, from, to) || !continues(2, 0x80, 0xBF) || !continues(3, 0x80, 0xBF)) {
                return false;
            }
            at += 4;
        } else {
            return false;
        }
    }
    return true;
}

// Zeroed memory that begins at a multiple of 64, as a page in memory does.
class Buffer {
public:
    Buffer() = default;
    explicit Buffer(usize size) : size_(size) {
        if (size == 0) return;
        data_.reset(static_cast<std::byte*>(std::aligned_alloc(64, pad(size, 64))));
        if (!data_) throw std::bad_alloc();
        std::memset(data_.get(), 0, pad(size, 64));
    }

    std::byte* data() noexcept { return data_.get(); }
    const std::byte* data() const noexcept { return data_.get(); }
    usize size() const noexcept { return size_; }
    operator Bytes() const noexcept { return {data_.get(), size_}; }

private:
    struct Free {
        void operator()(std::byte* data) const noexcept { std::free(data); }
    };
    std::unique_ptr<std::byte[], Free> data_;
    usize size_ = 0;
};

}  // namespace detail
}  // namespace dray
