package study.implementation;

import study.Checksum;
import study.proto.Proto;

/** The checksum of messages. */
final class ProtobufChecksum {
    private ProtobufChecksum() {}

    static long add(long h, Proto.Part part) {
        h = Checksum.add(h, part.getPartKey());
        h = Checksum.add(h, part.getName());
        h = Checksum.add(h, part.getMfgr());
        h = Checksum.add(h, part.getBrand());
        h = Checksum.add(h, part.getType());
        h = Checksum.add(h, part.getSize());
        h = Checksum.add(h, part.getContainer());
        h = Checksum.add(h, part.getRetailPrice());
        h = Checksum.add(h, part.getComment());
        return h;
    }

    static long add(long h, Proto.Supplier supplier) {
        h = Checksum.add(h, supplier.getSupplierKey());
        h = Checksum.add(h, supplier.getName());
        h = Checksum.add(h, supplier.getAddress());
        h = Checksum.add(h, supplier.getNationKey());
        h = Checksum.add(h, supplier.getPhone());
        h = Checksum.add(h, supplier.getAcctbal());
        h = Checksum.add(h, supplier.getComment());
        return h;
    }

    static long add(long h, Proto.LineItem item) {
        h = Checksum.add(h, item.getOrderKey());
        h = Checksum.add(h, item.getLineNumber());
        h = Checksum.add(h, item.getQuantity());
        h = Checksum.add(h, item.getExtendedPrice());
        h = Checksum.add(h, item.getDiscount());
        h = Checksum.add(h, item.getTax());
        h = Checksum.add(h, item.getReturnFlag());
        h = Checksum.add(h, item.getLineStatus());
        h = Checksum.add(h, item.getShipDate());
        h = Checksum.add(h, item.getCommitDate());
        h = Checksum.add(h, item.getReceiptDate());
        h = Checksum.add(h, item.getShipInstruct());
        h = Checksum.add(h, item.getShipMode());
        h = Checksum.add(h, item.getComment());
        h = add(h, item.getSupplier());
        h = add(h, item.getPart());
        return h;
    }

    static long add(long h, Proto.Order order) {
        h = Checksum.add(h, order.getOrderKey());
        h = Checksum.add(h, order.getCustKey());
        h = Checksum.add(h, order.getOrderStatus());
        h = Checksum.add(h, order.getTotalPrice());
        h = Checksum.add(h, order.getOrderDate());
        h = Checksum.add(h, order.getOrderPriority());
        h = Checksum.add(h, order.getClerk());
        h = Checksum.add(h, order.getShipPriority());
        h = Checksum.add(h, order.getComment());
        h = Checksum.add(h, order.getLineItemsCount());
        for (Proto.LineItem item : order.getLineItemsList()) {
            h = add(h, item);
        }
        return h;
    }

    static long add(long h, Proto.Customer customer) {
        h = Checksum.add(h, customer.getCustKey());
        h = Checksum.add(h, customer.getName());
        h = Checksum.add(h, customer.getAddress());
        h = Checksum.add(h, customer.getNationKey());
        h = Checksum.add(h, customer.getPhone());
        h = Checksum.add(h, customer.getAcctbal());
        h = Checksum.add(h, customer.getMktSegment());
        h = Checksum.add(h, customer.getComment());
        h = Checksum.add(h, customer.getOrdersCount());
        for (Proto.Order order : customer.getOrdersList()) {
            h = add(h, order);
        }
        return h;
    }
}
