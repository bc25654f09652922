// In-place objects as in the thesis: members that are plain or offset_ptr, allocated on a page. An
// offset_ptr has the distance to its target, so a page can be moved. Bytes are trusted: nothing
// checks that a distance stays in the page.
#include <boost/interprocess/offset_ptr.hpp>
#include <boost/version.hpp>

#include "experiments.h"
#include "fill.h"

namespace {

using boost::interprocess::offset_ptr;

// A page: u32 page_bytes, u32 objects, u32 used; objects from 16 on; behind them free space, then
// the offsets of the objects, from the end of the page downwards.
class Page {
  public:
    explicit Page(Byte* at) : at_(at) {}
    std::uint32_t bytes() const { return u32_at(at_); }
    std::uint32_t objects() const { return u32_at(at_ + 4); }
    std::uint32_t used() const { return u32_at(at_ + 8); }
    std::uint32_t slot(std::uint32_t i) const { return u32_at(at_ + bytes() - 4 * (i + 1)); }

    void clear(std::uint32_t page_bytes) {
        put_u32(at_, page_bytes);
        put_u32(at_ + 4, 0);
        put_u32(at_ + 8, 16);
        std::memset(at_ + 16, 0, page_bytes - 16);
    }
    void* take(std::size_t n, std::size_t alignment) {
        const std::size_t begin = padded(used(), alignment);
        if (begin + n + 4 * (objects() + 1) > bytes()) throw Full();
        put_u32(at_ + 8, static_cast<std::uint32_t>(begin + n));
        return at_ + begin;
    }
    void rewind(std::uint32_t used_before) {
        std::memset(at_ + used_before, 0, used() - used_before);
        put_u32(at_ + 8, used_before);
    }
    void list(const void* object) {
        const std::uint32_t n = objects();
        put_u32(at_ + bytes() - 4 * (n + 1),
                static_cast<std::uint32_t>(static_cast<const Byte*>(object) - at_));
        put_u32(at_ + 4, n + 1);
    }
    struct Full {};

  private:
    Byte* at_;
};

#define I(n) std::int32_t n = 0;
#define S(n) offset_ptr<char> n;
#define F(n) double n = 0;
struct PartIP {
    PART_FIELDS(I, S, F)
};
struct SupplierIP {
    SUPPLIER_FIELDS(I, S, F)
};
struct LineItemIP {
    LINE_ITEM_FIELDS(I, S, F)
    SupplierIP supplier;
    PartIP part;
};
// An array of sub-objects, as it is read.
template <class T>
struct Items {
    const T* first;
    std::uint32_t count;
    std::size_t size() const { return count; }
    const T* begin() const { return first; }
    const T* end() const { return first + count; }
};
struct OrderIP {
    ORDER_FIELDS(I, S, F)
    std::int32_t numLineItems = 0;
    offset_ptr<LineItemIP> lineItems;
};
struct CustomerIP {
    CUSTOMER_FIELDS(I, S, F)
    std::int32_t numOrders = 0;
    offset_ptr<OrderIP> orders;
};
#undef I
#undef S
#undef F
struct VectorIP {
    std::uint32_t numEntries = 0;
    offset_ptr<model::Entry> entries;
};

struct GetPlain {
#define X(camel, Pascal, lower)                     \
    template <class V>                              \
    static const auto& camel(const V& v) {          \
        return v.camel;                             \
    }
    FIELD_NAMES(X)
#undef X
    static std::string_view text(const offset_ptr<char>& s) { return s.get(); }
};
struct GetInPlace : GetPlain {
    static Items<OrderIP> orders(const CustomerIP& v) {
        return {v.orders.get(), static_cast<std::uint32_t>(v.numOrders)};
    }
    static Items<LineItemIP> lineItems(const OrderIP& v) {
        return {v.lineItems.get(), static_cast<std::uint32_t>(v.numLineItems)};
    }
};

// Builds objects on a page, from the language's own objects or from those of another page: G tells
// how these are read.
template <class G>
struct Maker {
    Page page;

    template <class T>
    T* array(std::size_t n) {
        auto* at = static_cast<T*>(page.take(n * sizeof(T), alignof(T)));
        for (std::size_t i = 0; i < n; ++i) new (at + i) T();
        return at;
    }
    void string(offset_ptr<char>& to, std::string_view s) {
        auto* at = static_cast<char*>(page.take(s.size() + 1, 1));
        std::memcpy(at, s.data(), s.size());
        at[s.size()] = 0;
        to = at;
    }
#define PLAIN(n) to.n = G::n(from);
#define STRING(n) string(to.n, G::text(G::n(from)));
    template <class V>
    void make(PartIP& to, const V& from) {
        PART_FIELDS(PLAIN, STRING, PLAIN)
    }
    template <class V>
    void make(SupplierIP& to, const V& from) {
        SUPPLIER_FIELDS(PLAIN, STRING, PLAIN)
    }
    template <class V>
    void make(LineItemIP& to, const V& from) {
        LINE_ITEM_FIELDS(PLAIN, STRING, PLAIN)
        make(to.supplier, G::supplier(from));
        make(to.part, G::part(from));
    }
    template <class V>
    void make(OrderIP& to, const V& from) {
        ORDER_FIELDS(PLAIN, STRING, PLAIN)
        auto&& items = G::lineItems(from);
        to.numLineItems = static_cast<std::int32_t>(items.size());
        to.lineItems = array<LineItemIP>(items.size());
        LineItemIP* at = to.lineItems.get();
        for (auto&& item : items) make(*at++, item);
    }
    // With room for more orders behind these.
    template <class V>
    void make(CustomerIP& to, const V& from, std::size_t more = 0) {
        CUSTOMER_FIELDS(PLAIN, STRING, PLAIN)
        auto&& all = G::orders(from);
        to.numOrders = static_cast<std::int32_t>(all.size() + more);
        to.orders = array<OrderIP>(all.size() + more);
        OrderIP* at = to.orders.get();
        for (auto&& order : all) make(*at++, order);
    }
#undef PLAIN
#undef STRING
};

template <class T>
struct InPlaceOf;
template <>
struct InPlaceOf<model::Part> {
    using Type = PartIP;
};
template <>
struct InPlaceOf<model::LineItem> {
    using Type = LineItemIP;
};
template <>
struct InPlaceOf<model::Customer> {
    using Type = CustomerIP;
};

double& changed(PartIP& v) { return v.retailPrice; }
double& changed(LineItemIP& v) { return v.extendedPrice; }
double& changed(CustomerIP& v) { return v.acctbal; }

}  // namespace

struct InPlace {
    static constexpr Validates VALIDATES = NEVER;
    static constexpr bool IN_PLACE = true;
    static constexpr bool WHOLE_PAGES = false;
    static constexpr bool READS_PAGE = true;
    using Get = GetInPlace;
    template <class T>
    using Type = typename InPlaceOf<T>::Type;
    template <class T>
    using Object = const Type<T>*;

    template <class V>
    static const V& root(const V* object) {
        return *object;
    }
    static std::uint32_t page_bytes(const Byte* page) { return u32_at(page); }
    static void positions(const Byte* at, std::vector<std::uint32_t>& out) {
        const Page page(const_cast<Byte*>(at));
        for (std::uint32_t i = 0; i < page.objects(); ++i) out.push_back(page.slot(i));
    }
    template <class T>
    static Type<T>* at(const Byte* page, std::uint32_t position) {
        return reinterpret_cast<Type<T>*>(const_cast<Byte*>(page) + position);
    }
    template <class T, class H>
    static void open(const Byte* page, std::uint32_t position, H& held) {
        held.emplace(at<T>(page, position));
    }
    template <class T>
    static walk::Key key_at(const Byte* page, std::uint32_t position) {
        return walk::key<Get>(walk::About<T>{}, *at<T>(page, position));
    }
    template <class T>
    static void change(Byte* page, std::uint32_t position) {
        changed(*at<T>(page, position)) += 1.0;
    }

    template <class T>
    class Writer {
      public:
        explicit Writer(Sink sink) : sink_(std::move(sink)) { restart(PAGE_BYTES); }

        void add(const T& value) {
            place([&] {
                Maker<ModelGet> maker{page()};
                auto* to = maker.array<Type<T>>(1);
                maker.make(*to, value);
                return to;
            });
        }
        void add_object(const Type<T>* object) {
            place([&] {
                Maker<Get> maker{page()};
                auto* to = maker.array<Type<T>>(1);
                maker.make(*to, *object);
                return to;
            });
        }
        void add_grown(const Byte* from, std::uint32_t position) {
            place([&] {
                const CustomerIP* old = at<model::Customer>(from, position);
                Maker<Get> maker{page()};
                auto* to = maker.array<CustomerIP>(1);
                maker.make(*to, *old, 1);
                Maker<ModelGet>{page()}.make(to->orders[old->numOrders], grown(old->custKey));
                return to;
            });
        }
        void finish() {
            if (written_.positions.empty()) return;
            written_.data = buffer_.data();
            written_.page_bytes = page().bytes();
            sink_(written_);
            restart(PAGE_BYTES);
        }

      private:
        Page page() { return Page(buffer_.data()); }
        void restart(std::size_t bytes) {
            if (buffer_.size() != bytes) buffer_ = Buffer(bytes);
            page().clear(static_cast<std::uint32_t>(bytes));
            written_ = {};
        }
        // Makes an object on this page, or on the next one, or on one that is large enough.
        template <class Make>
        void place(Make make) {
            for (;;) {
                const std::uint32_t before = page().used();
                try {
                    const void* made = make();
                    page().list(made);
                    written_.positions.push_back(page().slot(page().objects() - 1));
                    written_.object_bytes += page().used() - before;
                    if (buffer_.size() > PAGE_BYTES) finish();
                    return;
                } catch (const Page::Full&) {
                    page().rewind(before);
                    if (written_.positions.empty())
                        restart(buffer_.size() + PAGE_BYTES);
                    else
                        finish();
                }
            }
        }
        Sink sink_;
        Buffer buffer_;
        Written written_{};
    };

    struct Vector {
        struct Object {
            const VectorIP* vector;
            Bytes bytes;
            std::size_t size() const { return vector->numEntries; }
            model::Entry entry(std::size_t i) const { return vector->entries.get()[i]; }
        };
        static Object open(Bytes bytes) {
            return {reinterpret_cast<const VectorIP*>(bytes.data() + 16), bytes};
        }
        static void encode(const Object& object, std::string& out) {
            out.assign(reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size());
        }
        // A page that is as large as the vector can get, and is cut behind its entries.
        struct Builder {
            Buffer buffer;
            VectorIP* vector;
            explicit Builder(std::size_t entries_max)
                : buffer(padded(64 + sizeof(VectorIP) + entries_max * sizeof(model::Entry), 8)) {
                if (buffer.size() > UINT32_MAX) throw std::runtime_error("a vector is too long");
                std::memset(buffer.data(), 0, 16);
                put_u32(buffer.data(), static_cast<std::uint32_t>(buffer.size()));
                put_u32(buffer.data() + 8, 16);
                Maker<ModelGet> maker{Page(buffer.data())};
                vector = maker.array<VectorIP>(1);
                vector->entries = static_cast<model::Entry*>(
                    maker.page.take(entries_max * sizeof(model::Entry), alignof(model::Entry)));
            }
            void add(std::int32_t position, double value) {
                vector->entries.get()[vector->numEntries++] = {position, value};
            }
            std::string finish() {
                const auto* end = reinterpret_cast<const char*>(vector->entries.get() +
                                                                vector->numEntries);
                return {reinterpret_cast<const char*>(buffer.data()), end};
            }
        };
    };
};

const Registered<InPlace> inplace{"inplace", BOOST_LIB_VERSION, "offset_ptr, strings end with a zero"};
