package dray.spark;

/**
 * The functions of {@code libdray_jni.so}. A handle is the number of one piece of work: planning,
 * reading one result, a session, or writing. All functions but {@link #cancel} and {@link #close}
 * are called by one thread at a time for a handle. They throw {@link DrayException}.
 */
final class Native {
    private Native() {}

    /** A new handle. All use of native code begins with one. */
    static long create() {
        NativeLibrary.require();
        return newHandle();
    }

    private static native long newHandle();

    /** Makes what runs under the handle end with an error soon. Any thread may call it. */
    static native void cancel(long handle);

    /**
     * Ends the handle: a plan's snapshot is given up, a result is cancelled. Any thread may call
     * it, and more than once.
     */
    static native void close(long handle);

    /**
     * Plans a statement without running it. Afterwards the handle has a {@link #schema}, an entry
     * of {@link #estimates} and a {@link #dialect}.
     *
     * @param options names and values in turn
     */
    static native void describe(long handle, String uri, String sql, String[] options);

    /**
     * Divides a statement into parts under one snapshot, which the handle holds. Afterwards it has
     * {@link #schema}, {@link #parts}, {@link #estimates} and {@link #reason}.
     *
     * @param atMost  the most parts; 0 leaves the number to the size of the table
     * @param leaseMs how long parts can be read
     * @param partial whether parts of PostgreSQL may have partial aggregates
     * @param earlier a part of an earlier plan, whose snapshot this one gets, too; null for a new
     *                snapshot
     * @return false if the server's snapshots can't be given to other processes
     */
    static native boolean plan(long handle, String uri, String sql, String[] options, int atMost,
            long leaseMs, boolean partial, byte[] earlier);

    /** Starts to read a part. Afterwards the handle has a {@link #schema} and {@link #next}. */
    static native void openPart(long handle, byte[] part, String uri, String[] options);

    /** Starts to read a statement as a whole, as {@link #openPart} does a part. */
    static native void openQuery(long handle, String uri, String sql, String[] options);

    /** Writes the columns, in types that Spark has, into a struct ArrowSchema. */
    static native void schema(long handle, long address);

    /** Whose SQL the server takes: {@code dray}, {@code postgresql}, {@code mysql}, {@code other}. */
    static native String dialect(long handle);

    /** Rows and bytes that the server's planner expects, in turn for each part; -1 is unknown. */
    static native long[] estimates(long handle);

    /** The descriptors of the plan's parts. */
    static native byte[][] parts(long handle);

    /** Why a plan has one part; null if it has several. */
    static native String reason(long handle);

    /**
     * Checks that the receipts prove the plan read whole, each part once, and gives the snapshot
     * up.
     *
     * @return the rows of all parts
     */
    static native long verify(long handle, byte[][] receipts);

    /**
     * Writes the next batch, a struct of the columns, into a struct ArrowArray.
     *
     * @param bytesMax what a batch may have
     * @return false at the end: nothing was written
     */
    static native boolean next(long handle, long address, long bytesMax);

    /** The receipt of a part that was read to its end, else null. */
    static native byte[] receipt(long handle);

    /**
     * Connects. Afterwards the handle has {@link #ask} and {@link #change}.
     *
     * @return which server answers: {@code dray}, {@code postgresql}, {@code mysql}
     */
    static native String openSession(long handle, String uri, String[] options);

    /**
     * Runs statements of the connector's own.
     *
     * @return the values of all rows as text, row by row; null is NULL
     */
    static native String[] ask(long handle, String sql);

    /** Runs a statement that changes rows, and returns their number. */
    static native long change(long handle, String sql);

    /**
     * Starts to write rows into a table, in a transaction of its own. Afterwards the handle has
     * {@link #write} and {@link #endWrite}.
     *
     * @param table   its schema and name
     * @param mode    {@code append}, or {@code create} for a new table
     * @param address of a struct ArrowSchema with the columns, which is only read
     */
    static native void beginWrite(long handle, String uri, String[] options, String[] table,
            String mode, long address);

    /**
     * Writes the rows in a struct ArrowArray, which is moved out. Waits while enough are on their
     * way.
     */
    static native void write(long handle, long address);

    /**
     * Commits what was written. Without it, {@link #close} undoes everything.
     *
     * @return how many rows the server has counted
     */
    static native long endWrite(long handle);
}
