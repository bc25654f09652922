package dray.page;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON. A number is the string of its digits, as the vectors write large numbers anyway. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        var json = new Json(text);
        Object value = json.value();
        json.space();
        if (json.at != text.length()) {
            throw new AssertionError("JSON goes on at " + json.at);
        }
        return value;
    }

    private void space() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
    }

    private boolean take(String word) {
        space();
        if (!text.startsWith(word, at)) {
            return false;
        }
        at += word.length();
        return true;
    }

    private void expect(String word) {
        if (!take(word)) {
            throw new AssertionError("expected " + word + " at " + at);
        }
    }

    private Object value() {
        if (take("{")) {
            return object();
        }
        if (take("[")) {
            return array();
        }
        if (take("\"")) {
            return string();
        }
        if (take("true")) {
            return true;
        }
        if (take("false")) {
            return false;
        }
        if (take("null")) {
            return null;
        }
        int from = at;
        while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        return text.substring(from, at);
    }

    private Map<String, Object> object() {
        var members = new LinkedHashMap<String, Object>();
        while (!take("}")) {
            if (!members.isEmpty()) {
                expect(",");
            }
            expect("\"");
            String name = string();
            expect(":");
            members.put(name, value());
        }
        return members;
    }

    private List<Object> array() {
        var items = new ArrayList<>();
        while (!take("]")) {
            if (!items.isEmpty()) {
                expect(",");
            }
            items.add(value());
        }
        return items;
    }

    private String string() {
        var string = new StringBuilder();
        for (char next = text.charAt(at++); next != '"'; next = text.charAt(at++)) {
            if (next != '\\') {
                string.append(next);
                continue;
            }
            char escaped = text.charAt(at++);
            switch (escaped) {
                case 'b' -> string.append('\b');
                case 'f' -> string.append('\f');
                case 'n' -> string.append('\n');
                case 'r' -> string.append('\r');
                case 't' -> string.append('\t');
                case 'u' -> {
                    string.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                    at += 4;
                }
                default -> string.append(escaped);
            }
        }
        return string.toString();
    }
}
