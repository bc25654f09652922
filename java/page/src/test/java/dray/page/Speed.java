package dray.page;

import dray.page.generated.customers.Customer;
import dray.page.generated.customers.CustomerBuilder;
import dray.page.generated.customers.CustomerEditor;
import dray.page.generated.customers.CustomerFile;
import dray.page.generated.customers.CustomerPage;
import dray.page.generated.customers.ItemsItem;
import dray.page.generated.customers.OrdersItem;
import dray.page.generated.lineitems.LineitemBuilder;
import dray.page.generated.lineitems.LineitemPage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.LongSupplier;

/**
 * Measures customers with ten orders, and these with their line items, as
 * {@code crates/page/examples/objects.rs} does. The values are random; lengths of strings are those
 * of TPC-H. Run it by {@code make bench-java}.
 */
final class Speed {
    private static final int CUSTOMERS = 15_000;
    private static final int ORDERS = 10;
    private static final int RUNS = 15;
    private static final String[] INSTRUCTIONS =
        {"DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"};
    private static final String[] MODES =
        {"REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"};
    private static final String COMMENT = "carefully final deposits sleep furiously about the";

    private static long items;
    private static long sink;

    private Speed() {}

    public static void main(String[] arguments) throws IOException {
        List<VerifiedPage> pages = customers();
        Path path = Files.createTempFile("dray-speed", ".pages");
        try {
            TestFiles.write(path, pages, PageBuilder.PAGE_BYTES, "custkey");
            measure(path);
        } finally {
            Files.delete(path);
        }
        verify("flat", LineitemPage.LAYOUT, lineItems());
        verify("nested", CustomerPage.LAYOUT, pages);
        mutate(pages.get(0));
        perItem("built, with random values", () -> {
            items = 0;
            return customers().size();
        }, items);
        System.out.println("(checksum of all that was read: " + sink + ")");
    }

    private static void measure(Path path) {
        CustomerFile file = CustomerFile.open(path);
        System.out.println(CUSTOMERS + " customers with " + items + " line items in "
                + file.file().pageCount() + " pages of a mapped file; JVM "
                + System.getProperty("java.vm.version"));
        long[] random = new Random(1).ints(CUSTOMERS * 2L, 0, CUSTOMERS).distinct().asLongStream()
                .toArray();
        var views = new Views();
        perItem("opened, checked and read in order", () -> {
            CustomerFile opened = CustomerFile.open(path);
            long sum = 0;
            for (Customer customer : opened) {
                sum ^= sum(customer);
            }
            return sum;
        }, items);
        perItem("in order, new views", () -> {
            long sum = 0;
            for (Customer customer : file) {
                sum ^= sum(customer);
            }
            return sum;
        }, items);
        perItem("in order, views that are moved", () -> {
            long sum = 0;
            for (long i = 0; i < CUSTOMERS; i++) {
                sum ^= views.sum(file.object(i, views.customer));
            }
            return sum;
        }, items);
        long randomItems = 0;
        for (long i : random) {
            for (OrdersItem order : file.object(i).orders()) {
                randomItems += order.items().size();
            }
        }
        perItem("random, new views", () -> {
            long sum = 0;
            for (long i : random) {
                sum ^= sum(file.object(i));
            }
            return sum;
        }, randomItems);
        perItem("random, views that are moved", () -> {
            long sum = 0;
            for (long i : random) {
                sum ^= views.sum(file.object(i, views.customer));
            }
            return sum;
        }, randomItems);
        perItem("found by key, for each customer", () -> {
            long sum = 0;
            for (long i = 0; i < CUSTOMERS; i++) {
                sum ^= file.find(i).get(0).custkey();
            }
            return sum;
        }, CUSTOMERS);
    }

    private static double median(LongSupplier run) {
        for (int i = 0; i < RUNS; i++) {
            sink += run.getAsLong();
        }
        var times = new double[RUNS];
        for (int i = 0; i < RUNS; i++) {
            long before = System.nanoTime();
            sink += run.getAsLong();
            times[i] = System.nanoTime() - before;
        }
        Arrays.sort(times);
        return times[RUNS / 2];
    }

    private static void perItem(String what, LongSupplier run, long items) {
        System.out.printf("%-40s %8.1f ns%n", what, median(run) / items);
    }

    private static void verify(String what, Layout layout, List<VerifiedPage> pages) {
        var copies = new ArrayList<ByteBuffer>();
        long bytes = 0;
        for (VerifiedPage page : pages) {
            ByteBuffer copy = ByteBuffer.allocateDirect(page.bytes().limit());
            copies.add(copy.put(0, page.bytes(), 0, copy.limit()));
            bytes += copy.limit();
        }
        double time = median(() -> {
            long objects = 0;
            for (ByteBuffer copy : copies) {
                objects += VerifiedPage.verify(layout, copy).size();
            }
            return objects;
        });
        System.out.printf("verified, %-30s %8.2f GB/s%n", what, bytes / time);
    }

    private static void mutate(VerifiedPage page) {
        var editor = new CustomerEditor(page);
        int rounds = 1_000_000;
        var writers = new ItemsItem.Writer[16];
        for (int i = 0; i < writers.length; i++) {
            writers[i] = editor.object(i).orders().get(i % ORDERS).items().get(0);
        }
        perItem("one number of an item changed", () -> {
            for (int i = 0; i < rounds; i++) {
                writers[i & 15].extendedprice(i);
            }
            return 0;
        }, rounds);
        perItem("the same, with the object looked up", () -> {
            for (int i = 0; i < rounds; i++) {
                editor.object(i & 15).custkey(i);
            }
            return 0;
        }, rounds);
    }

    private static long add(long sum, long value) {
        return sum * 3 + value;
    }

    private static long sum(long before, ItemsItem item) {
        long sum = add(before, item.orderkey());
        sum = add(sum, item.partkey());
        sum = add(sum, item.suppkey());
        sum = add(sum, item.extendedprice());
        sum = add(sum, item.discount());
        sum = add(sum, item.tax());
        sum = add(sum, item.linenumber());
        sum = add(sum, item.shipdate());
        sum = add(sum, item.commitdate());
        sum = add(sum, item.receiptdate());
        sum = add(sum, item.returnflag().length());
        sum = add(sum, item.linestatus().length());
        sum = add(sum, item.shipinstruct().length());
        sum = add(sum, item.shipmode().length());
        return add(sum, item.comment().length());
    }

    private static long sum(Customer customer) {
        long sum = add(0, customer.custkey());
        OrdersItem.List orders = customer.orders();
        for (int i = 0; i < orders.size(); i++) {
            OrdersItem order = orders.get(i);
            sum = add(sum, order.orderkey());
            ItemsItem.List items = order.items();
            for (int j = 0; j < items.size(); j++) {
                sum = sum(sum, items.get(j));
            }
        }
        return sum;
    }

    private static final class Views {
        final Customer customer = new Customer();
        final OrdersItem.List orders = new OrdersItem.List();
        final OrdersItem order = new OrdersItem();
        final ItemsItem.List items = new ItemsItem.List();
        final ItemsItem item = new ItemsItem();

        long sum(Customer customer) {
            long sum = add(0, customer.custkey());
            customer.orders(orders);
            for (int i = 0; i < orders.size(); i++) {
                orders.get(i, order);
                sum = add(sum, order.orderkey());
                order.items(items);
                for (int j = 0; j < items.size(); j++) {
                    sum = Speed.sum(sum, items.get(j, item));
                }
            }
            return sum;
        }
    }

    private static List<VerifiedPage> customers() {
        var random = new Random(7);
        var builder = new CustomerBuilder();
        for (int i = 0; i < CUSTOMERS; i++) {
            Customer.Writer customer = builder.begin().custkey(i);
            OrdersItem.ListWriter orders = customer.orders(ORDERS);
            for (int order = 0; order < ORDERS; order++) {
                int count = 1 + random.nextInt(7);
                items += count;
                ItemsItem.ListWriter list = orders.next().orderkey(order).items(count);
                for (int item = 0; item < count; item++) {
                    write(random, list.next());
                }
            }
            builder.end();
        }
        return builder.finish();
    }

    private static void write(Random random, ItemsItem.Writer item) {
        item.orderkey(random.nextInt()).partkey(random.nextInt(20_000))
                .suppkey(random.nextInt(1000)).extendedprice(random.nextInt(10_000_000))
                .discount(random.nextInt(11)).tax(random.nextInt(9))
                .linenumber(random.nextInt(7)).shipdate(random.nextInt(10_000))
                .commitdate(random.nextInt(10_000)).receiptdate(random.nextInt(10_000))
                .returnflag("R").linestatus("F")
                .shipinstruct(INSTRUCTIONS[random.nextInt(INSTRUCTIONS.length)])
                .shipmode(MODES[random.nextInt(MODES.length)])
                .comment(COMMENT.substring(0, 10 + random.nextInt(34)));
    }

    private static List<VerifiedPage> lineItems() {
        var random = new Random(8);
        var builder = new LineitemBuilder();
        for (int i = 0; i < 600_000; i++) {
            builder.begin().orderkey(i).partkey(random.nextInt(20_000))
                    .suppkey(random.nextInt(1000)).extendedprice(random.nextInt(10_000_000))
                    .discount(random.nextInt(11)).tax(random.nextInt(9))
                    .linenumber(random.nextInt(7)).shipdate(random.nextInt(10_000))
                    .commitdate(random.nextInt(10_000)).receiptdate(random.nextInt(10_000))
                    .returnflag("R").linestatus("F")
                    .shipinstruct(INSTRUCTIONS[random.nextInt(INSTRUCTIONS.length)])
                    .shipmode(MODES[random.nextInt(MODES.length)])
                    .comment(COMMENT.substring(0, 10 + random.nextInt(34)));
            builder.end();
        }
        return builder.finish();
    }
}
