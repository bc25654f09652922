// Verifies an object in one pass, front to back, with one cursor for the tails (spec/page.md
// section 9). There are two verifiers. `FastVerifier` only says whether an object is certainly
// valid, and ASCII; if it does not say so, `Verifier` judges, and names what is wrong.
#pragma once

#include "layout.hpp"

namespace dray {
namespace detail {

// The highest number that is read as the bytes `at` to `at + count` of a record: at most 8.
inline u64 load_bytes(const std::byte* at, usize count) noexcept {
    switch (count) {
        case 0: return 0;
        case 1: return load<u8>(at);
        case 2: return load<u16>(at);
        case 4: return load<u32>(at);
        case 8: return load<u64>(at);
        default: {
            u64 word = 0;
            std::memcpy(&word, at, count);
            return word;
        }
    }
}

class Verifier {
public:
    Verifier(const std::byte* extent, usize size, const Record& record)
        : extent_(extent), size_(size), cursor_(record.end) {}

    // Checks the object, whose extent is at least its record.
    void object(const Record& record) {
        this->record(record, 0);
        if (pad(cursor_, 8) != size_) {
            refuse(Kind::extent, "the tails end at ", cursor_, ", the extent at ", size_);
        }
        check_zero(cursor_, size_);
    }

private:
    void check_zero(usize from, usize end) {
        if (!is_zero(extent_ + from, end - from)) {
            refuse(Kind::padding, "a byte between ", from, " and ", end, " is not 0");
        }
    }

    void record(const Record& record, usize at) {
        validity(record, at);
        for (Range gap : record.gaps) check_zero(at + gap.at, at + gap.at + gap.bytes);
        for (usize place : record.booleans) {
            auto value = load<u8>(extent_ + at + place);
            if (value > 1) refuse(Kind::boolean, "a boolean is ", value, ", expected 0 or 1");
        }
        for (const Tail& tail : record.tails) {
            switch (tail.kind) {
                case PlaceKind::utf8: string(at + tail.at, true); break;
                case PlaceKind::binary: string(at + tail.at, false); break;
                default:
                    if (tail.kind == PlaceKind::fixed_list) fixed_list(record, tail, at);
                    items(*tail.items, at + tail.at);
            }
        }
    }

    void validity(const Record& record, usize at) {
        if (record.bits == 0) return;
        const std::byte* bits = extent_ + at + record.bits_at;
        for (usize bit = record.bits; bit % 8 != 0; ++bit) {
            if (bit_at(bits, bit)) {
                refuse(Kind::bitmap, "a bit is set past the last of ", record.bits,
                       " validity bits");
            }
        }
        for (usize bit = 0; bit < record.bits; ++bit) {
            if (!bit_at(bits, bit) && !is_absent(record, at, bit)) {
                refuse(Kind::missing, "a value is missing (validity bit ", bit, ") and not zero");
            }
        }
    }

    bool is_absent(const Record& record, usize at, usize bit) const noexcept {
        const Absent& absent = record.absent[bit];
        for (usize within = absent.bits_from; within < absent.bits_end; ++within) {
            if (bit_at(extent_ + at + record.bits_at, within)) return false;
        }
        for (Range place : absent.places) {
            if (!is_zero(extent_ + at + place.at, place.bytes)) return false;
        }
        return true;
    }

    void string(usize at, bool utf8) {
        usize length = load<u32>(extent_ + at), text = at + 4;
        if (length <= INLINE_MAX) {
            if (!is_zero(extent_ + text + length, INLINE_MAX - length)) {
                refuse(Kind::string, "the bytes behind a string of ", length, " bytes are not 0");
            }
        } else {
            usize offset = load<u32>(extent_ + at + 12);
            if (load<u32>(extent_ + at + 8) != 0) {
                refuse(Kind::string, "the reserved bytes of a string of ", length,
                       " bytes are not 0");
            }
            if (offset != cursor_ || length > size_ - cursor_) {
                refuse(Kind::tail, "a string of ", length, " bytes at ", offset, ", expected at ",
                       cursor_, " of ", size_);
            }
            if (load<u32>(extent_ + text) != load<u32>(extent_ + cursor_)) {
                refuse(Kind::string, "a string does not begin as its place says");
            }
            text = cursor_;
            cursor_ += length;
        }
        if (utf8 && !is_utf8(extent_ + text, length)) refuse(Kind::utf8, "a string is not UTF-8");
    }

    void fixed_list(const Record& record, const Tail& tail, usize at) {
        bool present =
            tail.nearest_bit == NONE || bit_at(extent_ + at + record.bits_at, tail.nearest_bit);
        usize count = load<u32>(extent_ + at + tail.at + 4);
        if (present && count != tail.size) {
            refuse(Kind::items, "a list of ", tail.size, " items has ", count);
        }
    }

    void items(const Items& items, usize at) {
        usize offset = load<u32>(extent_ + at), count = load<u32>(extent_ + at + 4);
        if (count == 0) {
            if (offset != 0) refuse(Kind::items, "a list of no items is at ", offset);
            return;
        }
        if (count >= EXTENT_END) refuse(Kind::items, "a list has ", count, " items");
        const Record& record = items.record;
        usize start = pad(cursor_, 8), records_at = start + items.bitmap_bytes(count);
        // Both factors are below 2^31.
        usize end = records_at + count * record.stride;
        if (offset != start || end > size_) {
            refuse(Kind::tail, count, " items at ", offset, ", expected at ", start, " up to ", end,
                   " of ", size_);
        }
        check_zero(cursor_, start);
        cursor_ = end;
        if (items.nullable) bitmap(start, records_at, count);
        if (!items.nullable && !record.is_checked()) return;
        for (usize i = 0; i < count; ++i) {
            usize item = records_at + i * record.stride;
            if (!items.nullable || bit_at(extent_ + start, i)) {
                this->record(record, item);
            } else if (!is_zero(extent_ + item, record.stride)) {
                refuse(Kind::missing, "item ", i, " is missing and not zero");
            }
        }
    }

    void bitmap(usize from, usize end, usize count) {
        for (usize bit = count; bit % 8 != 0; ++bit) {
            if (bit_at(extent_ + from, bit)) {
                refuse(Kind::bitmap, "a bit is set past the last of ", count, " items");
            }
        }
        check_zero(from + (count + 7) / 8, end);
    }

    const std::byte* extent_;
    usize size_;
    // Where the next tail begins.
    usize cursor_;
};

// The bits of a string's place that are 0 in a valid ASCII string, by its length: of a short one
// the highest of each byte, and the bytes behind it; of a long one the same of its first four
// bytes, and the reserved bytes. Of a binary value any bytes may be there.
struct StringMask {
    u64 low, high;
};
template <bool UTF8>
constexpr std::array<StringMask, INLINE_MAX + 2> string_masks() {
    std::array<StringMask, INLINE_MAX + 2> masks{};
    for (usize length = 0; length <= INLINE_MAX; ++length) {
        u64 low = length < 4 ? ~u64{0} << (32 + 8 * length) : 0;
        u64 high = length < 4 ? ~u64{0} : length < 12 ? ~u64{0} << (8 * (length - 4)) : 0;
        masks[length] = {low | (UTF8 ? HIGH_BITS << 32 : 0), high | (UTF8 ? HIGH_BITS : 0)};
    }
    masks[INLINE_MAX + 1] = {UTF8 ? HIGH_BITS << 32 : 0, 0xFFFFFFFF};
    return masks;
}

class FastVerifier {
public:
    // The four bytes behind `size` can be read, too: slots follow the objects.
    FastVerifier(const std::byte* extent, usize size) : extent_(extent), size_(size) {}

    // Whether the object is certainly valid, and its strings are ASCII.
    [[gnu::always_inline]] bool object(const Record& record) noexcept {
        cursor_ = run_ = record.end;
        if (!this->record(record, 0)) return false;
        end_run();
        usize rest = size_ - cursor_;
        // The extent has at least 8 bytes.
        if (rest >= 8) return false;
        u64 padding = rest == 0 ? 0 : load<u64>(extent_ + size_ - 8) >> (64 - 8 * rest);
        return (padding | wrong_) == 0;
    }

private:
    [[gnu::always_inline]] bool record(const Record& record, usize at) noexcept {
        if (record.fixed_at > record.bits_at) validity(record, at);
        if (record.bits_at == 0 && record.stride > record.end) {
            wrong_ |= load_bytes(extent_ + at + record.end, record.stride - record.end);
        }
        for (usize place : record.booleans) wrong_ |= load<u8>(extent_ + at + place) & 0xFE;
        for (const Step& step : record.steps) {
            if (step.kind == PlaceKind::utf8) {
                if (!strings<true>(record, step, at)) return false;
            } else if (step.kind == PlaceKind::binary) {
                end_run();
                if (!strings<false>(record, step, at)) return false;
                run_ = cursor_;
            } else if (!list(record, record.tails[step.from], at)) {
                return false;
            }
        }
        return true;
    }

    [[gnu::always_inline]] void validity(const Record& record, usize at) noexcept {
        usize bytes = record.fixed_at - record.bits_at;
        if (bytes > 8) {
            many_bits(record, at);
            return;
        }
        u64 word = load_bytes(extent_ + at + record.bits_at, bytes);
        if (record.bits == 0) {
            wrong_ |= word;
            return;
        }
        if (record.bits < 64) wrong_ |= word >> record.bits;
        u64 missing = ~word & (~u64{0} >> (64 - record.bits));
        for (; missing != 0; missing &= missing - 1) {
            absent(record, at, static_cast<usize>(std::countr_zero(missing)));
        }
    }

    void absent(const Record& record, usize at, usize bit) noexcept {
        const Absent& absent = record.absent[bit];
        for (usize within = absent.bits_from; within < absent.bits_end; ++within) {
            wrong_ |= bit_at(extent_ + at + record.bits_at, within);
        }
        for (Range place : absent.places) {
            const std::byte* from = extent_ + at + place.at;
            switch (place.bytes) {
                case 8: wrong_ |= load<u64>(from); break;
                case 16: wrong_ |= load<u64>(from) | load<u64>(from + 8); break;
                case 4: wrong_ |= load<u32>(from); break;
                default: wrong_ |= !is_zero(from, place.bytes);
            }
        }
    }

    [[gnu::noinline]] void many_bits(const Record& record, usize at) noexcept {
        const std::byte* bits = extent_ + at + record.bits_at;
        for (usize bit = record.bits; bit % 8 != 0; ++bit) wrong_ |= bit_at(bits, bit);
        usize bits_bytes = (record.bits + 7) / 8;
        wrong_ |= !is_zero(bits + bits_bytes, record.fixed_at - record.bits_at - bits_bytes);
        for (usize first = 0; first < record.bits; first += 64) {
            usize count = std::min(record.bits - first, usize{64});
            u64 missing =
                ~load_bytes(bits + first / 8, (count + 7) / 8) & (~u64{0} >> (64 - count));
            for (; missing != 0; missing &= missing - 1) {
                absent(record, at, first + static_cast<usize>(std::countr_zero(missing)));
            }
        }
    }

    // Without a branch that depends on the length of a string.
    template <bool UTF8>
    [[gnu::always_inline]] bool strings(const Record& record, Step step, usize at) noexcept {
        static constexpr auto MASKS = string_masks<UTF8>();
        const std::byte* extent = extent_;
        usize cursor = cursor_;
        const usize size = size_;
        u64 wrong = wrong_;
        const u32* end = record.tails_at.data() + step.end;
        for (const u32* place = record.tails_at.data() + step.from; place != end; ++place) {
            u64 low = load<u64>(extent + at + *place), high = load<u64>(extent + at + *place + 8);
            u64 length = low & 0xFFFFFFFF, is_long = length > INLINE_MAX ? ~u64{0} : 0;
            StringMask mask = MASKS[std::min<u64>(length, INLINE_MAX + 1)];
            // The tail's first bytes can be read even if it is empty: the cursor is at most `size`.
            u64 tail = u64{cursor} << 32 | load<u32>(extent + cursor);
            u64 found = (high & ~u64{0xFFFFFFFF}) | low >> 32;
            wrong |= (low & mask.low) | (high & mask.high) | ((tail ^ found) & is_long);
            cursor += length & is_long;
            if (cursor > size) return false;
        }
        cursor_ = cursor;
        wrong_ = wrong;
        return true;
    }

    // Checks the bytes of the strings that lie one after the other up to the cursor.
    [[gnu::always_inline]] void end_run() noexcept {
        if (cursor_ > run_) wrong_ |= high_bits(extent_ + run_, cursor_ - run_);
    }

    bool list(const Record& record, const Tail& tail, usize at) noexcept {
        usize offset = load<u32>(extent_ + at + tail.at),
              count = load<u32>(extent_ + at + tail.at + 4);
        if (tail.kind == PlaceKind::fixed_list && count != tail.size) {
            bool present =
                tail.nearest_bit == NONE || bit_at(extent_ + at + record.bits_at, tail.nearest_bit);
            if (present) return false;
        }
        if (count == 0) return offset == 0;
        const Items& items = *tail.items;
        const usize stride = items.record.stride;
        usize start = pad(cursor_, 8), records_at = start + items.bitmap_bytes(count);
        usize end = records_at + count * stride;
        if (count >= EXTENT_END || offset != start || end > size_) return false;
        end_run();
        usize gap = start - cursor_;
        if (gap > 0) wrong_ |= load<u64>(extent_ + start - 8) >> (64 - 8 * gap);
        cursor_ = run_ = end;
        if (items.nullable) return nullable_items(items, start, records_at, count);
        if (!items.record.is_checked()) return true;
        for (usize item = records_at; item < end; item += stride) {
            if (!this->record(items.record, item)) return false;
        }
        return true;
    }

    bool nullable_items(const Items& items, usize start, usize records_at, usize count) noexcept {
        const usize stride = items.record.stride;
        for (usize bit = count; bit % 8 != 0; ++bit) wrong_ |= bit_at(extent_ + start, bit);
        usize bitmap_end = start + (count + 7) / 8;
        wrong_ |= !is_zero(extent_ + bitmap_end, records_at - bitmap_end);
        for (usize i = 0; i < count; ++i) {
            usize item = records_at + i * stride;
            if (!bit_at(extent_ + start, i)) {
                wrong_ |= !is_zero(extent_ + item, stride);
            } else if (!this->record(items.record, item)) {
                return false;
            }
        }
        return true;
    }

    const std::byte* extent_;
    usize size_;
    usize cursor_ = 0;
    // Where the strings begin that were not yet checked for ASCII.
    usize run_ = 0;
    // Not 0 if something is wrong, or not ASCII.
    u64 wrong_ = 0;
};

}  // namespace detail
}  // namespace dray
