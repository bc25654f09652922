// Why bytes are refused, or a call fails.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace dray {

// The refusals of spec/page.md section 9 and of spec/page-file.md section 9, and the errors of a
// program that reads or writes.
enum class Kind {
    magic,
    version,
    flags,
    reserved,
    objects,
    size,
    checksum,
    slot,
    extent,
    bitmap,
    missing,
    boolean,
    string,
    items,
    tail,
    utf8,
    padding,
    schema,
    limit,
    cut,
    digest,
    footer,
    index,
    keys,
    page,
    // The file can't be read.
    io,
    // The objects are of another schema than the accessors were generated for.
    other_schema,
    // A call that can't be answered: an error of the caller.
    usage,
};

// The name in the specification.
inline const char* name(Kind kind) noexcept {
    switch (kind) {
        case Kind::magic: return "magic";
        case Kind::version: return "version";
        case Kind::flags: return "flags";
        case Kind::reserved: return "reserved";
        case Kind::objects: return "objects";
        case Kind::size: return "size";
        case Kind::checksum: return "checksum";
        case Kind::slot: return "slot";
        case Kind::extent: return "extent";
        case Kind::bitmap: return "bitmap";
        case Kind::missing: return "missing";
        case Kind::boolean: return "boolean";
        case Kind::string: return "string";
        case Kind::items: return "items";
        case Kind::tail: return "tail";
        case Kind::utf8: return "utf8";
        case Kind::padding: return "padding";
        case Kind::schema: return "schema";
        case Kind::limit: return "limit";
        case Kind::cut: return "cut";
        case Kind::digest: return "digest";
        case Kind::footer: return "footer";
        case Kind::index: return "index";
        case Kind::keys: return "keys";
        case Kind::page: return "page";
        case Kind::io: return "io";
        case Kind::other_schema: return "other-schema";
        case Kind::usage: return "usage";
    }
    return "usage";
}

class Error : public std::runtime_error {
public:
    Error(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

    Kind kind() const noexcept { return kind_; }
    const char* name() const noexcept { return dray::name(kind_); }

    // The same error, with what it is about in front.
    Error about(const std::string& what) const { return Error(kind_, what + ": " + this->what()); }

private:
    Kind kind_;
};

namespace detail {

inline std::string shown(std::string_view text) { return std::string(text); }
inline std::string shown(int value) { return std::to_string(value); }
inline std::string shown(unsigned value) { return std::to_string(value); }
inline std::string shown(unsigned long value) { return std::to_string(value); }
inline std::string shown(unsigned long long value) { return std::to_string(value); }

// Throws an error whose message is made of these parts.
template <class... Part>
[[noreturn, gnu::cold, gnu::noinline]] void refuse(Kind kind, const Part&... parts) {
    throw Error(kind, (shown(parts) + ...));
}

}  // namespace detail
}  // namespace dray
