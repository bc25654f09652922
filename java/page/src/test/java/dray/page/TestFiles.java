package dray.page;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/** Writes page files for tests, by {@code spec/page-file.md}. */
final class TestFiles {
    private TestFiles() {}

    private static ByteBuffer words(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Writes pages, and an index of a key that is one field. */
    static void write(Path path, List<VerifiedPage> pages, int pageBytes, String key) {
        Layout layout = pages.get(0).layout();
        ByteBuffer header = header(layout, pageBytes);
        long objects = 0;
        long end = 0;
        ByteBuffer index = words(16 * pages.size());
        for (VerifiedPage page : pages) {
            end += page.bytes().limit();
            index.putLong(objects).putInt((int) (end / 4096)).putInt(page.header().checksum());
            objects += page.size();
        }
        byte[] name = key.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        ByteBuffer paths = words(Memory.pad(12 + name.length, 8));
        paths.putInt(1).putInt(1).putInt(name.length).put(name);
        ByteBuffer keys = keys(pages, Key.decode(paths.array(), layout));
        var crc = new CRC32C();
        crc.update(keys.array());
        long indexAt = header.limit() + end;
        long keysAt = indexAt + index.limit();
        ByteBuffer footer = words(128);
        footer.putLong(keysAt + paths.limit() + keys.limit() + 128).putLong(indexAt)
                .putLong(pages.size()).putLong(objects).putLong(keysAt).putLong(keys.limit() / 16)
                .putInt(paths.limit()).putInt((int) crc.getValue());
        MessageDigest digest = Schema.sha256();
        for (byte[] part : List.of(header.array(), index.array(), paths.array())) {
            digest.update(part);
        }
        digest.update(footer.array(), 0, 80);
        footer.put(80, digest.digest()).putLong(120, 0x0044_4e45_4659_5244L);
        try (FileChannel file = FileChannel.open(path, StandardOpenOption.CREATE,
                StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING)) {
            var parts = new ArrayList<ByteBuffer>(List.of(header));
            pages.forEach(page -> parts.add(page.bytes().duplicate()));
            parts.addAll(List.of(index, paths, keys, footer));
            for (ByteBuffer part : parts) {
                part.clear();
                while (part.hasRemaining()) {
                    file.write(part);
                }
            }
        } catch (IOException cause) {
            throw new UncheckedIOException(cause);
        }
    }

    private static ByteBuffer header(Layout layout, int pageBytes) {
        byte[] schema = layout.schema().encoded();
        ByteBuffer header = words(Memory.pad(64 + schema.length, 4096));
        header.putInt(0x4659_5244).putInt(0).putInt(pageBytes).putInt(schema.length);
        header.put(32, layout.digest()).put(64, schema);
        return header;
    }

    private static ByteBuffer keys(List<VerifiedPage> pages, Key key) {
        var entries = new ArrayList<long[]>();
        long ordinal = 0;
        for (VerifiedPage page : pages) {
            for (int slot = 0; slot < page.size(); slot++) {
                entries.add(new long[] {key.hash(page.bytes(), page.objectAt(slot)), ordinal++});
            }
        }
        entries.sort((a, b) -> a[0] != b[0] ? Long.compareUnsigned(a[0], b[0])
                : Long.compare(a[1], b[1]));
        ByteBuffer keys = words(16 * entries.size());
        entries.forEach(entry -> keys.putLong(entry[0]).putLong(entry[1]));
        return keys;
    }
}
