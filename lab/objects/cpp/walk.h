// What is done with every field, for objects of any implementation: the checksum, equality, and
// copies into the language's own objects. G tells how a field is read: `G::name(view)` for each of
// FIELD_NAMES, `G::text` for strings; lists can be iterated.
#pragma once

#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "model.h"

// The checksum of README.md.
struct Checksum {
    std::uint64_t h = 0;

    void word(std::uint64_t v) { h = (std::rotl(h, 5) ^ v) * 0x517CC1B727220A95u; }
    void i32(std::int32_t v) { word(static_cast<std::uint64_t>(std::int64_t{v})); }
    void f64(double v) { word(std::bit_cast<std::uint64_t>(v)); }
    void str(std::string_view s) {
        word(s.size());
        std::size_t at = 0;
        for (std::uint64_t v; at + 8 <= s.size(); at += 8) {
            std::memcpy(&v, s.data() + at, 8);
            word(v);
        }
        if (at < s.size()) {
            std::uint64_t v = 0;
            std::memcpy(&v, s.data() + at, s.size() - at);
            word(v);
        }
    }
};

namespace walk {

// The object that a function is about, as a tag.
template <class T>
struct About {};

#define I(n) h.i32(G::n(v));
#define S(n) h.str(G::text(G::n(v)));
#define F(n) h.f64(G::n(v));

template <class G, class V>
void sum(About<model::Part>, Checksum& h, const V& v) {
    PART_FIELDS(I, S, F)
}
template <class G, class V>
void sum(About<model::Supplier>, Checksum& h, const V& v) {
    SUPPLIER_FIELDS(I, S, F)
}
template <class G, class V>
void sum(About<model::LineItem>, Checksum& h, const V& v) {
    LINE_ITEM_FIELDS(I, S, F)
    sum<G>(About<model::Supplier>{}, h, G::supplier(v));
    sum<G>(About<model::Part>{}, h, G::part(v));
}
template <class G, class V>
void sum(About<model::Order>, Checksum& h, const V& v) {
    ORDER_FIELDS(I, S, F)
    auto&& items = G::lineItems(v);
    h.word(items.size());
    for (auto&& item : items) sum<G>(About<model::LineItem>{}, h, item);
}
template <class G, class V>
void sum(About<model::Customer>, Checksum& h, const V& v) {
    CUSTOMER_FIELDS(I, S, F)
    auto&& orders = G::orders(v);
    h.word(orders.size());
    for (auto&& order : orders) sum<G>(About<model::Order>{}, h, order);
}

#undef I
#undef S
#undef F
#define I(n) m.n = G::n(v);
#define S(n) m.n = G::text(G::n(v));
#define F(n) m.n = G::n(v);

template <class G, class V>
void copy(model::Part& m, const V& v) {
    PART_FIELDS(I, S, F)
}
template <class G, class V>
void copy(model::Supplier& m, const V& v) {
    SUPPLIER_FIELDS(I, S, F)
}
template <class G, class V>
void copy(model::LineItem& m, const V& v) {
    LINE_ITEM_FIELDS(I, S, F)
    copy<G>(m.supplier, G::supplier(v));
    copy<G>(m.part, G::part(v));
}
template <class G, class V>
void copy(model::Order& m, const V& v) {
    ORDER_FIELDS(I, S, F)
    auto&& items = G::lineItems(v);
    m.lineItems.reserve(items.size());
    for (auto&& item : items) copy<G>(m.lineItems.emplace_back(), item);
}
template <class G, class V>
void copy(model::Customer& m, const V& v) {
    CUSTOMER_FIELDS(I, S, F)
    auto&& orders = G::orders(v);
    m.orders.reserve(orders.size());
    for (auto&& order : orders) copy<G>(m.orders.emplace_back(), order);
}

#undef I
#undef S
#undef F
#define I(n) if (G::n(a) != G::n(b)) return false;
#define S(n) if (G::text(G::n(a)) != G::text(G::n(b))) return false;
#define F(n) if (G::n(a) != G::n(b)) return false;

template <class G, class V>
bool equal(About<model::Part>, const V& a, const V& b) {
    PART_FIELDS(I, S, F)
    return true;
}
template <class G, class V>
bool equal(About<model::Supplier>, const V& a, const V& b) {
    SUPPLIER_FIELDS(I, S, F)
    return true;
}
template <class G, class V>
bool equal(About<model::LineItem>, const V& a, const V& b) {
    LINE_ITEM_FIELDS(I, S, F)
    return equal<G>(About<model::Supplier>{}, G::supplier(a), G::supplier(b)) &&
           equal<G>(About<model::Part>{}, G::part(a), G::part(b));
}

template <class T, class G, class L>
bool equal_lists(const L& a, const L& b) {
    if (a.size() != b.size()) return false;
    auto other = b.begin();
    for (auto&& item : a) {
        if (!equal<G>(About<T>{}, item, *other)) return false;
        ++other;
    }
    return true;
}

template <class G, class V>
bool equal(About<model::Order>, const V& a, const V& b) {
    ORDER_FIELDS(I, S, F)
    return equal_lists<model::LineItem, G>(G::lineItems(a), G::lineItems(b));
}
template <class G, class V>
bool equal(About<model::Customer>, const V& a, const V& b) {
    CUSTOMER_FIELDS(I, S, F)
    return equal_lists<model::Order, G>(G::orders(a), G::orders(b));
}

#undef I
#undef S
#undef F

// The keys by which objects are sorted; the second is 0 where one is enough.
using Key = std::pair<std::int32_t, std::int32_t>;

template <class G, class V>
Key key(About<model::Part>, const V& v) {
    return {G::partKey(v), 0};
}
template <class G, class V>
Key key(About<model::LineItem>, const V& v) {
    return {G::orderKey(v), G::lineNumber(v)};
}
template <class G, class V>
Key key(About<model::Customer>, const V& v) {
    return {G::custKey(v), 0};
}

}  // namespace walk

// How the fields of the language's own objects are read.
struct ModelGet {
#define X(camel, Pascal, lower)                         \
    template <class V>                                  \
    static const auto& camel(const V& v) {              \
        return v.camel;                                 \
    }
    FIELD_NAMES(X)
#undef X
    static std::string_view text(const std::string& s) { return s; }
};

// The field that `mutate` changes.
inline double& changed(model::Part& m) { return m.retailPrice; }
inline double& changed(model::LineItem& m) { return m.extendedPrice; }
inline double& changed(model::Customer& m) { return m.acctbal; }

// The order that `grow` appends.
inline model::Order grown(std::int32_t custKey) {
    return {-1, custKey, "O", 1.0, 0, "5-LOW", "Clerk#000000001", 0, "grown", {}};
}
