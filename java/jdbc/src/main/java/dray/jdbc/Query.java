package dray.jdbc;

/**
 * The frame Q, with the frames D before it.
 *
 * @param parameters an Arrow IPC stream of one batch of one row; null without parameters
 * @param batchBytes about the most bytes of a batch of several rows
 * @param rowBytes the most bytes of a row
 */
record Query(
        String sql,
        byte[] parameters,
        boolean planOnly,
        int batchRows,
        long batchBytes,
        long rowBytes,
        Cancellation cancellation) {}
