// Copies the language's own objects into objects of any implementation: `s.field(target, value)`
// for each of the plain fields of FIELD_NAMES.
#pragma once

#include "model.h"

namespace fill {

#define SET(n) s.n(to, m.n);
template <class S, class V>
void plain(S&& s, V&& to, const model::Part& m) {
    PART_FIELDS(SET, SET, SET)
}
template <class S, class V>
void plain(S&& s, V&& to, const model::Supplier& m) {
    SUPPLIER_FIELDS(SET, SET, SET)
}
template <class S, class V>
void plain(S&& s, V&& to, const model::LineItem& m) {
    LINE_ITEM_FIELDS(SET, SET, SET)
}
template <class S, class V>
void plain(S&& s, V&& to, const model::Order& m) {
    ORDER_FIELDS(SET, SET, SET)
}
template <class S, class V>
void plain(S&& s, V&& to, const model::Customer& m) {
    CUSTOMER_FIELDS(SET, SET, SET)
}
#undef SET

}  // namespace fill
