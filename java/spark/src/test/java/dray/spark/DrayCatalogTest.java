package dray.spark;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class DrayCatalogTest {
    private static final String DEFAULT = "(?i)secret|password|token|access[.]?key";

    @Test
    void secretsThatSparkShows() {
        for (String url : new String[] {"postgresql://me:hunter2@db/shop", "dray://t0ken@host/pg",
            "drays://abc@host", "mysql://me:it%27s@[::1]:3306/shop"}) {
            assertTrue(DrayCatalog.isShown("shop", url, DEFAULT), url);
            assertFalse(DrayCatalog.isShown("shop", url, DEFAULT + "|catalog[.].*[.]url"), url);
        }
        for (String url : new String[] {"postgresql://me@db:5432/shop", "postgresql:///shop",
            "host=db port=5432 user=me", "dray://host:7777/pg", "mysql://me@[::1]:3306/shop",
            "postgresql://db/shop?passfile=/etc/me"}) {
            assertFalse(DrayCatalog.isShown("shop", url, DEFAULT), url);
        }
    }

    @Test
    void secretsThatSparkHides() {
        // It looks at values, too.
        for (String url : new String[] {"host=db password=hunter2", "postgresql://db?password=x"}) {
            assertFalse(DrayCatalog.isShown("shop", url, DEFAULT));
            assertTrue(DrayCatalog.isShown("shop", url, "nothing"));
        }
        assertFalse(DrayCatalog.isShown("token_shop", "postgresql://me:x@db/shop", DEFAULT));
        assertTrue(DrayCatalog.isShown("shop", "postgresql://me:x@db/shop", DEFAULT));
    }
}
