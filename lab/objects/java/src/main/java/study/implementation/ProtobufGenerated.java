package study.implementation;

import com.google.protobuf.MessageLite;
import java.io.IOException;
import java.util.List;
import study.ByteStrings;
import study.Entries;
import study.Item;
import study.Kind;
import study.Merge;
import study.PageWriter;
import study.Sink;
import study.SortKey;
import study.VectorView;
import study.model.Plain;
import study.proto.Proto;

/** Protocol Buffers. A program reads the generated messages themselves. */
public final class ProtobufGenerated extends ByteStrings {
    private final Kind kind;

    public ProtobufGenerated(Kind kind) {
        this.kind = kind;
    }

    @Override
    protected void encode(Plain plain, Sink out) throws IOException {
        Protobuf.write(Protobuf.message(plain), out);
    }

    @Override
    protected void write(Item item, Sink out) throws IOException {
        if (item instanceof Vector vector) {
            Protobuf.write(vector.message, out);
        } else {
            Protobuf.write(((Message) item).message, out);
        }
    }

    @Override
    protected Item open(byte[] bytes, int offset, int length) throws IOException {
        MessageLite message = Protobuf.parse(kind, bytes, offset, length);
        if (message instanceof Proto.SparseVector vector) {
            return new Vector(vector);
        }
        return new Message(message);
    }

    @Override
    protected void mutate(byte[] page, int position, PageWriter writer) throws IOException {
        MessageLite message = ((Message) open(page, position)).message;
        if (message instanceof Proto.Part part) {
            var builder = part.toBuilder();
            message = builder.setRetailPrice(part.getRetailPrice() + 1.0).build();
        } else if (message instanceof Proto.LineItem item) {
            var builder = item.toBuilder();
            message = builder.setExtendedPrice(item.getExtendedPrice() + 1.0).build();
        } else if (message instanceof Proto.Customer customer) {
            message = customer.toBuilder().setAcctbal(customer.getAcctbal() + 1.0).build();
        }
        writer.add(new Message(message));
    }

    @Override
    protected void grow(byte[] page, int position, PageWriter writer) throws IOException {
        var customer = (Proto.Customer) ((Message) open(page, position)).message;
        var builder = customer.toBuilder();
        builder.addOrdersBuilder().setOrderKey(-1).setCustKey(customer.getCustKey())
                .setOrderStatus("O").setTotalPrice(1.0).setOrderPriority("5-LOW")
                .setClerk("Clerk#000000001").setComment("grown");
        writer.add(new Message(builder.build()));
    }

    @Override
    public Item sum(List<Entries> vectors) {
        Proto.SparseVector.Builder sum = Proto.SparseVector.newBuilder();
        Merge.of(vectors, (position, value) ->
                sum.addEntries(ProtobufCopy.message(position, value)));
        return new Vector(sum.build());
    }

    private static final class Message implements Item {
        final MessageLite message;

        Message(MessageLite message) {
            this.message = message;
        }

        @Override
        public int key() {
            if (message instanceof Proto.Part part) {
                return part.getPartKey();
            } else if (message instanceof Proto.LineItem item) {
                return item.getOrderKey();
            }
            return ((Proto.Customer) message).getCustKey();
        }

        @Override
        public long checksum() {
            if (message instanceof Proto.Part part) {
                return ProtobufChecksum.add(0, part);
            } else if (message instanceof Proto.LineItem item) {
                return ProtobufChecksum.add(0, item);
            }
            return ProtobufChecksum.add(0, (Proto.Customer) message);
        }

        @Override
        public long sortKey() {
            if (message instanceof Proto.LineItem item) {
                return SortKey.of(item.getOrderKey(), item.getLineNumber());
            }
            return key();
        }

        @Override
        public boolean same(Item other) {
            return message.equals(((Message) other).message);
        }

        @Override
        public Plain plain() {
            return Protobuf.plain(message);
        }

        /** About: a string of 20 bytes takes 21 in the message, and 80 in memory. */
        @Override
        public long heapBytes() {
            return 4L * message.getSerializedSize();
        }
    }

    private static final class Vector extends VectorView {
        final Proto.SparseVector message;

        Vector(Proto.SparseVector message) {
            this.message = message;
        }

        @Override
        public int size() {
            return message.getEntriesCount();
        }

        @Override
        public int position(int index) {
            return message.getEntries(index).getPosition();
        }

        @Override
        public double value(int index) {
            return message.getEntries(index).getValue();
        }
    }
}
