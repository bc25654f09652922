package study.implementation;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import java.util.ArrayList;
import study.ByteStrings;
import study.Item;
import study.Kind;
import study.Sink;
import study.model.Customer;
import study.model.Entry;
import study.model.LineItem;
import study.model.Order;
import study.model.Part;
import study.model.Plain;
import study.model.SparseVector;
import study.model.Supplier;

/** Kryo with registered classes, and otherwise as it is. */
public final class KryoObjects extends ByteStrings {
    private final Kind kind;
    private final Kryo kryo = new Kryo();
    private final Output output = new Output(4096);
    private final Input input = new Input();

    public KryoObjects(Kind kind) {
        this.kind = kind;
        Class<?>[] classes = {
            ArrayList.class, Part.class, Supplier.class, LineItem.class, Order.class,
            Customer.class, Entry.class, SparseVector.class,
        };
        for (Class<?> type : classes) {
            kryo.register(type);
        }
    }

    @Override
    protected void encode(Plain plain, Sink out) {
        output.setOutputStream(out);
        kryo.writeObject(output, plain);
        output.flush();
    }

    @Override
    protected Item open(byte[] bytes, int offset, int length) {
        input.setBuffer(bytes, offset, length);
        return kryo.readObject(input, kind.type);
    }
}
