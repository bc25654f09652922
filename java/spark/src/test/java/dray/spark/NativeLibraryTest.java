package dray.spark;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class NativeLibraryTest {
    @Test
    void aPlatformWithoutALibrary() {
        // Only the jar has libraries, and no test does.
        for (int i = 0; i < 2; i++) {
            String said = assertThrows(DrayException.class, Native::create).getMessage();
            assertTrue(said.contains("/natives/linux-"), said);
            assertTrue(said.contains("dray.spark.library"), said);
        }
    }
}
