// Protocol Buffers: messages of the generated classes are what a program reads.
#include <google/protobuf/stubs/common.h>

#include "experiments.h"
#include "fill.h"
#include "objects.pb.h"

namespace {

template <class T>
struct MessageOf;
template <>
struct MessageOf<model::Part> {
    using Type = pb::Part;
};
template <>
struct MessageOf<model::LineItem> {
    using Type = pb::LineItem;
};
template <>
struct MessageOf<model::Customer> {
    using Type = pb::Customer;
};

struct Set {
#define X(camel, Pascal, lower)                       \
    template <class V, class W>                       \
    void camel(V& to, const W& value) {               \
        to.set_##lower(value);                        \
    }
    FIELD_NAMES(X)
#undef X
};

template <class V, class M>
void fill_all(V& to, const M& m) {
    fill::plain(Set{}, to, m);
    if constexpr (std::is_same_v<M, model::LineItem>) {
        fill_all(*to.mutable_supplier(), m.supplier);
        fill_all(*to.mutable_part(), m.part);
    } else if constexpr (std::is_same_v<M, model::Order>) {
        for (const auto& item : m.lineItems) fill_all(*to.add_lineitems(), item);
    } else if constexpr (std::is_same_v<M, model::Customer>) {
        for (const auto& order : m.orders) fill_all(*to.add_orders(), order);
    }
}

void change_one(pb::Part& v) { v.set_retailprice(v.retailprice() + 1.0); }
void change_one(pb::LineItem& v) { v.set_extendedprice(v.extendedprice() + 1.0); }
void change_one(pb::Customer& v) { v.set_acctbal(v.acctbal() + 1.0); }

}  // namespace

struct Protobuf : Blob<Protobuf> {
    static constexpr Validates VALIDATES = ALWAYS;
    static constexpr bool READS_PAGE = false;
    template <class T>
    using Object = typename MessageOf<T>::Type;
    struct Get {
#define X(camel, Pascal, lower)                                  \
    template <class V>                                           \
    static decltype(auto) camel(const V& v) {                    \
        return v.lower();                                        \
    }
        FIELD_NAMES(X)
#undef X
        static std::string_view text(const std::string& s) { return s; }
    };

    template <class M>
    static const M& root(const M& message) {
        return message;
    }
    template <class M>
    static void parse(M& message, Bytes bytes) {
        if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
            throw std::runtime_error("a message can't be parsed");
    }
    template <class T, class H>
    static void construct(H& held, Bytes bytes) {
        parse(held.emplace(), bytes);
    }
    template <class T>
    static void encode_object(const Object<T>& message, std::string& out) {
        if (!message.SerializeToString(&out)) throw std::runtime_error("a message is too long");
    }
    template <class T>
    static void encode(const T& value, std::string& out) {
        Object<T> message;
        fill_all(message, value);
        encode_object<T>(message, out);
    }
    template <class T>
    static void change(Bytes bytes, std::string& out) {
        Object<T> message;
        parse(message, bytes);
        change_one(message);
        encode_object<T>(message, out);
    }
    static void grow(Bytes bytes, std::string& out) {
        pb::Customer message;
        parse(message, bytes);
        fill_all(*message.add_orders(), grown(message.custkey()));
        encode_object<model::Customer>(message, out);
    }

    struct Vector {
        struct Object {
            pb::SparseVector message;
            std::size_t size() const { return static_cast<std::size_t>(message.entries_size()); }
            model::Entry entry(std::size_t i) const {
                const pb::Entry& entry = message.entries(static_cast<int>(i));
                return {entry.position(), entry.value()};
            }
        };
        static Object open(Bytes bytes) {
            Object object;
            parse(object.message, bytes);
            return object;
        }
        static void encode(const Object& object, std::string& out) {
            if (!object.message.SerializeToString(&out))
                throw std::runtime_error("a message is too long");
        }
        struct Builder {
            Object object;
            explicit Builder(std::size_t entries_max) {
                object.message.mutable_entries()->Reserve(static_cast<int>(entries_max));
            }
            void add(std::int32_t position, double value) {
                pb::Entry& entry = *object.message.add_entries();
                entry.set_position(position);
                entry.set_value(value);
            }
            std::string finish() {
                std::string out;
                encode(object, out);
                return out;
            }
        };
    };
};

const Registered<Protobuf> protobuf{
    "protobuf", google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION),
    "generated messages, on the heap"};
