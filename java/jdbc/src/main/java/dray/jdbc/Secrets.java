package dray.jdbc;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Pattern;

/** What a uri has that must not get into an error. */
final class Secrets {
    /** {@code password=x}, and names that contain such words: {@code trustStorePassword=x}. */
    private static final Pattern NAMED = Pattern.compile(
            "[?&;:,(][^?&;:,(=/]*(?:pass|pwd|secret|token|key|credential)[^?&;:,(=/]*=([^&;]*)",
            Pattern.CASE_INSENSITIVE);
    /** {@code user:password@host} and Oracle's {@code user/password@host}. */
    private static final Pattern BEFORE_HOST = Pattern.compile("^([^?;]+)@");

    /** The longest first: one may be a part of another. */
    private final List<String> texts;

    Secrets(String uri) {
        var found = new ArrayList<String>();
        found.add(uri);
        var named = NAMED.matcher(uri);
        while (named.find()) {
            found.add(named.group(1));
            // DB2's and others' parameters end at a comma or a colon.
            found.addAll(List.of(named.group(1).split("[,:)]")));
        }
        var user = BEFORE_HOST.matcher(uri);
        if (user.find()) {
            // A password may itself have a colon or a slash.
            String text = user.group(1);
            for (int i = 0; i < text.length(); i++) {
                if (text.charAt(i) == ':' || text.charAt(i) == '/') {
                    found.add(text.substring(i + 1));
                }
            }
        }
        for (String text : List.copyOf(found)) {
            found.add(decoded(text));
        }
        found.removeIf(String::isBlank);
        found.sort(Comparator.comparingInt(String::length).reversed());
        texts = List.copyOf(found);
    }

    private static String decoded(String text) {
        try {
            return URLDecoder.decode(text, StandardCharsets.UTF_8);
        } catch (IllegalArgumentException notEncoded) {
            return text;
        }
    }

    /** A message without them. */
    String hide(String message) {
        String hidden = message;
        for (String text : texts) {
            hidden = hidden.replace(text, "***");
        }
        return hidden;
    }
}
