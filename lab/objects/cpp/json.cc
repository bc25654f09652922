// JSON: text that is written by hand and parsed by simdjson on demand, into structs. The fields are
// in the order of the contract, and are looked for in that order first.
#include <simdjson.h>

#include <charconv>

#include "experiments.h"
#include "fill.h"

namespace {

using simdjson::ondemand::object;
using simdjson::ondemand::value;

class Text {
  public:
    explicit Text(std::string& out) : out_(out) {}

    void name(std::string_view name) {
        if (out_.back() != '{') out_ += ',';
        out_.append("\"").append(name).append("\":");
    }
    template <class N>
    void number(N n) {
        char digits[32];
        const auto end = std::to_chars(digits, digits + sizeof digits, n).ptr;
        out_.append(digits, end);
    }
    void string(std::string_view s) {
        static constexpr char HEX[] = "0123456789abcdef";
        out_ += '"';
        for (const char c : s) {
            if (c == '"' || c == '\\') {
                out_ += '\\';
                out_ += c;
            } else if (static_cast<unsigned char>(c) < 0x20) {
                out_.append("\\u00").append(1, HEX[c >> 4]).append(1, HEX[c & 15]);
            } else {
                out_ += c;
            }
        }
        out_ += '"';
    }

#define NUMBER(n)   \
    name(#n);       \
    number(m.n);
#define STRING(n)   \
    name(#n);       \
    string(m.n);
    void plain(const model::Part& m) { PART_FIELDS(NUMBER, STRING, NUMBER) }
    void plain(const model::Supplier& m) { SUPPLIER_FIELDS(NUMBER, STRING, NUMBER) }
    void plain(const model::LineItem& m) { LINE_ITEM_FIELDS(NUMBER, STRING, NUMBER) }
    void plain(const model::Order& m) { ORDER_FIELDS(NUMBER, STRING, NUMBER) }
    void plain(const model::Customer& m) { CUSTOMER_FIELDS(NUMBER, STRING, NUMBER) }
    void plain(const model::Entry& m) {
        NUMBER(position)
        NUMBER(value)
    }
    void plain(const model::SparseVector&) {}
#undef NUMBER
#undef STRING

    template <class M>
    void write(const M& m) {
        out_ += '{';
        plain(m);
        if constexpr (std::is_same_v<M, model::LineItem>) {
            name("supplier");
            write(m.supplier);
            name("part");
            write(m.part);
        } else if constexpr (std::is_same_v<M, model::Order>) {
            list("lineItems", m.lineItems);
        } else if constexpr (std::is_same_v<M, model::Customer>) {
            list("orders", m.orders);
        } else if constexpr (std::is_same_v<M, model::SparseVector>) {
            list("entries", m.entries);
        }
        out_ += '}';
    }

  private:
    template <class L>
    void list(std::string_view label, const L& items) {
        name(label);
        out_ += '[';
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (i > 0) out_ += ',';
            write(items[i]);
        }
        out_ += ']';
    }
    std::string& out_;
};

std::int32_t integer(std::int64_t n) {
    if (n < INT32_MIN || n > INT32_MAX) throw std::runtime_error("a number is too large");
    return static_cast<std::int32_t>(n);
}

#define INTEGER(n) m.n = integer(from[#n].get_int64());
#define STRING(n) m.n = std::string_view(from[#n].get_string());
#define DOUBLE(n) m.n = from[#n].get_double();
void plain(object from, model::Part& m) { PART_FIELDS(INTEGER, STRING, DOUBLE) }
void plain(object from, model::Supplier& m) { SUPPLIER_FIELDS(INTEGER, STRING, DOUBLE) }
void plain(object& from, model::LineItem& m) {
    LINE_ITEM_FIELDS(INTEGER, STRING, DOUBLE)
    plain(from["supplier"].get_object(), m.supplier);
    plain(from["part"].get_object(), m.part);
}
void plain(object& from, model::Order& m) {
    ORDER_FIELDS(INTEGER, STRING, DOUBLE)
    for (object item : from["lineItems"].get_array()) plain(item, m.lineItems.emplace_back());
}
void plain(object& from, model::Customer& m) {
    CUSTOMER_FIELDS(INTEGER, STRING, DOUBLE)
    for (object order : from["orders"].get_array()) plain(order, m.orders.emplace_back());
}
void plain(object& from, model::SparseVector& m) {
    for (object entry : from["entries"].get_array())
        m.entries.push_back({integer(entry["position"].get_int64()), entry["value"].get_double()});
}
#undef INTEGER
#undef STRING
#undef DOUBLE

simdjson::ondemand::document parsed(Bytes bytes) {
    thread_local simdjson::ondemand::parser parser;
    // Behind the text there are at least SLACK bytes of the page's buffer.
    static_assert(SLACK >= simdjson::SIMDJSON_PADDING);
    return parser.iterate(bytes.data(), bytes.size(), bytes.size() + simdjson::SIMDJSON_PADDING);
}

}  // namespace

struct JsonText : Decoded<JsonText> {
    template <class T>
    static void encode(const T& value, std::string& out) {
        Text(out).write(value);
    }
    template <class T>
    static void decode(Bytes bytes, T& value) {
        auto document = parsed(bytes);
        object whole = document.get_object();
        plain(whole, value);
    }
    // One field is found without the others.
    template <class T>
    static walk::Key key_at(const Byte* page, std::uint32_t position) {
        const char* const name = std::is_same_v<T, model::Part>       ? "partKey"
                                 : std::is_same_v<T, model::Customer> ? "custKey"
                                                                      : "orderKey";
        auto document = parsed(bytes_at(page, position));
        return {integer(document[name].get_int64()), 0};
    }
    using Vector = DecodedVector<JsonText>;
};

const Registered<JsonText> json{"json", std::to_string(simdjson::SIMDJSON_VERSION_MAJOR) + "." + std::to_string(simdjson::SIMDJSON_VERSION_MINOR) + "." + std::to_string(simdjson::SIMDJSON_VERSION_REVISION), "text, parsed by simdjson into structs"};
