// Pages, and what an implementation must offer. An implementation whose objects are separate byte
// strings derives from Blob, which keeps them in pages.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "walk.h"

using Byte = std::uint8_t;
constexpr std::uint32_t PAGE_BYTES = 256 << 10;
// Behind each page: some readers look at bytes behind the text.
constexpr std::size_t SLACK = 64;

inline std::uint32_t u32_at(const Byte* at) {
    std::uint32_t v;
    std::memcpy(&v, at, 4);
    return v;
}
inline void put_u32(Byte* at, std::uint32_t v) { std::memcpy(at, &v, 4); }
inline std::size_t padded(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

// Bytes that begin at a multiple of 64.
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t bytes) : size_(bytes) {
        data_.reset(static_cast<Byte*>(std::aligned_alloc(64, padded(bytes + SLACK, 64))));
        if (!data_) throw std::bad_alloc();
        std::memset(data_.get() + bytes, 0, SLACK);
    }
    Byte* data() const { return data_.get(); }
    std::size_t size() const { return size_; }

  private:
    struct Free {
        void operator()(Byte* at) const { std::free(at); }
    };
    std::unique_ptr<Byte, Free> data_;
    std::size_t size_ = 0;
};

// A page that is written: its bytes and the positions of its objects. The bytes are the writer's.
struct Written {
    const Byte* data;
    std::uint32_t page_bytes;
    std::vector<std::uint32_t> positions;
    std::uint64_t object_bytes;
};
using Sink = std::function<void(const Written&)>;

// Objects in memory that is used again for the next page's. They need not be movable.
template <class O>
class Held {
  public:
    Held() = default;
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() { clear(); }

    template <class... A>
    O& emplace(A&&... arguments) {
        if (count_ == blocks_.size() * BLOCK)
            blocks_.emplace_back(std::make_unique_for_overwrite<Block>());
        auto* at = new (place(count_)) O(std::forward<A>(arguments)...);
        ++count_;
        return *at;
    }
    void clear() {
        for (std::size_t i = 0; i < count_; ++i) (*this)[i].~O();
        count_ = 0;
    }
    O& operator[](std::size_t i) { return *std::launder(reinterpret_cast<O*>(place(i))); }
    std::size_t size() const { return count_; }

  private:
    static constexpr std::size_t BLOCK = 64;
    struct Block {
        alignas(O) Byte bytes[BLOCK * sizeof(O)];
    };
    Byte* place(std::size_t i) { return blocks_[i / BLOCK]->bytes + i % BLOCK * sizeof(O); }
    std::vector<std::unique_ptr<Block>> blocks_;
    std::size_t count_ = 0;
};

// Pages of byte strings: u32 page_bytes, u32 objects; each is u32 length, u32 zero, the bytes.
class BlobPages {
  public:
    explicit BlobPages(Sink sink) : sink_(std::move(sink)), buffer_(PAGE_BYTES) {}

    void add(const void* bytes, std::size_t length) {
        const std::size_t needs = 8 + padded(length, 8);
        if (used_ + needs > buffer_.size()) {
            finish();
            const std::size_t size = padded(8 + needs, PAGE_BYTES);
            if (size > UINT32_MAX) throw std::runtime_error("an object is too large for a page");
            if (buffer_.size() != size) buffer_ = Buffer(size);
        }
        Byte* at = buffer_.data() + used_;
        put_u32(at, static_cast<std::uint32_t>(length));
        put_u32(at + 4, 0);
        std::memcpy(at + 8, bytes, length);
        std::memset(at + 8 + length, 0, needs - 8 - length);
        page_.positions.push_back(static_cast<std::uint32_t>(used_));
        page_.object_bytes += length;
        used_ += needs;
    }

    void finish() {
        if (page_.positions.empty()) return;
        page_.data = buffer_.data();
        page_.page_bytes = static_cast<std::uint32_t>(buffer_.size());
        put_u32(buffer_.data(), page_.page_bytes);
        put_u32(buffer_.data() + 4, static_cast<std::uint32_t>(page_.positions.size()));
        std::memset(buffer_.data() + used_, 0, buffer_.size() - used_);
        sink_(page_);
        page_ = {};
        used_ = 8;
        if (buffer_.size() != PAGE_BYTES) buffer_ = Buffer(PAGE_BYTES);
    }

  private:
    Sink sink_;
    Buffer buffer_;
    std::size_t used_ = 8;
    Written page_{};
};

// Implementations of byte strings. `Impl` has
//
//   Object<T>                          what a program reads, with Get
//   construct<T>(held, bytes)          bytes → object
//   encode<T>(const T&, bytes&)        the language's own object → bytes
//   encode_object<T>(object, bytes&)   object → bytes
//   is_valid<T>(bytes)                 if VALIDATES is APART
//   change<T>(bytes, bytes&)           → bytes in which `changed` is larger by 1
//   grow(bytes, bytes&)                → bytes of a customer with one more order
enum Validates { ALWAYS, APART, NEVER };
using Bytes = std::span<const Byte>;

template <class Impl>
struct Blob {
    // Whether `change` overwrites the bytes of an object in its page.
    static constexpr bool IN_PLACE = false;
    // Whether pages are validated and changed as a whole.
    static constexpr bool WHOLE_PAGES = false;
    // Whether objects need their page as long as they are read.
    static constexpr bool READS_PAGE = true;

    template <class T>
    class Writer {
      public:
        explicit Writer(Sink sink) : pages_(std::move(sink)) {}
        void add(const T& value) {
            bytes_.clear();
            Impl::template encode<T>(value, bytes_);
            pages_.add(bytes_.data(), bytes_.size());
        }
        template <class O>
        void add_object(const O& object) {
            bytes_.clear();
            Impl::template encode_object<T>(object, bytes_);
            pages_.add(bytes_.data(), bytes_.size());
        }
        void add_changed(const Byte* page, std::uint32_t position) {
            bytes_.clear();
            Impl::template change<T>(bytes_at(page, position), bytes_);
            pages_.add(bytes_.data(), bytes_.size());
        }
        void add_grown(const Byte* page, std::uint32_t position) {
            bytes_.clear();
            Impl::grow(bytes_at(page, position), bytes_);
            pages_.add(bytes_.data(), bytes_.size());
        }
        void finish() { pages_.finish(); }

      private:
        BlobPages pages_;
        std::string bytes_;
    };

    static Bytes bytes_at(const Byte* page, std::uint32_t position) {
        return {page + position + 8, u32_at(page + position)};
    }
    static std::uint32_t page_bytes(const Byte* page) { return u32_at(page); }

    static void positions(const Byte* page, std::vector<std::uint32_t>& out) {
        std::uint32_t at = 8;
        for (std::uint32_t i = 0, n = u32_at(page + 4); i < n; ++i) {
            out.push_back(at);
            at += 8 + static_cast<std::uint32_t>(padded(u32_at(page + at), 8));
        }
    }
    template <class T, class H>
    static void open(const Byte* page, std::uint32_t position, H& held) {
        Impl::template construct<T>(held, bytes_at(page, position));
    }
    template <class T>
    static bool valid(const Byte* page, std::uint32_t, std::uint32_t position) {
        return Impl::template is_valid<T>(bytes_at(page, position));
    }
    template <class T>
    static bool is_valid(Bytes) {
        return true;
    }
    // The key of bytes. Decoders decode the whole object.
    template <class T>
    static walk::Key key_at(const Byte* page, std::uint32_t position) {
        thread_local Held<typename Impl::template Object<T>> held;
        held.clear();
        Impl::template construct<T>(held, bytes_at(page, position));
        return walk::key<typename Impl::Get>(walk::About<T>{}, Impl::root(held[0]));
    }
};

// Implementations that decode into the language's own objects.
template <class Impl>
struct Decoded : Blob<Impl> {
    template <class T>
    using Object = T;
    using Get = ModelGet;
    static constexpr Validates VALIDATES = ALWAYS;
    static constexpr bool READS_PAGE = false;

    template <class T>
    static const T& root(const T& object) {
        return object;
    }
    template <class T, class H>
    static void construct(H& held, Bytes bytes) {
        Impl::decode(bytes, held.emplace());
    }
    template <class T>
    static void encode_object(const T& object, std::string& out) {
        Impl::encode(object, out);
    }
    template <class T>
    static void change(Bytes bytes, std::string& out) {
        T object;
        Impl::decode(bytes, object);
        changed(object) += 1.0;
        Impl::encode(object, out);
    }
    static void grow(Bytes bytes, std::string& out) {
        model::Customer object;
        Impl::decode(bytes, object);
        object.orders.push_back(grown(object.custKey));
        Impl::encode(object, out);
    }
};
