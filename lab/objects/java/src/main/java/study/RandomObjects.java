package study;

import java.util.Random;
import study.model.Customer;
import study.model.Entry;
import study.model.LineItem;
import study.model.Order;
import study.model.Part;
import study.model.Plain;
import study.model.SparseVector;
import study.model.Supplier;

/** Objects about as large as those of TPC-H, for checks and for warming up. */
public final class RandomObjects {
    private static final String LETTERS = "abcdefghij klmnopqrstuvwxyz .,#ABCDEFG0123456789";
    private static final String OTHERS = "äé€字\u0000𝄞";

    private final Random random;
    private final boolean strange;

    /**
     * Begins a sequence.
     *
     * @param strange whether some strings are empty or have other letters than ASCII's, and some
     *     numbers are extreme: for checks
     */
    public RandomObjects(long seed, boolean strange) {
        random = new Random(seed);
        this.strange = strange;
    }

    public Plain next(Kind kind) {
        return switch (kind) {
            case PART -> part();
            case LINEITEM -> lineItem();
            case CUSTOMER -> customer();
            case VECTOR -> vector(random.nextInt(2000));
        };
    }

    private Part part() {
        Part part = new Part();
        part.partKey = integer();
        part.name = text(33);
        part.mfgr = text(14);
        part.brand = text(8);
        part.type = text(21);
        part.size = integer();
        part.container = text(8);
        part.retailPrice = number();
        part.comment = text(14);
        return part;
    }

    private Supplier supplier() {
        Supplier supplier = new Supplier();
        supplier.supplierKey = integer();
        supplier.name = text(18);
        supplier.address = text(25);
        supplier.nationKey = integer();
        supplier.phone = text(15);
        supplier.acctbal = number();
        supplier.comment = text(62);
        return supplier;
    }

    private LineItem lineItem() {
        LineItem item = new LineItem();
        item.orderKey = integer();
        item.lineNumber = integer();
        item.quantity = number();
        item.extendedPrice = number();
        item.discount = number();
        item.tax = number();
        item.returnFlag = text(1);
        item.lineStatus = text(1);
        item.shipDate = integer();
        item.commitDate = integer();
        item.receiptDate = integer();
        item.shipInstruct = text(12);
        item.shipMode = text(4);
        item.comment = text(27);
        item.supplier = supplier();
        item.part = part();
        return item;
    }

    private Order order() {
        Order order = new Order();
        order.orderKey = integer();
        order.custKey = integer();
        order.orderStatus = text(1);
        order.totalPrice = number();
        order.orderDate = integer();
        order.orderPriority = text(8);
        order.clerk = text(15);
        order.shipPriority = integer();
        order.comment = text(49);
        for (int i = random.nextInt(8); i > 0; i--) {
            order.lineItems.add(lineItem());
        }
        return order;
    }

    private Customer customer() {
        Customer customer = new Customer();
        customer.custKey = integer();
        customer.name = text(18);
        customer.address = text(25);
        customer.nationKey = integer();
        customer.phone = text(15);
        customer.acctbal = number();
        customer.mktSegment = text(9);
        customer.comment = text(73);
        for (int i = Math.max(0, random.nextInt(30) - 10); i > 0; i--) {
            customer.orders.add(order());
        }
        return customer;
    }

    private SparseVector vector(int size) {
        SparseVector vector = new SparseVector(size);
        int position = -1;
        for (int i = 0; i < size; i++) {
            position += 1 + random.nextInt(20);
            vector.entries.add(new Entry(position, 1 + random.nextInt(1000)));
        }
        return vector;
    }

    private int integer() {
        if (strange && random.nextInt(10) == 0) {
            int[] extremes = {0, -1, Integer.MIN_VALUE, Integer.MAX_VALUE};
            return extremes[random.nextInt(extremes.length)];
        }
        return random.nextInt(1 << random.nextInt(23));
    }

    private double number() {
        if (strange && random.nextInt(10) == 0) {
            double[] extremes = {0, -1, Double.MIN_VALUE, 1e300, 1.0 / 3};
            return extremes[random.nextInt(extremes.length)];
        }
        return random.nextInt(10_000_000) / 100.0;
    }

    private String text(int length) {
        if (strange && random.nextInt(10) == 0) {
            return "";
        }
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < length; i++) {
            out.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
        }
        if (strange && random.nextInt(10) == 0) {
            int at = random.nextInt(OTHERS.length());
            out.appendCodePoint(OTHERS.codePointAt(at > 0 && Character.isLowSurrogate(
                    OTHERS.charAt(at)) ? at - 1 : at));
        }
        return out.toString();
    }
}
