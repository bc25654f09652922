package dray.jdbc;

/**
 * The frame O.
 *
 * @param name the source's name
 * @param uri may hold a password
 */
record Open(String name, String uri, boolean writable) {
    static final int VERSION = 1;
}
