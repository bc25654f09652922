package dray.page;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dray.page.generated.nested.CustomerBuilder;
import dray.page.generated.nested.Customer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The examples of the README compile, and print what it says. */
class ReadmeTest {
    private static final Pattern EXAMPLE =
            Pattern.compile("```java\n(.*?class (\\w+).*?)```\n\n```text\n(.*?)```", Pattern.DOTALL);

    private static Path shop(Path folder) {
        var builder = new CustomerBuilder(4096);
        Customer.Writer customer = builder.begin().key(5).name("Miller");
        var orders = customer.orders(2);
        var items = orders.next().date(100).items(2);
        items.next().part(1).quantity((short) 10);
        items.next().part(2);
        orders.next();
        builder.end();
        Path path = folder.resolve("shop.pages");
        TestFiles.write(path, builder.finish(), 4096, "key");
        return path;
    }

    /** Compiles and runs a class, and returns what it prints. */
    private static String run(Path folder, String name, String source, String argument)
            throws IOException, ReflectiveOperationException {
        Path file = folder.resolve(name + ".java");
        Files.writeString(file, source);
        int failed = ToolProvider.getSystemJavaCompiler().run(null, null, null,
                "-cp", System.getProperty("java.class.path"), "-d", folder.toString(),
                file.toString());
        assertEquals(0, failed, name + " does not compile");
        PrintStream out = System.out;
        var printed = new ByteArrayOutputStream();
        try (var loader = new URLClassLoader(new URL[] {folder.toUri().toURL()})) {
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            loader.loadClass(name).getMethod("main", String[].class)
                    .invoke(null, (Object) new String[] {argument});
        } finally {
            System.setOut(out);
        }
        return printed.toString(StandardCharsets.UTF_8);
    }

    @Test
    void theExamplesPrintWhatTheReadmeSays(@TempDir Path folder) throws Exception {
        Path file = shop(folder);
        Matcher examples = EXAMPLE.matcher(Files.readString(Vectors.ROOT.resolve("java/README.md")));
        int count = 0;
        while (examples.find()) {
            String source = examples.group(1).replace("shop.", "dray.page.generated.nested.");
            assertEquals(examples.group(3),
                    run(folder, examples.group(2), source, file.toString()));
            count++;
        }
        assertEquals(2, count);
    }
}
