package dray.page;

import java.util.List;
import java.util.Map;

/** A field of a schema or a struct, or the item of a list. Names may repeat and may be empty. */
public record Field(
        String name, boolean nullable, Type type, List<Map.Entry<String, String>> metadata) {}
