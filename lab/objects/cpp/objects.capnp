# The objects in Cap'n Proto.
@0xb0d2c6a1f3e84957;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("cp");

struct Part {
    partKey @0 :Int32;
    name @1 :Text;
    mfgr @2 :Text;
    brand @3 :Text;
    type @4 :Text;
    size @5 :Int32;
    container @6 :Text;
    retailPrice @7 :Float64;
    comment @8 :Text;
}

struct Supplier {
    supplierKey @0 :Int32;
    name @1 :Text;
    address @2 :Text;
    nationKey @3 :Int32;
    phone @4 :Text;
    acctbal @5 :Float64;
    comment @6 :Text;
}

struct LineItem {
    orderKey @0 :Int32;
    lineNumber @1 :Int32;
    quantity @2 :Float64;
    extendedPrice @3 :Float64;
    discount @4 :Float64;
    tax @5 :Float64;
    returnFlag @6 :Text;
    lineStatus @7 :Text;
    shipDate @8 :Int32;
    commitDate @9 :Int32;
    receiptDate @10 :Int32;
    shipInstruct @11 :Text;
    shipMode @12 :Text;
    comment @13 :Text;
    supplier @14 :Supplier;
    part @15 :Part;
}

struct Order {
    orderKey @0 :Int32;
    custKey @1 :Int32;
    orderStatus @2 :Text;
    totalPrice @3 :Float64;
    orderDate @4 :Int32;
    orderPriority @5 :Text;
    clerk @6 :Text;
    shipPriority @7 :Int32;
    comment @8 :Text;
    lineItems @9 :List(LineItem);
}

struct Customer {
    custKey @0 :Int32;
    name @1 :Text;
    address @2 :Text;
    nationKey @3 :Int32;
    phone @4 :Text;
    acctbal @5 :Float64;
    mktSegment @6 :Text;
    comment @7 :Text;
    orders @8 :List(Order);
}

struct Entry {
    position @0 :Int32;
    value @1 :Float64;
}

struct SparseVector {
    entries @0 :List(Entry);
}
