// CRC-32C (spec/chunk.md section 6).
#pragma once

#include <array>

#include "bytes.hpp"

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace dray {
namespace detail {

constexpr u32 CRC32C_POLYNOMIAL = 0x82F63B78;

constexpr std::array<std::array<u32, 256>, 8> crc32c_tables() {
    std::array<std::array<u32, 256>, 8> tables{};
    for (u32 i = 0; i < 256; ++i) {
        u32 crc = i;
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? CRC32C_POLYNOMIAL : 0);
        tables[0][i] = crc;
    }
    for (usize table = 1; table < 8; ++table) {
        for (usize i = 0; i < 256; ++i) {
            u32 before = tables[table - 1][i];
            tables[table][i] = before >> 8 ^ tables[0][before & 0xFF];
        }
    }
    return tables;
}

// The state after these bytes, by tables. The state is the complement of the checksum.
inline u32 crc32c_by_tables(u32 state, const std::byte* at, usize count) noexcept {
    static constexpr auto tables = crc32c_tables();
    for (; count >= 8; at += 8, count -= 8) {
        u64 word = load<u64>(at) ^ state;
        state = 0;
        for (usize i = 0; i < 8; ++i) state ^= tables[7 - i][word >> (8 * i) & 0xFF];
    }
    for (; count > 0; ++at, --count) {
        state = state >> 8 ^ tables[0][(state ^ std::to_integer<u32>(*at)) & 0xFF];
    }
    return state;
}

#if defined(__x86_64__)
// x^(8 × bytes - 33) modulo the polynomial, reflected. A state times this, as `_mm_crc32_u64` then
// divides it, is the state after so many zeros.
constexpr u32 crc32c_shift(usize bytes) {
    u32 power = 0x80000000;
    for (usize i = 0; i < 8 * bytes - 33; ++i) {
        power = power >> 1 ^ (power & 1 ? CRC32C_POLYNOMIAL : 0);
    }
    return power;
}

// The instruction has a latency of three cycles and can begin each cycle: so three thirds at a
// time.
template <usize THIRD>
__attribute__((target("sse4.2,pclmul"))) inline u64 crc32c_thirds(u64 state, const std::byte*& at,
                                                                  usize& count) noexcept {
    constexpr u32 one = crc32c_shift(THIRD), two = crc32c_shift(2 * THIRD);
    auto shifted = [](u64 state, u32 by) __attribute__((target("sse4.2,pclmul"))) {
        __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(state)),
                                               _mm_cvtsi64_si128(by), 0);
        return _mm_crc32_u64(0, static_cast<u64>(_mm_cvtsi128_si64(product)));
    };
    while (count >= 3 * THIRD) {
        u64 second = 0, third = 0;
        for (usize line = 0; line < THIRD; line += 64) {
            // The processor fetches ahead only up to the end of a page of memory.
            for (usize i = 0; i < 3; ++i) {
                __builtin_prefetch(at + line + (3 + i) * THIRD);
            }
            for (usize i = line; i < line + 64; i += 8) {
                state = _mm_crc32_u64(state, load<u64>(at + i));
                second = _mm_crc32_u64(second, load<u64>(at + THIRD + i));
                third = _mm_crc32_u64(third, load<u64>(at + 2 * THIRD + i));
            }
        }
        state = shifted(state, two) ^ shifted(second, one) ^ third;
        at += 3 * THIRD;
        count -= 3 * THIRD;
    }
    return state;
}

__attribute__((target("sse4.2,pclmul"))) inline u32 crc32c_by_instruction(u32 start,
                                                                          const std::byte* at,
                                                                          usize count) noexcept {
    u64 state = start;
    state = crc32c_thirds<4096>(state, at, count);
    state = crc32c_thirds<256>(state, at, count);
    for (; count >= 8; at += 8, count -= 8) state = _mm_crc32_u64(state, load<u64>(at));
    auto short_state = static_cast<u32>(state);
    for (; count > 0; ++at, --count)
        short_state = _mm_crc32_u8(short_state, std::to_integer<u8>(*at));
    return short_state;
}
#endif

// The checksum of bytes that follow those with the checksum `before`.
inline u32 crc32c(u32 before, const std::byte* at, usize count) noexcept {
#if defined(__x86_64__)
    static const bool has = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
    return ~(has ? crc32c_by_instruction(~before, at, count)
                 : crc32c_by_tables(~before, at, count));
#elif defined(__ARM_FEATURE_CRC32)
    u32 state = ~before;
    for (; count >= 8; at += 8, count -= 8) state = __crc32cd(state, load<u64>(at));
    for (; count > 0; ++at, --count) state = __crc32cb(state, std::to_integer<u8>(*at));
    return ~state;
#else
    return ~crc32c_by_tables(~before, at, count);
#endif
}

}  // namespace detail
}  // namespace dray
