package dray.page;

/** A schema, and the position of each field in its objects ({@code spec/page.md} section 3). */
public final class Layout {
    private final Schema schema;
    final Record record;

    private Layout(Schema schema, Record record) {
        this.schema = schema;
        this.record = record;
    }

    /**
     * The layout of a schema's objects.
     *
     * @throws PageException ({@code limit}) when its record has 2³¹ bytes or more
     */
    public static Layout of(Schema schema) {
        return new Layout(schema, Record.ofObject(schema.fields()));
    }

    public Schema schema() {
        return schema;
    }

    /** Whether objects of another layout are objects of this one: the schemas are equal. */
    boolean isSameAs(Layout other) {
        return this == other || java.util.Arrays.equals(schema.digest(), other.schema.digest());
    }
}
