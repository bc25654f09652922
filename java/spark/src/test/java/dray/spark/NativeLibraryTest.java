package dray.spark;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
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

    @Test
    void aFileThatIsNoLibrary() {
        String file = Path.of("pom.xml").toAbsolutePath().toString();
        System.setProperty("dray.spark.library", file);
        try {
            String said = assertThrows(DrayException.class, Native::create).getMessage();
            assertTrue(said.startsWith("the native library can't be loaded on linux-"), said);
            assertTrue(said.contains(file) && said.contains("build crates/jni"), said);
        } finally {
            System.clearProperty("dray.spark.library");
        }
    }
}
