// Builds pages in place: values are written where they stay (spec/page.md section 11).
#pragma once

#include "access.hpp"

namespace dray {
namespace detail {

// Writes the items that a fixed list must have: zeros, in the order of their tails. `out.data()` is
// the object, `out.cursor()` where the next tail begins, and `out.extend` moves it over zeros.
template <class Out>
void default_items(Out out, const Items& items, usize place, usize count);

// The same for the fixed lists among the tails `from` to `end` of the record at `at`.
template <class Out>
void default_tails(Out out, const Record& record, usize at, usize from, usize end) {
    for (usize i = from; i < end; ++i) {
        const Tail& tail = record.tails[i];
        if (tail.kind != PlaceKind::fixed_list || tail.size == 0) continue;
        const std::byte* bits = out.data() + at + record.bits_at;
        bool present = tail.nearest_bit == NONE || bit_at(bits, tail.nearest_bit);
        bool is_set = load<u32>(out.data() + at + tail.at + 4) != 0;
        if (present && !is_set) default_items(out, *tail.items, at + tail.at, tail.size);
    }
}

template <class Out>
void default_items(Out out, const Items& items, usize place, usize count) {
    usize start = pad(out.cursor(), 8), records_at = start + items.bitmap_bytes(count);
    out.extend(records_at + count * items.record.stride);
    // Items that may be missing are.
    bool has_more = !items.nullable && items.record.has_fixed_lists;
    for (usize i = 0; has_more && i < count; ++i) {
        default_tails(out, items.record, records_at + i * items.record.stride, 0,
                      items.record.tails.size());
    }
    // Last: if there is no room for the lists within, the list was not written.
    store(out.data() + place, static_cast<u32>(start));
    store(out.data() + place + 4, static_cast<u32>(count));
}

class RecordWriter;

}  // namespace detail

// Builds pages of objects, one object after the other. Values of a fixed width come in any order,
// and so do strings of up to 12 bytes; longer strings and lists come in the order of the schema,
// and an item's before the next item's. What was not set is missing if it may be, and otherwise 0
// or empty. A call out of order is an error. Then what lacks can be added, or the object be
// cancelled.
class PageBuilder {
public:
    explicit PageBuilder(std::shared_ptr<const Layout> layout, std::size_t page_bytes = PAGE_BYTES)
        : layout_(std::move(layout)), page_bytes_(page_bytes) {
        if (!detail::is_page_size(page_bytes, false)) {
            detail::refuse(Kind::usage, "no page has ", page_bytes,
                           " bytes: expected a power of two from 4 KiB to 1 GiB");
        }
        page_ = detail::Buffer(page_bytes);
    }
    // Writers refer to their builder.
    PageBuilder(const PageBuilder&) = delete;
    PageBuilder& operator=(const PageBuilder&) = delete;

    // Ends the object that was begun. Each list must have all its items.
    void end() {
        using namespace detail;
        if (!open_) refuse(Kind::usage, "no object was begun");
        check_filled(0);
        close(0);
        skip(frames_[0], 0, layout_->record().tails.size());
        append(pad(cursor_, 8));
    }

    // Drops the object that was begun, if there is one.
    void cancel() {
        if (!open_) return;
        std::memset(data(), 0, cursor_);
        forget();
        if (page_.size() > page_bytes_) page_ = detail::Buffer(page_bytes_);
    }

    // The pages that are full.
    std::vector<VerifiedPage> take() { return std::exchange(pages_, {}); }

    // All pages that were not taken. The next object begins another one.
    std::vector<VerifiedPage> finish() {
        check_closed();
        if (objects_ > 0) emit();
        return take();
    }

protected:
    detail::RecordWriter begin_object();

    // Appends a copy of an object of this layout.
    void copy_object(const std::byte* object) {
        check_closed();
        auto extent_bytes = detail::load<std::uint32_t>(object);
        extend(extent_bytes);
        std::memcpy(data(), object, extent_bytes);
        append(extent_bytes);
    }

private:
    friend class detail::RecordWriter;
    template <class Element, bool NULLABLE>
    friend class ListWriter;

    // A list whose items are being written; the first is the object itself.
    struct Frame {
        const detail::Record* record = nullptr;
        bool nullable = false;
        std::size_t records_at = 0;
        std::size_t count = 0, filled = 0;
        // The place of the next tail: an item, and a tail of its record.
        std::size_t item = 0, tail = 0;
        std::uint64_t serial = 0;

        std::size_t bitmap_at() const noexcept {
            return records_at - detail::pad((count + 7) / 8, 8);
        }
    };

    struct Out {
        PageBuilder* builder;
        std::byte* data() const noexcept { return builder->data(); }
        std::size_t cursor() const noexcept { return builder->cursor_; }
        void extend(std::size_t cursor) const { builder->extend(cursor); }
    };

    std::byte* data() noexcept { return page_.data() + object_at_; }

    void check_closed() const {
        if (open_)
            detail::refuse(Kind::usage, "an object was begun, but neither ended nor cancelled");
    }

    // Ends the object at the end of the page, which is written.
    void append(std::size_t extent_bytes) {
        detail::store(data(), static_cast<std::uint32_t>(extent_bytes));
        ++objects_;
        detail::store(page_.data() + page_.size() - detail::SLOT_BYTES * objects_,
                      static_cast<std::uint32_t>(object_at_));
        object_at_ += extent_bytes;
        forget();
        if (page_.size() > page_bytes_) emit();
    }

    void extend(std::size_t cursor) {
        std::size_t end = object_at_ + detail::pad(cursor, 8);
        if (end + detail::SLOT_BYTES * (objects_ + 1) > page_.size()) outgrow(cursor);
        cursor_ = cursor;
    }

    void forget() noexcept {
        cursor_ = 0;
        open_ = false;
        ++serial_;
    }

    // Copies the object that is being written to a page where it has so many bytes.
    [[gnu::noinline]] void outgrow(std::size_t bytes) {
        std::size_t least = HEADER_BYTES + detail::pad(bytes, 8) + detail::SLOT_BYTES;
        std::size_t most = detail::LARGE_BYTES_END - page_bytes_;
        if (least > most) {
            detail::refuse(Kind::limit, "an object of ", bytes, " bytes is larger than any page");
        }
        std::size_t size = page_bytes_;
        if (least > size) {
            // It may grow again, and then not by a page only.
            size = std::max(least, objects_ == 0 ? 2 * page_.size() : least);
            size = std::min(rounded(size), most);
        }
        detail::Buffer next(size);
        if (cursor_ > 0) {
            std::memcpy(next.data() + HEADER_BYTES, data(), cursor_);
            std::memset(data(), 0, cursor_);
        }
        if (objects_ > 0) emit();
        page_ = std::move(next);
    }

    // A size that is a multiple of the standard size.
    std::size_t rounded(std::size_t bytes) const noexcept {
        return (bytes + page_bytes_ - 1) / page_bytes_ * page_bytes_;
    }

    // Ends the page.
    void emit() {
        using namespace detail;
        Header header;
        header.large = page_.size() > page_bytes_;
        usize size = header.large ? rounded(object_at_ + SLOT_BYTES) : page_bytes_;
        if (size < page_.size()) {
            Buffer fitting(size);
            std::memcpy(fitting.data(), page_.data(), object_at_);
            store(fitting.data() + size - SLOT_BYTES, static_cast<u32>(HEADER_BYTES));
            page_ = std::move(fitting);
        }
        header.sequence = sequence_++;
        header.objects = static_cast<u32>(objects_);
        header.page_bytes = static_cast<u32>(size);
        header.objects_end = static_cast<u32>(object_at_);
        auto page = std::make_shared<Buffer>(std::exchange(page_, Buffer(page_bytes_)));
        pages_.push_back(VerifiedPage::seal(layout_, std::move(page), header));
        objects_ = 0;
        object_at_ = HEADER_BYTES;
    }

    // Checks that the lists deeper than this have all their items.
    void check_filled(std::size_t depth) const {
        for (std::size_t i = depth_; i > depth; --i) {
            if (frames_[i].filled != frames_[i].count) {
                detail::refuse(Kind::usage, "a list of ", frames_[i].count, " items has ",
                               frames_[i].filled, ": add all before what follows the list");
            }
        }
    }

    // Ends the lists that are deeper than this.
    void close(std::size_t depth) {
        for (; depth_ > depth; --depth_) skip(frames_[depth_], frames_[depth_].count, 0);
    }

    // Moves on to a tail. Fixed lists before it that were not set are written.
    void skip(Frame& frame, std::size_t item, std::size_t tail) {
        const detail::Record& record = *frame.record;
        if (record.has_fixed_lists) {
            for (std::size_t i = frame.item; i <= item && i < frame.count; ++i) {
                if (frame.nullable && !detail::bit_at(data() + frame.bitmap_at(), i)) continue;
                std::size_t from = i == frame.item ? frame.tail : 0;
                std::size_t end = i == item ? tail : record.tails.size();
                std::size_t at = frame.records_at + i * record.stride;
                detail::default_tails(Out{this}, record, at, from, end);
            }
        }
        frame.item = item;
        frame.tail = tail;
    }

    std::shared_ptr<const Layout> layout_;
    std::size_t page_bytes_;
    detail::Buffer page_;
    std::vector<VerifiedPage> pages_;
    std::uint64_t sequence_ = 0;
    std::size_t objects_ = 0;
    // Where the object begins, and its end as far as it was written.
    std::size_t object_at_ = HEADER_BYTES, cursor_ = 0;
    bool open_ = false;
    // They tell the writers of an object, and of a list, from those of earlier ones.
    std::uint64_t serial_ = 0, lists_ = 0;
    std::size_t depth_ = 0;
    std::array<Frame, 34> frames_;
};

template <class Element, bool NULLABLE>
class ListWriter;

namespace detail {

// What a list holds: records that class W writes.
template <class W>
struct WriterOf {};
// What a list holds: lists.
template <class Element, bool NULLABLE>
struct ListWriterOf {};

// Write a value of a fixed width where it lies.
template <class T>
void store_value(Number<T>, std::byte* at, const T& value) noexcept {
    store(at, value);
}
template <class T, class STORED>
void store_value(Stored<T, STORED>, std::byte* at, const T& value) noexcept {
    store(at, to_stored<STORED>(value));
}
inline void store_value(Boolean, std::byte* at, bool value) noexcept { store<u8>(at, value); }
inline void store_value(Null, std::byte*, std::nullptr_t) noexcept {}
template <usize WIDTH>
void store_value(FixedBinary<WIDTH>, std::byte* at,
                 std::span<const std::byte, WIDTH> value) noexcept {
    std::memcpy(at, value.data(), WIDTH);
}

inline void store_inline(std::byte* place, std::string_view text) noexcept {
    std::array<std::byte, STRING_BYTES> bytes{};
    store(bytes.data(), static_cast<u32>(text.size()));
    std::memcpy(bytes.data() + 4, text.data(), text.size());
    std::memcpy(place, bytes.data(), STRING_BYTES);
}

inline void store_long(std::byte* place, std::string_view text, usize offset) noexcept {
    store(place, static_cast<u32>(text.size()));
    std::memcpy(place + 4, text.data(), 4);
    store<u32>(place + 8, 0);
    store(place + 12, static_cast<u32>(offset));
}

inline std::string_view checked_text(Text, std::string_view text) {
    if (!is_utf8(reinterpret_cast<const std::byte*>(text.data()), text.size())) {
        refuse(Kind::utf8, "a string is not UTF-8");
    }
    return text;
}
inline std::string_view checked_text(Binary, Bytes bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class Value>
constexpr bool is_text = std::same_as<Value, Text> || std::same_as<Value, Binary>;
template <class Value>
struct IsArray : std::false_type {};
template <class T>
struct IsArray<Array<T>> : std::true_type {};

template <class T>
constexpr usize stored_width(Number<T>) {
    return sizeof(T);
}
template <class T, class STORED>
constexpr usize stored_width(Stored<T, STORED>) {
    return sizeof(STORED);
}
constexpr usize stored_width(Boolean) { return 1; }
constexpr usize stored_width(Null) { return 0; }
template <usize WIDTH>
constexpr usize stored_width(FixedBinary<WIDTH>) {
    return WIDTH;
}

// The bytes of a value's place.
template <class Value>
constexpr usize width() {
    if constexpr (is_text<Value>) {
        return STRING_BYTES;
    } else if constexpr (IsArray<Value>::value) {
        return LIST_BYTES;
    } else {
        return stored_width(Value{});
    }
}

// Writes the fields of a record. Generated writers give it positions: offsets from the record's
// start, and the numbers of tails in the order of the record.
class RecordWriter {
protected:
    template <class Value>
    void set(usize at, usize tail, const typename Value::value_type& value) {
        check();
        put<Value>(at, tail, value);
    }

    template <class Value>
    void set(usize at, usize tail, usize bit_at, unsigned bit,
             const std::optional<typename Value::value_type>& value) {
        check();
        if (value) {
            put<Value>(at, tail, *value);
            mark(bit_at, bit);
            return;
        }
        if ((load<u8>(place(bit_at)) & bit) == 0) return;
        if constexpr (is_text<Value> || IsArray<Value>::value) {
            if (IsArray<Value>::value || load<u32>(place(at)) > INLINE_MAX) {
                refuse(Kind::usage, "a value with a tail was set, and stays");
            }
        }
        std::memset(place(at), 0, width<Value>());
        store(place(bit_at), static_cast<u8>(load<u8>(place(bit_at)) & ~bit));
    }

    // The list of tail `tail`, with so many items.
    template <class List>
    List list(usize tail, usize count) {
        return List(open(tail, count));
    }
    template <class List>
    List list(usize tail, usize count, usize bit_at, unsigned bit) {
        RecordWriter items = open(tail, count);
        mark(bit_at, bit);
        return List(items);
    }

    // The fields of a struct.
    template <class Writer>
    Writer within() {
        check();
        return Writer(*this);
    }
    // A struct that may be missing becomes present. `fixed_list` is its first tail that is a fixed
    // list, or NONE.
    template <class Writer>
    Writer within(usize bit_at, unsigned bit, usize fixed_list) {
        check();
        if ((load<u8>(place(bit_at)) & bit) == 0 && fixed_list != NONE) check_order(fixed_list);
        mark(bit_at, bit);
        return Writer(*this);
    }

private:
    friend class dray::PageBuilder;
    template <class Element, bool NULLABLE>
    friend class dray::ListWriter;

    RecordWriter(PageBuilder* builder, usize record, usize depth, usize item, u64 list)
        : builder_(builder),
          serial_(builder->serial_),
          list_(list),
          record_(record),
          item_(item),
          depth_(depth) {}

    std::byte* place(usize at) const noexcept { return builder_->data() + record_ + at; }

    void mark(usize bit_at, unsigned bit) const noexcept {
        store(place(bit_at), static_cast<u8>(load<u8>(place(bit_at)) | bit));
    }

    void check() const {
        if (builder_->serial_ != serial_) {
            refuse(Kind::usage, "the object of this writer was ended, or cancelled");
        }
    }

    template <class Value>
    void put(usize at, usize tail, const typename Value::value_type& value) {
        if constexpr (is_text<Value>) {
            text(at, tail, checked_text(Value{}, value));
        } else if constexpr (IsArray<Value>::value) {
            RecordWriter items = open(tail, value.size());
            if (value.empty()) return;
            std::memcpy(items.builder_->data() + items.record_, value.data(), value.size_bytes());
            builder_->frames_[items.depth_].filled = value.size();
        } else {
            store_value(Value{}, place(at), value);
        }
    }

    void text(usize at, usize tail, std::string_view text) {
        if (load<u32>(place(at)) > INLINE_MAX) {
            refuse(Kind::usage, "a string of more than 12 bytes was set, and stays");
        }
        if (text.size() <= INLINE_MAX) {
            store_inline(place(at), text);
            return;
        }
        if (text.size() >= EXTENT_END) refuse(Kind::limit, "a string of ", text.size(), " bytes");
        advance(tail);
        usize from = builder_->cursor_;
        builder_->extend(from + text.size());
        std::memcpy(builder_->data() + from, text.data(), text.size());
        store_long(place(at), text, from);
        pass(tail);
    }

    // Checks that this tail may be written now.
    void check_order(usize tail) const {
        const auto& frame = builder_->frames_[depth_];
        bool is_open = depth_ <= builder_->depth_ && frame.serial == list_;
        bool later = item_ > frame.item || (item_ == frame.item && tail >= frame.tail);
        if (!is_open || !later) {
            refuse(Kind::usage,
                   "a string of more than 12 bytes, or a list, is out of order: they "
                   "come in the order of the schema, and an item's before the next "
                   "item's");
        }
        builder_->check_filled(depth_);
    }

    // Moves on to a tail, which can be written until it is passed: there may be no room for it.
    void advance(usize tail) {
        check_order(tail);
        builder_->close(depth_);
        builder_->skip(builder_->frames_[depth_], item_, tail);
    }
    void pass(usize tail) { builder_->frames_[depth_].tail = tail + 1; }

    // Makes room for the items of a list. The writer that it returns is that of the first.
    RecordWriter open(usize tail, usize count) {
        check();
        check_order(tail);
        const Tail& of = builder_->frames_[depth_].record->tails[tail];
        const Items& items = *of.items;
        if (of.kind == PlaceKind::fixed_list && count != of.size) {
            refuse(Kind::usage, "a list of ", of.size, " items gets ", count);
        }
        if (count >= EXTENT_END) refuse(Kind::limit, "a list of ", count, " items");
        advance(tail);
        u64 serial = ++builder_->lists_;
        usize start = pad(builder_->cursor_, 8), records_at = start + items.bitmap_bytes(count);
        if (count > 0) builder_->extend(records_at + count * items.record.stride);
        pass(tail);
        if (count == 0) return RecordWriter(builder_, 0, depth_ + 1, 0, serial);
        store(place(of.at), static_cast<u32>(start));
        store(place(of.at + 4), static_cast<u32>(count));
        auto& frame = builder_->frames_[++builder_->depth_];
        frame = {&items.record, items.nullable, records_at, count, 0, 0, 0, serial};
        return RecordWriter(builder_, records_at, depth_ + 1, 0, serial);
    }

    PageBuilder* builder_;
    u64 serial_, list_;
    usize record_, item_, depth_;
};

}  // namespace detail

// Writes the items of a list, one after the other. There must be as many as were announced.
template <class Element, bool NULLABLE>
class ListWriter : private detail::RecordWriter {
    template <class E>
    struct Kind_ {
        static constexpr bool is_value = true;
    };
    template <class W>
    struct Kind_<detail::WriterOf<W>> {
        static constexpr bool is_value = false;
        using writer = W;
    };
    template <class E, bool N>
    struct Kind_<detail::ListWriterOf<E, N>> {
        static constexpr bool is_value = false;
        using list = ListWriter<E, N>;
    };

public:
    // The next item, which is a struct.
    auto next() requires requires { typename Kind_<Element>::writer; }
    { return typename Kind_<Element>::writer(item(true)); }

    // The next item, which is a list of so many items.
    auto next(std::size_t count) requires requires { typename Kind_<Element>::list; }
    {
        return written([count](RecordWriter item) {
            return item.template list<typename Kind_<Element>::list>(0, count);
        });
    }

    // Adds an item that is a value.
    template <class V>
    requires(Kind_<Element>::is_value) void add(const V& value) {
        typename Element::value_type converted(value);
        written([&](RecordWriter item) { item.template put<Element>(0, 0, converted); });
    }

    // Adds an item that is missing.
    void add_missing() requires NULLABLE { item(false); }

private:
    friend class detail::RecordWriter;
    explicit ListWriter(const RecordWriter& first) : RecordWriter(first) {}

    // The next item, with a value that may be refused: then it is the next one still.
    template <class Put>
    auto written(Put put) {
        ListWriter next = item(true);
        try {
            return put(next);
        } catch (...) {
            auto& frame = builder_->frames_[depth_];
            --frame.filled;
            if (NULLABLE) detail::clear_bit(builder_->data() + frame.bitmap_at(), frame.filled);
            throw;
        }
    }

    ListWriter item(bool present) {
        check();
        auto& frame = builder_->frames_[depth_];
        bool is_open = depth_ <= builder_->depth_ && frame.serial == list_;
        if (!is_open || frame.filled == frame.count) {
            detail::refuse(Kind::usage,
                           "the list has all its items, or was ended by what follows it");
        }
        std::size_t i = frame.filled++;
        if (NULLABLE && present) detail::set_bit(builder_->data() + frame.bitmap_at(), i);
        std::size_t at = frame.records_at + i * frame.record->stride;
        return ListWriter(RecordWriter(builder_, at, depth_, i, list_));
    }
};

inline detail::RecordWriter PageBuilder::begin_object() {
    check_closed();
    const detail::Record& record = layout_->record();
    extend(record.end);
    open_ = true;
    depth_ = 0;
    std::uint64_t serial = ++lists_;
    frames_[0] = {&record, false, 0, 1, 1, 0, 0, serial};
    return detail::RecordWriter(this, 0, 0, 0, serial);
}

// A builder of objects that class Writer writes.
template <class Object, class Writer>
class ObjectBuilder : public PageBuilder {
public:
    explicit ObjectBuilder(std::size_t page_bytes = PAGE_BYTES)
        : PageBuilder(ObjectPage<Object>::layout(), page_bytes) {}

    // Begins an object.
    Writer begin() { return Writer(begin_object()); }

    // Appends a copy of an object, whose bytes are the same wherever it lies.
    void copy(const Object& object) { copy_object(object.bytes().data()); }
};

}  // namespace dray
