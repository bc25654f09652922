package dray.page;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * What a page file begins with ({@code spec/page-file.md} section 2).
 *
 * @param pageBytes the standard size of the pages
 * @param schema of the objects
 * @param pagesAt where the first page begins
 * @param bytes all bytes up to there
 */
record FileHeader(int pageBytes, Schema schema, int pagesAt, ByteBuffer bytes) {
    static final int UNIT_BYTES = 4096;
    private static final int BYTES = 64;
    private static final int MAGIC = 0x4659_5244;
    private static final int RESERVED_AT = 16;
    private static final int DIGEST_AT = 32;

    static FileHeader decode(Source file) {
        ByteBuffer header = file.slice(0, (int) Math.min(file.size, BYTES));
        if (header.limit() < 4 || Memory.getInt(header, 0) != MAGIC) {
            throw refused(Refusal.MAGIC, "it is not a page file: it does not begin with DRYF");
        }
        if (header.limit() < BYTES) {
            throw refused(Refusal.CUT, "it ends within its header, after " + file.size + " bytes");
        }
        if (Memory.getChar(header, 4) != 0) {
            throw refused(Refusal.VERSION, "it has layout version " + Memory.getChar(header, 4)
                    + ", this reader knows 0");
        }
        if (Memory.getChar(header, 6) != 0) {
            throw refused(Refusal.FLAGS,
                    String.format("unknown flags %#06x", Memory.getChar(header, 6)));
        }
        long pageBytes = Memory.getUnsignedInt(header, 8);
        if (!PageHeader.isStandardSize(pageBytes)) {
            throw refused(Refusal.SIZE, "no page has " + pageBytes + " bytes");
        }
        long schemaBytes = Memory.getUnsignedInt(header, 12);
        if (schemaBytes > Schema.BYTES_MAX) {
            throw refused(Refusal.SIZE, "a schema of " + schemaBytes + " bytes, the most are "
                    + Schema.BYTES_MAX);
        }
        if (!Memory.isZero(header, RESERVED_AT, DIGEST_AT)) {
            throw refused(Refusal.RESERVED, "a reserved byte of the header is not 0");
        }
        int schemaEnd = BYTES + (int) schemaBytes;
        int pagesAt = Memory.pad(schemaEnd, UNIT_BYTES);
        if (file.size < pagesAt) {
            throw refused(Refusal.CUT, "it ends within its schema, after " + file.size + " bytes");
        }
        ByteBuffer all = file.slice(0, pagesAt);
        byte[] digest = new byte[BYTES - DIGEST_AT];
        all.get(DIGEST_AT, digest);
        byte[] schema = new byte[(int) schemaBytes];
        all.get(BYTES, schema);
        if (!Arrays.equals(Schema.sha256().digest(schema), digest)) {
            throw refused(Refusal.DIGEST, "its schema was damaged");
        }
        if (!Memory.isZero(all, schemaEnd, pagesAt)) {
            throw refused(Refusal.PADDING, "a byte between the schema and the pages is not 0");
        }
        return new FileHeader((int) pageBytes, Schema.decode(schema), pagesAt, all);
    }

    private static PageException refused(Refusal refusal, String what) {
        return new PageException(refusal, what);
    }
}
