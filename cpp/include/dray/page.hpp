// Pages: their header (spec/page.md section 2), and pages that were verified.
#pragma once

#include <iterator>

#include "crc32c.hpp"
#include "verify.hpp"

namespace dray {

constexpr std::size_t HEADER_BYTES = 64;
// The standard size of pages, unless their writer has a reason.
constexpr std::size_t PAGE_BYTES = 256 << 10;
constexpr std::size_t PAGE_BYTES_MIN = 4 << 10;
constexpr std::size_t PAGE_BYTES_MAX = 1 << 30;

namespace detail {

constexpr usize LARGE_BYTES_END = usize{1} << 31;
constexpr usize SLOT_BYTES = 4;
constexpr usize CHECKSUM_AT = 28;
constexpr usize RESERVED_AT = 36;
constexpr u16 FLAG_CHECKSUM = 1, FLAG_LARGE = 2, FLAG_MOVED = 4;
// In the extent_bytes of a dead extent (page.md section 11).
constexpr u32 DEAD = u32{1} << 31;

inline bool is_page_size(usize bytes, bool large) noexcept {
    if (large) return bytes > 0 && bytes % PAGE_BYTES_MIN == 0 && bytes < LARGE_BYTES_END;
    return std::has_single_bit(bytes) && bytes >= PAGE_BYTES_MIN && bytes <= PAGE_BYTES_MAX;
}

}  // namespace detail

// The header of a page.
struct Header {
    // The page's number in its file or stream.
    std::uint64_t sequence = 0;
    // At least one.
    std::uint32_t objects = 0;
    std::uint32_t page_bytes = 0;
    // Where the last object ends.
    std::uint32_t objects_end = 0;
    std::optional<std::uint32_t> checksum;
    // How often the page was changed in place since it was built.
    std::uint32_t edition = 0;
    // Whether the page has a single object that does not fit the standard size.
    bool large = false;
    // Whether objects lie in any order, with dead ones between them.
    bool moved = false;

    // Refuses a header that breaks a rule of page.md section 2. `page_bytes` is how many bytes of a
    // file or stream the page takes.
    static Header decode(Bytes bytes);
    void encode(std::byte* to) const noexcept;
};

namespace detail {

// The checksum of a page of which `header` has not yet been told.
inline u32 page_checksum(const std::byte* page, usize page_bytes) noexcept {
    std::array<std::byte, HEADER_BYTES> header;
    std::memcpy(header.data(), page, HEADER_BYTES);
    store<u32>(header.data() + CHECKSUM_AT, 0);
    u32 rest = crc32c(0, page + HEADER_BYTES, page_bytes - HEADER_BYTES);
    return crc32c(rest, header.data(), HEADER_BYTES);
}

inline const std::byte* slot_at(const std::byte* page, usize page_bytes, usize i) noexcept {
    return page + page_bytes - SLOT_BYTES * (i + 1);
}

// Verifies a page. Without FAST, which is for tests, all objects are judged by `Verifier`.
template <bool FAST = true>
class PageVerifier {
public:
    PageVerifier(const Record& record, Bytes page) : record_(record), page_(page) {}

    Header verify() {
        Header header = Header::decode(page_);
        if (page_.size() != header.page_bytes) {
            refuse(Kind::size, "a page of ", page_.size(), " bytes, its header says ",
                   header.page_bytes);
        }
        if (header.checksum) {
            u32 found = page_checksum(page_.data(), page_.size());
            if (found != *header.checksum) {
                refuse(Kind::checksum, "page ", header.sequence, " was damaged: its checksum is ",
                       found, ", expected ", *header.checksum);
            }
        }
        end_ = header.objects_end;
        header.moved ? moved(header.objects) : in_order(header.objects);
        usize slots_at = page_.size() - SLOT_BYTES * header.objects;
        if (!is_zero(page_.data() + end_, slots_at - end_)) {
            refuse(Kind::padding, "a byte between the objects, which end at ", end_,
                   ", and the slots is not 0");
        }
        return header;
    }

private:
    u32 slot(usize i) const noexcept { return load<u32>(slot_at(page_.data(), page_.size(), i)); }

    void in_order(usize objects) {
        usize at = HEADER_BYTES;
        for (usize i = 0; i < objects; ++i) {
            if (slot(i) != at) {
                refuse(Kind::slot, "slot ", i, " is ", slot(i), ", its object is at ", at);
            }
            at += object(at, i);
        }
        if (at != end_) refuse_end(at);
    }

    // Live and dead extents in any order (page.md section 11). Each live one has one slot.
    void moved(usize objects) {
        // A bit for each multiple of 8: whether a live extent without a slot begins there.
        std::vector<bool> starts(end_ / 8 + 1);
        usize at = HEADER_BYTES, live = 0;
        while (at < end_) {
            if (end_ - at >= 4 && (load<u32>(page_.data() + at) & DEAD) != 0) {
                at += dead(at);
            } else {
                starts[at / 8] = true;
                at += object(at, live++);
            }
        }
        if (live != objects) {
            refuse(Kind::objects, live, " live objects, the header says ", objects);
        }
        for (usize i = 0; i < objects; ++i) {
            usize start = slot(i);
            if (start % 8 != 0 || start >= end_ || !starts[start / 8]) {
                refuse(Kind::slot, "slot ", i, " is ", start,
                       ", where no object begins, or that of another slot");
            }
            starts[start / 8] = false;
        }
    }

    [[noreturn, gnu::cold]] void refuse_end(usize at) {
        refuse(Kind::objects, "the objects end at ", at, ", the header says ", end_);
    }

    // Checks the object at `at`, and returns the size of its extent.
    [[gnu::always_inline]] usize object(usize at, usize i) {
        const std::byte* extent = page_.data() + at;
        usize left = end_ - at, extent_bytes = left < 4 ? 0 : load<u32>(extent);
        bool fits = extent_bytes % 8 == 0 && extent_bytes >= record_.end && extent_bytes > 0 &&
                    extent_bytes <= left;
        if (!(FAST && fits && FastVerifier(extent, extent_bytes).object(record_))) {
            judge(fits, extent, extent_bytes, left, i);
        }
        return extent_bytes;
    }

    [[gnu::noinline]] void judge(bool fits, const std::byte* extent, usize extent_bytes, usize left,
                                 usize i) {
        try {
            if (!fits) {
                refuse(Kind::extent, "an extent of ", extent_bytes, " bytes, of ", left,
                       " left and with a record of ", record_.end);
            }
            Verifier(extent, extent_bytes, record_).object(record_);
        } catch (const Error& error) {
            throw error.about("object " + std::to_string(i));
        }
    }

    // Checks the dead extent at `at`, and returns its size.
    usize dead(usize at) {
        const std::byte* extent = page_.data() + at;
        usize left = end_ - at, bytes = load<u32>(extent) & ~DEAD;
        if (bytes % 8 != 0 || bytes < 8 || bytes > left) {
            refuse(Kind::extent, "a dead extent of ", bytes, " bytes, of ", left, " left");
        }
        if (!is_zero(extent + 4, bytes - 4)) {
            refuse(Kind::padding, "a byte of the dead extent at ", at, " is not 0");
        }
        return bytes;
    }

    const Record& record_;
    Bytes page_;
    usize end_ = 0;
};

}  // namespace detail

inline Header Header::decode(Bytes bytes) {
    using namespace detail;
    if (bytes.size() < HEADER_BYTES) {
        refuse(Kind::size, "a page of ", bytes.size(), " bytes is shorter than its header");
    }
    const std::byte* at = bytes.data();
    if (std::memcmp(at, "DRYP", 4) != 0) refuse(Kind::magic, "it does not begin with DRYP");
    if (u16 version = load<u16>(at + 4)) {
        refuse(Kind::version, "layout version ", version, ", this reader knows 0");
    }
    u16 flags = load<u16>(at + 6);
    if ((flags & ~(FLAG_CHECKSUM | FLAG_LARGE | FLAG_MOVED)) != 0) {
        refuse(Kind::flags, "unknown flags ", flags);
    }
    Header header;
    header.sequence = load<u64>(at + 8);
    header.objects = load<u32>(at + 16);
    header.page_bytes = load<u32>(at + 20);
    header.objects_end = load<u32>(at + 24);
    header.large = (flags & FLAG_LARGE) != 0;
    header.moved = (flags & FLAG_MOVED) != 0;
    header.edition = load<u32>(at + 32);
    if (header.objects == 0 || (header.large && (header.objects != 1 || header.moved))) {
        refuse(Kind::objects, header.large ? "a large page" : "a page", " of ", header.objects,
               " objects", header.large && header.moved ? " that was moved" : "");
    }
    if (!is_page_size(header.page_bytes, header.large)) {
        refuse(Kind::size, "no page has ", header.page_bytes, " bytes");
    }
    if (header.objects_end < HEADER_BYTES ||
        header.objects_end + SLOT_BYTES * header.objects > header.page_bytes) {
        refuse(Kind::objects, header.objects, " objects up to byte ", header.objects_end, " of ",
               header.page_bytes, " leave too few bytes for slots");
    }
    u32 checksum = load<u32>(at + CHECKSUM_AT);
    if ((flags & FLAG_CHECKSUM) != 0) {
        header.checksum = checksum;
    } else if (checksum != 0) {
        refuse(Kind::checksum, "there is a checksum without its flag");
    }
    if (!is_zero(at + RESERVED_AT, HEADER_BYTES - RESERVED_AT)) {
        refuse(Kind::reserved, "a reserved byte of the header is not 0");
    }
    return header;
}

inline void Header::encode(std::byte* to) const noexcept {
    using namespace detail;
    std::memset(to, 0, HEADER_BYTES);
    std::memcpy(to, "DRYP", 4);
    store<u16>(to + 6, static_cast<u16>((checksum ? FLAG_CHECKSUM : 0) | (large ? FLAG_LARGE : 0) |
                                        (moved ? FLAG_MOVED : 0)));
    store(to + 8, sequence);
    store(to + 16, objects);
    store(to + 20, page_bytes);
    store(to + 24, objects_end);
    store(to + CHECKSUM_AT, checksum.value_or(0));
    store(to + 32, edition);
}

// The bytes of a page that was verified, borrowed: an object is a pointer to its extent. It is
// valid while the page is.
class PageView {
public:
    // No objects.
    PageView() = default;

    std::uint32_t size() const noexcept { return objects_; }
    Bytes bytes() const noexcept { return {data_, page_bytes_}; }

    // Object i, which must be there.
    const std::byte* operator[](std::size_t i) const noexcept {
        return data_ + detail::load<std::uint32_t>(detail::slot_at(data_, page_bytes_, i));
    }

    // Object i, or an error.
    const std::byte* at(std::size_t i) const {
        if (i >= objects_) {
            detail::refuse(Kind::usage, "there is no object ", i, ", the page has ", objects_);
        }
        return (*this)[i];
    }

private:
    friend class VerifiedPage;
    friend class PageFile;
    friend class PageEditor;
    PageView(const std::byte* data, std::uint32_t page_bytes, std::uint32_t objects)
        : data_(data), page_bytes_(page_bytes), objects_(objects) {}

    const std::byte* data_ = nullptr;
    std::uint32_t page_bytes_ = 0, objects_ = 0;
};

// A page whose every byte was checked. It is cheap to copy.
class VerifiedPage {
public:
    // Checks a page against all rules of page.md. The bytes must begin at a multiple of 8. They are
    // borrowed, unless `owner` keeps them.
    static VerifiedPage verify(std::shared_ptr<const Layout> layout, Bytes bytes,
                               std::shared_ptr<const void> owner = nullptr) {
        if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 8 != 0) {
            detail::refuse(Kind::usage,
                           "a page in memory begins at a multiple of 8 (page.md section"
                           " 1): use VerifiedPage::verify_copy");
        }
        Header header = detail::PageVerifier<>(layout->record(), bytes).verify();
        VerifiedPage page;
        page.layout_ = std::move(layout);
        page.owner_ = std::move(owner);
        page.header_ = header;
        page.view_ = PageView(bytes.data(), header.page_bytes, header.objects);
        return page;
    }

    // The same for bytes that may lie anywhere, and that are copied.
    static VerifiedPage verify_copy(std::shared_ptr<const Layout> layout, Bytes bytes) {
        auto copy = std::make_shared<detail::Buffer>(bytes.size());
        if (!bytes.empty()) std::memcpy(copy->data(), bytes.data(), bytes.size());
        return verify(std::move(layout), *copy, copy);
    }

    const std::shared_ptr<const Layout>& layout() const noexcept { return layout_; }
    const Header& header() const noexcept { return header_; }
    std::uint32_t size() const noexcept { return view_.size(); }
    PageView view() const noexcept { return view_; }

private:
    friend class PageBuilder;
    friend class PageEditor;
    VerifiedPage() = default;

    // A page that this program has made: writes its header with a checksum.
    static VerifiedPage seal(std::shared_ptr<const Layout> layout,
                             std::shared_ptr<detail::Buffer> bytes, Header header) {
        header.checksum = 0;
        header.encode(bytes->data());
        header.checksum = detail::page_checksum(bytes->data(), bytes->size());
        header.encode(bytes->data());
        VerifiedPage page;
        page.layout_ = std::move(layout);
        page.header_ = header;
        page.view_ = PageView(bytes->data(), header.page_bytes, header.objects);
        page.owner_ = std::move(bytes);
        return page;
    }

    std::shared_ptr<const Layout> layout_;
    std::shared_ptr<const void> owner_;
    Header header_;
    PageView view_;
};

}  // namespace dray
