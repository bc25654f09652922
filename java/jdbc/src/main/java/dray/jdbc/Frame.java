package dray.jdbc;

/**
 * A frame of {@code spec/bridge.md} section 1.
 *
 * @param kind an ASCII letter
 * @param payload JSON, or bytes of an Arrow IPC stream
 */
record Frame(char kind, byte[] payload) {
    static final int JSON_BYTES_MAX = 16 << 20;
    static final int DATA_BYTES_MAX = 1 << 20;
    static final int HEADER_BYTES = 5;

    /** The most bytes that a payload of this kind may have. */
    static int bytesMax(char kind) {
        return kind == 'D' ? DATA_BYTES_MAX : JSON_BYTES_MAX;
    }
}
