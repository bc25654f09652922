// FlatBuffers: tables of the generated classes, read where they lie, with the library's verifier.
#include "experiments.h"
#include "objects_generated.h"

namespace {

using Builder = flatbuffers::FlatBufferBuilder;
template <class T>
using Offset = flatbuffers::Offset<T>;

// Strings are written before the table that has them.
#define NOTHING(n)
#define TEXT(n) const auto n = b.CreateString(m.n);
#define ADD_NUMBER(n) t.add_##n(m.n);
#define ADD_TEXT(n) t.add_##n(n);

Offset<fb::Part> make(Builder& b, const model::Part& m) {
    PART_FIELDS(NOTHING, TEXT, NOTHING)
    fb::PartBuilder t(b);
    PART_FIELDS(ADD_NUMBER, ADD_TEXT, ADD_NUMBER)
    return t.Finish();
}
Offset<fb::Supplier> make(Builder& b, const model::Supplier& m) {
    SUPPLIER_FIELDS(NOTHING, TEXT, NOTHING)
    fb::SupplierBuilder t(b);
    SUPPLIER_FIELDS(ADD_NUMBER, ADD_TEXT, ADD_NUMBER)
    return t.Finish();
}
Offset<fb::LineItem> make(Builder& b, const model::LineItem& m) {
    const auto supplier = make(b, m.supplier);
    const auto part = make(b, m.part);
    LINE_ITEM_FIELDS(NOTHING, TEXT, NOTHING)
    fb::LineItemBuilder t(b);
    LINE_ITEM_FIELDS(ADD_NUMBER, ADD_TEXT, ADD_NUMBER)
    t.add_supplier(supplier);
    t.add_part(part);
    return t.Finish();
}
Offset<fb::Order> make(Builder& b, const model::Order& m) {
    std::vector<Offset<fb::LineItem>> made;
    for (const auto& item : m.lineItems) made.push_back(make(b, item));
    const auto items = b.CreateVector(made);
    ORDER_FIELDS(NOTHING, TEXT, NOTHING)
    fb::OrderBuilder t(b);
    ORDER_FIELDS(ADD_NUMBER, ADD_TEXT, ADD_NUMBER)
    t.add_lineItems(items);
    return t.Finish();
}
Offset<fb::Customer> make(Builder& b, const model::Customer& m) {
    std::vector<Offset<fb::Order>> made;
    for (const auto& order : m.orders) made.push_back(make(b, order));
    const auto orders = b.CreateVector(made);
    CUSTOMER_FIELDS(NOTHING, TEXT, NOTHING)
    fb::CustomerBuilder t(b);
    CUSTOMER_FIELDS(ADD_NUMBER, ADD_TEXT, ADD_NUMBER)
    t.add_orders(orders);
    return t.Finish();
}

template <class T>
struct TableOf;
template <>
struct TableOf<model::Part> {
    using Type = fb::Part;
};
template <>
struct TableOf<model::LineItem> {
    using Type = fb::LineItem;
};
template <>
struct TableOf<model::Customer> {
    using Type = fb::Customer;
};

bool change_one(fb::Part& t) { return t.mutate_retailPrice(t.retailPrice() + 1.0); }
bool change_one(fb::LineItem& t) { return t.mutate_extendedPrice(t.extendedPrice() + 1.0); }
bool change_one(fb::Customer& t) { return t.mutate_acctbal(t.acctbal() + 1.0); }

// The builder's memory is used again for the next object.
Builder& builder() {
    thread_local Builder kept(1 << 16);
    kept.Clear();
    return kept;
}

// A list that may be absent. Its items are tables.
template <class V>
struct List {
    const V* v;
    std::size_t size() const { return v ? v->size() : 0; }
    auto begin() const { return v->begin(); }
    auto end() const { return v->end(); }
};

}  // namespace

struct Flat : Blob<Flat> {
    static constexpr Validates VALIDATES = APART;
    static constexpr bool IN_PLACE = true;
    template <class T>
    struct Table {
        const typename TableOf<T>::Type* table;
        Bytes bytes;
    };
    template <class T>
    using Object = Table<T>;
    struct Plain {
#define X(camel, Pascal, lower)                             \
    template <class V>                                      \
    static auto camel(const V* v) {                         \
        return v->camel();                                  \
    }
        FIELD_NAMES(X)
#undef X
        static std::string_view text(const flatbuffers::String* s) {
            return s ? std::string_view(s->c_str(), s->size()) : std::string_view();
        }
    };
    // Lists are pointers in the generated classes.
    struct Get : Plain {
        static auto orders(const fb::Customer* v) { return List{v->orders()}; }
        static auto lineItems(const fb::Order* v) { return List{v->lineItems()}; }
    };

    template <class T>
    static auto root(const Table<T>& object) {
        return object.table;
    }
    template <class T>
    static auto table(Bytes bytes) {
        return flatbuffers::GetRoot<typename TableOf<T>::Type>(bytes.data());
    }
    template <class T, class H>
    static void construct(H& held, Bytes bytes) {
        held.emplace(Table<T>{table<T>(bytes), bytes});
    }
    template <class T>
    static bool is_valid(Bytes bytes) {
        // A customer may have more tables than the verifier's usual limit.
        flatbuffers::Verifier verifier(bytes.data(), bytes.size(), 64, UINT32_MAX);
        return verifier.VerifyBuffer<typename TableOf<T>::Type>(nullptr);
    }
    template <class T>
    static void encode(const T& value, std::string& out) {
        Builder& b = builder();
        b.Finish(make(b, value));
        out.assign(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize());
    }
    template <class T>
    static void encode_object(const Table<T>& object, std::string& out) {
        out.assign(reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size());
    }
    template <class T>
    static void change(Byte* page, std::uint32_t position) {
        auto* bytes = const_cast<Byte*>(bytes_at(page, position).data());
        if (!change_one(*flatbuffers::GetMutableRoot<typename TableOf<T>::Type>(bytes)))
            throw std::runtime_error("a field has its default, so it can't be changed in place");
    }
    // A list can't grow in place: the object is built again.
    static void grow(Bytes bytes, std::string& out) {
        model::Customer customer;
        walk::copy<Get>(customer, table<model::Customer>(bytes));
        customer.orders.push_back(grown(customer.custKey));
        encode(customer, out);
    }

    struct Vector {
        struct Object {
            const flatbuffers::Vector<const fb::Entry*>* entries;
            Bytes bytes;
            std::size_t size() const { return entries ? entries->size() : 0; }
            model::Entry entry(std::size_t i) const {
                const auto* entry = entries->Get(static_cast<flatbuffers::uoffset_t>(i));
                return {entry->position(), entry->value()};
            }
        };
        static Object open(Bytes bytes) {
            flatbuffers::Verifier verifier(bytes.data(), bytes.size());
            if (!verifier.VerifyBuffer<fb::SparseVector>(nullptr))
                throw std::runtime_error("a vector is not valid");
            return {flatbuffers::GetRoot<fb::SparseVector>(bytes.data())->entries(), bytes};
        }
        static void encode(const Object& object, std::string& out) {
            out.assign(reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size());
        }
        struct Builder {
            std::vector<fb::Entry> entries;
            explicit Builder(std::size_t entries_max) { entries.reserve(entries_max); }
            void add(std::int32_t position, double value) { entries.emplace_back(position, value); }
            std::string finish() {
                flatbuffers::FlatBufferBuilder b(entries.size() * sizeof(fb::Entry) + 64);
                const auto list = b.CreateVectorOfStructs(entries);
                b.Finish(fb::CreateSparseVector(b, list));
                return {reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize()};
            }
        };
    };
};

const Registered<Flat> flat{
    "flatbuffers",
    std::to_string(FLATBUFFERS_VERSION_MAJOR) + "." + std::to_string(FLATBUFFERS_VERSION_MINOR) +
        "." + std::to_string(FLATBUFFERS_VERSION_REVISION),
    "tables read in place; lists grow by building the object again"};
