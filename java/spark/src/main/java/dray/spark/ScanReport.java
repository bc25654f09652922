package dray.spark;

/**
 * What became of a scan's snapshot, when it was given up.
 *
 * @param sql     the statement
 * @param parts   how many parts it had; 0 if it was read as a whole, which has no receipts
 * @param read    how many of them have a receipt. A query that has enough rows, such as one with a
 *                limit, does not read all
 * @param rows    of the parts with a receipt
 * @param problem why the receipts can't be right, empty if nothing is wrong
 */
public record ScanReport(String sql, int parts, int read, long rows, String problem) {
    /** Whether the receipts prove that all rows were read, each part with the same rows. */
    public boolean isWhole() {
        return problem.isEmpty() && parts > 0 && read == parts;
    }

    /** Whether tasks have read something else than the plan has. */
    public boolean isInconsistent() {
        return !problem.isEmpty();
    }

    @Override
    public String toString() {
        return read + " of " + parts + " parts have receipts, with " + rows + " rows"
                + (problem.isEmpty() ? "" : "; " + problem) + ": " + sql;
    }
}
