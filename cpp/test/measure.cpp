// Prints figures. Customers with ten orders each, and these with one to seven line items
// of 15 fields as TPC-H has them, and the same line items flat. Random values of the same ranges
// and lengths are built. All times are medians; they are of the thread's processor time, so that
// they hold while other programs run.
#include <algorithm>
#include <ctime>
#include <iostream>
#include <random>

#include "flat_edit.hpp"
#include "nested_edit.hpp"

namespace {

double now() {
    timespec time;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// The median time of a run in nanoseconds, and the fastest and slowest.
template <class Run>
void report(const char* what, double per, const char* unit, bool inverse, Run run) {
    std::vector<double> times;
    for (int i = 0; i < 12; ++i) {
        double before = now();
        run();
        if (i > 0) times.push_back(now() - before);
    }
    std::sort(times.begin(), times.end());
    auto shown = [&](double time) { return inverse ? per / time : time / per; };
    std::printf("%-58s %8.2f %s (%.2f to %.2f)\n", what, shown(times[times.size() / 2]), unit,
                shown(times.front()), shown(times.back()));
}

std::mt19937_64 random_(1);
std::size_t below(std::size_t end) { return random_() % end; }

std::string_view one_of(std::initializer_list<std::string_view> texts) {
    return texts.begin()[below(texts.size())];
}

// Line items have the same setters in both schemas.
template <class Item>
void write(Item item, int line) {
    static const std::string comment(43, 'c');
    item.orderkey(static_cast<std::int64_t>(below(600'000)));
    item.partkey(static_cast<std::int64_t>(below(20'000)));
    item.suppkey(static_cast<std::int64_t>(below(1000)));
    item.extendedprice(static_cast<std::int64_t>(below(10'000'000)));
    item.discount(static_cast<std::int64_t>(below(11)));
    item.tax(static_cast<std::int64_t>(below(9)));
    item.linenumber(line);
    auto day = [] { return dray::Date32(std::chrono::days(8000 + below(2500))); };
    item.shipdate(day());
    item.commitdate(day());
    item.receiptdate(day());
    item.returnflag(one_of({"A", "N", "R"}));
    item.linestatus(one_of({"F", "O"}));
    item.shipinstruct(one_of({"DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"}));
    item.shipmode(one_of({"REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"}));
    item.comment(std::string_view(comment).substr(0, 10 + below(34)));
}

template <class Item>
std::uint64_t sum_of(Item item, std::uint64_t sum) {
    auto add = [&](auto value) { sum = sum * 3 + static_cast<std::uint64_t>(value); };
    add(item.orderkey());
    add(item.partkey());
    add(item.suppkey());
    add(item.extendedprice());
    add(item.discount());
    add(item.tax());
    add(item.linenumber());
    add(item.shipdate().time_since_epoch().count());
    add(item.commitdate().time_since_epoch().count());
    add(item.receiptdate().time_since_epoch().count());
    add(item.returnflag().size());
    add(item.linestatus().size());
    add(item.shipinstruct().size());
    add(item.shipmode().size());
    add(item.comment().size());
    return sum;
}

std::uint64_t sum_of(nested::Customer customer) {
    auto sum = static_cast<std::uint64_t>(customer.custkey());
    for (auto order : customer.orders()) {
        sum = sum * 3 + static_cast<std::uint64_t>(order.orderkey());
        for (auto item : order.items()) sum = sum_of(item, sum);
    }
    return sum;
}

// What would be optimized away otherwise.
volatile std::uint64_t sink;

void verification(const char* name, const std::vector<dray::VerifiedPage>& all) {
    std::printf("%s\n", name);
    std::vector<dray::detail::Buffer> bare;
    double bytes = 0;
    for (const auto& page : all) {
        dray::Bytes from = page.view().bytes();
        bytes += static_cast<double>(from.size());
        dray::Header header = page.header();
        header.checksum.reset();
        std::memcpy(bare.emplace_back(from.size()).data(), from.data(), from.size());
        header.encode(bare.back().data());
    }
    const auto& layout = all[0].layout();
    report("  verify, with checksum", bytes, "GB/s", true, [&] {
        for (const auto& page : all) dray::VerifiedPage::verify(layout, page.view().bytes());
    });
    report("  verify pages without checksum", bytes, "GB/s", true, [&] {
        for (const auto& page : bare) dray::VerifiedPage::verify(layout, page);
    });
    report("  checksum alone", bytes, "GB/s", true, [&] {
        for (const auto& page : all) {
            dray::Bytes from = page.view().bytes();
            sink = dray::detail::page_checksum(from.data(), from.size());
        }
    });
    constexpr std::size_t TIMES = 200;
    double one = static_cast<double>(all[0].view().bytes().size() * TIMES);
    report("  verify one page again and again, with checksum", one, "GB/s", true, [&] {
        for (std::size_t i = 0; i < TIMES; ++i) {
            dray::VerifiedPage::verify(layout, all[0].view().bytes());
        }
    });
}

}  // namespace

int main() {
    flat::LineitemBuilder lines;
    for (int i = 0; i < 300'000; ++i) {
        write(lines.begin(), i % 7);
        lines.end();
    }
    verification("line items, flat", lines.finish());

    constexpr std::size_t CUSTOMERS = 15'000;
    std::size_t items = 0;
    nested::CustomerBuilder builder;
    std::vector<dray::VerifiedPage> pages;
    auto build = [&] {
        random_.seed(1);
        items = 0;
        for (std::size_t i = 0; i < CUSTOMERS; ++i) {
            auto customer = builder.begin();
            customer.custkey(static_cast<std::int64_t>(i));
            auto orders = customer.orders(10);
            for (int k = 0; k < 10; ++k) {
                auto order = orders.next();
                order.orderkey(k);
                std::size_t count = 1 + below(7);
                auto of_order = order.items(count);
                for (std::size_t n = 0; n < count; ++n) write(of_order.next(), static_cast<int>(n));
                items += count;
            }
            builder.end();
        }
        pages = builder.finish();
    };
    build();
    verification("customers with orders and line items", pages);
    auto count = static_cast<double>(items);
    report("  build, with the random values", count, "ns per line item", false, build);

    std::vector<nested::Customer> in_order, shuffled;
    for (const auto& page : pages) {
        for (nested::Customer customer : nested::CustomerPage(page)) in_order.push_back(customer);
    }
    shuffled = in_order;
    std::shuffle(shuffled.begin(), shuffled.end(), random_);
    auto read = [&](const std::vector<nested::Customer>& customers, bool prefetches = false) {
        std::uint64_t all = 0;
        for (nested::Customer customer : customers) {
            if (prefetches) customer.prefetch();
            all ^= sum_of(customer);
        }
        sink = all;
    };
    report("  read whole customers in order", count, "ns per line item", false,
           [&] { read(in_order); });
    report("  read whole customers at random", count, "ns per line item", false,
           [&] { read(shuffled); });
    report("  the same, each prefetched", count, "ns per line item", false,
           [&] { read(shuffled, true); });

    nested::CustomerPageEditor editor{nested::CustomerPage(pages[0])};
    constexpr std::size_t TIMES = 10'000;
    auto changes = static_cast<double>(TIMES * editor.size());
    report("change one number, the customer looked up", changes, "ns", false, [&] {
        for (std::size_t i = 0; i < TIMES; ++i) {
            for (std::size_t k = 0; k < editor.size(); ++k) {
                editor[k].custkey(static_cast<std::int64_t>(i));
            }
        }
    });
    auto item = editor[0].orders()[9].items()[0];
    report("change one number of a line item that was looked up", TIMES, "ns", false, [&] {
        for (std::size_t i = 0; i < TIMES; ++i) item.tax(static_cast<std::int64_t>(i));
    });
    report("change one number of a line item, looked up each time", TIMES, "ns", false, [&] {
        for (std::size_t i = 0; i < TIMES; ++i) {
            editor[i % 16].orders()[i % 10].items()[0].tax(static_cast<std::int64_t>(i));
        }
    });
}
