package dray.spark;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/** The native library, which the jar has for some platforms. */
final class NativeLibrary {
    /** A file to load instead of the one in the jar. */
    private static final String PROPERTY = "dray.spark.library";
    private static final String FILE = "libdray_jni.so";
    private static final String HINT = " (build crates/jni there, and name " + FILE + " in the"
            + " property " + PROPERTY + " of driver and executors)";

    private static boolean isLoaded;

    private NativeLibrary() {}

    /** Loads the library, once. */
    static synchronized void require() {
        if (!isLoaded) {
            load();
            isLoaded = true;
        }
    }

    private static void load() {
        String given = System.getProperty(PROPERTY);
        if (given != null) {
            load(Path.of(given));
            return;
        }
        String resource = "/natives/" + platform() + "/" + FILE;
        try (InputStream library = NativeLibrary.class.getResourceAsStream(resource)) {
            if (library == null) {
                throw new DrayException("the connector has no native library for "
                        + platform() + ": the jar lacks " + resource + HINT);
            }
            Path file = Files.createTempFile("dray_jni", ".so");
            try {
                Files.copy(library, file, StandardCopyOption.REPLACE_EXISTING);
                load(file);
            } finally {
                // The system keeps what it has loaded.
                Files.deleteIfExists(file);
            }
        } catch (IOException cause) {
            throw new DrayException("the native library can't be written to the folder "
                    + System.getProperty("java.io.tmpdir") + " (java.io.tmpdir names another)",
                    cause);
        }
    }

    private static void load(Path file) {
        try {
            System.load(file.toAbsolutePath().toString());
        } catch (UnsatisfiedLinkError cause) {
            throw new DrayException("the native library can't be loaded on " + platform() + ": "
                    + cause.getMessage() + HINT, cause);
        }
    }

    /** The system and the processor, as in {@code linux-x86_64}. */
    private static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String processor = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        String name = processor.equals("amd64") ? "x86_64"
                : processor.equals("arm64") ? "aarch64" : processor;
        return system.replace(' ', '-') + "-" + name;
    }
}
