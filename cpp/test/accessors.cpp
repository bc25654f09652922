// Reads, builds and changes the objects of generated headers.
//
//     accessors VECTORS    runs the tests; VECTORS is the folder spec/vectors
//     accessors schema     prints the schema of generated/thing.hpp in hexadecimal
#include <algorithm>
#include <functional>
#include <iostream>

#include "customer_edit.hpp"
#include "every/type_edit.hpp"
#include "files.hpp"
#include "flat.hpp"
#include "thing_edit.hpp"

using dray::Kind;
using std::chrono::days;

namespace {

// The customer of page.md section 8.
void write(customer::CustomerWriter c) {
    c.key(5);
    c.name("Miller");
    auto orders = c.orders(2);
    auto first = orders.next();
    first.date(dray::Date32(days(100)));
    auto items = first.items(2);
    auto item = items.next();
    item.part(1);
    item.quantity(std::int16_t{10});
    items.next().part(2);
    orders.next();
}

void check(customer::Customer c) {
    CHECK(c.key() == 5);
    CHECK(c.name() == "Miller");
    auto orders = c.orders();
    CHECK(orders.size() == 2);
    CHECK(orders[0].date() == dray::Date32(days(100)));
    CHECK(!orders[1].date());
    CHECK(orders[1].items().empty());
    auto items = orders[0].items();
    CHECK(items[0].part() == 1 && items[0].quantity() == std::int16_t{10});
    CHECK(items.at(1).part() == 2 && !items.at(1).quantity());
    CHECK_THROWS(Kind::usage, items.at(2));
    static_assert(std::random_access_iterator<decltype(items.begin())>);
    static_assert(std::ranges::random_access_range<decltype(items)>);
    int parts = 0;
    for (auto found : items) parts += found.part();
    CHECK(parts == 3 && items.end() - items.begin() == 2);
}

void files(const std::string& vectors) {
    auto file = customer::CustomerFile::open(vectors + "/accept/file-nested.pages");
    CHECK(file.size() == 2);
    check(file.object(1));
    CHECK_THROWS(Kind::usage, file.object(2));
    std::size_t count = 0;
    for (customer::Customer c : file) {
        check(c);
        ++count;
    }
    CHECK(count == 2);
    CHECK(file.find(5).size() == 2);
    CHECK(file.find(6).empty());
    check(file.find(5)[0]);
    // Other schemas, and other keys.
    CHECK_THROWS(Kind::other_schema,
                 flat::LineitemFile::open(vectors + "/accept/file-nested.pages"));
    CHECK_THROWS(Kind::other_schema,
                 customer::CustomerFile::open(vectors + "/accept/file-keys.pages"));
    CHECK_THROWS(Kind::io, customer::CustomerFile::open(vectors + "/none.pages"));
    CHECK_THROWS(Kind::cut, customer::CustomerFile::open(vectors + "/reject/cut-pages.pages"));
}

// A regular page has the standard size.
void regular_page_of_another_size(const std::string& vectors) {
    auto bytes = dray::test::read(vectors + "/accept/file-large.pages");
    CHECK(dray::PageFile::borrow(bytes).page(0).size() == 1);
    auto header = dray::detail::FileHeader::decode(bytes);
    auto footer = dray::detail::Footer::decode(bytes, header.pages_at);
    // The flag of the large page is taken away, and checksums and digest match again.
    std::byte* page = bytes.data() + header.pages_at;
    auto page_bytes = dray::detail::load<std::uint32_t>(page + 20);
    CHECK(page_bytes == 8192 && header.page_bytes == 4096);
    page[6] &= std::byte{0xFD};
    auto checksum = dray::detail::page_checksum(page, page_bytes);
    dray::detail::store(page + dray::detail::CHECKSUM_AT, checksum);
    dray::detail::store(bytes.data() + footer.index_at + 12, checksum);
    const dray::Bytes all = bytes;
    auto digested = all.subspan(all.size() - dray::detail::FOOTER_BYTES, 80);
    auto index = all.subspan(footer.index_at, footer.index_end() - footer.index_at);
    auto paths = all.subspan(footer.index_end(), footer.key_paths_bytes);
    auto digest = dray::detail::sha256({all.first(header.pages_at), index, paths, digested});
    std::memcpy(bytes.data() + bytes.size() - 48, digest.data(), digest.size());
    auto file = dray::PageFile::borrow(bytes);
    CHECK_THROWS(Kind::page, file.page(0));
    CHECK(file.page(1).size() > 0);
}

void building() {
    customer::CustomerBuilder builder(4096);
    write(builder.begin());
    builder.end();
    auto pages = builder.finish();
    CHECK(pages.size() == 1 && pages[0].header().page_bytes == 4096);
    auto page = customer::CustomerPage::verify(pages[0].view().bytes());
    check(page[0]);
    CHECK(page[0].bytes().size() == 112);
    for (customer::Customer c : page) check(c);
    // An object of another schema.
    CHECK_THROWS(Kind::other_schema, flat::LineitemPage(pages[0]));
}

void misuse() {
    const std::string long_name(13, 'x');
    customer::CustomerBuilder builder(4096);
    CHECK_THROWS(Kind::usage, builder.end());
    auto c = builder.begin();
    CHECK_THROWS(Kind::usage, builder.begin());
    CHECK_THROWS(Kind::usage, builder.finish());
    CHECK_THROWS(Kind::utf8, c.name("\xFF"));
    auto orders = c.orders(2);
    // Short strings come in any order, long ones don't.
    c.name("Miller");
    CHECK_THROWS(Kind::usage, c.name(long_name));
    CHECK_THROWS(Kind::usage, c.orders(1));
    auto first = orders.next();
    CHECK_THROWS(Kind::usage, builder.end());
    auto second = orders.next();
    CHECK_THROWS(Kind::usage, orders.next());
    auto items = second.items(1);
    CHECK_THROWS(Kind::usage, first.items(1));
    CHECK_THROWS(Kind::usage, builder.end());
    items.next().part(7);
    first.date(dray::Date32(days(1)));
    builder.end();
    CHECK_THROWS(Kind::usage, c.key(1));
    CHECK_THROWS(Kind::usage, items.next());
    const auto built = builder.finish();
    auto page = customer::CustomerPage::verify(built.at(0).view().bytes());
    CHECK(page[0].name() == "Miller" && page[0].orders()[1].items()[0].part() == 7);

    // What is never set is missing, 0 or empty, and fixed lists have their items.
    thing::ThingBuilder things(4096);
    auto thing = things.begin();
    auto place = thing.place();
    thing.parts(1).next();
    // The corners were passed by.
    CHECK_THROWS(Kind::usage, place.corners());
    CHECK_THROWS(Kind::usage, thing.triple(std::array<std::int16_t, 2>()));
    things.end();
    const auto built2 = things.finish();
    auto made = thing::ThingPage::verify(built2.at(0).view().bytes());
    CHECK(made[0].place()->corners().size() == 2 && !made[0].place()->corners()[1].label());
    CHECK(made[0].triple().size() == 3 && !made[0].trio() && !made[0].name());
    CHECK(made[0].parts()[0]->pair().size() == 2);

    CHECK_THROWS(Kind::usage, thing::ThingBuilder(5000));
}

void large_pages() {
    const std::string text(10'000, 'y');
    thing::ThingBuilder builder(4096);
    for (int i = 0; i < 3; ++i) {
        auto small = builder.begin();
        small.id(i);
        builder.end();
        auto big = builder.begin();
        big.name("Big");
        // It outgrows the page while its parts are written.
        auto parts = big.parts(20);
        for (int k = 0; k < 20; ++k) {
            auto part = parts.next();
            part.label(text);
            part.n(k);
        }
        builder.end();
    }
    // Dropped objects leave nothing on the page.
    auto dropped = builder.begin();
    dropped.name(text);
    builder.cancel();
    auto pages = builder.finish();
    CHECK(pages.size() == 6);
    for (std::size_t i = 0; i < pages.size(); ++i) {
        auto page = thing::ThingPage::verify(pages[i].view().bytes());
        CHECK(page.page().header().sequence == i && page.page().header().large == (i % 2 == 1));
        if (i % 2 == 1) {
            auto parts = page[0].parts();
            CHECK(parts.size() == 20 && parts[19]->label() == text && parts[19]->n() == 19);
        }
    }
    // A large page that is changed gets the size that fits.
    thing::ThingPageEditor editor(thing::ThingPage(pages[1]), 4096);
    editor[0].parts().resize(1);
    editor[0].parts()[0].label("short");
    auto sealed = editor.seal();
    CHECK(sealed.header().page_bytes == 4096 && !sealed.header().large);
    CHECK(thing::ThingPage::verify(sealed.view().bytes())[0].parts()[0]->label() == "short");
}

// Java and Rust have tests that make the same pages.
void lone_objects() {
    customer::CustomerBuilder builder(4096);
    auto c = builder.begin();
    c.key(1);
    c.name(std::string(5000, 'x'));
    builder.end();
    customer::CustomerPageEditor large(customer::CustomerPage(builder.finish().at(0)), 4096);
    large[0].name("Miller");
    auto small = large.seal();
    CHECK(!small.header().large && small.header().page_bytes == 4096);
    CHECK(small.header().checksum == 0x61731ebd);
    // The page says its standard size now.
    customer::CustomerPageEditor editor{customer::CustomerPage(small)};
    editor[0].name(std::string(3000, 'y'));
    editor[0].name(std::string(5000, 'y'));
    CHECK(editor.view(0).name().size() == 5000);
    editor[0].name(std::string(100, 'y'));
    editor[0].name(std::string(9000, 'y'));
    auto sealed = editor.seal();
    CHECK(sealed.header().large && sealed.header().page_bytes == 3 * 4096);
    CHECK(sealed.header().checksum == 0xd47d3b9e);
    customer::CustomerPage::verify(sealed.view().bytes());
}

void editing() {
    customer::CustomerBuilder builder(4096);
    for (int i = 0; i < 3; ++i) {
        write(builder.begin());
        builder.end();
    }
    customer::CustomerPage page(builder.finish().at(0));
    customer::CustomerPageEditor editor(page);
    auto c = editor[1];
    c.key(6);
    auto orders = c.orders();
    auto first = orders[0];
    auto items = first.items();
    items[1].quantity(std::int16_t{3});
    CHECK(!editor.header().moved);
    // This object is written anew, and the old one is dead.
    c.name("A name that does not fit its place");
    CHECK(editor.header().moved);
    // What lay behind the name has moved, and must be looked up again.
    CHECK_THROWS(Kind::usage, first.date(std::nullopt));
    c.orders()[0].date(std::nullopt);
    auto view = editor.view(1);
    CHECK(view.name() == "A name that does not fit its place" && view.key() == 6);
    CHECK(!view.orders()[0].date() && view.orders()[0].items()[1].quantity() == std::int16_t{3});
    // Nothing else has changed, and the page that was copied not at all.
    check(editor.view(0));
    check(editor.view(2));
    check(page[1]);
    CHECK_THROWS(Kind::limit, c.name(std::string(5000, 'x')));
    CHECK(editor.view(1).name() == "A name that does not fit its place");
    CHECK_THROWS(Kind::utf8, c.name("\xC0\x80"));
    CHECK_THROWS(Kind::usage, editor[3]);
    auto sealed = editor.seal();
    CHECK_THROWS(Kind::usage, c.key(1));
    CHECK_THROWS(Kind::usage, editor[0]);
    auto again = customer::CustomerPage::verify(sealed.view().bytes());
    CHECK(again.page().header().moved && again.page().header().edition == 1 && again.size() == 3);
    CHECK(again[1].key() == 6 && again[2].key() == 5);
    // The dead extent has kept nothing but its size.
    CHECK(dray::detail::is_zero(sealed.view().bytes().data() + 64 + 112 + 4, 108));
}

// A list of lists of two numbers that may be missing, and a string.
using Pair = dray::detail::Array<std::int16_t>;
constexpr const char* PAIRS_SCHEMA =
    "02000000050000007061697273001d040000006974656d011e02000000040000006974656d00"
    "03000000000000040000006c617374001a0000";

class PairsWriter : private dray::detail::RecordWriter {
public:
    explicit PairsWriter(const RecordWriter& record) : RecordWriter(record) {}
    dray::ListWriter<Pair, true> pairs(std::size_t count) {
        return RecordWriter::list<dray::ListWriter<Pair, true>>(0, count);
    }
    void last(std::string_view text) { RecordWriter::set<dray::detail::Text>(16, 1, text); }
};

class PairsEditor : private dray::detail::RecordEditor {
public:
    explicit PairsEditor(const RecordEditor& record) : RecordEditor(record) {}
    dray::ListEditor<Pair, true> pairs() {
        return RecordEditor::list<dray::ListEditor<Pair, true>>(8, 0);
    }
};

struct PairsBuilder : dray::PageBuilder {
    using PageBuilder::PageBuilder;
    PairsWriter begin() { return PairsWriter(begin_object()); }
};

struct PairsPageEditor : dray::PageEditor {
    using PageEditor::PageEditor;
    PairsEditor object(std::size_t i) { return PairsEditor(edit(i)); }
};

dray::VerifiedPage pairs(const std::shared_ptr<const dray::Layout>& layout, bool tries) {
    const std::array<std::int16_t, 3> numbers{1, 2, 3};
    PairsBuilder builder(layout, 4096);
    auto object = builder.begin();
    auto pairs = object.pairs(2);
    if (tries) CHECK_THROWS(Kind::usage, pairs.add(numbers));
    pairs.add(std::span(numbers).first(2));
    if (tries) CHECK_THROWS(Kind::usage, pairs.add(std::span(numbers).first(1)));
    pairs.add_missing();
    object.last("a text that needs a tail");
    builder.end();
    auto page = builder.finish().at(0);
    return dray::VerifiedPage::verify_copy(layout, page.view().bytes());
}

// A value that is refused is not written: an item that was missing still is.
void refused_values() {
    // As long as a string can be, and never read: no page has room for it.
    const std::size_t most = (std::size_t{1} << 31) - 1;
    void* mapped = mmap(nullptr, most, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED);
    dray::Bytes nothing(static_cast<const std::byte*>(mapped), most);
    auto things = [nothing](bool tries) {
        thing::ThingBuilder builder(4096);
        for (int i = 0; i < 2; ++i) {
            auto thing = builder.begin();
            if (tries) CHECK_THROWS(Kind::limit, thing.note(nothing));
            thing.note(nothing.first(0));
            if (tries) CHECK_THROWS(Kind::limit, thing.tags(std::size_t{1} << 28));
            auto tags = thing.tags(2);
            if (tries) CHECK_THROWS(Kind::utf8, tags.add("\xFF"));
            tags.add("a tag that needs a tail");
            if (tries) CHECK_THROWS(Kind::utf8, tags.add("\xC0\x80 needs a tail, too"));
            tags.add_missing();
            auto grid = thing.grid(2);
            if (tries) CHECK_THROWS(Kind::limit, grid.next(std::size_t{1} << 31));
            if (tries) CHECK_THROWS(Kind::limit, grid.next(std::size_t{1} << 28));
            grid.next(1).add(5);
            if (tries) CHECK_THROWS(Kind::limit, grid.next(std::size_t{1} << 31));
            if (tries) CHECK_THROWS(Kind::limit, grid.next(std::size_t{1} << 28));
            grid.add_missing();
            builder.end();
        }
        return builder.finish().at(0);
    };
    auto same = [](dray::Bytes a, dray::Bytes b) { return std::ranges::equal(a, b); };
    auto page = things(true);
    CHECK(same(page.view().bytes(), things(false).view().bytes()));

    using Change = std::function<void(thing::ThingEditor)>;
    const std::pair<Kind, Change> refused[] = {
        {Kind::utf8, [](auto thing) { thing.tags().set(1, "\xFF"); }},
        {Kind::limit, [](auto thing) { thing.tags().set(1, std::string(5000, 'x')); }},
    };
    for (const auto& [kind, change] : refused) {
        thing::ThingPageEditor editor{thing::ThingPage(page)}, untouched{thing::ThingPage(page)};
        CHECK_THROWS(kind, (change(editor[1]), 0));
        CHECK(same(editor.seal().view().bytes(), untouched.seal().view().bytes()));
    }

    // Lists of a fixed size have their items as soon as they are present.
    auto bytes = [](std::string_view hex) {
        std::vector<std::byte> bytes;
        for (std::size_t i = 0; i < hex.size(); i += 2) {
            bytes.push_back(std::byte(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
        }
        return bytes;
    };
    auto layout = dray::Layout::decode(bytes(PAIRS_SCHEMA));
    auto built = pairs(layout, true);
    CHECK(same(built.view().bytes(), pairs(layout, false).view().bytes()));
    PairsPageEditor editor(built), untouched(built);
    const std::array<std::int16_t, 3> numbers{1, 2, 3};
    CHECK_THROWS(Kind::usage, (editor.object(0).pairs().set(1, numbers), 0));
    CHECK(same(editor.seal().view().bytes(), untouched.seal().view().bytes()));
    PairsPageEditor again(built);
    again.object(0).pairs().set(1, std::span(numbers).first(2));
    dray::VerifiedPage::verify_copy(layout, again.seal().view().bytes());
    munmap(mapped, most);
}

// Values of every type come back, from objects, lists and missing ones.
void every_type() {
    using namespace every::type;
    EveryBuilder builder;
    auto e = builder.begin();
    e.bool_(true);
    e.f16(dray::Float16{0x3C00});
    e.dec128(dray::Decimal<dray::int128, 38, 10>{-5});
    e.dec128_list_or_null(3).add_missing();
    CHECK_THROWS(Kind::usage, builder.end());
    builder.cancel();
    e = builder.begin();
    e.bool_(true);
    e.bool_or_null(false);
    e.f16(dray::Float16{0xC500});
    e.dec64_or_null(dray::Decimal<std::int64_t, 18, -2>{-7});
    e.dec128(dray::Decimal<dray::int128, 38, 10>{-5});
    e.dec256(dray::Decimal<dray::Int256, 76, 0>{{{1, 2, 3, 4}}});
    e.date(dray::Date32(std::chrono::year(2024) / 2 / 29));
    e.time_s(dray::seconds(86'399));
    e.took_us_or_null(dray::microseconds(-1));
    e.local_ms(dray::LocalTimestamp<dray::milliseconds>(dray::milliseconds(9)));
    e.months(dray::Months(13));
    e.month_day_nano({1, -2, 3});
    std::array<std::byte, 16> uuid{std::byte{7}};
    e.uuid(uuid);
    e.f32_list(std::array<float, 2>{1.5F, -0.0F});
    auto decimals = e.dec128_list_or_null(2);
    decimals.add_missing();
    decimals.add(dray::Decimal<dray::int128, 38, 10>{8});
    auto times = e.time_ns_list(2);
    times.add(dray::nanoseconds(5));
    times.add(dray::nanoseconds(6));
    auto empties = e.empties(9);
    for (int i = 0; i < 9; ++i) i % 2 == 0 ? void(empties.next()) : empties.add_missing();
    e.class_(11);
    builder.end();
    const auto built3 = builder.finish();
    auto page = EveryPage::verify(built3.at(0).view().bytes());
    Every found = page[0];
    CHECK(found.bool_() && found.bool_or_null() == false && !found.i8_or_null());
    CHECK(static_cast<float>(found.f16()) == -5.0F);
    CHECK(found.dec64_or_null()->unscaled == -7 && found.dec128().unscaled == -5);
    CHECK(found.dec128().scale == 10 && found.dec256().unscaled.words[3] == 4);
    CHECK(found.date() == dray::Date32(std::chrono::year(2024) / 2 / 29));
    CHECK(found.time_s() == dray::seconds(86'399));
    CHECK(found.took_us_or_null() == dray::microseconds(-1));
    CHECK(found.local_ms().time_since_epoch().count() == 9 && found.months().count() == 13);
    CHECK(found.month_day_nano() == dray::MonthDayNano{1, -2, 3});
    CHECK(std::ranges::equal(found.uuid(), uuid));
    CHECK(found.time_ns_list()[1] == dray::nanoseconds(6));
    CHECK(!(*found.dec128_list_or_null())[0]);
    CHECK((*found.dec128_list_or_null())[1]->unscaled == 8);
    CHECK(found.f32_list()[0] == 1.5F && found.f32_list().size() == 2);
    CHECK(found.nothing() == nullptr && found.class_() == 11 && !found.empty());
    CHECK(found.empties()->size() == 9 && (*found.empties())[8] && !(*found.empties())[7]);
}

}  // namespace

int main(int, char** arguments) {
    const std::string argument = arguments[1];
    if (argument == "schema") {
        for (std::uint8_t byte : thing::Thing::schema) std::printf("%02x", byte);
        return 0;
    }
    files(argument);
    building();
    misuse();
    regular_page_of_another_size(argument);
    large_pages();
    lone_objects();
    editing();
    refused_values();
    every_type();
    std::puts("accessors: ok");
}
