// Records of the input format: they are also the bytes of the hand-written implementation.
#pragma once

#include "page.h"

namespace record {

// Appends fields to bytes.
struct Writer {
    std::string& out;

    void raw(const void* at, std::size_t n) { out.append(static_cast<const char*>(at), n); }
    void u32(std::uint32_t v) { raw(&v, 4); }
    void i32(std::int32_t v) { raw(&v, 4); }
    void f64(double v) { raw(&v, 8); }
    void str(std::string_view s) {
        u32(static_cast<std::uint32_t>(s.size()));
        raw(s.data(), s.size());
    }
};

// Reads fields from bytes, and checks that they are there.
struct Reader {
    Bytes bytes;
    std::size_t at = 0;

    const Byte* take(std::size_t n) {
        if (n > bytes.size() - at) throw std::runtime_error("a record is cut off");
        at += n;
        return bytes.data() + at - n;
    }
    std::uint32_t u32() { return u32_at(take(4)); }
    std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
    double f64() {
        double v;
        std::memcpy(&v, take(8), 8);
        return v;
    }
    std::string_view str() {
        const std::uint32_t n = u32();
        return {reinterpret_cast<const char*>(take(n)), n};
    }
    // The number of items, of which each takes at least so many bytes.
    std::uint32_t count(std::size_t least) {
        const std::uint32_t n = u32();
        if (n > (bytes.size() - at) / least) throw std::runtime_error("a list is cut off");
        return n;
    }
};

#define I(n) w.i32(m.n);
#define S(n) w.str(m.n);
#define F(n) w.f64(m.n);
inline void write(Writer& w, const model::Part& m) { PART_FIELDS(I, S, F) }
inline void write(Writer& w, const model::Supplier& m) { SUPPLIER_FIELDS(I, S, F) }
inline void write(Writer& w, const model::LineItem& m) {
    LINE_ITEM_FIELDS(I, S, F)
    write(w, m.supplier);
    write(w, m.part);
}
inline void write(Writer& w, const model::Order& m) {
    ORDER_FIELDS(I, S, F)
    w.u32(static_cast<std::uint32_t>(m.lineItems.size()));
    for (const auto& item : m.lineItems) write(w, item);
}
inline void write(Writer& w, const model::Customer& m) {
    CUSTOMER_FIELDS(I, S, F)
    w.u32(static_cast<std::uint32_t>(m.orders.size()));
    for (const auto& order : m.orders) write(w, order);
}
#undef I
#undef S
#undef F

#define I(n) m.n = r.i32();
#define S(n) m.n = r.str();
#define F(n) m.n = r.f64();
inline void read(Reader& r, model::Part& m) { PART_FIELDS(I, S, F) }
inline void read(Reader& r, model::Supplier& m) { SUPPLIER_FIELDS(I, S, F) }
inline void read(Reader& r, model::LineItem& m) {
    LINE_ITEM_FIELDS(I, S, F)
    read(r, m.supplier);
    read(r, m.part);
}
inline void read(Reader& r, model::Order& m) {
    ORDER_FIELDS(I, S, F)
    m.lineItems.resize(r.count(16));
    for (auto& item : m.lineItems) read(r, item);
}
inline void read(Reader& r, model::Customer& m) {
    CUSTOMER_FIELDS(I, S, F)
    m.orders.resize(r.count(16));
    for (auto& order : m.orders) read(r, order);
}
#undef I
#undef S
#undef F

inline void write(Writer& w, const model::SparseVector& m) {
    w.u32(static_cast<std::uint32_t>(m.entries.size()));
    for (const auto& entry : m.entries) {
        w.i32(entry.position);
        w.f64(entry.value);
    }
}
inline void read(Reader& r, model::SparseVector& m) {
    m.entries.resize(r.count(12));
    for (auto& entry : m.entries) {
        entry.position = r.i32();
        entry.value = r.f64();
    }
}

}  // namespace record
