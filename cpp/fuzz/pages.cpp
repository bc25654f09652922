// Attacks the verifier of pages, and the reader of page files. Inputs are those of spec/vectors:
// page files, and u32 schema_bytes, a schema and a page. Both verifiers must say the same, and what
// they accept is read as a whole.
#include <dray/page_file.hpp>

#include "../test/text.hpp"

using namespace dray;

namespace {

template <bool FAST>
std::string judged(const Layout& layout, Bytes page) {
    try {
        detail::PageVerifier<FAST>(layout.record(), page).verify();
        return {};
    } catch (const Error& error) {
        return std::string(error.name()) + error.what();
    }
}

void read(const Layout& layout, PageView page) {
    test::Text text(layout);
    for (std::size_t i = 0; i < page.size(); ++i) text.row(page.at(i));
}

void page(Bytes bytes) {
    if (bytes.size() < 4) return;
    std::size_t schema_bytes = detail::load<std::uint32_t>(bytes.data());
    if (schema_bytes > bytes.size() - 4) return;
    auto layout = Layout::decode(bytes.subspan(4, schema_bytes));
    bytes = bytes.subspan(4 + schema_bytes);
    detail::Buffer copy(bytes.size());
    if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
    // A fuzzer guesses no checksum: the page gets the right one.
    if (bytes.size() >= HEADER_BYTES && (detail::load<std::uint16_t>(copy.data() + 6) & 1) != 0) {
        detail::store(copy.data() + detail::CHECKSUM_AT,
                      detail::page_checksum(copy.data(), copy.size()));
    }
    if (judged<true>(*layout, copy) != judged<false>(*layout, copy)) std::abort();
    read(*layout, VerifiedPage::verify(layout, copy).view());
}

void file(Bytes bytes) {
    detail::Buffer copy(bytes.size());
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    try {
        Salvage salvage = Salvage::borrow(copy);
        for (const VerifiedPage& page : salvage.pages()) read(*salvage.layout(), page.view());
    } catch (const Error&) {
    }
    PageFile file = PageFile::borrow(copy);
    for (std::size_t i = 0; i < file.page_count(); ++i) read(*file.layout(), file.page(i));
    file.check();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes = std::as_bytes(std::span(data, size));
    try {
        size >= 4 && std::memcmp(data, "DRYF", 4) == 0 ? file(bytes) : page(bytes);
    } catch (const Error&) {
    }
    return 0;
}
