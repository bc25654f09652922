package dray.page;

import java.util.Arrays;
import java.util.Base64;

/** A schema, and the position of each field in its objects ({@code spec/page.md} section 3). */
public final class Layout {
    private final Schema schema;
    final Record record;
    private final byte[] digest;

    private Layout(Schema schema, Record record) {
        this.schema = schema;
        this.record = record;
        digest = schema.digest();
    }

    /**
     * The layout of a schema's objects.
     *
     * @throws PageException ({@code limit}) when its record has 2³¹ bytes or more
     */
    public static Layout of(Schema schema) {
        return new Layout(schema, Record.ofObject(schema.fields()));
    }

    /** The layout of a schema whose bytes are written in lines of Base64. For generated code. */
    public static Layout ofBase64(String... lines) {
        return of(Schema.decode(Base64.getDecoder().decode(String.join("", lines))));
    }

    public Schema schema() {
        return schema;
    }

    /** Whether objects of another layout are objects of this one: the schemas are equal. */
    boolean isSameAs(Layout other) {
        return this == other || Arrays.equals(digest, other.digest);
    }

    /** The schema's digest. */
    byte[] digest() {
        return digest;
    }
}
