// Judges files: for each, a line of JSON with its rows, or the name of its refusal.
//
//     judge FILE…
#include <iostream>

#include <dray/page_file.hpp>

#include "files.hpp"
#include "text.hpp"

using namespace dray;

namespace {

void rows(std::string& out, const test::Text& text, PageView page) {
    out += '[';
    for (std::size_t i = 0; i < page.size(); ++i) {
        if (i > 0) out += ',';
        out += text.row(page[i]);
    }
    out += ']';
}

// A vector of a page: u32 schema_bytes, the schema, the page.
std::string page(Bytes bytes) {
    auto schema_bytes = detail::load<std::uint32_t>(bytes.data());
    auto layout = Layout::decode(bytes.subspan(4, schema_bytes));
    auto page = VerifiedPage::verify_copy(layout, bytes.subspan(4 + schema_bytes));
    std::string out = "\"sequence\":" + std::to_string(page.header().sequence) + ",\"rows\":";
    rows(out, test::Text(*layout), page.view());
    return out;
}

std::string file(Bytes bytes) {
    PageFile file = PageFile::borrow(bytes);
    test::Text text(*file.layout());
    std::string out = "\"pages\":[";
    for (std::size_t i = 0; i < file.page_count(); ++i) {
        if (i > 0) out += ',';
        rows(out, text, file.page(i));
    }
    out += "],\"key\":[";
    for (const auto& path : file.key_paths()) {
        out += out.back() == '[' ? "[" : ",[";
        for (const auto& name : path) {
            if (&name != path.data()) out += ',';
            test::Text::quote(out, name);
        }
        out += ']';
    }
    file.check();
    return out + ']';
}

}  // namespace

int main(int count, char** arguments) {
    for (int i = 1; i < count; ++i) {
        std::string path = arguments[i];
        detail::Buffer bytes = test::read(path);
        std::string out = "{\"path\":";
        test::Text::quote(out, path);
        out += ',';
        try {
            out += path.ends_with(".page") ? page(bytes) : file(bytes);
        } catch (const Error& error) {
            out += "\"refused\":\"" + std::string(error.name()) + "\",\"message\":";
            test::Text::quote(out, error.what());
        }
        std::cout << out << "}\n";
    }
}
