package study.implementation;

import org.apache.fory.Fory;
import org.apache.fory.memory.MemoryBuffer;
import study.ByteStrings;
import study.Item;
import study.Sink;
import study.model.Customer;
import study.model.Entry;
import study.model.LineItem;
import study.model.Order;
import study.model.Part;
import study.model.Plain;
import study.model.SparseVector;
import study.model.Supplier;

/**
 * Apache Fory with registered classes and without tracking of references. Both ends have the same
 * classes, as with Kryo.
 */
public final class ForyObjects extends ByteStrings {
    private final Fory fory = Fory.builder()
            .withXlang(false)
            .withCompatible(false)
            .withRefTracking(false)
            .requireClassRegistration(true)
            .withAsyncCompilation(false)
            // The largest vectors are more than is allowed for messages of strangers.
            .withMaxGraphMemoryBytes(Long.MAX_VALUE)
            .withMaxUnbackedContainerItems(Integer.MAX_VALUE)
            .build();
    private final MemoryBuffer output = MemoryBuffer.newHeapBuffer(1 << 16);

    public ForyObjects() {
        Class<?>[] classes = {
            Part.class, Supplier.class, LineItem.class, Order.class, Customer.class, Entry.class,
            SparseVector.class,
        };
        for (Class<?> type : classes) {
            fory.register(type);
        }
    }

    @Override
    protected void encode(Plain plain, Sink out) {
        output.writerIndex(0);
        fory.serialize(output, plain);
        out.write(output.getHeapMemory(), 0, output.writerIndex());
    }

    @Override
    protected Item open(byte[] bytes, int offset, int length) {
        return (Item) fory.deserialize(MemoryBuffer.fromByteArray(bytes, offset, length));
    }
}
