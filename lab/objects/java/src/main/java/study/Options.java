package study;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** The options of the command line: `--name value`. */
public final class Options {
    private final Map<String, String> values = new LinkedHashMap<>();

    public Options(String[] words) {
        for (int i = 0; i < words.length; i += 2) {
            if (!words[i].startsWith("--")) {
                throw new UsageException("expected an option: " + words[i]);
            }
            if (i + 1 == words.length) {
                throw new UsageException(words[i] + " needs a value");
            }
            values.put(words[i].substring(2), words[i + 1]);
        }
    }

    public Map<String, String> values() {
        return values;
    }

    public String text(String name) {
        String value = values.get(name);
        if (value == null) {
            throw new UsageException("--" + name + " is missing");
        }
        return value;
    }

    public String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    public Path path(String name) {
        return Path.of(text(name));
    }

    public long number(String name) {
        try {
            return Long.parseLong(text(name));
        } catch (NumberFormatException error) {
            throw new UsageException("--" + name + " is no number: " + text(name));
        }
    }

    public long number(String name, long otherwise) {
        return values.containsKey(name) ? number(name) : otherwise;
    }

    public boolean validate() {
        return text("validate", "no").equals("yes");
    }
}
