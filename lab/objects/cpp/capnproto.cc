// Cap'n Proto: messages read where they lie. Each access checks its bounds, and the library limits
// how many bytes are read of a message (64 MB, more for vectors here) and how deep.
#include <capnp/message.h>
#include <capnp/serialize.h>

#include "experiments.h"
#include "fill.h"
#include "objects.capnp.h"

namespace {

using capnp::word;

template <class T>
struct StructOf;
template <>
struct StructOf<model::Part> {
    using Type = cp::Part;
};
template <>
struct StructOf<model::LineItem> {
    using Type = cp::LineItem;
};
template <>
struct StructOf<model::Customer> {
    using Type = cp::Customer;
};

struct Set {
#define X(camel, Pascal, lower)                                           \
    template <class V, class W>                                           \
    void camel(V& to, const W& value) {                                   \
        if constexpr (std::is_same_v<W, std::string>)                     \
            to.set##Pascal(capnp::Text::Reader(value.data(), value.size())); \
        else                                                              \
            to.set##Pascal(value);                                        \
    }
    FIELD_NAMES(X)
#undef X
};

template <class V, class M>
void fill_all(V to, const M& m) {
    fill::plain(Set{}, to, m);
    if constexpr (std::is_same_v<M, model::LineItem>) {
        fill_all(to.initSupplier(), m.supplier);
        fill_all(to.initPart(), m.part);
    } else if constexpr (std::is_same_v<M, model::Order>) {
        auto items = to.initLineItems(static_cast<unsigned>(m.lineItems.size()));
        for (unsigned i = 0; i < items.size(); ++i) fill_all(items[i], m.lineItems[i]);
    } else if constexpr (std::is_same_v<M, model::Customer>) {
        auto orders = to.initOrders(static_cast<unsigned>(m.orders.size()));
        for (unsigned i = 0; i < orders.size(); ++i) fill_all(orders[i], m.orders[i]);
    }
}

void change_one(cp::Part::Builder v) { v.setRetailPrice(v.getRetailPrice() + 1.0); }
void change_one(cp::LineItem::Builder v) { v.setExtendedPrice(v.getExtendedPrice() + 1.0); }
void change_one(cp::Customer::Builder v) { v.setAcctbal(v.getAcctbal() + 1.0); }

kj::ArrayPtr<const word> words(Bytes bytes) {
    return {reinterpret_cast<const word*>(bytes.data()), bytes.size() / sizeof(word)};
}

// The first segment of messages that are built, used again for the next one.
kj::ArrayPtr<word> scratch() {
    thread_local Buffer kept = [] {
        Buffer zeros(512 << 10);
        std::memset(zeros.data(), 0, zeros.size());
        return zeros;
    }();
    return {reinterpret_cast<word*>(kept.data()), kept.size() / sizeof(word)};
}

void flatten(capnp::MessageBuilder& message, std::string& out) {
    const kj::Array<word> flat = capnp::messageToFlatArray(message);
    const auto bytes = flat.asBytes();
    out.assign(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

}  // namespace

struct CapnProto : Blob<CapnProto> {
    static constexpr Validates VALIDATES = ALWAYS;
    template <class T>
    struct Message {
        capnp::FlatArrayMessageReader reader;
        Bytes bytes;
        explicit Message(Bytes from) : reader(words(from)), bytes(from) {}
    };
    template <class T>
    using Object = Message<T>;
    struct Get {
#define X(camel, Pascal, lower)                     \
    template <class V>                              \
    static auto camel(const V& v) {                 \
        return v.get##Pascal();                     \
    }
        FIELD_NAMES(X)
#undef X
        static std::string_view text(capnp::Text::Reader s) { return {s.begin(), s.size()}; }
    };

    template <class T>
    static auto root(Message<T>& object) {
        return object.reader.template getRoot<typename StructOf<T>::Type>();
    }
    template <class T, class H>
    static void construct(H& held, Bytes bytes) {
        held.emplace(bytes);
    }
    template <class T>
    static void encode(const T& value, std::string& out) {
        capnp::MallocMessageBuilder message(scratch());
        fill_all(message.initRoot<typename StructOf<T>::Type>(), value);
        flatten(message, out);
    }
    template <class T>
    static void encode_object(const Message<T>& object, std::string& out) {
        out.assign(reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size());
    }
    // What has been read can't be written: it is copied into a builder.
    template <class T>
    static void change(Bytes bytes, std::string& out) {
        Message<T> from(bytes);
        capnp::MallocMessageBuilder message(scratch());
        message.setRoot(root(from));
        change_one(message.getRoot<typename StructOf<T>::Type>());
        flatten(message, out);
    }
    static void grow(Bytes bytes, std::string& out) {
        Message<model::Customer> from(bytes);
        const auto old = root(from);
        capnp::MallocMessageBuilder message(scratch());
        auto to = message.initRoot<cp::Customer>();
        auto orders = to.initOrders(old.getOrders().size() + 1);
        for (unsigned i = 0; i + 1 < orders.size(); ++i)
            orders.setWithCaveats(i, old.getOrders()[i]);
        fill_all(orders[orders.size() - 1], grown(old.getCustKey()));
#define SET(n) Set{}.n(to, Get::n(old));
        CUSTOMER_FIELDS(SET, SET, SET)
#undef SET
        flatten(message, out);
    }

    struct Vector {
        struct Object {
            std::unique_ptr<capnp::FlatArrayMessageReader> reader;
            capnp::List<cp::Entry>::Reader entries;
            Bytes bytes;
            std::size_t size() const { return entries.size(); }
            model::Entry entry(std::size_t i) const {
                const auto entry = entries[static_cast<unsigned>(i)];
                return {entry.getPosition(), entry.getValue()};
            }
        };
        static Object open(Bytes bytes) {
            capnp::ReaderOptions options;
            options.traversalLimitInWords = bytes.size();
            auto reader = std::make_unique<capnp::FlatArrayMessageReader>(words(bytes), options);
            auto entries = reader->getRoot<cp::SparseVector>().getEntries();
            return {std::move(reader), entries, bytes};
        }
        static void encode(const Object& object, std::string& out) {
            out.assign(reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size());
        }
        // The number of entries must be known before the list is made.
        struct Builder {
            std::vector<model::Entry> entries;
            explicit Builder(std::size_t entries_max) { entries.reserve(entries_max); }
            void add(std::int32_t position, double value) { entries.push_back({position, value}); }
            std::string finish() {
                capnp::MallocMessageBuilder message(
                    static_cast<unsigned>(entries.size() * 2 + 16));
                auto list = message.initRoot<cp::SparseVector>().initEntries(
                    static_cast<unsigned>(entries.size()));
                for (unsigned i = 0; i < list.size(); ++i) {
                    list[i].setPosition(entries[i].position);
                    list[i].setValue(entries[i].value);
                }
                std::string out;
                flatten(message, out);
                return out;
            }
        };
    };
};

const Registered<CapnProto> capnproto{
    "capnproto",
    std::to_string(CAPNP_VERSION / 1000000) + "." + std::to_string(CAPNP_VERSION / 1000 % 1000) +
        "." + std::to_string(CAPNP_VERSION % 1000),
    "messages read in place with bounds checked; changed by a copy"};
