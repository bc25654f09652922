package dray.spark;

/** The snapshots that scans with the option {@code snapshot} share, for programs that end them. */
public final class NamedSnapshots {
    private NamedSnapshots() {}

    /**
     * Gives up the snapshots of this name, of all urls. The next scan with this name begins a new
     * one. What is being read is read to its end.
     *
     * @return whether there was one
     */
    public static boolean release(String name) {
        return Snapshots.releaseNamed(name);
    }
}
