package dray.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class PeakBytesTest {
    @Test
    void thoseOfTheTaskThatHasHeldTheMost() {
        assertEquals("1,234,567",
                new PeakBytes().aggregateTaskMetrics(new long[] {0, 1_234_567, 99}));
        assertEquals("0", new PeakBytes().aggregateTaskMetrics(new long[0]));
        assertEquals("peakBytes", PeakBytes.of(5).name());
        assertEquals(5, PeakBytes.of(5).value());
    }
}
