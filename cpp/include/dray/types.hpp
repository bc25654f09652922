// The values of fields in C++. Dates and times are those of <chrono>; what the standard library
// does not have is here.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <concepts>
#include <string_view>

#include "bytes.hpp"

namespace dray {

// Dates: days, and milliseconds, since 1970-01-01.
using Date32 = std::chrono::sys_days;
using Date64 = std::chrono::sys_time<std::chrono::milliseconds>;
// Times since midnight, and durations.
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
// Timestamps with a zone are points in time; without one they are local to nowhere in particular.
template <class Unit>
using Timestamp = std::chrono::sys_time<Unit>;
template <class Unit>
using LocalTimestamp = std::chrono::local_time<Unit>;
using Months = std::chrono::months;

struct DayTime {
    std::int32_t days = 0;
    std::int32_t milliseconds = 0;
    auto operator<=>(const DayTime&) const = default;
};

struct MonthDayNano {
    std::int32_t months = 0;
    std::int32_t days = 0;
    std::int64_t nanoseconds = 0;
    auto operator<=>(const MonthDayNano&) const = default;
};

// The bits of an IEEE 754 half.
struct Float16 {
    std::uint16_t bits = 0;

    explicit operator float() const noexcept {
        std::uint32_t sign = std::uint32_t{bits} >> 15 << 31, exponent = bits >> 10 & 31,
                      fraction = bits & 1023;
        if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000 | fraction << 13);
        if (exponent == 0) {
            float value = static_cast<float>(fraction) * 0x1p-24F;
            return sign != 0 ? -value : value;
        }
        return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
    }
    bool operator==(const Float16&) const = default;
};

// A two's complement number of 256 bits, from its lowest word on.
struct Int256 {
    std::array<std::uint64_t, 4> words{};
    bool operator==(const Int256&) const = default;
};

// The number unscaled / 10^SCALE.
template <class Number, int PRECISION, int SCALE>
struct Decimal {
    static constexpr int precision = PRECISION;
    static constexpr int scale = SCALE;
    Number unscaled{};
    bool operator==(const Decimal&) const = default;
};

namespace detail {

template <class T>
struct IsDecimal : std::false_type {};
template <class Number, int P, int S>
struct IsDecimal<Decimal<Number, P, S>> : std::true_type {};

// Types of this library whose bytes are those that objects have.
template <class T>
concept StoredAsIs = std::same_as<T, DayTime> || std::same_as<T, MonthDayNano> ||
    std::same_as<T, Float16> || std::same_as<T, Int256> || IsDecimal<T>::value;

template <class T>
struct IsDuration : std::false_type {};
template <class Rep, class Period>
struct IsDuration<std::chrono::duration<Rep, Period>> : std::true_type {};

template <class T>
concept Duration = IsDuration<T>::value;
template <class T>
concept TimePoint = requires(T value) {
    value.time_since_epoch();
};

// A value that is stored as STORED.
template <class T, class STORED>
inline T from_stored(STORED value) noexcept {
    if constexpr (TimePoint<T>) {
        return T(typename T::duration(value));
    } else {
        return T(value);
    }
}

template <class STORED, class T>
inline STORED to_stored(const T& value) noexcept {
    if constexpr (TimePoint<T>) {
        return static_cast<STORED>(value.time_since_epoch().count());
    } else if constexpr (Duration<T>) {
        return static_cast<STORED>(value.count());
    } else {
        return static_cast<STORED>(value);
    }
}

// The string whose place is at `place`.
[[gnu::always_inline]] inline std::string_view text_at(const std::byte* object,
                                                       const std::byte* place) noexcept {
    u32 length = load<u32>(place);
    const std::byte* text = length <= 12 ? place + 4 : object + load<u32>(place + 12);
    return {reinterpret_cast<const char*>(text), length};
}

}  // namespace detail
}  // namespace dray
