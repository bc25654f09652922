// Damages page files and pages: they are refused, or have the same objects. Both verifiers of a
// page say the same about each.
//
//     damage STEP FILE…       a bit of each STEP-th byte is flipped
#include <algorithm>
#include <thread>

#include <dray/page_file.hpp>

#include "files.hpp"
#include "text.hpp"

using namespace dray;

namespace {

std::size_t step = 1, tried = 0, same = 0;

std::string rows(PageView page, const test::Text& text) {
    std::string out;
    for (std::size_t i = 0; i < page.size(); ++i) out += text.row(page.at(i));
    return out;
}

std::string rows(const PageFile& file) {
    file.check();
    std::string out;
    for (std::uint64_t i = 0; i < file.size(); ++i)
        out += test::Text(*file.layout()).row(file.object(i));
    return out;
}

std::string salvaged(const Salvage& salvage) {
    std::string out;
    for (const VerifiedPage& page : salvage.pages())
        out += rows(page.view(), test::Text(*salvage.layout()));
    return out;
}

void file(Bytes whole) {
    const std::string expected = rows(PageFile::borrow(whole));
    for (std::size_t size = 0; size < whole.size(); ++size, ++tried) {
        CHECK_THROWS(size < 4 ? Kind::magic : Kind::cut, PageFile::borrow(whole.first(size)));
        try {
            CHECK(expected.starts_with(salvaged(Salvage::borrow(whole.first(size)))));
        } catch (const Error& error) {
            CHECK(error.kind() == (size < 4 ? Kind::magic : Kind::cut));
        }
    }
    detail::Buffer damaged(whole.size());
    std::memcpy(damaged.data(), whole.data(), whole.size());
    for (std::size_t at = 0; at < whole.size(); at += step, ++tried) {
        std::byte flipped = std::byte{1} << (at * 7 / 3 % 8);
        damaged.data()[at] ^= flipped;
        // All bytes are covered by a checksum or digest.
        bool is_seen = false;
        try {
            rows(PageFile::borrow(damaged));
        } catch (const Error&) {
            is_seen = true;
        }
        CHECK(is_seen);
        try {
            CHECK(expected.starts_with(salvaged(Salvage::borrow(damaged))));
        } catch (const Error&) {
        }
        damaged.data()[at] ^= flipped;
    }
}

// The refusal of a page; empty if it is accepted.
template <bool FAST>
std::string judged(const Layout& layout, Bytes page) {
    try {
        detail::PageVerifier<FAST>(layout.record(), page).verify();
        return {};
    } catch (const Error& error) {
        return std::string(error.name()) + ": " + error.what();
    }
}

// A vector of a page: u32 schema_bytes, the schema, the page.
void page(Bytes vector) {
    auto schema_bytes = detail::load<std::uint32_t>(vector.data());
    auto layout = Layout::decode(vector.subspan(4, schema_bytes));
    Bytes whole = vector.subspan(4 + schema_bytes);
    if (!judged<true>(*layout, whole).empty()) return;
    detail::Buffer damaged(whole.size());
    std::memcpy(damaged.data(), whole.data(), whole.size());
    // Without a checksum the verifiers must see what is wrong.
    std::byte* data = damaged.data();
    data[6] &= std::byte{0xFE};
    detail::store<std::uint32_t>(data + detail::CHECKSUM_AT, 0);
    CHECK(judged<true>(*layout, damaged).empty());
    test::Text text(*layout);
    for (std::size_t at = 0; at < whole.size(); at += step, ++tried) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            data[at] ^= std::byte{1} << bit;
            std::string fast = judged<true>(*layout, damaged);
            CHECK(fast == judged<false>(*layout, damaged));
            // What is accepted can be read as a whole: other numbers, or another sequence.
            if (fast.empty()) {
                rows(VerifiedPage::verify(layout, damaged).view(), text);
                ++same;
            }
            data[at] ^= std::byte{1} << bit;
        }
    }
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CHECK_THROWS(Kind::size, VerifiedPage::verify(layout, Bytes(damaged).first(size)));
    }
}

// Threads use one file, and each checks what it needs.
void threads(Bytes whole) {
    PageFile file = PageFile::borrow(whole);
    const std::string expected = rows(PageFile::borrow(whole));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { CHECK(rows(file) == expected); });
    for (auto& thread : threads) thread.join();
}

void checksums() {
    detail::Buffer bytes(40'000);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes.data()[i] = static_cast<std::byte>(i * i * 31 >> 3);
    }
    const char* nine = "123456789";
    CHECK(detail::crc32c(0, reinterpret_cast<const std::byte*>(nine), 9) == 0xE3069283);
    for (std::size_t size = 0; size < bytes.size(); size += size < 3000 ? 1 : 97) {
        std::uint32_t tables =
            ~detail::crc32c_by_tables(~0U, bytes.data() + size % 8, size - size % 8);
        CHECK(detail::crc32c(0, bytes.data() + size % 8, size - size % 8) == tables);
    }
    std::string found = detail::shown(detail::sha256({std::as_bytes(std::span("abc", 3))}));
    CHECK(found == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace

int main(int count, char** arguments) {
    checksums();
    step = std::stoul(arguments[1]);
    for (int i = 2; i < count; ++i) {
        std::string path = arguments[i];
        detail::Buffer bytes = test::read(path);
        if (path.ends_with(".page")) {
            page(bytes);
        } else {
            file(bytes);
            threads(bytes);
        }
    }
    std::printf("%zu places damaged, %zu changes accepted\n", tried, same);
}
