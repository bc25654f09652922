package dray.page;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.List;

/** The types of an object's fields ({@code spec/types.md} section 1). */
public final class Schema {
    static final int BYTES_MAX = 16 << 20;

    private final List<Field> fields;
    private final byte[] bytes;

    private Schema(List<Field> fields, byte[] bytes) {
        this.fields = fields;
        this.bytes = bytes;
    }

    /**
     * Reads a schema.
     *
     * @throws PageException ({@code schema}) when it breaks a rule of types.md
     */
    public static Schema decode(byte[] bytes) {
        byte[] copy = bytes.clone();
        return new Schema(SchemaReader.read(copy), copy);
    }

    public List<Field> fields() {
        return fields;
    }

    /** Its bytes. */
    public byte[] encoded() {
        return bytes.clone();
    }

    /** The SHA-256 of its bytes, by which programs that were made for one schema know it. */
    public byte[] digest() {
        return sha256().digest(bytes);
    }

    static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException cause) {
            throw new AssertionError("every JDK has SHA-256", cause);
        }
    }
}
