// Keys and their index (spec/page-file.md section 5).
#pragma once

#include "crc32c.hpp"
#include "layout.hpp"
#include "types.hpp"

namespace dray {

namespace detail {
class Key;
}

// A value of a key's field.
class KeyValue {
public:
    // Of a boolean field.
    template <std::same_as<bool> T>
    KeyValue(T value) : kind_(Kind_::boolean), number_(value) {}
    // Of an integer.
    template <std::integral T>
    requires(!std::same_as<T, bool>) KeyValue(T value) : kind_(Kind_::integer), number_(value) {}
    KeyValue(int128 value) : kind_(Kind_::integer), number_(value) {}
    // Of a date, a time, a timestamp or a duration.
    template <class Rep, class Period>
    KeyValue(std::chrono::duration<Rep, Period> value) : KeyValue(value.count()) {}
    template <class Clock, class Duration>
    KeyValue(std::chrono::time_point<Clock, Duration> value)
        : KeyValue(value.time_since_epoch().count()) {}
    // Of a string or binary field, or the stored bytes of a field of any other type.
    KeyValue(std::string_view text) : bytes_(text) {}
    KeyValue(const char* text) : bytes_(text) {}
    KeyValue(const std::string& text) : bytes_(text) {}
    KeyValue(Bytes bytes) : bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}
    // Of a float, a decimal or an interval: as it is stored.
    template <class T>
    requires(std::floating_point<T> || detail::StoredAsIs<T>) KeyValue(T value)
        : bytes_(reinterpret_cast<const char*>(&value), sizeof value) {}

private:
    friend class detail::Key;
    enum class Kind_ { bytes, boolean, integer };
    Kind_ kind_ = Kind_::bytes;
    int128 number_ = 0;
    std::string bytes_;
};

namespace detail {

// The digest of a row (spec/partitions.md section 5).
class Chain {
public:
    void word(u64 word) noexcept { state_ = fold(state_ ^ word, 0xE7037ED1A0B428DB); }

    void padded(std::string_view bytes) noexcept {
        while (bytes.size() >= 8) {
            word(load<u64>(reinterpret_cast<const std::byte*>(bytes.data())));
            bytes.remove_prefix(8);
        }
        if (bytes.empty()) return;
        u64 last = 0;
        std::memcpy(&last, bytes.data(), bytes.size());
        word(last);
    }

    u64 row() const noexcept { return fold(state_, 0x589965CC75374CC3); }

private:
    static u64 fold(u64 a, u64 k) noexcept {
        uint128 product = static_cast<uint128>(a) * k;
        return static_cast<u64>(product) ^ static_cast<u64>(product >> 64);
    }

    u64 state_ = 0xA0761D6478BD642F;
};

// The stored bytes of a key's values.
using StoredKey = std::vector<std::string>;

// The fields of a key, found in a layout.
class Key {
public:
    // Reads the key paths, with the zeros behind them.
    static Key decode(Bytes bytes, const Layout& layout) {
        constexpr u32 PATHS_MAX = 16, NAMES_MAX = 32;
        Cursor cursor(bytes, Kind::keys);
        auto count = [&](u32 most) {
            u32 found = cursor.number<u32>("count");
            if (found < 1 || found > most) {
                refuse(Kind::keys, found, " in the key paths, expected 1 to ", most);
            }
            return found;
        };
        Key key;
        for (u32 paths = count(PATHS_MAX); paths > 0; --paths) {
            std::vector<std::string> path;
            for (u32 names = count(NAMES_MAX); names > 0; --names) {
                path.push_back(cursor.string("name"));
            }
            key.paths_.push_back(std::move(path));
        }
        if (cursor.left() >= 8) {
            refuse(Kind::keys, cursor.left(), " bytes are left over after the key paths");
        }
        usize left = cursor.left();
        if (!is_zero(cursor.take(left, "padding").data(), left)) {
            refuse(Kind::padding, "a byte behind the key paths is not 0");
        }
        for (const auto& path : key.paths_)
            key.parts_.push_back(find(layout.record().fields, path));
        return key;
    }

    const std::vector<std::vector<std::string>>& paths() const noexcept { return paths_; }

    // The stored bytes of these values; none if a number is out of the range of its type, so that
    // no object has it.
    std::optional<StoredKey> stored(const std::vector<KeyValue>& values) const {
        if (values.size() != parts_.size()) {
            refuse(Kind::usage, values.size(), " values for a key of ", parts_.size(), " fields");
        }
        StoredKey stored;
        for (usize i = 0; i < values.size(); ++i) {
            auto bytes = stored_value(*parts_[i], values[i], paths_[i].back());
            if (!bytes) return std::nullopt;
            stored.push_back(std::move(*bytes));
        }
        return stored;
    }

    u64 hash(const StoredKey& key) const noexcept {
        Chain chain;
        for (usize i = 0; i < key.size(); ++i) {
            if (is_text(*parts_[i])) chain.word(key[i].size());
            chain.padded(key[i]);
        }
        return chain.row();
    }

    // The key of an object; none if a value is missing.
    std::optional<StoredKey> of(const std::byte* object) const {
        StoredKey key;
        for (const Place* part : parts_) {
            auto value = part_of(*part, object);
            if (!value) return std::nullopt;
            key.emplace_back(*value);
        }
        return key;
    }

    bool is_of(const StoredKey& key, const std::byte* object) const noexcept {
        for (usize i = 0; i < key.size(); ++i) {
            if (part_of(*parts_[i], object) != std::optional<std::string_view>(key[i]))
                return false;
        }
        return true;
    }

private:
    static bool is_text(const Place& part) noexcept {
        return part.kind == PlaceKind::utf8 || part.kind == PlaceKind::binary;
    }

    static const Place* find(const std::vector<Place>& of_object,
                             const std::vector<std::string>& path) {
        std::string shown;
        for (const std::string& name : path) shown += (shown.empty() ? "" : ".") + name;
        const std::vector<Place>* places = &of_object;
        const Place* found = nullptr;
        for (const std::string& name : path) {
            if (found != nullptr && found->kind != PlaceKind::struct_) {
                refuse(Kind::keys, "the key ", shown, " is not within structs alone");
            }
            if (found != nullptr) places = &found->fields;
            found = nullptr;
            for (usize i = 0; i < places->size(); ++i) {
                const Place& place = (*places)[i];
                if (*place.name != name) continue;
                if (found != nullptr) refuse(Kind::keys, "the key ", shown, " is not one field");
                found = &place;
            }
            if (found == nullptr) refuse(Kind::keys, "the key ", shown, " is not a field");
        }
        if (found->kind != PlaceKind::boolean && found->kind != PlaceKind::fixed &&
            !is_text(*found)) {
            refuse(Kind::keys, "the field ", shown,
                   " can't be a key: it is nested, or always missing");
        }
        return found;
    }

    static std::optional<std::string_view> part_of(const Place& part,
                                                   const std::byte* object) noexcept {
        // The bits within a missing struct are 0, too.
        if (part.nearest_bit != NONE && !bit_at(object + EXTENT_HEADER_BYTES, part.nearest_bit)) {
            return std::nullopt;
        }
        if (is_text(part)) return text_at(object, object + part.at);
        return std::string_view(reinterpret_cast<const char*>(object + part.at), part.width);
    }

    static std::optional<std::string> stored_value(const Place& part, const KeyValue& value,
                                                   const std::string& name) {
        using Of = KeyValue::Kind_;
        auto expected = [&](const char* what) {
            refuse(Kind::usage, "the key ", name, " takes ", what);
        };
        if (part.kind == PlaceKind::boolean) {
            if (value.kind_ != Of::boolean) expected("true or false");
            return std::string(1, static_cast<char>(value.number_ != 0));
        }
        if (is_text(part)) {
            if (value.kind_ != Of::bytes) expected("a string");
            return value.bytes_;
        }
        if (value.kind_ == Of::boolean) expected("a number, or its stored bytes");
        if (value.kind_ == Of::bytes) {
            if (value.bytes_.size() != part.width) expected("a value of its type");
            return value.bytes_;
        }
        return integer(*part.type, part.width, value.number_, expected);
    }

    template <class Expected>
    static std::optional<std::string> integer(const Type& type, usize width, int128 number,
                                              const Expected& expected) {
        bool is_unsigned = type.id >= TypeId::uint8 && type.id <= TypeId::uint64;
        switch (type.id) {
            case TypeId::float16:
            case TypeId::float32:
            case TypeId::float64:
            case TypeId::decimal256:
            case TypeId::interval_day_time:
            case TypeId::interval_month_day_nano:
            case TypeId::fixed_binary: expected("a value of its type, not an integer"); break;
            default: break;
        }
        if (width < 16) {
            int128 end = static_cast<int128>(1) << (8 * width - (is_unsigned ? 0 : 1));
            if (number >= end || number < (is_unsigned ? 0 : -end)) return std::nullopt;
        }
        return std::string(reinterpret_cast<const char*>(&number), width);
    }

    std::vector<std::vector<std::string>> paths_;
    // They belong to the layout.
    std::vector<const Place*> parts_;
};

// The key index as it lies in a file.
class KeyIndex {
public:
    KeyIndex() = default;
    KeyIndex(const std::byte* entries, usize count) : entries_(entries), count_(count) {}

    usize size() const noexcept { return count_; }
    u64 hash(usize i) const noexcept { return load<u64>(entries_ + 16 * i); }
    u64 ordinal(usize i) const noexcept { return load<u64>(entries_ + 16 * i + 8); }

    void check(u64 objects, u32 checksum) const {
        if (crc32c(0, entries_, 16 * count_) != checksum) {
            refuse(Kind::keys, "the key index was damaged; the objects can be read without it");
        }
        for (usize i = 0; i < count_; ++i) {
            bool rises = i == 0 || hash(i) > hash(i - 1) ||
                         (hash(i) == hash(i - 1) && ordinal(i) > ordinal(i - 1));
            if (!rises || ordinal(i) >= objects) {
                refuse(Kind::keys, "entry ", i, " of the key index is not in order");
            }
        }
    }

    // The number of entries with a smaller hash. Hashes are evenly spread, so the first guess is
    // close; doubling steps find a range around it, which is then halved.
    usize lower_bound(u64 sought) const noexcept {
        auto from = static_cast<usize>(static_cast<uint128>(sought) * count_ >> 64), to = from;
        for (usize step = 16; from > 0 && hash(from - 1) >= sought; step *= 2) {
            to = from - 1;
            from -= std::min(from, step);
        }
        for (usize step = 16; to < count_ && hash(to) < sought; step *= 2) {
            from = to + 1;
            to = std::min(to + step, count_);
        }
        while (from < to) {
            usize middle = from + (to - from) / 2;
            if (hash(middle) < sought) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        return from;
    }

private:
    const std::byte* entries_ = nullptr;
    usize count_ = 0;
};

}  // namespace detail
}  // namespace dray
