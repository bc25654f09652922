package dray.page;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** The vectors of {@code spec/vectors}. */
final class Vectors {
    static final Path ROOT = Path.of(System.getProperty("dray.root")).normalize();

    private Vectors() {}

    /** The paths of the vectors in a folder that have a suffix, in the order of their names. */
    static List<Path> list(String folder, String suffix) {
        try (var files = Files.list(ROOT.resolve("spec/vectors").resolve(folder))) {
            return files.filter(path -> path.toString().endsWith(suffix)).sorted().toList();
        } catch (IOException cause) {
            throw new UncheckedIOException(cause);
        }
    }

    static byte[] bytes(Path path) {
        try {
            return Files.readAllBytes(path);
        } catch (IOException cause) {
            throw new UncheckedIOException(cause);
        }
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> json(Path vector) {
        String text = new String(bytes(Path.of(vector + ".json")),
                java.nio.charset.StandardCharsets.UTF_8);
        return (Map<String, Object>) Json.parse(text);
    }

    /** The name of the refusal, with which a rejected vector's name begins. */
    static String refusal(Path vector) {
        return vector.getFileName().toString().split("[-.]")[0];
    }

    /** A vector of a page: its schema, then the page. */
    record PageVector(Schema schema, ByteBuffer page) {
        static PageVector of(byte[] bytes) {
            ByteBuffer all = ByteBuffer.wrap(bytes);
            int schemaBytes = Memory.getInt(all, 0);
            var schema = new byte[schemaBytes];
            all.get(4, schema);
            return new PageVector(Schema.decode(schema),
                    all.slice(4 + schemaBytes, bytes.length - 4 - schemaBytes));
        }
    }

    /** Reads a vector of a page as a whole. */
    static VerifiedPage verify(byte[] bytes) {
        PageVector vector = PageVector.of(bytes);
        return VerifiedPage.verify(Layout.of(vector.schema()), vector.page());
    }
}
