// The layout of a schema's objects, compiled once (spec/page.md section 3).
#pragma once

#include <memory>

#include "schema.hpp"

namespace dray {
namespace detail {

// Records and extents are smaller than this (page.md sections 2 and 3).
constexpr usize EXTENT_END = usize{1} << 31;
// The bytes of an extent before its validity bits (page.md section 3).
constexpr usize EXTENT_HEADER_BYTES = 4;
// The longest string that its place holds (page.md section 4).
constexpr usize INLINE_MAX = 12;
constexpr usize STRING_BYTES = 16, LIST_BYTES = 8;
// No bit.
constexpr usize NONE = ~usize{0};

enum class PlaceKind { null, boolean, fixed, utf8, binary, list, fixed_list, struct_ };

struct Items;

// The place of a field.
struct Place {
    PlaceKind kind = PlaceKind::null;
    // Both belong to the layout's schema. An item has no name.
    const std::string* name = nullptr;
    // For a dictionary the type of its values.
    const Type* type = nullptr;
    // Its own validity bit, or NONE.
    usize bit = NONE;
    // The validity bit that says whether it is missing: its own, or that of the nearest struct.
    usize nearest_bit = NONE;
    // The first validity bit that is neither its own nor of a field within it.
    usize bits_end = 0;
    // The offset from the start of its record.
    usize at = 0;
    usize width = 0;
    // The items of a fixed list.
    usize size = 0;
    std::shared_ptr<const Items> items;
    // Of a struct.
    std::vector<Place> fields;
};

// Bytes of a record, as an offset from its start.
struct Range {
    usize at, bytes;
};

// What must be zero if a validity bit is: those of the bits behind it, and places.
struct Absent {
    usize bits_from = 0, bits_end = 0;
    std::vector<Range> places;
};

// A place that may have a tail.
struct Tail {
    PlaceKind kind;
    usize at;
    usize size;
    usize nearest_bit;
    std::shared_ptr<const Items> items;
};

// Tails that are checked together: strings of one type that follow each other, or one list.
struct Step {
    PlaceKind kind;
    // The first of them, and the one behind the last, in `Record::tails` and `Record::tails_at`.
    u32 from, end;
};

// The fields of an object, or of an item of a list.
struct Record {
    std::vector<Place> fields;
    usize bits_at = 0, bits = 0, fixed_at = 0, end = 0, alignment = 1, stride = 0;
    // For each validity bit.
    std::vector<Absent> absent;
    // Padding.
    std::vector<Range> gaps;
    std::vector<usize> booleans;
    // In the order of the schema, which is that of the tails.
    std::vector<Tail> tails;
    // Their offsets, and what a verifier does with them.
    std::vector<u32> tails_at;
    std::vector<Step> steps;
    // Whether a fixed list of at least one item that is not missing must have a tail.
    bool has_fixed_lists = false;

    // Whether a verifier has anything to check in it.
    bool is_checked() const noexcept {
        return bits > 0 || !gaps.empty() || !booleans.empty() || !tails.empty();
    }
};

// The items of a list: records of a single field.
struct Items {
    // Whether there is a bitmap before the items.
    bool nullable = false;
    Record record;

    usize bitmap_bytes(usize count) const noexcept {
        return nullable ? pad((count + 7) / 8, 8) : 0;
    }
};

inline bool is_null(const Type& type) noexcept {
    return type.id == TypeId::null ||
           (type.id == TypeId::dictionary && is_null(type.children[0].type));
}

// Lists the fields of a record, then gives each its offset.
class Plan {
public:
    Place field(const Field& field, usize around) {
        Place place = this->place(field.type, field.nullable, around);
        place.name = &field.name;
        return place;
    }

    Place place(const Type& type, bool nullable, usize around) {
        Place place;
        if (nullable && !is_null(type)) place.bit = around = bits_++;
        place.nearest_bit = around;
        place.type = &type;
        fill(place);
        place.bits_end = bits_;
        return place;
    }

    Record record(std::vector<Place> fields, usize bits_at) {
        Record record;
        record.bits_at = bits_at;
        record.bits = bits_;
        for (auto [width, alignment] : places_) {
            record.alignment = std::max(record.alignment, alignment);
        }
        usize bits_end = bits_at + (bits_ + 7) / 8;
        usize end = record.fixed_at = pad(bits_end, record.alignment);
        std::vector<usize> offsets(places_.size());
        for (usize alignment = 8; alignment > 0; alignment /= 2) {
            for (usize i = 0; i < places_.size(); ++i) {
                if (places_[i].second != alignment) continue;
                offsets[i] = end;
                end += places_[i].first;
            }
        }
        if (end >= EXTENT_END) {
            refuse(Kind::limit, "the record of this schema has ", end, " bytes, the most are ",
                   EXTENT_END - 1);
        }
        record.end = end;
        record.stride = pad(end, record.alignment);
        record.fields = std::move(fields);
        set_offsets(record.fields, offsets);
        if (record.fixed_at > bits_end)
            record.gaps.push_back({bits_end, record.fixed_at - bits_end});
        // The tails of an object follow its record without padding.
        if (bits_at == 0 && record.stride > end) record.gaps.push_back({end, record.stride - end});
        record.absent.resize(bits_);
        list_checks(record, record.fields);
        for (u32 i = 0; i < record.tails.size(); ++i) {
            const Tail& tail = record.tails[i];
            record.tails_at.push_back(static_cast<u32>(tail.at));
            bool is_text = tail.kind == PlaceKind::utf8 || tail.kind == PlaceKind::binary;
            if (is_text && !record.steps.empty() && record.steps.back().kind == tail.kind) {
                record.steps.back().end = i + 1;
            } else {
                record.steps.push_back({tail.kind, i, i + 1});
            }
        }
        return record;
    }

    static std::shared_ptr<const Items> items(const Field& item) {
        Plan plan;
        auto items = std::make_shared<Items>();
        // The item's validity bit is in the bitmap before the items.
        items->nullable = item.nullable && !is_null(item.type);
        std::vector<Place> fields;
        fields.push_back(plan.place(item.type, false, NONE));
        items->record = plan.record(std::move(fields), 0);
        return items;
    }

private:
    // Until all fields are listed, a place has a number instead of an offset.
    void take(Place& place, usize width, usize alignment) {
        place.at = places_.size();
        place.width = width;
        places_.emplace_back(width, alignment);
    }

    void fill(Place& place) {
        const Type& type = *place.type;
        switch (type.id) {
            case TypeId::null: break;
            case TypeId::boolean:
                place.kind = PlaceKind::boolean;
                take(place, 1, 1);
                break;
            case TypeId::utf8:
            case TypeId::binary:
                place.kind = type.id == TypeId::utf8 ? PlaceKind::utf8 : PlaceKind::binary;
                take(place, STRING_BYTES, 8);
                break;
            case TypeId::fixed_binary:
                place.kind = PlaceKind::fixed;
                take(place, type.size, 1);
                break;
            case TypeId::list:
            case TypeId::fixed_list:
                place.kind = type.id == TypeId::list ? PlaceKind::list : PlaceKind::fixed_list;
                place.size = type.size;
                place.items = items(type.children[0]);
                take(place, LIST_BYTES, 8);
                break;
            case TypeId::map:
                place.kind = PlaceKind::list;
                place.items = pairs(type);
                take(place, LIST_BYTES, 8);
                break;
            case TypeId::struct_:
                place.kind = PlaceKind::struct_;
                for (const Field& child : type.children) {
                    place.fields.push_back(field(child, place.nearest_bit));
                }
                break;
            case TypeId::dictionary:
                place.type = &type.children[0].type;
                fill(place);
                break;
            default: {
                place.kind = PlaceKind::fixed;
                usize width = type.width().value_or(0);
                take(place, width, std::min(width, usize{8}));
            }
        }
    }

    // The items of a map are structs of key and value.
    static std::shared_ptr<const Items> pairs(const Type& map) {
        Plan plan;
        Place pair;
        pair.kind = PlaceKind::struct_;
        pair.type = &map;
        for (const Field& child : map.children) pair.fields.push_back(plan.field(child, NONE));
        pair.bits_end = plan.bits_;
        auto items = std::make_shared<Items>();
        std::vector<Place> fields;
        fields.push_back(std::move(pair));
        items->record = plan.record(std::move(fields), 0);
        return items;
    }

    static void set_offsets(std::vector<Place>& fields, const std::vector<usize>& offsets) {
        for (Place& place : fields) {
            if (place.width > 0) place.at = offsets[place.at];
            set_offsets(place.fields, offsets);
        }
    }

    static void list_checks(Record& record, const std::vector<Place>& fields) {
        for (const Place& place : fields) {
            if (place.bit != NONE) {
                record.absent[place.bit].bits_from = place.bit + 1;
                record.absent[place.bit].bits_end = place.bits_end;
            }
            if (place.kind == PlaceKind::boolean) record.booleans.push_back(place.at);
            if (place.width > 0 && place.nearest_bit != NONE) {
                record.absent[place.nearest_bit].places.push_back({place.at, place.width});
            }
            switch (place.kind) {
                case PlaceKind::fixed_list:
                    record.has_fixed_lists |= place.size > 0;
                    [[fallthrough]];
                case PlaceKind::utf8:
                case PlaceKind::binary:
                case PlaceKind::list:
                    record.tails.push_back(
                        {place.kind, place.at, place.size, place.nearest_bit, place.items});
                    break;
                default: break;
            }
            list_checks(record, place.fields);
        }
    }

    usize bits_ = 0;
    // Width and alignment of each place.
    std::vector<std::pair<usize, usize>> places_;
};

}  // namespace detail

// A schema, and the position of each field in its objects.
class Layout {
public:
    // Refuses a schema whose record is too large.
    explicit Layout(Schema schema) : schema_(std::move(schema)) {
        detail::Plan plan;
        std::vector<detail::Place> fields;
        for (const Field& field : schema_.fields) fields.push_back(plan.field(field, detail::NONE));
        record_ = plan.record(std::move(fields), detail::EXTENT_HEADER_BYTES);
    }
    Layout(const Layout&) = delete;
    Layout& operator=(const Layout&) = delete;

    // The layout of a schema's objects, from the schema's bytes.
    static std::shared_ptr<const Layout> decode(Bytes schema) {
        return std::make_shared<const Layout>(Schema::decode(schema));
    }

    const Schema& schema() const noexcept { return schema_; }
    const detail::Record& record() const noexcept { return record_; }

private:
    Schema schema_;
    detail::Record record_;
};

}  // namespace dray
