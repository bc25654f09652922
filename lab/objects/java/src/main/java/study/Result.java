package study;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/** The line of JSON that a run prints last. */
public final class Result {
    private final Map<String, String> fields = new LinkedHashMap<>();

    public Result text(String name, String value) {
        fields.put(name, quoted(value));
        return this;
    }

    public Result number(String name, long value) {
        fields.put(name, Long.toString(value));
        return this;
    }

    public Result seconds(String name, double value) {
        fields.put(name, String.format(Locale.ROOT, "%.9f", value));
        return this;
    }

    public Result checksum(long value) {
        return text("checksum", String.format("%016x", value));
    }

    /** A list of strings. */
    public Result list(String name, Iterable<String> values) {
        StringBuilder out = new StringBuilder("[");
        for (String value : values) {
            out.append(out.length() > 1 ? ", " : "").append(quoted(value));
        }
        fields.put(name, out.append("]").toString());
        return this;
    }

    public void print() {
        StringBuilder line = new StringBuilder("{");
        fields.forEach((name, value) -> line.append(line.length() > 1 ? ", " : "")
                .append(quoted(name)).append(": ").append(value));
        System.out.println(line.append("}"));
        System.out.flush();
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }
}
