package study.implementation;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import study.ByteStrings;
import study.Item;
import study.Sink;
import study.model.Plain;

/** Java's own serialization. Each object is a stream of its own, so it can be read alone. */
public final class JavaSerialization extends ByteStrings {
    @Override
    protected void encode(Plain plain, Sink out) throws IOException {

        ObjectOutputStream stream = new ObjectOutputStream(out);
        stream.writeObject(plain);
        stream.flush();
    }

    @Override
    protected Item open(byte[] bytes, int offset, int length) throws IOException {
        try (var stream =
                new ObjectInputStream(new ByteArrayInputStream(bytes, offset, length))) {
            return (Item) stream.readObject();
        } catch (ClassNotFoundException error) {
            throw new IOException(error);
        }
    }
}
