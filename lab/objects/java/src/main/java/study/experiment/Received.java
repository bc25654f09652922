package study.experiment;

import java.io.IOException;
import study.Implementation;
import study.Result;
import study.Run;
import study.StoredFile;

/** Reads a file of pages, which a client has received, one after the other. */
public final class Received {
    private Received() {}

    public static void run(Run run, Result result) throws IOException {
        Implementation implementation = run.implementation();
        long offset = 0;
        long objects = 0;
        long sum = 0;
        try (StoredFile file = StoredFile.read(run.options().path("file"))) {
            for (byte[] page; (page = file.page(implementation, offset)) != null; ) {
                for (int position : implementation.positions(page)) {
                    sum += implementation.open(page, position).checksum();
                    objects++;
                }
                offset += page.length;
            }
        }
        result.number("objects", objects).checksum(sum);
    }
}
