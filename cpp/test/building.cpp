// Builds and changes random objects. Each page is read again by its layout, and compared with the
// values; each is also printed, for test_building.py to write it from its values.
//
//     building SEED ROUNDS
#include <cstdio>
#include <iostream>

#include "files.hpp"
#include "things.hpp"

using namespace things;
using dray::Kind;

namespace {

using Page = thing::ThingPage;

string row(const std::byte* object) { return dray::test::Text(*Page::layout()).row(object); }

// Verifies a page, and compares it with its values.
void check(const dray::VerifiedPage& made, const vector<Thing>& values) {
    auto page = dray::VerifiedPage::verify(Page::layout(), made.view().bytes());
    CHECK(page.size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        string expected = Json::of(values[i]), found = row(page.view()[i]);
        if (expected != found) {
            std::fprintf(stderr, "%s\n%s\n", expected.c_str(), found.c_str());
        }
        CHECK(expected == found);
    }
}

void print(const dray::VerifiedPage& page, const vector<Thing>& values, std::size_t page_bytes) {
    string out = "{\"page_bytes\":" + std::to_string(page_bytes) + ",\"page\":\"";
    for (std::byte byte : page.view().bytes()) {
        out += "0123456789abcdef"[std::to_integer<int>(byte) >> 4];
        out += "0123456789abcdef"[std::to_integer<int>(byte) & 15];
    }
    out += "\",\"rows\":[";
    for (std::size_t i = 0; i < values.size(); ++i) out += (i > 0 ? "," : "") + Json::of(values[i]);
    std::cout << out << "]}\n";
}

// Pages, with their objects' values.
struct Built {
    dray::VerifiedPage page;
    vector<Thing> values;
};

// Copies of all objects are the same objects, in the same order.
void check_copies(const vector<Built>& built, std::size_t page_bytes) {
    thing::ThingBuilder builder(page_bytes);
    vector<Thing> values;
    for (const Built& one : built) {
        for (thing::Thing object : Page(one.page)) builder.copy(object);
        values.insert(values.end(), one.values.begin(), one.values.end());
    }
    auto value = values.begin();
    for (const auto& page : builder.finish()) {
        check(page, {value, value + page.size()});
        value += page.size();
    }
    CHECK(value == values.end());
}

vector<Built> build(Choice& choice, std::size_t page_bytes) {
    thing::ThingBuilder builder(page_bytes);
    vector<Thing> values;
    for (std::size_t i = choice.below(30) + 1; i > 0; --i) {
        if (choice.one_in(5)) {
            // Some are begun, and dropped.
            auto dropped = builder.begin();
            write(dropped, choice.thing());
            builder.cancel();
            CHECK_THROWS(Kind::usage, dropped.id(1));
        }
        values.push_back(choice.thing());
        write(builder.begin(), values.back());
        builder.end();
    }
    vector<Built> built;
    auto value = values.begin();
    for (auto& page : builder.finish()) {
        vector<Thing> of_page(value, value + page.size());
        value += page.size();
        check(page, of_page);
        built.push_back({page, of_page});
    }
    CHECK(value == values.end());
    check_copies(built, page_bytes);
    return built;
}

// Changes one field of an object, and its value.
void change(Choice& choice, thing::ThingEditor editor, Thing& value) {
    auto pick = [&](auto& items) { return choice.below(items.size()); };
    Thing next = value;
    switch (choice.below(19)) {
        case 0: editor.id(next.id = choice.number<std::int64_t>()); break;
        case 1: editor.flag(next.flag = choice.maybe([&] { return choice.one_in(2); })); break;
        case 2:
            next.name = choice.maybe([&] { return choice.text(); });
            editor.name(next.name);
            break;
        case 3:
            next.note = choice.text();
            editor.note(bytes_of(next.note));
            break;
        case 4:
            next.price = choice.maybe([&] { return choice.price(); });
            editor.price(next.price ? optional(Price{*next.price}) : std::nullopt);
            break;
        case 5: editor.at(time_of(next.at = choice.number<std::int64_t>())); break;
        case 6:
            next.scores = choice.thing().scores;
            editor.scores(next.scores);
            break;
        case 7: {
            std::size_t count = choice.count();
            next.tags.resize(count);
            editor.tags().resize(count);
            break;
        }
        case 8:
            if (!next.tags.empty()) {
                std::size_t i = pick(next.tags);
                next.tags[i] = choice.maybe([&] { return choice.text(); });
                auto tags = editor.tags();
                next.tags[i] ? tags.set(i, *next.tags[i]) : tags.set_missing(i);
            }
            break;
        case 9:
            next.place.reset();
            editor.place(std::nullopt);
            break;
        case 10: {
            if (!next.place) next.place.emplace();
            std::size_t i = choice.below(2);
            next.place->corners[i] = choice.corner();
            auto corner = editor.place().corners()[i];
            corner.x(next.place->corners[i].x);
            corner.label(next.place->corners[i].label);
            break;
        }
        case 11: {
            if (!next.place) next.place.emplace();
            next.place->street = choice.text();
            next.place->floor = 7;
            auto place = editor.place();
            place.street(next.place->street);
            place.floor(7);
            break;
        }
        case 12:
            if (!next.parts.empty()) {
                std::size_t i = pick(next.parts);
                if (choice.one_in(3)) {
                    next.parts.erase(next.parts.begin() + static_cast<std::ptrdiff_t>(i));
                    editor.parts().erase(i);
                } else {
                    next.parts[i].reset();
                    editor.parts().set_missing(i);
                }
            }
            break;
        case 13: {
            next.parts.emplace_back().emplace().n = 5;
            auto parts = editor.parts();
            parts.resize(next.parts.size());
            parts[next.parts.size() - 1].n(5);
            break;
        }
        case 14:
            if (!next.parts.empty()) {
                std::size_t i = pick(next.parts);
                Part& part = next.parts[i] ? *next.parts[i] : next.parts[i].emplace();
                part.label = choice.text();
                part.subs.resize(choice.count());
                part.pair[1] = choice.text();
                auto found = editor.parts()[i];
                found.label(part.label);
                found.subs().resize(part.subs.size());
                found.pair().set(1, part.pair[1]);
                for (std::size_t k = 0; k < part.subs.size(); ++k) {
                    part.subs[k] = choice.sub();
                    auto sub = found.subs()[k];
                    sub.k(part.subs[k].k);
                    sub.v(part.subs[k].v);
                }
            }
            break;
        case 15: {
            if (!next.grid) next.grid.emplace();
            next.grid->resize(next.grid->size() + 1);
            auto& cells = next.grid->back().emplace();
            cells = choice.row();
            auto grid = editor.grid();
            grid.resize(next.grid->size());
            auto row = grid[next.grid->size() - 1];
            row.resize(cells.size());
            for (std::size_t k = 0; k < cells.size(); ++k) {
                if (cells[k]) row.set(k, *cells[k]);
            }
            break;
        }
        case 16:
            next.grid.reset();
            editor.grid(std::nullopt);
            break;
        case 17:
            next.trio = choice.thing().trio;
            editor.trio(next.trio);
            editor.triple(next.triple = {4, choice.number<std::int16_t>(), 6});
            break;
        case 18:
            if (!next.pairs.empty()) {
                std::size_t i = pick(next.pairs);
                next.pairs[i] = {choice.text(), choice.number<std::int64_t>()};
                auto pair = editor.pairs()[i];
                pair.key(next.pairs[i].first);
                pair.value(next.pairs[i].second);
            }
            break;
    }
    value = next;
}

// A change that does not fit the page may be half done, so what was changed is not known.
bool changed(Choice& choice, thing::ThingPageEditor& editor, vector<Thing>& values) {
    std::size_t i = choice.below(values.size());
    try {
        change(choice, editor[i], values[i]);
        return true;
    } catch (const dray::Error& error) {
        CHECK(error.kind() == Kind::limit);
        return false;
    }
}

void edit(Choice& choice, const Built& built, std::size_t page_bytes) {
    vector<Thing> values = built.values;
    thing::ThingPageEditor editor(Page(built.page), page_bytes);
    bool known = true;
    for (std::size_t i = choice.below(60); i > 0 && known; --i) {
        known = changed(choice, editor, values);
        for (std::size_t k = 0; k < values.size() && known; ++k) {
            CHECK(row(editor.view(k).bytes().data()) == Json::of(values[k]));
        }
    }
    if (choice.one_in(2)) editor.compact();
    bool is_moved = editor.header().moved;
    auto page = editor.seal();
    CHECK(page.header().edition == 1);
    if (!known) {
        dray::VerifiedPage::verify(Page::layout(), page.view().bytes());
        return;
    }
    check(page, values);
    if (!is_moved) print(page, values, page_bytes);
    // The changed page can be changed again.
    thing::ThingPageEditor again((Page(page)), page_bytes);
    again[0].id(values[0].id = 1);
    again.compact();
    auto compacted = again.seal();
    CHECK(compacted.header().edition == 2);
    check(compacted, values);
    print(compacted, values, page_bytes);
}

}  // namespace

int main(int, char** arguments) {
    std::uint64_t seed = std::stoull(arguments[1]), rounds = std::stoull(arguments[2]);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(seed + round));
        Choice choice(seed + round);
        std::size_t page_bytes = std::size_t{4096} << choice.below(4);
        for (const Built& built : build(choice, page_bytes)) {
            print(built.page, built.values, page_bytes);
            edit(choice, built, page_bytes);
        }
    }
}
