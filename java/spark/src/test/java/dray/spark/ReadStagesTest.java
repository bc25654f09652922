package dray.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Jobs that read some partitions of an RDD with three. */
class ReadStagesTest {
    private static final int RDD = 7;
    private static final boolean TO_END = true;

    private final ReadStages scan = new ReadStages(1);
    private final Map<Integer, List<TaskRead>> tasks = new HashMap<>();
    private final List<Pass> begun = new ArrayList<>();
    private int stages;

    private void read(int snapshot, int partition, boolean toEnd) {
        read(snapshot, partition, toEnd, Long.MAX_VALUE);
    }

    private void read(int snapshot, int partition, boolean toEnd, long goesOnMs) {
        PartialStage stage = new PartialStage(stages++, RDD, 3, goesOnMs);
        List<TaskRead> ofSnapshot = tasks.computeIfAbsent(snapshot, key -> new ArrayList<>());
        ofSnapshot.add(new TaskRead(stage.id(), partition, toEnd));
        scan.hasRead(stage, partition, snapshot, () -> ofSnapshot, begun::add);
    }

    private String refused(int snapshot) {
        return scan.refused(RDD, snapshot).toString();
    }

    @Test
    void onePartAfterTheOther() {
        read(1, 0, TO_END);
        assertTrue(begun.get(0).mayGoOn());
        assertEquals("{}", refused(1));
        // The first part may be read again, by whoever begins again.
        assertEquals("{1, 2}", refused(2));
        read(1, 1, TO_END);
        assertEquals("{2}", refused(2));
        read(1, 2, TO_END);
        assertFalse(begun.get(0).mayGoOn());
        assertEquals("{}", refused(2));
        assertEquals(1, begun.size());
    }

    @Test
    void enoughRows() {
        read(1, 0, !TO_END);
        assertFalse(begun.get(0).mayGoOn());
        // It may still go on.
        assertEquals("{1, 2}", refused(2));
        read(2, 0, TO_END);
        assertEquals("{}", refused(2));
        assertTrue(begun.get(1).mayGoOn());
        read(2, 1, !TO_END);
        assertFalse(begun.get(1).mayGoOn());
    }

    @Test
    void twoAtATime() {
        read(1, 0, TO_END);
        read(1, 0, TO_END);
        read(1, 1, TO_END);
        read(1, 2, TO_END);
        assertTrue(begun.get(0).mayGoOn());
        assertEquals("{1, 2}", refused(2));
        // Neither can one that begins again meanwhile make them mix.
        read(2, 0, !TO_END);
        assertEquals("{1, 2}", refused(2));
        read(1, 1, TO_END);
        read(1, 2, TO_END);
        assertFalse(begun.get(0).mayGoOn());
        assertEquals("{}", refused(2));
    }

    @Test
    void rowsOfOtherScans() {
        PartialStage stage = new PartialStage(0, RDD, 3, Long.MAX_VALUE);
        scan.hasRead(stage, 0, 1, List::of, begun::add);
        assertTrue(begun.isEmpty());
        assertEquals("{}", refused(2));
    }

    @Test
    void executions() {
        read(1, 0, TO_END, 0);
        assertFalse(begun.get(0).mayGoOn());
        assertEquals("{1, 2}", refused(2));
    }
}
