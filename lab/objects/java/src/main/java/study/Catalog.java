package study;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.function.Function;
import study.implementation.DrayPages;
import study.implementation.FlatBuffers;
import study.implementation.ForyObjects;
import study.implementation.HandWritten;
import study.implementation.Jackson;
import study.implementation.JavaSerialization;
import study.implementation.KryoObjects;
import study.implementation.Protobuf;
import study.implementation.ProtobufGenerated;

/** All implementations. */
public final class Catalog {
    /** What `--list` tells of an implementation, and how one is made. */
    public record Entry(
            String name, String library, String validates, String note,
            Function<Kind, Implementation> make) {
        /** The version of the library, which the build has written down. */
        public String version() throws IOException {
            if (library.equals("java")) {
                return System.getProperty("java.version");
            }
            Properties versions = new Properties();
            try (InputStream in = Catalog.class.getResourceAsStream("/versions.properties")) {
                versions.load(in);
            }
            return versions.getProperty(library);
        }

        public boolean validatesApart() {
            return validates.equals("apart");
        }
    }

    public static final List<Entry> ALL = List.of(
            new Entry("java-serialization", "java", "always",
                    "Java's own serialization, a stream for each object",
                    kind -> new JavaSerialization()),
            new Entry("kryo", "kryo", "always", "registered classes", KryoObjects::new),
            new Entry("protobuf", "protobuf", "always",
                    "messages are converted to and from Java's own objects", Protobuf::new),
            new Entry("protobuf-generated", "protobuf", "always",
                    "programs read the generated messages", ProtobufGenerated::new),
            new Entry("bytebuffer", "java", "always",
                    "fields by hand into a ByteBuffer; vectors are read in place",
                    HandWritten::new),
            new Entry("json-gzip", "jackson", "always",
                    "Jackson with Blackbird, and gzip at its default level", Jackson::jsonGzip),
            new Entry("bson", "bson4jackson", "always", "Jackson with Blackbird", Jackson::bson),
            new Entry("fory", "fory", "always", "registered classes, without references",
                    kind -> new ForyObjects()),
            new Entry("flatbuffers", "flatbuffers", "never",
                    "read in place; the library for Java has no verifier", FlatBuffers::new),
            new Entry("dray", "dray", "apart",
                    "pages are built, read and edited in place; only whole pages are validated",
                    DrayPages::of));

    private Catalog() {}

    public static Entry of(String name) {
        for (Entry entry : ALL) {
            if (entry.name.equals(name)) {
                return entry;
            }
        }
        throw new UsageException("there is no implementation " + name);
    }

    /** Prints a line of JSON for each. */
    public static void print() throws IOException {
        for (Entry entry : ALL) {
            List<String> objects = new ArrayList<>();
            for (Kind kind : Kind.values()) {
                objects.add(kind.option());
            }
            List<String> phases = new ArrayList<>(List.of("open", "touch-one", "touch-all",
                    "materialise", "mutate", "grow", "encode"));
            if (entry.validatesApart()) {
                phases.add(0, "validate");
            }
            new Result().text("implementation", entry.name).text("language", "Java")
                    .text("version", entry.version()).text("validates", entry.validates)
                    .list("objects", objects).list("phases", phases).text("note", entry.note)
                    .print();
        }
    }
}
