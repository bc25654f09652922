// What generated accessors are made of. They read objects of verified pages, without checks.
#pragma once

#include <cstddef>
#include <iterator>

#include "page_file.hpp"
#include "types.hpp"

namespace dray {

// The items of a list: a random-access range of values that are made when they are read.
template <class Element, std::size_t STRIDE, bool NULLABLE>
class List {
public:
    using value_type = std::conditional_t<NULLABLE, std::optional<typename Element::value_type>,
                                          typename Element::value_type>;

    List() = default;
    // The list whose place is at `place`.
    List(const std::byte* object, const std::byte* place) noexcept
        : object_(object),
          items_(object + detail::load<std::uint32_t>(place)),
          size_(detail::load<std::uint32_t>(place + 4)) {
        if (NULLABLE) items_ += detail::pad((size_ + 7) / 8, 8);
    }

    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

    // Item i, which must be there.
    value_type operator[](std::size_t i) const noexcept {
        if constexpr (NULLABLE) {
            const std::byte* bitmap = items_ - detail::pad((size_ + 7) / 8, 8);
            if (!detail::bit_at(bitmap, i)) return std::nullopt;
        }
        return Element::get(object_, items_ + i * STRIDE);
    }

    // Item i, or an error.
    value_type at(std::size_t i) const {
        if (i >= size_) {
            detail::refuse(Kind::usage, "there is no item ", i, ", the list has ", size_);
        }
        return (*this)[i];
    }

    class iterator {
    public:
        using value_type = List::value_type;
        using difference_type = std::ptrdiff_t;
        using reference = value_type;
        using pointer = void;
        using iterator_category = std::input_iterator_tag;
        using iterator_concept = std::random_access_iterator_tag;

        iterator() = default;
        value_type operator*() const noexcept { return (*list_)[i_]; }
        value_type operator[](difference_type n) const noexcept { return *(*this + n); }
        iterator& operator++() noexcept { return *this += 1; }
        iterator& operator--() noexcept { return *this += -1; }
        iterator operator++(int) noexcept { return std::exchange(*this, *this + 1); }
        iterator operator--(int) noexcept { return std::exchange(*this, *this + -1); }
        iterator& operator+=(difference_type n) noexcept {
            i_ += static_cast<std::size_t>(n);
            return *this;
        }
        iterator& operator-=(difference_type n) noexcept { return *this += -n; }
        friend iterator operator+(iterator it, difference_type n) noexcept { return it += n; }
        friend iterator operator+(difference_type n, iterator it) noexcept { return it += n; }
        friend iterator operator-(iterator it, difference_type n) noexcept { return it -= n; }
        friend difference_type operator-(iterator a, iterator b) noexcept {
            return static_cast<difference_type>(a.i_ - b.i_);
        }
        friend bool operator==(iterator a, iterator b) noexcept { return a.i_ == b.i_; }
        friend auto operator<=>(iterator a, iterator b) noexcept { return a.i_ <=> b.i_; }

    private:
        friend class List;
        iterator(const List* list, std::size_t i) noexcept : list_(list), i_(i) {}
        const List* list_ = nullptr;
        std::size_t i_ = 0;
    };

    iterator begin() const noexcept { return iterator(this, 0); }
    iterator end() const noexcept { return iterator(this, size_); }

private:
    const std::byte* object_ = nullptr;
    const std::byte* items_ = nullptr;
    std::size_t size_ = 0;
};

namespace detail {

// Each of these reads the value whose place is at `at`, of the object that begins at `object`.

// A value whose bytes are those of T.
template <class T>
struct Number {
    using value_type = T;
    static T get(const std::byte*, const std::byte* at) noexcept { return load<T>(at); }
};

// A value that is stored as a number: a date, a time, a duration.
template <class T, class STORED>
struct Stored {
    using value_type = T;
    static T get(const std::byte*, const std::byte* at) noexcept {
        return from_stored<T>(load<STORED>(at));
    }
};

struct Boolean {
    using value_type = bool;
    static bool get(const std::byte*, const std::byte* at) noexcept { return load<u8>(at) != 0; }
};

struct Null {
    using value_type = std::nullptr_t;
    static std::nullptr_t get(const std::byte*, const std::byte*) noexcept { return nullptr; }
};

struct Text {
    using value_type = std::string_view;
    static std::string_view get(const std::byte* object, const std::byte* at) noexcept {
        return text_at(object, at);
    }
};

struct Binary {
    using value_type = Bytes;
    static Bytes get(const std::byte* object, const std::byte* at) noexcept {
        auto text = text_at(object, at);
        return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
    }
};

template <usize WIDTH>
struct FixedBinary {
    using value_type = std::span<const std::byte, WIDTH>;
    static value_type get(const std::byte*, const std::byte* at) noexcept {
        return value_type(at, WIDTH);
    }
};

// A class of generated accessors.
template <class C>
struct Of {
    using value_type = C;
    static C get(const std::byte* object, const std::byte* at) noexcept { return C(object, at); }
};

template <class Element, usize STRIDE, bool NULLABLE>
struct ListOf {
    using value_type = List<Element, STRIDE, NULLABLE>;
    static value_type get(const std::byte* object, const std::byte* at) noexcept {
        return value_type(object, at);
    }
};

// Numbers that lie as an array: they begin at a multiple of 8.
template <class T>
struct Array {
    using value_type = std::span<const T>;
    static value_type get(const std::byte* object, const std::byte* at) noexcept {
        return {reinterpret_cast<const T*>(object + load<u32>(at)), load<u32>(at + 4)};
    }
};

// The objects of a schema. Their record begins where they do.
class ObjectView {
public:
    // The object's bytes.
    Bytes bytes() const noexcept { return {object_, load<u32>(object_)}; }

    // Begins to load all of the object, which is faster if it is then read as a whole, and was not
    // used before.
    void prefetch() const noexcept {
        for (usize i = 0, end = load<u32>(object_); i < end; i += 64) {
            __builtin_prefetch(object_ + i);
        }
    }

protected:
    explicit ObjectView(const std::byte* object) noexcept : object_(object) {}

    template <class Value>
    typename Value::value_type get(usize at) const noexcept {
        return Value::get(object_, object_ + at);
    }
    template <class Value>
    std::optional<typename Value::value_type> get(usize at, usize bit_at,
                                                  unsigned bit) const noexcept {
        if ((load<u8>(object_ + bit_at) & bit) == 0) return std::nullopt;
        return Value::get(object_, object_ + at);
    }

private:
    const std::byte* object_;
};

// A struct, or an item that is one: fields of a record within an object.
class RecordView {
protected:
    RecordView(const std::byte* object, const std::byte* record) noexcept
        : object_(object), record_(record) {}

    template <class Value>
    typename Value::value_type get(usize at) const noexcept {
        return Value::get(object_, record_ + at);
    }
    template <class Value>
    std::optional<typename Value::value_type> get(usize at, usize bit_at,
                                                  unsigned bit) const noexcept {
        if ((load<u8>(record_ + bit_at) & bit) == 0) return std::nullopt;
        return Value::get(object_, record_ + at);
    }

private:
    const std::byte* object_;
    const std::byte* record_;
};

// Accessors read only what they were generated for.
template <class Object>
void check_schema(const Layout& layout) {
    const Digest& found = layout.schema().digest;
    if (found != Object::schema_digest) {
        refuse(Kind::other_schema, "the objects have the schema ", shown(found),
               ", the accessors were generated for ", shown(Object::schema_digest),
               ": generate them again from this file");
    }
}

}  // namespace detail

// A verified page of objects.
template <class Object>
class ObjectPage {
public:
    // Refuses a page of another schema.
    explicit ObjectPage(VerifiedPage page) : page_(std::move(page)) {
        detail::check_schema<Object>(*page_.layout());
    }

    // Checks a page against all rules of page.md. The bytes begin at a multiple of 8. They are
    // borrowed, unless `owner` keeps them.
    static ObjectPage verify(Bytes bytes, std::shared_ptr<const void> owner = nullptr) {
        return ObjectPage(VerifiedPage::verify(layout(), bytes, std::move(owner)));
    }

    // The layout of the objects.
    static const std::shared_ptr<const Layout>& layout() {
        static const auto layout = Layout::decode(std::as_bytes(std::span(Object::schema)));
        return layout;
    }

    std::uint32_t size() const noexcept { return page_.size(); }
    const VerifiedPage& page() const noexcept { return page_; }
    Object operator[](std::size_t i) const noexcept { return Object(page_.view()[i]); }
    Object at(std::size_t i) const { return Object(page_.view().at(i)); }

    class iterator {
    public:
        using value_type = Object;
        using difference_type = std::ptrdiff_t;

        iterator() = default;
        Object operator*() const noexcept { return Object(page_[i_]); }
        iterator& operator++() noexcept {
            ++i_;
            return *this;
        }
        iterator operator++(int) noexcept {
            auto before = *this;
            ++i_;
            return before;
        }
        bool operator==(const iterator& other) const noexcept { return i_ == other.i_; }

    private:
        friend class ObjectPage;
        iterator(PageView page, std::size_t i) noexcept : page_(page), i_(i) {}
        PageView page_;
        std::size_t i_ = 0;
    };

    iterator begin() const noexcept { return iterator(page_.view(), 0); }
    iterator end() const noexcept { return iterator(page_.view(), size()); }

private:
    VerifiedPage page_;
};

// A page file of objects. An object is valid while the file is open.
template <class Object>
class ObjectFile {
public:
    // Refuses a file of another schema.
    explicit ObjectFile(PageFile file) : file_(std::move(file)) {
        detail::check_schema<Object>(*file_.layout());
    }
    static ObjectFile open(const std::string& path) { return ObjectFile(opened(path)); }

    std::uint64_t size() const noexcept { return file_.size(); }
    const PageFile& file() const noexcept { return file_; }

    // The object with this number.
    Object object(std::uint64_t ordinal) const { return Object(file_.object(ordinal)); }

    // Goes through all objects in order. Each page is checked when it comes.
    class iterator {
    public:
        using value_type = Object;
        using difference_type = std::ptrdiff_t;

        iterator() = default;
        Object operator*() const noexcept { return Object(page_[i_]); }
        iterator& operator++() {
            if (++i_ == page_.size()) next();
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(std::default_sentinel_t) const noexcept { return i_ == page_.size(); }

    private:
        friend class ObjectFile;
        explicit iterator(const PageFile& file) : file_(&file) { next(); }
        void next() {
            i_ = 0;
            page_ = number_ < file_->page_count() ? file_->page(number_++) : PageView();
        }
        const PageFile* file_ = nullptr;
        std::size_t number_ = 0, i_ = 0;
        PageView page_;
    };

    iterator begin() const { return iterator(file_); }
    std::default_sentinel_t end() const noexcept { return {}; }

protected:
    static PageFile opened(const std::string& path) {
        PageFile file = PageFile::open(path);
        try {
            detail::check_schema<Object>(*file.layout());
        } catch (const Error& error) {
            throw error.about("can't read " + path);
        }
        return file;
    }

    // The objects with this key, of a file whose key is `paths`.
    std::vector<Object> find(std::initializer_list<std::initializer_list<const char*>> paths,
                             const std::vector<KeyValue>& values) const {
        std::vector<std::vector<std::string>> expected;
        for (const auto& path : paths) expected.emplace_back(path.begin(), path.end());
        if (file_.key_paths() != expected) {
            detail::refuse(Kind::usage, "the file has no index of this key, or of another one");
        }
        std::vector<Object> found;
        for (std::uint64_t ordinal : file_.find(values)) found.push_back(object(ordinal));
        return found;
    }

private:
    PageFile file_;
};

}  // namespace dray
