package dray.spark;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class NativeLibraryTest {
    @Test
    void aPlatformWithoutALibrary() {
        String processor = System.getProperty("os.arch");
        System.setProperty("os.arch", "abacus");
        try {
            for (int i = 0; i < 2; i++) {
                String said = assertThrows(DrayException.class, Native::create).getMessage();
                assertTrue(said.contains("/natives/linux-abacus/libdray_jni.so"), said);
                assertTrue(said.contains("dray.spark.library"), said);
            }
        } finally {
            System.setProperty("os.arch", processor);
        }
    }
}
