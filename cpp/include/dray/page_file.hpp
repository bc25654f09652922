// Files of pages, read where they lie (spec/page-file.md).
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "key.hpp"
#include "page.hpp"

namespace dray {
namespace detail {

constexpr usize UNIT_BYTES = 4096;
constexpr usize FILE_HEADER_BYTES = 64, FOOTER_BYTES = 128, ENTRY_BYTES = 16;
// The bytes of the footer that the digest covers.
constexpr usize DIGESTED_BYTES = 80;

// Bytes with what keeps them.
struct Owned {
    std::shared_ptr<const void> owner;
    Bytes bytes;
};

inline Owned borrowed(Bytes file) {
    if (reinterpret_cast<std::uintptr_t>(file.data()) % 8 != 0) {
        refuse(Kind::usage, "a page file in memory begins at a multiple of 8");
    }
    return {nullptr, file};
}

inline Owned map_file(const std::string& path) {
    auto fail = [&](const char* what) {
        refuse(Kind::io, "can't ", what, " ", path, ": ", std::strerror(errno));
    };
    struct Descriptor {
        int number;
        ~Descriptor() {
            if (number >= 0) ::close(number);
        }
    } file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (file.number < 0) fail("open");
    struct stat status {};
    if (::fstat(file.number, &status) != 0) fail("read");
    if (!S_ISREG(status.st_mode)) refuse(Kind::io, "can't read ", path, ": it is not a file");
    auto size = static_cast<usize>(status.st_size);
    if (size == 0) return {};
    void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number, 0);
    if (map == MAP_FAILED) fail("map");
    std::shared_ptr<const void> owner(map, [size](void* at) { ::munmap(at, size); });
    return {std::move(owner), {static_cast<const std::byte*>(map), size}};
}

// What a file begins with: page-file.md section 2.
struct FileHeader {
    usize page_bytes = 0, pages_at = 0;
    Digest schema_digest{};
    Bytes schema;

    static FileHeader decode(Bytes file) {
        const std::byte* at = file.data();
        if (file.size() < 4 || std::memcmp(at, "DRYF", 4) != 0) {
            refuse(Kind::magic, "it is not a page file: it does not begin with DRYF");
        }
        auto cut = [&](const char* where) {
            refuse(Kind::cut, "it ends within its ", where, ", after ", file.size(), " bytes");
        };
        if (file.size() < FILE_HEADER_BYTES) cut("header");
        if (u16 version = load<u16>(at + 4)) {
            refuse(Kind::version, "it has layout version ", version, ", this reader knows 0");
        }
        if (u16 flags = load<u16>(at + 6)) refuse(Kind::flags, "unknown flags ", flags);
        FileHeader header;
        header.page_bytes = load<u32>(at + 8);
        if (!is_page_size(header.page_bytes, false)) {
            refuse(Kind::size, "no page has ", header.page_bytes, " bytes");
        }
        usize schema_bytes = load<u32>(at + 12);
        if (schema_bytes > SchemaReader::BYTES_MAX) {
            refuse(Kind::size, "a schema of ", schema_bytes, " bytes, the most are ",
                   SchemaReader::BYTES_MAX);
        }
        if (!is_zero(at + 16, 16)) refuse(Kind::reserved, "a reserved byte of the header is not 0");
        header.pages_at = pad(FILE_HEADER_BYTES + schema_bytes, UNIT_BYTES);
        if (file.size() < header.pages_at) cut("schema");
        header.schema = file.subspan(FILE_HEADER_BYTES, schema_bytes);
        std::memcpy(header.schema_digest.data(), at + 32, 32);
        if (sha256({header.schema}) != header.schema_digest) {
            refuse(Kind::digest, "its schema was damaged: it has another digest");
        }
        usize schema_end = FILE_HEADER_BYTES + schema_bytes;
        if (!is_zero(at + schema_end, header.pages_at - schema_end)) {
            refuse(Kind::padding, "a byte between the schema and the pages is not 0");
        }
        return header;
    }
};

// What a file ends with: page-file.md section 6.
struct Footer {
    usize index_at = 0, pages = 0, keys_at = 0, keys = 0, key_paths_bytes = 0;
    u64 objects = 0;
    u32 keys_checksum = 0;

    usize index_end() const noexcept { return index_at + ENTRY_BYTES * pages; }

    static Footer decode(Bytes file, usize pages_at) {
        const std::byte* at = file.data() + file.size() - FOOTER_BYTES;
        if (file.size() < pages_at + FOOTER_BYTES || std::memcmp(at + 120, "DRYFEND", 8) != 0 ||
            load<u64>(at) != file.size()) {
            refuse(Kind::cut, "it ends after ", file.size(), " bytes, without a footer");
        }
        if (!is_zero(at + 56, 24) || !is_zero(at + 112, 8)) {
            refuse(Kind::footer, "a reserved byte of the footer is not 0");
        }
        auto size = [at](usize field) {
            u64 found = load<u64>(at + field);
            if (found >> 48 != 0)
                refuse(Kind::footer, "the footer says ", found, ", no file has so many");
            return static_cast<usize>(found);
        };
        Footer footer;
        footer.index_at = size(8);
        footer.pages = size(16);
        footer.objects = load<u64>(at + 24);
        footer.keys_at = size(32);
        footer.keys = size(40);
        footer.key_paths_bytes = load<u32>(at + 48);
        footer.keys_checksum = load<u32>(at + 52);
        bool has_keys = footer.key_paths_bytes > 0;
        usize end = footer.index_end() + footer.key_paths_bytes + ENTRY_BYTES * footer.keys;
        bool fits = footer.index_at >= pages_at && footer.index_at % UNIT_BYTES == 0 &&
                    footer.objects >= footer.pages &&
                    (footer.objects == 0) == (footer.pages == 0) && footer.keys <= footer.objects &&
                    footer.key_paths_bytes % 8 == 0 &&
                    (has_keys || (footer.keys == 0 && footer.keys_checksum == 0)) &&
                    footer.keys_at == (has_keys ? footer.index_end() : 0) &&
                    end == file.size() - FOOTER_BYTES;
        if (!fits) refuse(Kind::footer, "offsets, counts and sizes of the footer do not fit");
        return footer;
    }
};

// The page index as it lies in a file: page-file.md section 4.
class PageIndex {
public:
    PageIndex() = default;
    PageIndex(const std::byte* entries, usize pages, u64 objects)
        : entries_(entries),
          pages_(pages),
          objects_(objects),
          pages_per_object_(
              objects == 0 ? 0 : static_cast<double>(pages) / static_cast<double>(objects)) {}

    u64 first(usize page) const noexcept {
        return page < pages_ ? load<u64>(entries_ + ENTRY_BYTES * page) : objects_;
    }
    // Offsets from the first page on.
    usize start(usize page) const noexcept { return page == 0 ? 0 : end(page - 1); }
    usize end(usize page) const noexcept {
        return UNIT_BYTES * load<u32>(entries_ + ENTRY_BYTES * page + 8);
    }
    u32 checksum(usize page) const noexcept {
        return load<u32>(entries_ + ENTRY_BYTES * page + 12);
    }

    void check(usize pages_bytes, usize page_bytes) const {
        if (pages_ > 0 && first(0) != 0) {
            refuse(Kind::index, "page 0 begins with object ", first(0), " by the index");
        }
        for (usize page = 0; page < pages_; ++page) {
            if (first(page + 1) <= first(page)) {
                refuse(Kind::index, "page ", page, " has no object by the index");
            }
            usize from = start(page), to = end(page);
            if (to <= from || (to - from) % page_bytes != 0 ||
                (to - from != page_bytes && to - from >= LARGE_BYTES_END)) {
                refuse(Kind::index, "page ", page, " lies from ", from, " to ", to,
                       " by the index, pages have ", page_bytes, " bytes");
            }
        }
        usize last = pages_ == 0 ? 0 : end(pages_ - 1);
        if (last != pages_bytes) {
            refuse(Kind::index, "the pages end at ", last, " by the index, expected ", pages_bytes);
        }
    }

    // The page with an object, which must be there. Pages hold about equally many objects: the
    // first guess is close. Doubling steps find a range around it, which is then halved.
    usize page_of(u64 ordinal) const noexcept {
        auto guess = static_cast<usize>(static_cast<double>(ordinal) * pages_per_object_);
        usize from = std::min(guess, pages_ - 1), to = from + 1;
        for (usize step = 1; first(from) > ordinal; step *= 2) {
            to = from;
            from -= std::min(from, step);
        }
        for (usize step = 1; to < pages_ && first(to) <= ordinal; step *= 2) {
            from = to;
            to = std::min(to + step, pages_);
        }
        while (to - from > 1) {
            usize middle = from + (to - from) / 2;
            (first(middle) <= ordinal ? from : to) = middle;
        }
        return from;
    }

private:
    const std::byte* entries_ = nullptr;
    usize pages_ = 0;
    u64 objects_ = 0;
    double pages_per_object_ = 0;
};

}  // namespace detail

// The whole pages at the beginning of a file that was cut off, up to the first that is damaged or
// cut off. They may be all, or fewer than the file once had: nothing in a file without its end
// tells.
class Salvage {
public:
    // Refuses a file whose header or schema is damaged: then nothing can be read.
    static Salvage open(const std::string& path) { return Salvage(detail::map_file(path)); }
    static Salvage borrow(Bytes file) { return Salvage(detail::borrowed(file)); }

    const std::shared_ptr<const Layout>& layout() const noexcept { return layout_; }
    const std::vector<VerifiedPage>& pages() const noexcept { return pages_; }
    std::uint64_t objects() const noexcept {
        std::uint64_t objects = 0;
        for (const VerifiedPage& page : pages_) objects += page.size();
        return objects;
    }
    // Why nothing after them was read.
    const Error& reason() const noexcept { return reason_; }

private:
    friend class PageFile;
    explicit Salvage(const detail::Owned& file) : reason_(Kind::cut, "the file ends") {
        auto header = detail::FileHeader::decode(file.bytes);
        layout_ = Layout::decode(header.schema);
        Bytes rest = file.bytes.subspan(header.pages_at);
        try {
            for (;;) pages_.push_back(next(rest, header.page_bytes, file.owner));
        } catch (const Error& error) {
            reason_ = error.about("page " + std::to_string(pages_.size()));
        }
    }

    VerifiedPage next(Bytes& rest, std::size_t page_bytes,
                      const std::shared_ptr<const void>& owner) {
        using detail::refuse;
        if (rest.size() < HEADER_BYTES) refuse(Kind::cut, "the file ends before it");
        Header header = Header::decode(rest.first(HEADER_BYTES));
        if (header.sequence != pages_.size() || !header.checksum ||
            header.page_bytes % page_bytes != 0 ||
            (!header.large && header.page_bytes != page_bytes)) {
            refuse(Kind::page, "it is no page of this file");
        }
        if (rest.size() < header.page_bytes) refuse(Kind::cut, "the file ends within it");
        auto page = VerifiedPage::verify(layout_, rest.first(header.page_bytes), owner);
        rest = rest.subspan(header.page_bytes);
        return page;
    }

    std::shared_ptr<const Layout> layout_;
    std::vector<VerifiedPage> pages_;
    Error reason_;
};

// A page file. Threads share it: pages are checked when they are first used, whoever asks. The file
// must not change meanwhile.
class PageFile {
public:
    // Maps a file, and checks everything but its pages and its key index. The error about a file
    // that was cut off says how much `Salvage` can read.
    static PageFile open(const std::string& path) {
        try {
            detail::Owned file = detail::map_file(path);
            try {
                return PageFile(file);
            } catch (const Error& error) {
                if (error.kind() != Kind::cut) throw;
                throw salvageable(file, error);
            }
        } catch (const Error& error) {
            if (error.kind() == Kind::io) throw;
            throw error.about("can't read " + path);
        }
    }

    // Reads a file from memory, which begins at a multiple of 8, and stays until the file and its
    // objects are no longer used.
    static PageFile borrow(Bytes file) { return PageFile(detail::borrowed(file)); }

    // The number of objects.
    std::uint64_t size() const noexcept { return footer_.objects; }
    std::size_t page_count() const noexcept { return footer_.pages; }
    const std::shared_ptr<const Layout>& layout() const noexcept { return layout_; }
    const Digest& schema_digest() const noexcept { return layout_->schema().digest; }

    // The names of the key's fields; none without a key index.
    std::vector<std::vector<std::string>> key_paths() const {
        return key_ ? key_->paths() : std::vector<std::vector<std::string>>();
    }

    // A page. The first call checks it.
    PageView page(std::size_t page) const {
        if (page >= footer_.pages) {
            detail::refuse(Kind::usage, "there is no page ", page, ", the file has ",
                           footer_.pages);
        }
        if (checked_[page].load(std::memory_order_acquire) == 0) {
            check_page(page);
            checked_[page].store(1, std::memory_order_release);
        }
        return view(page);
    }

    // The object with this number.
    const std::byte* object(std::uint64_t ordinal) const {
        if (ordinal >= size()) {
            detail::refuse(Kind::usage, "there is no object ", ordinal, ", the file has ", size());
        }
        std::size_t page = index_.page_of(ordinal);
        return this->page(page)[ordinal - index_.first(page)];
    }

    // The numbers of the objects with this key, in ascending order.
    std::vector<std::uint64_t> find(const std::vector<KeyValue>& values) const {
        if (!key_) detail::refuse(Kind::usage, "the file has no key index; write it with a key");
        check_keys();
        std::vector<std::uint64_t> found;
        auto key = key_->stored(values);
        if (!key) return found;
        std::uint64_t hash = key_->hash(*key);
        for (std::size_t i = keys_.lower_bound(hash); i < keys_.size() && keys_.hash(i) == hash;
             ++i) {
            if (key_->is_of(*key, object(keys_.ordinal(i)))) found.push_back(keys_.ordinal(i));
        }
        return found;
    }

    // Checks all pages, the key index, and that it finds each object.
    void check() const {
        if (key_) check_keys();
        std::uint64_t ordinal = 0, keyed = 0;
        for (std::size_t page = 0; page < page_count(); ++page) {
            PageView view = this->page(page);
            for (std::size_t i = 0; i < view.size(); ++i, ++ordinal) {
                auto key = key_ ? key_->of(view[i]) : std::nullopt;
                if (!key) continue;
                ++keyed;
                std::uint64_t hash = key_->hash(*key);
                std::size_t entry = keys_.lower_bound(hash);
                while (entry < keys_.size() && keys_.hash(entry) == hash &&
                       keys_.ordinal(entry) < ordinal) {
                    ++entry;
                }
                if (entry == keys_.size() || keys_.hash(entry) != hash ||
                    keys_.ordinal(entry) != ordinal) {
                    detail::refuse(Kind::keys, "the key index lacks object ", ordinal);
                }
            }
        }
        if (keyed != keys_.size()) {
            detail::refuse(Kind::keys, "the key index has ", keys_.size(), " entries for ", keyed,
                           " objects");
        }
    }

private:
    explicit PageFile(const detail::Owned& file) : file_(file) {
        using namespace detail;
        Bytes bytes = file_.bytes;
        FileHeader header = FileHeader::decode(bytes);
        footer_ = Footer::decode(bytes, header.pages_at);
        usize index_end = footer_.index_end(),
              digest_at = bytes.size() - FOOTER_BYTES + DIGESTED_BYTES;
        Bytes paths = bytes.subspan(index_end, footer_.key_paths_bytes);
        Digest found = sha256({bytes.first(header.pages_at),
                               bytes.subspan(footer_.index_at, index_end - footer_.index_at), paths,
                               bytes.subspan(digest_at - DIGESTED_BYTES, DIGESTED_BYTES)});
        if (std::memcmp(found.data(), bytes.data() + digest_at, found.size()) != 0) {
            refuse(Kind::digest, "it was damaged: it has another digest");
        }
        try {
            layout_ = Layout::decode(header.schema);
        } catch (const Error& error) {
            throw Error(Kind::schema, std::string("its schema has no pages: ") + error.what());
        }
        pages_at_ = header.pages_at;
        page_bytes_ = header.page_bytes;
        index_ = PageIndex(bytes.data() + footer_.index_at, footer_.pages, footer_.objects);
        index_.check(footer_.index_at - pages_at_, header.page_bytes);
        if (footer_.key_paths_bytes > 0) {
            key_ = Key::decode(paths, *layout_);
            keys_ = KeyIndex(bytes.data() + index_end + footer_.key_paths_bytes, footer_.keys);
        }
        // One for each page, and one for the key index.
        checked_ = std::make_unique<std::atomic<unsigned char>[]>(footer_.pages + 1);
    }

    static Error salvageable(const detail::Owned& file, const Error& error) {
        try {
            Salvage salvage(file);
            return Error(error.kind(), std::string(error.what()) + "; its first " +
                                           std::to_string(salvage.pages().size()) + " pages with " +
                                           std::to_string(salvage.objects()) +
                                           " objects are whole and can be salvaged");
        } catch (const Error&) {
            return error;
        }
    }

    PageView view(std::size_t page) const noexcept {
        const std::byte* data = file_.bytes.data() + pages_at_ + index_.start(page);
        return PageView(data, static_cast<std::uint32_t>(index_.end(page) - index_.start(page)),
                        static_cast<std::uint32_t>(index_.first(page + 1) - index_.first(page)));
    }

    void check_page(std::size_t page) const {
        std::size_t start = index_.start(page), bytes = index_.end(page) - start;
        std::uint64_t objects = index_.first(page + 1) - index_.first(page);
        try {
            Bytes data = file_.bytes.subspan(pages_at_ + start, bytes);
            Header header = detail::PageVerifier<>(layout_->record(), data).verify();
            if (header.sequence != page || header.objects != objects ||
                header.checksum != index_.checksum(page)) {
                detail::refuse(Kind::page, "it is not the page that the index describes");
            }
            if (!header.large && bytes != page_bytes_) {
                detail::refuse(Kind::page, "it has ", bytes,
                               " bytes and is not large, the file's pages have ", page_bytes_);
            }
        } catch (const Error& error) {
            std::uint64_t first = index_.first(page);
            throw error.about("page " + std::to_string(page) + ", objects " +
                              std::to_string(first) + " to " + std::to_string(first + objects - 1));
        }
    }

    void check_keys() const {
        auto& checked = checked_[footer_.pages];
        if (checked.load(std::memory_order_acquire) != 0) return;
        keys_.check(size(), footer_.keys_checksum);
        checked.store(1, std::memory_order_release);
    }

    detail::Owned file_;
    std::shared_ptr<const Layout> layout_;
    detail::Footer footer_;
    std::size_t pages_at_ = 0, page_bytes_ = 0;
    detail::PageIndex index_;
    std::optional<detail::Key> key_;
    detail::KeyIndex keys_;
    std::unique_ptr<std::atomic<unsigned char>[]> checked_;
};

}  // namespace dray
