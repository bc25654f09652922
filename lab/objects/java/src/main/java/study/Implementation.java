package study;

import java.io.IOException;
import java.util.List;
import study.model.Customer;
import study.model.Entry;
import study.model.SparseVector;

/** One way to keep and move objects of one kind. Each thread has its own. */
public abstract class Implementation {
    /** A writer of pages. */
    public abstract PageWriter writer(PageSink sink);

    /** The size of a page that begins with these 64 bytes. */
    public abstract int pageBytes(byte[] header);

    /** Where the objects of a page are, in their order. */
    public abstract int[] positions(byte[] page);

    /** Makes an object readable. Views stay so as long as the page does. */
    public abstract Item open(byte[] page, int position) throws IOException;

    /** Whether a page holds what it claims; of implementations that validate apart. */
    public void validate(byte[] page) throws IOException {
        throw new UsageException("validation is no separate step of this implementation");
    }

    /** The same for one object of the page. */
    public void validate(byte[] page, int position) throws IOException {
        throw new UsageException("validation is no separate step of this implementation");
    }

    /** Whether `mutate` overwrites pages, rather than writing new ones. */
    public boolean mutatesInPlace() {
        return false;
    }

    /** Opens objects of a page and adds 1.0 to their price or balance, as new pages or in place. */
    public void mutatePage(byte[] page, int[] positions, PageSink sink) throws IOException {
        PageWriter writer = mutatesInPlace() ? null : writer(sink);
        for (int position : positions) {
            mutate(page, position, writer);
        }
        if (writer != null) {
            writer.finish();
        }
    }

    /** Does so with one object, and adds it to the writer, if any. */
    protected void mutate(byte[] page, int position, PageWriter writer) throws IOException {
        var plain = open(page, position).plain();
        plain.change();
        writer.add(plain);
    }

    /** Opens customers of a page, appends an order to each, and writes them to new pages. */
    public void growPage(byte[] page, int[] positions, PageSink sink) throws IOException {
        PageWriter writer = writer(sink);
        for (int position : positions) {
            grow(page, position, writer);
        }
        writer.finish();
    }

    /** Does so with one customer. */
    protected void grow(byte[] page, int position, PageWriter writer) throws IOException {
        Customer customer = (Customer) open(page, position).plain();
        customer.grow();
        writer.add(customer);
    }

    /** Writes a vector as a message. */
    public abstract void encodeMessage(Item vector, Sink out) throws IOException;

    /** Reads a message. The vector may be a view of it. */
    public abstract Item openMessage(byte[] bytes) throws IOException;

    /** The sum of vectors, in the form that the implementation sends. */
    public Item sum(List<Entries> vectors) throws IOException {
        SparseVector sum = new SparseVector();
        Merge.of(vectors, (position, value) -> sum.entries.add(new Entry(position, value)));
        return sum;
    }
}
