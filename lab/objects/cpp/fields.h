// The fields of the objects, once: I is a 32-bit integer, S a string, F a double. The order is that
// of the checksum. Lists and nested objects follow the plain fields: see walk.h.
#pragma once

#define PART_FIELDS(I, S, F)                                                                   \
    I(partKey) S(name) S(mfgr) S(brand) S(type) I(size) S(container) F(retailPrice) S(comment)

#define SUPPLIER_FIELDS(I, S, F)                                                               \
    I(supplierKey) S(name) S(address) I(nationKey) S(phone) F(acctbal) S(comment)

#define LINE_ITEM_FIELDS(I, S, F)                                                              \
    I(orderKey) I(lineNumber) F(quantity) F(extendedPrice) F(discount) F(tax) S(returnFlag)    \
    S(lineStatus) I(shipDate) I(commitDate) I(receiptDate) S(shipInstruct) S(shipMode) S(comment)

#define ORDER_FIELDS(I, S, F)                                                                  \
    I(orderKey) I(custKey) S(orderStatus) F(totalPrice) I(orderDate) S(orderPriority) S(clerk) \
    I(shipPriority) S(comment)

#define CUSTOMER_FIELDS(I, S, F)                                                               \
    I(custKey) S(name) S(address) I(nationKey) S(phone) F(acctbal) S(mktSegment) S(comment)

// All names, in the spellings of the code generators.
#define FIELD_NAMES(X)                       \
    X(partKey, PartKey, partkey)             \
    X(name, Name, name)                      \
    X(mfgr, Mfgr, mfgr)                      \
    X(brand, Brand, brand)                   \
    X(type, Type, type)                      \
    X(size, Size, size)                      \
    X(container, Container, container)       \
    X(retailPrice, RetailPrice, retailprice) \
    X(comment, Comment, comment)             \
    X(supplierKey, SupplierKey, supplierkey) \
    X(address, Address, address)             \
    X(nationKey, NationKey, nationkey)       \
    X(phone, Phone, phone)                   \
    X(acctbal, Acctbal, acctbal)             \
    X(orderKey, OrderKey, orderkey)          \
    X(lineNumber, LineNumber, linenumber)    \
    X(quantity, Quantity, quantity)          \
    X(extendedPrice, ExtendedPrice, extendedprice) \
    X(discount, Discount, discount)          \
    X(tax, Tax, tax)                         \
    X(returnFlag, ReturnFlag, returnflag)    \
    X(lineStatus, LineStatus, linestatus)    \
    X(shipDate, ShipDate, shipdate)          \
    X(commitDate, CommitDate, commitdate)    \
    X(receiptDate, ReceiptDate, receiptdate) \
    X(shipInstruct, ShipInstruct, shipinstruct) \
    X(shipMode, ShipMode, shipmode)          \
    X(supplier, Supplier, supplier)          \
    X(part, Part, part)                      \
    X(custKey, CustKey, custkey)             \
    X(orderStatus, OrderStatus, orderstatus) \
    X(totalPrice, TotalPrice, totalprice)    \
    X(orderDate, OrderDate, orderdate)       \
    X(orderPriority, OrderPriority, orderpriority) \
    X(clerk, Clerk, clerk)                   \
    X(shipPriority, ShipPriority, shippriority) \
    X(lineItems, LineItems, lineitems)       \
    X(mktSegment, MktSegment, mktsegment)    \
    X(orders, Orders, orders)
