// Changes objects where they lie (spec/page.md section 11).
#pragma once

#include "rewrite.hpp"

namespace dray {

namespace detail {
class RecordEditor;
}

// A page whose objects are changed. It is a copy: whoever reads the page that it came from sees
// nothing of the changes. Values of a fixed width are overwritten where they lie, and so are
// strings whose tails keep their size. Other changes write the object anew, behind the last one;
// what is then left of the old one is closed up now and then. An object that is alone gets a large
// page if it needs one; another one that no longer fits its page is an error, and stays as it was.
class PageEditor {
public:
    // `page_bytes` is the standard size of the file's or the stream's pages.
    explicit PageEditor(const VerifiedPage& page, std::size_t page_bytes = PAGE_BYTES)
        : layout_(page.layout()), header_(page.header()), page_bytes_(page_bytes) {
        if (!header_.large) page_bytes_ = header_.page_bytes;
        Bytes bytes = page.view().bytes();
        page_ = detail::Buffer(bytes.size());
        std::memcpy(page_.data(), bytes.data(), bytes.size());
        // Dead extents keep their size, but not their bytes.
        for (std::size_t at = HEADER_BYTES; at < header_.objects_end;) {
            auto extent_bytes = detail::load<std::uint32_t>(page_.data() + at);
            if ((extent_bytes & detail::DEAD) != 0) dead_bytes_ += extent_bytes & ~detail::DEAD;
            at += extent_bytes & ~detail::DEAD;
        }
        ++header_.edition;
    }
    // Editors of objects refer to the page's.
    PageEditor(const PageEditor&) = delete;
    PageEditor& operator=(const PageEditor&) = delete;

    std::size_t size() const noexcept { return header_.objects; }
    // The header as it will be, but for the checksum.
    const Header& header() const noexcept { return header_; }

    // Moves all objects together, in order. The page is then what a builder would have written, but
    // for its edition. Views of its objects are no longer valid.
    void compact() {
        if (header_.moved) compact(detail::NONE);
    }

    // Ends the changes: the page with a checksum. Nothing that was deleted is in it.
    VerifiedPage seal() {
        using namespace detail;
        check_open();
        for (usize at = HEADER_BYTES; at < header_.objects_end;) {
            u32 extent_bytes = load<u32>(page_.data() + at);
            usize bytes = extent_bytes & ~DEAD;
            if ((extent_bytes & DEAD) != 0) std::memset(page_.data() + at + 4, 0, bytes - 4);
            at += bytes;
        }
        changes_.push_back({NONE, 0});
        auto page = std::make_shared<Buffer>(std::exchange(page_, Buffer()));
        return VerifiedPage::seal(layout_, std::move(page), header_);
    }

protected:
    detail::RecordEditor edit(std::size_t i);

    const std::byte* bytes(std::size_t i) {
        check(i);
        return object(i);
    }

private:
    friend class detail::RecordEditor;
    template <class Element, bool NULLABLE>
    friend class ListEditor;

    // An object was written anew. What lies before `same` still lies there.
    struct Moved {
        std::size_t slot, same;
    };

    void check_open() const {
        if (page_.size() == 0) detail::refuse(Kind::usage, "the page was sealed");
    }
    void check(std::size_t i) const {
        check_open();
        if (i >= size()) {
            detail::refuse(Kind::usage, "there is no object ", i, ", the page has ", size());
        }
    }

    std::byte* slot(std::size_t i) noexcept {
        return page_.data() + page_.size() - detail::SLOT_BYTES * (i + 1);
    }
    std::byte* object(std::size_t i) noexcept {
        return page_.data() + detail::load<std::uint32_t>(slot(i));
    }
    std::size_t slots_at() const noexcept {
        return page_.size() - detail::SLOT_BYTES * header_.objects;
    }

    // Writes object i anew.
    void rewrite(std::size_t i, const detail::Change& change) {
        using namespace detail;
        Rewriter(object(i), change, rewritten_).object(layout_->record());
        usize old_bytes = load<u32>(object(i)), bytes = rewritten_.bytes.size();
        if (header_.large || (size() == 1 && HEADER_BYTES + bytes > slots_at())) {
            replace_page();
        } else if (header_.objects_end + bytes <= slots_at()) {
            std::memcpy(page_.data() + header_.objects_end, rewritten_.bytes.data(), bytes);
            store(object(i), static_cast<u32>(old_bytes) | DEAD);
            store(slot(i), header_.objects_end);
            header_.objects_end += static_cast<u32>(bytes);
            header_.moved = true;
            dead_bytes_ += old_bytes;
            if (4 * dead_bytes_ >= header_.objects_end - HEADER_BYTES) compact(NONE);
        } else if (header_.objects_end - dead_bytes_ - old_bytes + bytes <= slots_at()) {
            compact(i);
        } else {
            refuse(Kind::limit, "object ", i, " would have ", bytes,
                   " bytes, and not fit its page of ", page_.size(), ": build a page with it");
        }
        changes_.push_back({i, rewritten_.same});
    }

    // Makes a page for an object that is alone, of the size that fits.
    void replace_page() {
        using namespace detail;
        usize end = HEADER_BYTES + rewritten_.bytes.size();
        usize size = (end + SLOT_BYTES + page_bytes_ - 1) / page_bytes_ * page_bytes_;
        if (size >= LARGE_BYTES_END) {
            refuse(Kind::limit, "an object of ", rewritten_.bytes.size(),
                   " bytes is larger than any page");
        }
        Buffer page(size);
        std::memcpy(page.data() + HEADER_BYTES, rewritten_.bytes.data(), rewritten_.bytes.size());
        page_ = std::move(page);
        store(slot(0), static_cast<u32>(HEADER_BYTES));
        header_.page_bytes = static_cast<u32>(size);
        header_.objects_end = static_cast<u32>(end);
        header_.large = size > page_bytes_;
        header_.moved = false;
        dead_bytes_ = 0;
    }

    // Moves all objects together. One is replaced by what was rewritten, unless it is NONE.
    void compact(std::size_t replaced) {
        using namespace detail;
        Buffer page(page_.size());
        usize at = HEADER_BYTES;
        for (usize i = 0; i < header_.objects; ++i) {
            const std::byte* from = i == replaced ? rewritten_.bytes.data() : object(i);
            usize bytes = load<u32>(from);
            std::memcpy(page.data() + at, from, bytes);
            store(page.data() + page.size() - SLOT_BYTES * (i + 1), static_cast<u32>(at));
            at += bytes;
        }
        page_ = std::move(page);
        header_.objects_end = static_cast<u32>(at);
        header_.moved = false;
        dead_bytes_ = 0;
    }

    std::shared_ptr<const Layout> layout_;
    Header header_;
    std::size_t page_bytes_;
    detail::Buffer page_;
    std::size_t dead_bytes_ = 0;
    detail::Rewritten rewritten_;
    std::vector<Moved> changes_;
};

template <class Element, bool NULLABLE>
class ListEditor;

namespace detail {

// What a list holds: records that class E edits.
template <class E>
struct EditorOf {};
// What a list holds: lists.
template <class Element, bool NULLABLE>
struct ListEditorOf {};

// Changes the fields of a record. Generated editors give it positions, as they do to
// `RecordWriter`. After a change that wrote the object anew, editors of what lies behind it are
// refused.
class RecordEditor {
protected:
    template <class Value>
    void set(usize at, usize tail, const typename Value::value_type& value) {
        if constexpr (is_text<Value>) {
            text(at, tail, checked_text(Value{}, value));
        } else if constexpr (IsArray<Value>::value) {
            if (value.size() != count(at)) resize(tail, value.size(), NONE);
            if (value.empty()) return;
            std::byte* items = page_->object(slot_) + load<u32>(place(at));
            std::memmove(items, value.data(), value.size_bytes());
        } else {
            store_value(Value{}, place(at), value);
        }
    }

    template <class Value>
    void set(usize at, usize tail, usize bit_at, unsigned bit,
             const std::optional<typename Value::value_type>& value) {
        if (value) {
            if constexpr (IsArray<Value>::value) {
                const Tail& of = of_->tails[tail];
                if (of.kind == PlaceKind::fixed_list && of.size == value->size()) {
                    present(bit_at, bit, tail, tail + 1);
                }
            }
            // If this fails, the value is still missing.
            set<Value>(at, tail, *value);
            mark(bit_at, bit);
        } else if constexpr (is_text<Value> || IsArray<Value>::value) {
            remove(bit_at, bit, tail, tail + 1, {{at, width<Value>()}}, {});
        } else {
            remove(bit_at, bit, tail, tail, {{at, width<Value>()}}, {});
        }
    }

    template <class List>
    List list(usize at, usize tail) {
        return List(*this, at, tail);
    }
    template <class List>
    List list(usize at, usize tail, usize bit_at, unsigned bit) {
        present(bit_at, bit, tail, tail + 1);
        return List(*this, at, tail);
    }

    // The fields of a struct.
    template <class Editor>
    Editor within() {
        return Editor(*this);
    }
    // A struct that may be missing becomes present. It has the tails `from` to `end`.
    template <class Editor>
    Editor within(usize bit_at, unsigned bit, usize from, usize end) {
        present(bit_at, bit, from, end);
        return Editor(*this);
    }

    // Makes what has these tails, places and further bits missing.
    void remove(usize bit_at, unsigned bit, usize from, usize end,
                std::initializer_list<Range> places,
                std::initializer_list<std::pair<usize, unsigned>> bits) {
        if ((load<u8>(place(bit_at)) & bit) == 0) return;
        unmark(bit_at, bit);
        for (auto [at, mask] : bits) unmark(at, mask);
        if (has_tail(from, end)) rewrite({record_, from, end, Change::To::nothing, {}, 0, NONE});
        for (Range range : places) std::memset(place(range.at), 0, range.bytes);
    }

private:
    friend class dray::PageEditor;
    template <class Element, bool NULLABLE>
    friend class dray::ListEditor;

    RecordEditor(PageEditor* page, const Record* of, usize slot, usize record)
        : page_(page), of_(of), slot_(slot), record_(record), seen_(page->changes_.size()) {}

    std::byte* place(usize at) const {
        if (seen_ != page_->changes_.size()) catch_up();
        return page_->object(slot_) + record_ + at;
    }

    [[gnu::noinline]] void catch_up() const {
        for (; seen_ < page_->changes_.size(); ++seen_) {
            auto [slot, same] = page_->changes_[seen_];
            if (slot == NONE) refuse(Kind::usage, "the page was sealed");
            if (slot == slot_ && record_ >= same) {
                refuse(Kind::usage,
                       "the object was written anew since this part of it was looked up");
            }
        }
    }

    usize count(usize at) const { return load<u32>(place(at) + 4); }

    void mark(usize bit_at, unsigned bit) const {
        store(place(bit_at), static_cast<u8>(load<u8>(place(bit_at)) | bit));
    }
    void unmark(usize bit_at, unsigned bit) const {
        store(place(bit_at), static_cast<u8>(load<u8>(place(bit_at)) & ~bit));
    }

    void rewrite(const Change& change) { page_->rewrite(slot_, change); }

    static void check_size(const Tail& of, usize count) {
        if (of.kind == PlaceKind::fixed_list && count != of.size) {
            refuse(Kind::usage, "a list of ", of.size, " items keeps its size");
        }
    }

    void resize(usize tail, usize count, usize erased) {
        check_size(of_->tails[tail], count);
        if (count >= EXTENT_END) refuse(Kind::limit, "a list of ", count, " items");
        rewrite({record_, tail, tail + 1, Change::To::items, {}, count, erased});
    }

    bool has_tail(usize from, usize end) const {
        for (usize i = from; i < end; ++i) {
            const Tail& tail = of_->tails[i];
            bool text = tail.kind == PlaceKind::utf8 || tail.kind == PlaceKind::binary;
            if (text ? load<u32>(place(tail.at)) > INLINE_MAX : count(tail.at) > 0) return true;
        }
        return false;
    }

    // What was missing gets its bit, and the fixed lists that it must have.
    void present(usize bit_at, unsigned bit, usize from, usize end) {
        if ((load<u8>(place(bit_at)) & bit) != 0) return;
        mark(bit_at, bit);
        bool needs_items = false;
        for (usize i = from; i < end; ++i) {
            const Tail& tail = of_->tails[i];
            needs_items |= tail.kind == PlaceKind::fixed_list && tail.size > 0;
        }
        if (!needs_items) return;
        try {
            rewrite({record_, from, end, Change::To::stay, {}, 0, NONE});
        } catch (...) {
            unmark(bit_at, bit);
            throw;
        }
    }

    void text(usize at, usize tail, std::string_view text) {
        if (text.size() >= EXTENT_END) refuse(Kind::limit, "a string of ", text.size(), " bytes");
        std::byte* to = place(at);
        usize before = load<u32>(to);
        if (before <= INLINE_MAX && text.size() <= INLINE_MAX) {
            store_inline(to, text);
        } else if (before == text.size()) {
            usize offset = load<u32>(to + 12);
            std::memmove(page_->object(slot_) + offset, text.data(), text.size());
            std::memcpy(to + 4, page_->object(slot_) + offset, 4);
        } else {
            rewrite({record_, tail, tail + 1, Change::To::text, text, 0, NONE});
        }
    }

    PageEditor* page_;
    const Record* of_;
    usize slot_, record_;
    // The changes that this editor knows of.
    mutable usize seen_;
};

}  // namespace detail

// Changes the items of a list.
template <class Element, bool NULLABLE>
class ListEditor : private detail::RecordEditor {
    template <class E>
    struct Kind_ {
        static constexpr bool is_value = true;
    };
    template <class E>
    struct Kind_<detail::EditorOf<E>> {
        static constexpr bool is_value = false;
        using editor = E;
    };
    template <class E, bool N>
    struct Kind_<detail::ListEditorOf<E, N>> {
        static constexpr bool is_value = false;
        using list = ListEditor<E, N>;
    };

public:
    std::size_t size() const { return count(at_); }

    // New items are missing if they may be, and otherwise 0 or empty.
    void resize(std::size_t count) {
        if (count != size()) RecordEditor::resize(tail_, count, detail::NONE);
    }

    void erase(std::size_t i) {
        check(i);
        RecordEditor::resize(tail_, size() - 1, i);
    }

    // Item i, which is a struct or a list. If it is missing, it becomes present.
    auto operator[](std::size_t i) requires(!Kind_<Element>::is_value) {
        if constexpr (requires { typename Kind_<Element>::editor; }) {
            return typename Kind_<Element>::editor(present_item(i));
        } else {
            return typename Kind_<Element>::list(present_item(i), 0, 0);
        }
    }

    // Item i, which is a value.
    template <class V>
    requires(Kind_<Element>::is_value) void set(std::size_t i, const V& value) {
        typename Element::value_type converted(value);
        check(i);
        if constexpr (detail::IsArray<Element>::value) {
            check_size(of_->tails[tail_].items->record.tails[0], converted.size());
        }
        bool was_missing = NULLABLE && !detail::bit_at(bitmap(), i);
        RecordEditor item = present_item(i);
        try {
            item.template set<Element>(0, 0, converted);
        } catch (...) {
            if (was_missing) detail::clear_bit(bitmap(), i);
            throw;
        }
    }

    void set_missing(std::size_t i) requires NULLABLE {
        RecordEditor item = this->item(i);
        detail::clear_bit(bitmap(), i);
        std::size_t tails = item.of_->tails.size();
        if (item.has_tail(0, tails)) {
            using detail::Change;
            item.rewrite({item.record_, 0, tails, Change::To::nothing, {}, 0, detail::NONE});
        }
        std::memset(item.place(0), 0, item.of_->stride);
    }

private:
    friend class detail::RecordEditor;
    template <class E, bool N>
    friend class ListEditor;
    ListEditor(const RecordEditor& record, std::size_t at, std::size_t tail)
        : RecordEditor(record), at_(at), tail_(tail) {}

    void check(std::size_t i) const {
        if (i >= size()) {
            detail::refuse(Kind::usage, "there is no item ", i, ", the list has ", size());
        }
    }

    std::byte* bitmap() const {
        return page_->object(slot_) + detail::load<std::uint32_t>(place(at_));
    }

    RecordEditor item(std::size_t i) const {
        check(i);
        const detail::Items& items = *of_->tails[tail_].items;
        std::size_t records_at =
            detail::load<std::uint32_t>(place(at_)) + items.bitmap_bytes(size());
        return RecordEditor(page_, &items.record, slot_, records_at + i * items.record.stride);
    }

    RecordEditor present_item(std::size_t i) {
        RecordEditor item = this->item(i);
        if (!NULLABLE || detail::bit_at(bitmap(), i)) return item;
        detail::set_bit(bitmap(), i);
        if (item.of_->has_fixed_lists) {
            using detail::Change;
            try {
                item.rewrite({item.record_,
                              0,
                              item.of_->tails.size(),
                              Change::To::stay,
                              {},
                              0,
                              detail::NONE});
            } catch (...) {
                detail::clear_bit(bitmap(), i);
                throw;
            }
        }
        return item;
    }

    std::size_t at_, tail_;
};

inline detail::RecordEditor PageEditor::edit(std::size_t i) {
    check(i);
    return detail::RecordEditor(this, &layout_->record(), i, 0);
}

// An editor of a page of objects, each of which class Editor changes.
template <class Object, class Editor>
class ObjectEditor : public PageEditor {
public:
    explicit ObjectEditor(const ObjectPage<Object>& page, std::size_t page_bytes = PAGE_BYTES)
        : PageEditor(page.page(), page_bytes) {}

    // The object at a slot, to be changed.
    Editor operator[](std::size_t i) { return Editor(edit(i)); }

    // The object at a slot, to be read. It is valid until the page's next change.
    Object view(std::size_t i) { return Object(bytes(i)); }
};

}  // namespace dray
