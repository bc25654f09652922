package dray.spark;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** The latest scans whose snapshots were given up, for programs that check receipts. */
public final class ScanReports {
    private static final int KEPT = 100;
    private static final Deque<ScanReport> LATEST = new ArrayDeque<>();

    private ScanReports() {}

    static synchronized void add(ScanReport report) {
        if (LATEST.size() == KEPT) {
            LATEST.removeFirst();
        }
        LATEST.addLast(report);
    }

    /** Up to 100 reports of this driver, the oldest first. */
    public static synchronized List<ScanReport> latest() {
        return new ArrayList<>(LATEST);
    }
}
