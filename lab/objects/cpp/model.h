// The language's own objects: structs with strings and vectors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fields.h"

namespace model {

#define I(n) std::int32_t n = 0;
#define S(n) std::string n;
#define F(n) double n = 0;

struct Part {
    PART_FIELDS(I, S, F)
};

struct Supplier {
    SUPPLIER_FIELDS(I, S, F)
};

struct LineItem {
    LINE_ITEM_FIELDS(I, S, F)
    Supplier supplier;
    Part part;
};

struct Order {
    ORDER_FIELDS(I, S, F)
    std::vector<LineItem> lineItems;
};

struct Customer {
    CUSTOMER_FIELDS(I, S, F)
    std::vector<Order> orders;
};

#undef I
#undef S
#undef F

struct Entry {
    std::int32_t position = 0;
    double value = 0;
};

struct SparseVector {
    std::vector<Entry> entries;
};

}  // namespace model
