package study.experiment;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import study.Implementation;
import study.Index;
import study.Input;
import study.Meter;
import study.PageSink;
import study.PageWriter;
import study.Result;
import study.Run;
import study.StoredFile;
import study.model.Plain;

/** Writes the stored form of an input, and reads it back. */
public final class Store implements PageSink {
    private final StoredFile pages;
    private final OutputStream index;
    private long offset;
    private long objects;
    private long objectBytes;

    private Store(StoredFile pages, OutputStream index) {
        this.pages = pages;
        this.index = index;
    }

    public static void run(Run run, Result result) throws IOException {
        Path folder = run.options().path("folder");
        Files.createDirectories(folder);
        Implementation implementation = run.implementation();
        Meter meter = new Meter();
        try (StoredFile pages = StoredFile.create(StoredFile.pages(folder, run.kind()));
                OutputStream index = Files.newOutputStream(Index.path(folder, run.kind()));
                Input input = new Input(run.options().path("input"), run.kind())) {
            Store store = new Store(pages, index);
            PageWriter writer = implementation.writer(store);
            for (Plain plain = input.next(); plain != null; plain = input.next()) {
                writer.add(plain);
            }
            writer.finish();
            meter.stop().report(result);
            result.seconds("io_s", pages.nanoseconds() * 1e-9).number("objects", store.objects)
                    .number("bytes", store.objectBytes).number("file_bytes", pages.size());
        }
        result.checksum(checksum(run, implementation, folder));
    }

    private static long checksum(Run run, Implementation implementation, Path folder)
            throws IOException {
        Index index = Index.of(folder, run.kind());
        long sum = 0;
        try (StoredFile file = StoredFile.read(StoredFile.pages(folder, run.kind()))) {
            for (int i = 0; i < index.size(); ) {
                byte[] page = new byte[index.pageBytes(i)];
                file.read(page, page.length, index.offset(i));
                for (int end = index.endOfPage(i, index.size()); i < end; i++) {
                    sum += implementation.open(page, index.position(i)).checksum();
                }
            }
        }
        return sum;
    }

    @Override
    public void page(byte[] bytes, int length, int[] positions, long used) throws IOException {
        pages.write(bytes, length);
        ByteBuffer entries =
                ByteBuffer.allocate(16 * positions.length).order(ByteOrder.LITTLE_ENDIAN);
        for (int position : positions) {
            entries.putLong(offset).putInt(length).putInt(position);
        }
        index.write(entries.array());
        offset += length;
        objects += positions.length;
        objectBytes += used;
    }
}
