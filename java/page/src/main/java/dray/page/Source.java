package dray.page;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** The bytes of a file, of which each buffer shows at most 2 GiB. */
abstract class Source {
    /** The most bytes that are mapped at once, unless a page is larger. */
    static final int PART_BYTES = 1 << 30;

    final long size;
    /** The most bytes of a buffer with several pages or entries. */
    final int partBytes;

    private Source(long size, int partBytes) {
        this.size = size;
        this.partBytes = partBytes;
    }

    /** A part of the file. Who calls has checked that it is within the file. */
    abstract ByteBuffer slice(long from, int bytes);

    static Source of(ByteBuffer file) {
        return of(file, PART_BYTES);
    }

    /** With parts of another size, a power of two from 16 on. */
    static Source of(ByteBuffer file, int partBytes) {
        ByteBuffer whole = Memory.slice(file, file.position(), file.remaining());
        return new Source(whole.limit(), partBytes) {
            @Override
            ByteBuffer slice(long from, int bytes) {
                return Memory.slice(whole, (int) from, bytes);
            }
        };
    }

    /** What a reader makes of a file's bytes. */
    interface Reader<T> {
        T read(Source source);
    }

    /** Reads a file from its map. What was mapped stays so until it is garbage. */
    static <T> T read(Path path, Reader<T> reader) {
        try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ)) {
            return reader.read(new Source(file.size(), PART_BYTES) {
                @Override
                ByteBuffer slice(long from, int bytes) {
                    try {
                        return Memory.slice(
                                file.map(FileChannel.MapMode.READ_ONLY, from, bytes), 0, bytes);
                    } catch (IOException cause) {
                        throw failed(path, cause);
                    }
                }
            });
        } catch (IOException cause) {
            throw failed(path, cause);
        } catch (PageException refused) {
            throw refused.refusal() == Refusal.IO ? refused : refused.about("can't read " + path);
        }
    }

    private static PageException failed(Path path, IOException cause) {
        return new PageException(Refusal.IO, "can't read " + path + ": " + cause, cause);
    }

    /** A part of any size, such as an index. */
    Region region(long from, long bytes) {
        int parts = (int) ((bytes + partBytes - 1) / partBytes);
        var buffers = new ByteBuffer[parts];
        for (int i = 0; i < parts; i++) {
            long at = (long) i * partBytes;
            buffers[i] = slice(from + at, (int) Math.min(partBytes, bytes - at));
        }
        return new Region(buffers, bytes, partBytes);
    }

    /** Bytes of which no word of eight that is aligned lies in two buffers. */
    record Region(ByteBuffer[] parts, long bytes, int partBytes) {
        long getLong(long at) {
            return Memory.getLong(parts[(int) (at / partBytes)], (int) (at % partBytes));
        }

        /** Hands all bytes on, in order. */
        void each(java.util.function.Consumer<ByteBuffer> to) {
            for (ByteBuffer part : parts) {
                to.accept(part.duplicate());
            }
        }
    }
}
