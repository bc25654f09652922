package dray.page;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/**
 * Damaged bytes are refused, or are still the same objects. Nothing but a {@link PageException}
 * comes out: any other exception fails the test.
 */
class DamageTest {
    private static final int ROUNDS = Integer.parseInt(
            System.getenv().getOrDefault("DRAY_JAVA_ROUNDS", "20000"));
    private static final long SEED = Long.parseLong(
            System.getenv().getOrDefault("DRAY_SEED", "" + System.nanoTime()));

    private static List<Object> objects(PageFile file) {
        var objects = new ArrayList<Object>();
        for (int page = 0; page < file.pageCount(); page++) {
            objects.addAll(Values.rows(file.page(page)));
        }
        return objects;
    }

    @Test
    void filesThatWereCutAreRefusedAndSalvaged() {
        int cuts = 0;
        int salvaged = 0;
        for (Path vector : Vectors.list("accept", ".pages")) {
            byte[] whole = Vectors.bytes(vector);
            if (whole.length > 100_000) {
                continue;
            }
            List<Object> objects = objects(PageFile.of(ByteBuffer.wrap(whole)));
            for (int size = 0; size < whole.length; size++) {
                ByteBuffer cut = ByteBuffer.wrap(whole, 0, size);
                var refused = assertThrows(PageException.class, () -> PageFile.of(cut));
                assertEquals(size < 4 ? Refusal.MAGIC : Refusal.CUT, refused.refusal());
                cuts++;
                if (size % 4096 > 8 && size % 16 != 0) {
                    continue;
                }
                Salvage salvage;
                try {
                    salvage = Salvage.of(cut);
                } catch (PageException headerOrSchema) {
                    continue;
                }
                var left = new ArrayList<Object>();
                salvage.pages().forEach(page -> left.addAll(Values.rows(page)));
                assertEquals(objects.subList(0, left.size()), left);
                salvaged += left.size();
            }
        }
        System.out.println("files cut at " + cuts + " places were refused; " + salvaged
                + " objects of them were salvaged and are the same");
    }

    @Test
    void filesWithFlippedBitsAreRefusedOrTheSame() {
        int flips = 0;
        int same = 0;
        for (Path vector : Vectors.list("accept", ".pages")) {
            byte[] bytes = Vectors.bytes(vector);
            if (bytes.length > 100_000) {
                continue;
            }
            List<Object> objects = objects(PageFile.of(ByteBuffer.wrap(bytes)));
            for (int at = 0; at < bytes.length; at++) {
                int mask = 1 << at * 5 % 8;
                bytes[at] ^= (byte) mask;
                flips++;
                // Only the key index is not needed for objects. It is checked on its own.
                PageFile file = null;
                try {
                    file = PageFile.of(ByteBuffer.wrap(bytes));
                    assertEquals(objects, objects(file), vector + " byte " + at);
                    same++;
                } catch (PageException refused) {
                    file = null;
                }
                if (file != null) {
                    assertThrows(PageException.class, file::check, vector + " byte " + at);
                }
                bytes[at] ^= (byte) mask;
            }
        }
        System.out.println(flips + " flipped bits of page files: " + (flips - same)
                + " refused, " + same + " in key indices, which are refused when they are used");
    }

    /** Whatever the verifier accepts can be written again from its values. */
    private static boolean isRefused(byte[] bytes) {
        VerifiedPage page;
        try {
            page = Vectors.verify(bytes);
        } catch (PageException refused) {
            return true;
        }
        if (Values.hasHugeLists(page)) {
            return false;
        }
        List<Object> rows = Values.rows(page);
        for (int slot = 0; slot < page.size(); slot++) {
            byte[] written = ValuePages.object(page.layout(), (List<?>) rows.get(slot));
            var found = new byte[Memory.getInt(page.bytes(), page.objectAt(slot))];
            page.bytes().get(page.objectAt(slot), found);
            assertArrayEquals(found, written);
        }
        return false;
    }

    @Test
    void mutatedPagesAreRefusedOrCanonical() {
        List<byte[]> vectors = new ArrayList<>();
        Vectors.list("accept", ".page").forEach(vector -> vectors.add(Vectors.bytes(vector)));
        vectors.removeIf(bytes -> bytes.length > 20_000);
        int refused = 0;
        for (int round = 0; round < ROUNDS; round++) {
            var random = new Random(SEED + round);
            byte[] bytes = vectors.get(random.nextInt(vectors.size())).clone();
            // Without a checksum, which would find everything.
            int page = 4 + Memory.getInt(ByteBuffer.wrap(bytes), 0);
            bytes[page + PageHeader.FLAGS_AT] &= (byte) ~PageHeader.FLAG_CHECKSUM;
            Arrays.fill(bytes, page + PageHeader.CHECKSUM_AT, page + PageHeader.EDITION_AT,
                    (byte) 0);
            mutate(random, bytes, page);
            try {
                refused += isRefused(bytes) ? 1 : 0;
            } catch (RuntimeException | AssertionError | StackOverflowError failed) {
                throw new AssertionError("DRAY_SEED=" + (SEED + round)
                        + " DRAY_JAVA_ROUNDS=1 fails again", failed);
            }
        }
        System.out.println(ROUNDS + " mutated pages from seed " + SEED + ": " + refused
                + " refused, the others are what a builder would write");
    }

    /** Changes a few bytes, mostly where objects are. */
    private static void mutate(Random random, byte[] bytes, int page) {
        int end = page + Memory.getInt(ByteBuffer.wrap(bytes), page + PageHeader.OBJECTS_END_AT);
        for (int changes = random.nextInt(3); changes >= 0; changes--) {
            int from = random.nextInt(12) == 0 ? 4 : page + PageHeader.BYTES;
            int at = from + random.nextInt(Math.max(Math.min(end, bytes.length) - from, 1));
            switch (random.nextInt(4)) {
                case 0 -> bytes[at] ^= (byte) (1 << random.nextInt(8));
                case 1 -> bytes[at] = (byte) random.nextInt(256);
                case 2 -> bytes[at] = (byte) (random.nextInt(5) * 4);
                default -> {
                    int other = from + random.nextInt(Math.max(end - from, 1));
                    int count = Math.min(random.nextInt(24), bytes.length - Math.max(at, other));
                    System.arraycopy(bytes, other, bytes, at, count);
                }
            }
        }
    }

    /** The index, the key paths and the footer are mutated, with a digest that matches again. */
    @Test
    void mutatedIndicesAreRefusedOrRead() {
        List<Path> vectors = Vectors.list("accept", ".pages");
        int refused = 0;
        int rounds = ROUNDS / 4;
        for (int round = 0; round < rounds; round++) {
            var random = new Random(SEED + round);
            byte[] bytes = Vectors.bytes(vectors.get(random.nextInt(vectors.size())));
            ByteBuffer file = ByteBuffer.wrap(bytes);
            int footer = bytes.length - 128;
            int index = (int) Memory.getLong(file, footer + 8);
            int keys = Math.max((int) Memory.getLong(file, footer + 32), index)
                    + Memory.getInt(file, footer + 48);
            for (int changes = random.nextInt(3); changes >= 0; changes--) {
                int from = random.nextBoolean() ? index : footer;
                int at = from + random.nextInt(from == index ? footer - index + 1 : 80);
                bytes[at] = (byte) (random.nextBoolean() ? random.nextInt(4)
                        : bytes[at] ^ 1 << random.nextInt(8));
            }
            var digest = Schema.sha256();
            digest.update(bytes, 0, Memory.pad(64 + Memory.getInt(file, 12), 4096));
            digest.update(bytes, index, keys - index);
            digest.update(bytes, footer, 80);
            file.put(footer + 80, digest.digest());
            try {
                PageFile opened = PageFile.of(file);
                objects(opened);
                opened.check();
            } catch (PageException unreadable) {
                refused++;
            } catch (RuntimeException | OutOfMemoryError failed) {
                throw new AssertionError("DRAY_SEED=" + (SEED + round), failed);
            }
        }
        System.out.println(rounds + " page files with mutated indices: " + refused + " refused");
    }

    /** Schemas come from outside, too. */
    @Test
    void mutatedSchemasAreRefusedOrRead() {
        List<Path> vectors = Vectors.list("accept", ".page");
        int refused = 0;
        int rounds = ROUNDS / 4;
        for (int round = 0; round < rounds; round++) {
            var random = new Random(SEED + round);
            byte[] bytes = Vectors.PageVector.of(
                    Vectors.bytes(vectors.get(random.nextInt(vectors.size())))).schema().encoded();
            for (int changes = random.nextInt(3); changes >= 0 && bytes.length > 0; changes--) {
                bytes[random.nextInt(bytes.length)] = (byte) (random.nextBoolean()
                        ? random.nextInt(40) : random.nextInt(256));
            }
            try {
                Layout.of(Schema.decode(bytes));
            } catch (PageException unreadable) {
                refused++;
            } catch (RuntimeException | StackOverflowError failed) {
                throw new AssertionError("DRAY_SEED=" + (SEED + round), failed);
            }
        }
        System.out.println(rounds + " mutated schemas: " + refused + " refused");
    }
}
