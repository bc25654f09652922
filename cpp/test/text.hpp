// Writes objects as the JSON of spec/vectors/README.md, by their layout.
#pragma once

#include <dray/page.hpp>
#include <dray/types.hpp>

namespace dray::test {

using namespace dray::detail;

class Text {
public:
    explicit Text(const Layout& layout) : record_(layout.record()) {}

    std::string row(const std::byte* object) const {
        std::string out;
        fields(out, record_.fields, {object, object + record_.bits_at, object});
        return out;
    }

    static void quote(std::string& out, std::string_view text) {
        out += '"';
        for (char c : text) {
            if (c == '"' || c == '\\') {
                out += '\\', out += c;
            } else if (static_cast<unsigned char>(c) < 0x20) {
                out += "\\u00";
                hex(out, static_cast<u8>(c));
            } else {
                out += c;
            }
        }
        out += '"';
    }

private:
    struct At {
        const std::byte* object;
        const std::byte* bits;
        const std::byte* record;
    };

    static void hex(std::string& out, u8 byte) {
        out += "0123456789abcdef"[byte >> 4];
        out += "0123456789abcdef"[byte & 15];
    }

    static void hex(std::string& out, const std::byte* at, usize count, bool reversed = false) {
        out += '"';
        for (usize i = 0; i < count; ++i) {
            hex(out, std::to_integer<u8>(at[reversed ? count - 1 - i : i]));
        }
        out += '"';
    }

    // A number of up to 32 bytes. Beyond 2^53 it is a string.
    static void integer(std::string& out, const std::byte* at, usize width, bool is_signed) {
        std::array<u8, 32> bytes{};
        std::memcpy(bytes.data(), at, width);
        bool negative = is_signed && bytes[width - 1] >> 7 != 0;
        if (negative) {
            unsigned carry = 1;
            for (usize i = 0; i < width; ++i) {
                carry += static_cast<u8>(~bytes[i]);
                bytes[i] = static_cast<u8>(carry);
                carry >>= 8;
            }
        }
        bool big = false;
        for (usize i = 8; i < 32; ++i) big |= bytes[i] != 0;
        u64 low;
        std::memcpy(&low, bytes.data(), 8);
        big |= low > u64{1} << 53;
        std::string digits;
        for (bool any = true; any;) {
            any = false;
            unsigned rest = 0;
            for (usize i = 32; i-- > 0;) {
                rest = rest << 8 | bytes[i];
                bytes[i] = static_cast<u8>(rest / 10);
                rest %= 10;
                any |= bytes[i] != 0;
            }
            digits.insert(digits.begin(), static_cast<char>('0' + rest));
        }
        if (negative) digits.insert(digits.begin(), '-');
        out += big ? '"' + digits + '"' : digits;
    }

    void fields(std::string& out, const std::vector<Place>& places, At at) const {
        out += '[';
        for (const Place& place : places) {
            if (&place != places.data()) out += ',';
            value(out, place, at);
        }
        out += ']';
    }

    void value(std::string& out, const Place& place, At at) const {
        const std::byte* from = at.record + place.at;
        bool missing = place.bit != NONE && !bit_at(at.bits, place.bit);
        if (missing || place.kind == PlaceKind::null) {
            out += "null";
            return;
        }
        switch (place.kind) {
            case PlaceKind::boolean: out += load<u8>(from) == 1 ? "true" : "false"; break;
            case PlaceKind::struct_: fields(out, place.fields, at); break;
            case PlaceKind::utf8: quote(out, text_at(at.object, from)); break;
            case PlaceKind::binary: {
                auto text = text_at(at.object, from);
                hex(out, reinterpret_cast<const std::byte*>(text.data()), text.size());
                break;
            }
            case PlaceKind::list:
            case PlaceKind::fixed_list: items(out, *place.items, at.object, from); break;
            default: fixed(out, *place.type, from, place.width);
        }
    }

    static void fixed(std::string& out, const Type& type, const std::byte* at, usize width) {
        switch (type.id) {
            case TypeId::fixed_binary: hex(out, at, width); break;
            case TypeId::float16:
            case TypeId::float32:
            case TypeId::float64: hex(out, at, width, true); break;
            case TypeId::interval_day_time:
            case TypeId::interval_month_day_nano:
                out += '[';
                integer(out, at, 4, true);
                out += ',';
                integer(out, at + 4, 4, true);
                if (width == 16) {
                    out += ',';
                    integer(out, at + 8, 8, true);
                }
                out += ']';
                break;
            default: integer(out, at, width, type.id < TypeId::uint8 || type.id > TypeId::uint64);
        }
    }

    void items(std::string& out, const Items& items, const std::byte* object,
               const std::byte* place) const {
        usize offset = load<u32>(place), count = load<u32>(place + 4);
        const std::byte* bitmap = object + offset;
        // A few bytes can say that there are billions of items without any.
        if (count > 1 << 16 && items.record.stride == 0 && !items.nullable) {
            refuse(Kind::limit, count, " items that take no bytes");
        }
        out += '[';
        for (usize i = 0; i < count; ++i) {
            if (i > 0) out += ',';
            const std::byte* at = bitmap + items.bitmap_bytes(count) + i * items.record.stride;
            if (items.nullable && !bit_at(bitmap, i)) {
                out += "null";
            } else {
                value(out, items.record.fields[0], {object, at, at});
            }
        }
        out += ']';
    }

    const Record& record_;
};

}  // namespace dray::test
