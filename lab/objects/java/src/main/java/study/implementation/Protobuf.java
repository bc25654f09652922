package study.implementation;

import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.MessageLite;
import java.io.IOException;
import study.ByteStrings;
import study.Item;
import study.Kind;
import study.Sink;
import study.model.Customer;
import study.model.LineItem;
import study.model.Part;
import study.model.Plain;
import study.model.SparseVector;
import study.proto.Proto;

/** Protocol Buffers. Messages are converted from and to Java's own objects. */
public final class Protobuf extends ByteStrings {
    private final Kind kind;

    public Protobuf(Kind kind) {
        this.kind = kind;
    }

    @Override
    protected void encode(Plain plain, Sink out) throws IOException {
        write(message(plain), out);
    }

    @Override
    protected Item open(byte[] bytes, int offset, int length) throws IOException {
        return plain(parse(kind, bytes, offset, length));
    }

    static void write(MessageLite message, Sink out) throws IOException {
        int size = message.getSerializedSize();
        out.reserve(size);
        message.writeTo(CodedOutputStream.newInstance(out.bytes, out.at, size));
        out.at += size;
    }

    static MessageLite parse(Kind kind, byte[] bytes, int offset, int length) throws IOException {
        return switch (kind) {
            case PART -> Proto.Part.parser().parseFrom(bytes, offset, length);
            case LINEITEM -> Proto.LineItem.parser().parseFrom(bytes, offset, length);
            case CUSTOMER -> Proto.Customer.parser().parseFrom(bytes, offset, length);
            case VECTOR -> Proto.SparseVector.parser().parseFrom(bytes, offset, length);
        };
    }

    static MessageLite message(Plain plain) {
        if (plain instanceof Part part) {
            return ProtobufCopy.message(part);
        } else if (plain instanceof LineItem item) {
            return ProtobufCopy.message(item);
        } else if (plain instanceof Customer customer) {
            return ProtobufCopy.message(customer);
        }
        return ProtobufCopy.message((SparseVector) plain);
    }

    static Plain plain(MessageLite message) {
        if (message instanceof Proto.Part part) {
            return ProtobufCopy.plain(part);
        } else if (message instanceof Proto.LineItem item) {
            return ProtobufCopy.plain(item);
        } else if (message instanceof Proto.Customer customer) {
            return ProtobufCopy.plain(customer);
        }
        return ProtobufCopy.plain((Proto.SparseVector) message);
    }
}
