// Writes an object anew with a change (spec/page.md section 11).
#pragma once

#include "build.hpp"

namespace dray {
namespace detail {

// What becomes of some tails of one record.
struct Change {
    enum class To { stay, text, items, nothing };
    // The record, as its offset in the old object.
    usize record = 0;
    usize from = 0, end = 0;
    To to = To::stay;
    std::string_view text;
    // For items: how many there will be. One can be left out; further ones are missing or 0.
    usize count = 0;
    usize erased = NONE;
};

// The bytes of a new object.
struct Rewritten {
    std::vector<std::byte> bytes;
    // What lies before this offset of the old object, lies there in the new one, too.
    usize same = 0;
};

class Rewriter {
public:
    Rewriter(const std::byte* old, const Change& change, Rewritten& to)
        : old_(old), change_(change), to_(to) {}

    void object(const Record& record) {
        to_.bytes.assign(old_, old_ + record.end);
        to_.same = NONE;
        tails(record, 0, 0);
        to_.bytes.resize(pad(to_.bytes.size(), 8));
        if (to_.bytes.size() >= EXTENT_END) {
            refuse(Kind::limit, "an object of ", to_.bytes.size(), " bytes");
        }
        store(to_.bytes.data(), static_cast<u32>(to_.bytes.size()));
    }

private:
    struct Out {
        std::vector<std::byte>* bytes;
        std::byte* data() const noexcept { return bytes->data(); }
        usize cursor() const noexcept { return bytes->size(); }
        void extend(usize cursor) const { bytes->resize(cursor); }
    };

    // Copies the tails of a record, which itself was copied.
    void tails(const Record& record, usize old_at, usize new_at) {
        for (usize i = 0; i < record.tails.size(); ++i) {
            const Tail& tail = record.tails[i];
            bool changes = old_at == change_.record && i >= change_.from && i < change_.end;
            if (changes && to_.same == NONE) to_.same = to_.bytes.size();
            usize old_place = old_at + tail.at, place = new_at + tail.at;
            if (tail.kind == PlaceKind::utf8 || tail.kind == PlaceKind::binary) {
                text(old_place, place, changes);
            } else {
                bool resizes = changes && change_.to != Change::To::stay;
                usize count = load<u32>(old_ + old_place + 4);
                if (resizes) count = change_.to == Change::To::items ? change_.count : 0;
                items(*tail.items, old_place, place, count, resizes ? change_.erased : NONE);
                // A struct that became present has fixed lists.
                default_tails(Out{&to_.bytes}, record, new_at, i, i + 1);
            }
        }
    }

    void text(usize old_place, usize place, bool changes) {
        std::string_view text = text_at(old_, old_ + old_place);
        if (changes && change_.to != Change::To::stay) text = change_.text;
        if (text.size() <= INLINE_MAX) {
            std::array<char, INLINE_MAX> copy{};
            std::memcpy(copy.data(), text.data(), text.size());
            store_inline(to_.bytes.data() + place, {copy.data(), text.size()});
            return;
        }
        store_long(to_.bytes.data() + place, text, to_.bytes.size());
        const auto* from = reinterpret_cast<const std::byte*>(text.data());
        to_.bytes.insert(to_.bytes.end(), from, from + text.size());
    }

    // Copies a list, without the item `erased`.
    void items(const Items& items, usize old_place, usize place, usize count, usize erased) {
        store<u64>(to_.bytes.data() + place, 0);
        if (count == 0) return;
        const Record& record = items.record;
        usize old_count = load<u32>(old_ + old_place + 4);
        usize old_start = load<u32>(old_ + old_place);
        usize old_records = old_start + items.bitmap_bytes(old_count);
        usize start = pad(to_.bytes.size(), 8), records = start + items.bitmap_bytes(count);
        if (records + count * record.stride >= EXTENT_END) {
            refuse(Kind::limit, "a list of ", count, " items is larger than any page");
        }
        to_.bytes.resize(records + count * record.stride);
        store(to_.bytes.data() + place, static_cast<u32>(start));
        store(to_.bytes.data() + place + 4, static_cast<u32>(count));
        auto old_of = [&](usize i) { return i < erased ? i : i + 1; };
        usize kept = std::min(count, erased < old_count ? old_count - 1 : old_count);
        // There may be billions of items that take no bytes.
        if (record.stride == 0 && !items.nullable) return;
        for (usize i = 0; i < kept; ++i) {
            if (items.nullable && bit_at(old_ + old_start, old_of(i))) {
                set_bit(to_.bytes.data() + start, i);
            }
            if (record.stride == 0) continue;
            std::memcpy(to_.bytes.data() + records + i * record.stride,
                        old_ + old_records + old_of(i) * record.stride, record.stride);
        }
        if (record.tails.empty()) return;
        for (usize i = 0; i < count; ++i) {
            usize at = records + i * record.stride;
            // What is missing has no tails, and loses those that it had.
            if (items.nullable && !bit_at(to_.bytes.data() + start, i)) {
                bool changes =
                    i < kept && old_records + old_of(i) * record.stride == change_.record;
                if (changes && to_.same == NONE) to_.same = to_.bytes.size();
            } else if (i < kept) {
                tails(record, old_records + old_of(i) * record.stride, at);
            } else {
                default_tails(Out{&to_.bytes}, record, at, 0, record.tails.size());
            }
        }
    }

    const std::byte* old_;
    const Change& change_;
    Rewritten& to_;
};

}  // namespace detail
}  // namespace dray
