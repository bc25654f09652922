// Boost.Serialization: a binary archive for each object, as in the thesis, so that objects can be
// read alone. A header of the archive precedes each object.
#include <boost/archive/binary_iarchive.hpp>
#include <boost/archive/binary_oarchive.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>
#include <boost/version.hpp>
#include <streambuf>

#include "experiments.h"

namespace boost::serialization {

#define FIELD(n) archive & m.n;
template <class A>
void serialize(A& archive, model::Part& m, unsigned) {
    PART_FIELDS(FIELD, FIELD, FIELD)
}
template <class A>
void serialize(A& archive, model::Supplier& m, unsigned) {
    SUPPLIER_FIELDS(FIELD, FIELD, FIELD)
}
template <class A>
void serialize(A& archive, model::LineItem& m, unsigned) {
    LINE_ITEM_FIELDS(FIELD, FIELD, FIELD)
    archive & m.supplier & m.part;
}
template <class A>
void serialize(A& archive, model::Order& m, unsigned) {
    ORDER_FIELDS(FIELD, FIELD, FIELD)
    archive & m.lineItems;
}
template <class A>
void serialize(A& archive, model::Customer& m, unsigned) {
    CUSTOMER_FIELDS(FIELD, FIELD, FIELD)
    archive & m.orders;
}
template <class A>
void serialize(A& archive, model::Entry& m, unsigned) {
    archive & m.position & m.value;
}
template <class A>
void serialize(A& archive, model::SparseVector& m, unsigned) {
    archive & m.entries;
}
#undef FIELD

}  // namespace boost::serialization

namespace {

// Streams over bytes without a copy.
struct Source : std::streambuf {
    explicit Source(Bytes bytes) {
        char* at = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
        setg(at, at, at + bytes.size());
    }
};
struct Target : std::streambuf {
    std::string& out;
    explicit Target(std::string& bytes) : out(bytes) {}
    std::streamsize xsputn(const char* at, std::streamsize n) override {
        out.append(at, static_cast<std::size_t>(n));
        return n;
    }
    int overflow(int c) override {
        if (c != traits_type::eof()) out.push_back(static_cast<char>(c));
        return c;
    }
};

}  // namespace

struct Boost : Decoded<Boost> {
    template <class T>
    static void encode(const T& value, std::string& out) {
        Target target(out);
        boost::archive::binary_oarchive archive(target);
        archive << value;
    }
    template <class T>
    static void decode(Bytes bytes, T& value) {
        Source source(bytes);
        boost::archive::binary_iarchive archive(source);
        archive >> value;
    }
    using Vector = DecodedVector<Boost>;
};

const Registered<Boost> boost_archive{"boost", BOOST_LIB_VERSION, "a binary archive for each object"};
