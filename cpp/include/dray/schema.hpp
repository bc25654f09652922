// Schemas and types (spec/types.md).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "error.hpp"
#include "sha256.hpp"

namespace dray {

// The numbers of types.md section 2.
enum class TypeId : std::uint8_t {
    null = 0,
    boolean,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    float32,
    float64,
    decimal32,
    decimal64,
    decimal128,
    decimal256,
    date32,
    date64,
    time32,
    time64,
    timestamp,
    duration,
    interval_months,
    interval_day_time,
    interval_month_day_nano,
    utf8,
    binary,
    fixed_binary,
    list,
    fixed_list,
    struct_,
    map,
    dictionary,
};

enum class Unit : std::uint8_t { second, millisecond, microsecond, nanosecond };

struct Field;

// A type with its parameters; those of other types are 0.
struct Type {
    TypeId id = TypeId::null;
    std::uint8_t precision = 0;
    std::int8_t scale = 0;
    Unit unit = Unit::second;
    // Of a map: sorted. Of a dictionary: ordered.
    bool ordered = false;
    // Of a dictionary.
    TypeId index = TypeId::null;
    // The width of fixed_binary, the size of fixed_list.
    std::uint32_t size = 0;
    std::string zone;
    // The item of a list, the fields of a struct, key and value of a map, the value of a
    // dictionary.
    std::vector<Field> children;

    // The bytes of types of fixed width.
    std::optional<std::size_t> width() const noexcept;
};

struct Field {
    std::string name;
    bool nullable = false;
    Type type;
    std::vector<std::pair<std::string, std::string>> metadata;
};

struct Schema {
    std::vector<Field> fields;
    // SHA-256 of the schema's bytes.
    Digest digest{};

    // Refuses bytes that break a rule of types.md.
    static Schema decode(Bytes bytes);
};

inline std::optional<std::size_t> Type::width() const noexcept {
    switch (id) {
        case TypeId::int8:
        case TypeId::uint8: return 1;
        case TypeId::int16:
        case TypeId::uint16:
        case TypeId::float16: return 2;
        case TypeId::int32:
        case TypeId::uint32:
        case TypeId::float32:
        case TypeId::decimal32:
        case TypeId::date32:
        case TypeId::time32:
        case TypeId::interval_months: return 4;
        case TypeId::int64:
        case TypeId::uint64:
        case TypeId::float64:
        case TypeId::decimal64:
        case TypeId::date64:
        case TypeId::time64:
        case TypeId::timestamp:
        case TypeId::duration:
        case TypeId::interval_day_time: return 8;
        case TypeId::decimal128:
        case TypeId::interval_month_day_nano: return 16;
        case TypeId::decimal256: return 32;
        case TypeId::fixed_binary: return size;
        default: return std::nullopt;
    }
}

namespace detail {

// Reads bytes from front to back. Each read names its field in the error.
class Cursor {
public:
    Cursor(Bytes bytes, Kind short_kind) : rest_(bytes), short_(short_kind) {}

    Bytes take(usize count, const char* field) {
        if (count > rest_.size()) {
            refuse(short_, "the field ", field, " has ", count, " bytes, ", rest_.size(),
                   " are left");
        }
        Bytes taken = rest_.first(count);
        rest_ = rest_.subspan(count);
        return taken;
    }

    template <class T>
    T number(const char* field) {
        return load<T>(take(sizeof(T), field).data());
    }

    std::string string(const char* field) {
        Bytes text = take(number<u32>(field), field);
        if (!is_utf8(text.data(), text.size()))
            refuse(short_, "the field ", field, " is not UTF-8");
        return {reinterpret_cast<const char*>(text.data()), text.size()};
    }

    usize left() const noexcept { return rest_.size(); }

private:
    Bytes rest_;
    Kind short_;
};

class SchemaReader {
public:
    static constexpr usize BYTES_MAX = 16 << 20;

    explicit SchemaReader(Bytes bytes) : cursor_(bytes, Kind::schema) {
        if (bytes.size() > BYTES_MAX) {
            refuse(Kind::schema, "a schema of ", bytes.size(), " bytes, the most are ", BYTES_MAX);
        }
    }

    std::vector<Field> schema() {
        auto read = fields(1);
        if (cursor_.left() > 0) {
            refuse(Kind::schema, cursor_.left(), " bytes are left over after the schema");
        }
        return read;
    }

private:
    static constexpr usize FIELDS_MAX = 1 << 16, PAIRS_MAX = 1 << 18, LEVELS_MAX = 32;
    static constexpr u32 FIXED_BINARY_MAX = 1 << 24, LIST_MAX = (u32{1} << 31) - 1;

    std::vector<Field> fields(usize level) {
        usize count = cursor_.number<u32>("fields");
        if (count > fields_left_) refuse(Kind::schema, "more than ", FIELDS_MAX, " fields");
        // The smallest field has eight bytes.
        if (count > cursor_.left() / 8) {
            refuse(Kind::schema, count, " fields are announced, ", cursor_.left(),
                   " bytes are left");
        }
        std::vector<Field> read;
        read.reserve(count);
        for (usize i = 0; i < count; ++i) read.push_back(field(level));
        return read;
    }

    Field field(usize level) {
        if (fields_left_ == 0) refuse(Kind::schema, "more than ", FIELDS_MAX, " fields");
        --fields_left_;
        Field field;
        field.name = c_string("name");
        field.nullable = within("flags", cursor_.number<u8>("flags"), 0, 1) == 1;
        field.type = type(level);
        usize pairs = cursor_.number<u16>("metadata");
        if (pairs > pairs_left_)
            refuse(Kind::schema, "more than ", PAIRS_MAX, " pairs of metadata");
        pairs_left_ -= pairs;
        for (usize i = 0; i < pairs; ++i) {
            std::string key = cursor_.string("metadata key");
            field.metadata.emplace_back(std::move(key), cursor_.string("metadata value"));
        }
        return field;
    }

    Type type(usize level) {
        if (level > LEVELS_MAX) refuse(Kind::schema, "more than ", LEVELS_MAX, " levels");
        u8 id = cursor_.number<u8>("type");
        if (id > static_cast<u8>(TypeId::dictionary)) refuse(Kind::schema, "unknown type ", id);
        Type type;
        type.id = TypeId{id};
        switch (type.id) {
            case TypeId::decimal32: decimal(type, 9); break;
            case TypeId::decimal64: decimal(type, 18); break;
            case TypeId::decimal128: decimal(type, 38); break;
            case TypeId::decimal256: decimal(type, 76); break;
            case TypeId::time32: type.unit = unit(0, 1); break;
            case TypeId::time64: type.unit = unit(2, 3); break;
            case TypeId::duration: type.unit = unit(0, 3); break;
            case TypeId::timestamp:
                type.unit = unit(0, 3);
                type.zone = c_string("zone");
                break;
            case TypeId::fixed_binary:
                type.size = within("width", cursor_.number<u32>("width"), 1, FIXED_BINARY_MAX);
                break;
            case TypeId::list: type.children.push_back(field(level + 1)); break;
            case TypeId::fixed_list:
                type.size = within("size", cursor_.number<u32>("size"), 0, LIST_MAX);
                type.children.push_back(field(level + 1));
                break;
            case TypeId::struct_: type.children = fields(level + 1); break;
            case TypeId::map:
                type.ordered = within("sorted", cursor_.number<u8>("sorted"), 0, 1) == 1;
                type.children.push_back(field(level + 1));
                if (type.children[0].nullable) refuse(Kind::schema, "a map's key is nullable");
                type.children.push_back(field(level + 1));
                break;
            case TypeId::dictionary: {
                u32 index = within("index", cursor_.number<u8>("index"), 2, 9);
                type.index = TypeId{static_cast<u8>(index)};
                type.ordered = within("ordered", cursor_.number<u8>("ordered"), 0, 1) == 1;
                Field value;
                value.nullable = true;
                value.type = this->type(level + 1);
                if (value.type.id == TypeId::dictionary) {
                    refuse(Kind::schema, "a dictionary of a dictionary");
                }
                type.children.push_back(std::move(value));
                break;
            }
            default: break;
        }
        return type;
    }

    void decimal(Type& type, u32 precision_max) {
        type.precision =
            static_cast<u8>(within("precision", cursor_.number<u8>("precision"), 1, precision_max));
        type.scale = cursor_.number<std::int8_t>("scale");
    }

    Unit unit(u32 least, u32 most) {
        return Unit{static_cast<u8>(within("unit", cursor_.number<u8>("unit"), least, most))};
    }

    u32 within(const char* what, u32 found, u32 least, u32 most) {
        if (found < least || found > most) {
            refuse(Kind::schema, what, " is ", found, ", expected ", least, " to ", most);
        }
        return found;
    }

    // A string without a byte 0.
    std::string c_string(const char* what) {
        std::string text = cursor_.string(what);
        if (text.find('\0') != std::string::npos) refuse(Kind::schema, "a byte 0 in the ", what);
        return text;
    }

    Cursor cursor_;
    usize fields_left_ = FIELDS_MAX, pairs_left_ = PAIRS_MAX;
};

}  // namespace detail

inline Schema Schema::decode(Bytes bytes) {
    Schema schema;
    schema.fields = detail::SchemaReader(bytes).schema();
    schema.digest = detail::sha256({bytes});
    return schema;
}

}  // namespace dray
