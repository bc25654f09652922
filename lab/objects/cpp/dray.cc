// Dray's pages: classes that `dray accessors` has generated (pages/) read, build and change objects
// where they lie. A page is verified as a whole. The position of an object is its slot.
#include "experiments.h"
#include "pages/customer_edit.hpp"
#include "pages/lineitem_edit.hpp"
#include "pages/part_edit.hpp"
#include "pages/sparsevector_edit.hpp"

namespace {

// Offsets in the header of a page.
constexpr std::size_t OBJECTS_AT = 16, PAGE_BYTES_AT = 20;
// Pages of messages are small, so that a message has little free space.
constexpr std::size_t MESSAGE_PAGE_BYTES = 4096;

template <class T>
struct PagesOf;
template <>
struct PagesOf<model::Part> {
    using View = pages::part::Part;
    using Builder = pages::part::PartBuilder;
    using Editor = pages::part::PartPageEditor;
};
template <>
struct PagesOf<model::LineItem> {
    using View = pages::lineitem::LineItem;
    using Builder = pages::lineitem::LineItemBuilder;
    using Editor = pages::lineitem::LineItemPageEditor;
};
template <>
struct PagesOf<model::Customer> {
    using View = pages::customer::Customer;
    using Builder = pages::customer::CustomerBuilder;
    using Editor = pages::customer::CustomerPageEditor;
};

// Writes objects into a page, from the language's own objects or from those of another page: G
// tells how these are read. Strings and lists come in the order of the schema.
#define SET(n) to.n(G::n(from));
template <class G>
struct Write {
    static void object(auto&& to, const auto& from, walk::About<model::Part>) {
        PART_FIELDS(SET, SET, SET)
    }
    static void object(auto&& to, const auto& from, walk::About<model::Supplier>) {
        SUPPLIER_FIELDS(SET, SET, SET)
    }
    static void object(auto&& to, const auto& from, walk::About<model::LineItem>) {
        LINE_ITEM_FIELDS(SET, SET, SET)
        object(to.supplier(), G::supplier(from), walk::About<model::Supplier>{});
        object(to.part(), G::part(from), walk::About<model::Part>{});
    }
    static void object(auto&& to, const auto& from, walk::About<model::Order>) {
        ORDER_FIELDS(SET, SET, SET)
        auto&& items = G::lineItems(from);
        auto written = to.lineItems(items.size());
        for (auto&& item : items) object(written.next(), item, walk::About<model::LineItem>{});
    }
    static void object(auto&& to, const auto& from, walk::About<model::Customer>,
                       const model::Order* one_more = nullptr) {
        CUSTOMER_FIELDS(SET, SET, SET)
        auto&& orders = G::orders(from);
        auto written = to.orders(orders.size() + (one_more ? 1 : 0));
        for (auto&& order : orders) object(written.next(), order, walk::About<model::Order>{});
        if (one_more)
            Write<ModelGet>::object(written.next(), *one_more, walk::About<model::Order>{});
    }
};
#undef SET

void change(pages::part::PartPageEditor& page, std::uint32_t slot) {
    page[slot].retailPrice(page.view(slot).retailPrice() + 1.0);
}
void change(pages::lineitem::LineItemPageEditor& page, std::uint32_t slot) {
    page[slot].extendedPrice(page.view(slot).extendedPrice() + 1.0);
}
void change(pages::customer::CustomerPageEditor& page, std::uint32_t slot) {
    page[slot].acctbal(page.view(slot).acctbal() + 1.0);
}

dray::Bytes bytes_of(const Byte* at, std::size_t size) {
    return {reinterpret_cast<const std::byte*>(at), size};
}

}  // namespace

struct DrayPages {
    static constexpr Validates VALIDATES = APART;
    static constexpr bool IN_PLACE = false;
    static constexpr bool READS_PAGE = true;
    static constexpr bool WHOLE_PAGES = true;

    template <class T>
    using Object = typename PagesOf<T>::View;
    template <class T>
    using Page = dray::ObjectPage<Object<T>>;

    struct Get {
#define X(camel, Pascal, lower)                         \
    template <class V>                                  \
    static auto camel(const V& v) {                     \
        return v.camel();                               \
    }
        FIELD_NAMES(X)
#undef X
        static std::string_view text(std::string_view s) { return s; }
    };

    template <class V>
    static const V& root(const V& object) {
        return object;
    }
    static std::uint32_t page_bytes(const Byte* page) { return u32_at(page + PAGE_BYTES_AT); }
    static void positions(const Byte* page, std::vector<std::uint32_t>& out) {
        for (std::uint32_t i = 0, n = u32_at(page + OBJECTS_AT); i < n; ++i) out.push_back(i);
    }

    // The only way from bytes to a page that the library has.
    template <class T>
    static Page<T> verified(const Byte* page, std::size_t page_bytes) {
        return Page<T>::verify(bytes_of(page, page_bytes));
    }
    template <class T>
    static bool valid(const Byte* page, std::uint32_t page_bytes, std::uint32_t) {
        verified<T>(page, page_bytes);
        return true;
    }
    // The object of a slot. `--validate no` trusts the page, as the library would not.
    template <class T>
    static Object<T> at(const Byte* page, std::uint32_t slot) {
        const std::uint32_t offset = u32_at(page + page_bytes(page) - 4 * (slot + 1));
        return Object<T>(reinterpret_cast<const std::byte*>(page + offset));
    }
    template <class T, class H>
    static void open(const Byte* page, std::uint32_t slot, H& held) {
        held.emplace(at<T>(page, slot));
    }
    template <class T>
    static walk::Key key_at(const Byte* page, std::uint32_t slot) {
        return walk::key<Get>(walk::About<T>{}, at<T>(page, slot));
    }

    // Overwrites a number of each object in a copy of the page, which gets a new checksum.
    template <class T>
    static void change(const Page<T>& page, const std::vector<std::uint32_t>& slots,
                       const Sink& sink) {
        typename PagesOf<T>::Editor editor(page);
        for (const auto slot : slots) ::change(editor, slot);
        hand_over(editor.seal(), slots, sink);
    }

    static void hand_over(const dray::VerifiedPage& page, std::vector<std::uint32_t> slots,
                          const Sink& sink) {
        const dray::Header& header = page.header();
        sink({reinterpret_cast<const Byte*>(page.view().bytes().data()), header.page_bytes,
              std::move(slots), header.objects_end - dray::HEADER_BYTES});
    }

    template <class T>
    class Writer {
      public:
        explicit Writer(Sink sink) : sink_(std::move(sink)) {}

        void add(const T& value) {
            Write<ModelGet>::object(builder_.begin(), value, walk::About<T>{});
            builder_.end();
            hand_over_all(builder_.take());
        }
        void add_object(const Object<T>& object) {
            builder_.copy(object);
            hand_over_all(builder_.take());
        }
        // The object is written anew from what it was.
        void add_grown(const Byte* page, std::uint32_t slot) {
            const auto old = at<T>(page, slot);
            const model::Order order = grown(old.custKey());
            Write<Get>::object(builder_.begin(), old, walk::About<T>{}, &order);
            builder_.end();
            hand_over_all(builder_.take());
        }
        void finish() { hand_over_all(builder_.finish()); }

      private:
        void hand_over_all(const std::vector<dray::VerifiedPage>& full) {
            for (const auto& page : full) {
                std::vector<std::uint32_t> slots;
                for (std::uint32_t i = 0; i < page.size(); ++i) slots.push_back(i);
                hand_over(page, std::move(slots), sink_);
            }
        }
        Sink sink_;
        typename PagesOf<T>::Builder builder_;
    };

    struct Vector {
        using Page = pages::sparsevector::SparseVectorPage;
        struct Object {
            Page page;
            decltype(std::declval<pages::sparsevector::SparseVector>().entries()) entries;
            std::size_t size() const { return entries.size(); }
            model::Entry entry(std::size_t i) const {
                const auto entry = entries[i];
                return {entry.position(), entry.value()};
            }
        };
        // A message comes from another process, so it is verified.
        static Object open(Bytes bytes) {
            auto page = Page::verify(bytes_of(bytes.data(), bytes.size()));
            auto entries = page[0].entries();
            return {std::move(page), entries};
        }
        static void encode(const Object& object, std::string& out) {
            const auto bytes = object.page.page().view().bytes();
            out.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        }
        // A list says how many items it has before they come.
        struct Builder {
            std::vector<model::Entry> entries;
            explicit Builder(std::size_t entries_max) { entries.reserve(entries_max); }
            void add(std::int32_t position, double value) { entries.push_back({position, value}); }
            std::string finish() {
                pages::sparsevector::SparseVectorBuilder builder(MESSAGE_PAGE_BYTES);
                auto written = builder.begin().entries(entries.size());
                for (const auto& entry : entries) {
                    auto to = written.next();
                    to.position(entry.position);
                    to.value(entry.value);
                }
                builder.end();
                const auto page = builder.finish().at(0);
                const auto bytes = page.view().bytes();
                return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
            }
        };
    };
};

const Registered<DrayPages> dray_pages{
    "dray", "0.1.0",
    "pages are read, built and changed in place by generated classes; only whole pages are "
    "validated; a change copies its page, and a list that grows writes its object anew"};
