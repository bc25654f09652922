// Random objects of the schema in generated/thing.hpp: as values of C++, as JSON, and as a builder
// writes them.
#pragma once

#include <random>

#include "text.hpp"
#include "thing_edit.hpp"

namespace things {

using std::optional;
using std::string;
using std::vector;

struct Corner {
    std::int16_t x = 0;
    optional<string> label;
};
struct Place {
    string street;
    std::array<Corner, 2> corners;
    optional<std::int32_t> floor;
};
struct Sub {
    std::int8_t k = 0;
    string v;
};
struct Part {
    optional<std::int32_t> n;
    string label;
    vector<Sub> subs;
    std::array<string, 2> pair;
};
struct Thing {
    std::int64_t id = 0;
    optional<bool> flag;
    optional<string> name;
    string note;
    optional<std::int64_t> price;
    std::int64_t at = 0;
    optional<vector<std::int32_t>> scores;
    vector<optional<string>> tags;
    optional<Place> place;
    vector<optional<Part>> parts;
    optional<vector<optional<vector<optional<std::int64_t>>>>> grid;
    vector<std::pair<string, optional<std::int64_t>>> pairs;
    optional<std::array<double, 3>> trio;
    std::array<std::int16_t, 3> triple{};
};

// What is chosen at random.
class Choice {
public:
    explicit Choice(std::uint64_t seed) : random_(seed) {}

    std::size_t below(std::size_t end) { return random_() % end; }
    bool one_in(std::size_t n) { return below(n) == 0; }
    template <class T>
    T number() {
        return static_cast<T>(one_in(3) ? below(3) : random_());
    }
    // Of up to 12 bytes, just above, or long; some not ASCII.
    string text() {
        static const char* letters[] = {"a", "b", " ", "\"", "ö", "€", "𝄞", "\n", "0"};
        string text;
        std::size_t parts = one_in(3) ? below(4) : one_in(10) ? below(300) : below(20);
        for (std::size_t i = 0; i < parts; ++i) text += letters[below(9)];
        return text;
    }
    std::size_t count() { return one_in(20) ? below(200) : below(4); }
    template <class Make>
    auto maybe(Make make) {
        return one_in(3) ? optional<decltype(make())>() : optional<decltype(make())>(make());
    }
    template <class Make>
    auto list(Make make) {
        vector<decltype(make())> items(count());
        for (auto&& item : items) item = make();
        return items;
    }

    Corner corner() {
        return {number<std::int16_t>(), maybe([&] { return text(); })};
    }
    Place place() {
        return {text(), {corner(), corner()}, maybe([&] { return number<std::int32_t>(); })};
    }
    Sub sub() { return {number<std::int8_t>(), text()}; }
    Part part() {
        auto n = maybe([&] { return number<std::int32_t>(); });
        return {n, text(), list([&] { return sub(); }), {text(), text()}};
    }
    std::int64_t price() { return static_cast<std::int64_t>(below(2'000'000'000)) - 999'999'999; }
    auto row() {
        return list([&] { return maybe([&] { return number<std::int64_t>(); }); });
    }
    Thing thing() {
        Thing thing;
        thing.id = number<std::int64_t>();
        thing.flag = maybe([&] { return one_in(2); });
        thing.name = maybe([&] { return text(); });
        thing.note = text();
        thing.price = maybe([&] { return price(); });
        thing.at = number<std::int64_t>();
        thing.scores = maybe([&] { return list([&] { return number<std::int32_t>(); }); });
        thing.tags = list([&] { return maybe([&] { return text(); }); });
        thing.place = maybe([&] { return place(); });
        thing.parts = list([&] { return maybe([&] { return part(); }); });
        thing.grid = maybe([&] { return list([&] { return maybe([&] { return row(); }); }); });
        thing.pairs =
            list([&] { return std::pair(text(), maybe([&] { return number<std::int64_t>(); })); });
        thing.trio = maybe([&] {
            return std::array<double, 3>{1.5, number<std::int32_t>() / 3.0, -0.0};
        });
        thing.triple = {number<std::int16_t>(), 1, 2};
        return thing;
    }

private:
    std::mt19937_64 random_;
};

// Values as the JSON of spec/vectors/README.md.
class Json {
public:
    static string of(const Thing& t) {
        Json json;
        json.all(t.id, t.flag, t.name, Hex{t.note}, t.price, t.at, t.scores, t.tags, t.place,
                 t.parts, t.grid, t.pairs, t.trio, t.triple);
        return json.out_;
    }

private:
    struct Hex {
        std::string_view bytes;
    };

    template <class... T>
    void all(const T&... values) {
        out_ += '[';
        bool first = true;
        ((out_ += first ? "" : ",", first = false, put(values)), ...);
        out_ += ']';
    }
    template <class T>
    void put(const optional<T>& value) {
        value ? put(*value) : void(out_ += "null");
    }
    template <class T>
    void put(const vector<T>& items) {
        out_ += '[';
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (i > 0) out_ += ',';
            put(items[i]);
        }
        out_ += ']';
    }
    template <class T, std::size_t N>
    void put(const std::array<T, N>& items) {
        put(vector<T>(items.begin(), items.end()));
    }
    void put(bool value) { out_ += value ? "true" : "false"; }
    void put(std::int64_t value) {
        bool big = value > (1LL << 53) || value < -(1LL << 53);
        out_ += big ? '"' + std::to_string(value) + '"' : std::to_string(value);
    }
    void put(std::int32_t value) { put(std::int64_t{value}); }
    void put(std::int16_t value) { put(std::int64_t{value}); }
    void put(std::int8_t value) { put(std::int64_t{value}); }
    void put(double value) {
        std::array<char, 19> text;
        auto bits = std::bit_cast<unsigned long long>(value);
        std::snprintf(text.data(), text.size(), "\"%016llx\"", bits);
        out_ += text.data();
    }
    void put(Hex value) {
        out_ += '"';
        for (char c : value.bytes) {
            out_ += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
            out_ += "0123456789abcdef"[c & 15];
        }
        out_ += '"';
    }
    void put(const string& value) { dray::test::Text::quote(out_, value); }
    void put(const Corner& value) { all(value.x, value.label); }
    void put(const Place& value) { all(value.street, value.corners, value.floor); }
    void put(const Sub& value) { all(value.k, value.v); }
    void put(const Part& value) { all(value.n, value.label, value.subs, value.pair); }
    void put(const std::pair<string, optional<std::int64_t>>& value) {
        all(value.first, value.second);
    }

    string out_;
};

using Price = dray::Decimal<dray::int128, 9, 2>;

inline dray::Timestamp<dray::microseconds> time_of(std::int64_t at) {
    return dray::Timestamp<dray::microseconds>(dray::microseconds(at));
}
inline dray::Bytes bytes_of(const string& text) { return std::as_bytes(std::span(text)); }

template <class Writer>
void write(Writer corners, const std::array<Corner, 2>& values) {
    for (const Corner& value : values) {
        auto corner = corners.next();
        corner.label(value.label);
        corner.x(value.x);
    }
}

inline void write(thing::PartsItemWriter part, const Part& value) {
    part.label(value.label);
    auto subs = part.subs(value.subs.size());
    for (const Sub& sub : value.subs) {
        auto item = subs.next();
        item.v(sub.v);
        item.k(sub.k);
    }
    auto pair = part.pair();
    for (const string& text : value.pair) pair.add(text);
    part.n(value.n);
}

inline void write(thing::ThingWriter thing, const Thing& value) {
    thing.name(value.name);
    thing.note(bytes_of(value.note));
    thing.at(time_of(value.at));
    if (value.scores) thing.scores(*value.scores);
    auto tags = thing.tags(value.tags.size());
    for (const auto& tag : value.tags) tag ? tags.add(*tag) : tags.add_missing();
    if (value.place) {
        auto place = thing.place();
        place.floor(value.place->floor);
        place.street(value.place->street);
        write(place.corners(), value.place->corners);
    }
    auto parts = thing.parts(value.parts.size());
    for (const auto& part : value.parts) part ? write(parts.next(), *part) : parts.add_missing();
    if (value.grid) {
        auto grid = thing.grid(value.grid->size());
        for (const auto& row : *value.grid) {
            if (!row) {
                grid.add_missing();
                continue;
            }
            auto cells = grid.next(row->size());
            for (auto cell : *row) cell ? cells.add(*cell) : cells.add_missing();
        }
    }
    auto pairs = thing.pairs(value.pairs.size());
    for (const auto& [key, number] : value.pairs) {
        auto pair = pairs.next();
        pair.value(number);
        pair.key(key);
    }
    if (value.trio) thing.trio(*value.trio);
    thing.triple(value.triple);
    if (value.price) thing.price(Price{*value.price});
    thing.flag(value.flag);
    thing.id(value.id);
}

}  // namespace things
