package dray.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.TimeType;
import org.junit.jupiter.api.Test;

class DrayOptionsTest {
    private static DrayOptions options(String... pairs) {
        Map<String, String> given = new HashMap<>(Map.of("url", "dray://localhost"));
        for (int i = 0; i < pairs.length; i += 2) {
            given.put(pairs[i], pairs[i + 1]);
        }
        return new DrayOptions(given, false);
    }

    private static String refused(String... pairs) {
        return assertThrows(DrayException.class, () -> options(pairs)).getMessage();
    }

    @Test
    void names() {
        DrayOptions options = options("DbTable", "t", "READTIMEOUT", "5", "batchrows", "9");
        assertEquals("t", options.dbtable());
        assertArrayEquals(new String[] {"readTimeout", "5", "batchRows", "9"}, options.natives());
        assertTrue(refused("dbtabel", "t").contains("dbtable is the nearest"));
        assertTrue(refused("numPartition", "2").contains("numPartitions is the nearest"));
        assertTrue(refused("driver", "x").contains("there is no JDBC driver"));
    }

    @Test
    void allThatIsWrongIsNamed() {
        String said = refused("dbtabel", "t", "numPartition", "2", "fetchSize", "9", "lease", "no");
        for (String part : new String[] {"no option dbtabel: dbtable is the nearest",
            "no option numPartition: numPartitions is", "no option fetchSize: rows come as",
            "option lease is \"no\", expected a number", "there are url, servers, dbtable, "}) {
            assertTrue(said.contains(part), said);
        }
        assertFalse(said.contains("is needed"), said);
        String both = refused("dbtable", "t", "numPartitions", "0", "pushDown", "maybe");
        assertTrue(both.contains("numPartitions is") && both.contains("; option pushDown"), both);
        assertFalse(both.contains("there are"), both);
    }

    private static List<String> urlsOfParts(String url, String servers) {
        DrayOptions options = new DrayOptions(
                Map.of("url", url, "servers", servers, "dbtable", "t"), false);
        return List.of(options.urlOfPart(0, 0), options.urlOfPart(1, 0),
                options.urlOfPart(0, 1), options.urlOfPart(1, 1));
    }

    @Test
    void serversThatReadParts() {
        assertEquals("dray://localhost", options("dbtable", "t").urlOfPart(7, 1));
        String url = "drays://to/k@en@a:7654/files?plain_token=true";
        String one = "drays://to/k@en@b:7654/files?plain_token=true";
        String two = "drays://to/k@en@[::1]:99/files?plain_token=true";
        assertEquals(List.of(one, two, two, one), urlsOfParts(url, "b, [::1]:99"));
        assertEquals("dray://c", urlsOfParts("dray://[::2]", "b,c").get(1));
        assertEquals("dray://[::1]:5", urlsOfParts("dray://a:5", "b,[::1]").get(1));
        assertEquals("dray://b:5?x=@", urlsOfParts("dray://a:5?x=@", "b,c").get(0));
        for (String wrong : new String[] {"", "a,,b", "a b", "dray://a", "a:x", "a/b"}) {
            assertTrue(refused("dbtable", "t", "servers", wrong).contains("HOST,HOST:PORT"));
        }
        String said = assertThrows(DrayException.class,
                () -> urlsOfParts("postgresql://a/b", "c")).getMessage();
        assertTrue(said.contains("option servers is for Dray servers"), said);
    }

    /** Also those of native code. */
    @Test
    void allValuesThatAreWrongAreNamed() {
        String[] wrong = {"numeric", "float", "nonfinite", "NULL", "extension", "yes",
            "connectTimeout", "0", "readTimeout", "soon", "batchRows", "0", "batchBytes", "1k"};
        String said = refused(Stream.concat(Stream.of("dbtable", "t"), Stream.of(wrong))
                .toArray(String[]::new));
        for (int i = 0; i < wrong.length; i += 2) {
            String part = "option " + wrong[i] + " is \"" + wrong[i + 1] + "\", expected ";
            assertTrue(said.contains(part), said);
        }
        for (String numeric : new String[] {"text", "float64", "decimal(38,10)", "decimal(9)",
            "decimal( 76 , 76 )"}) {
            options("dbtable", "t", "numeric", numeric, "nonfinite", "null", "extension", "auto",
                    "connectTimeout", "0.5", "readTimeout", "3e2");
        }
        for (String numeric : new String[] {"decimal(0,0)", "decimal(77,0)", "decimal(9,10)",
            "decimal(9,-1)", "decimal", "Text"}) {
            assertTrue(refused("dbtable", "t", "numeric", numeric).contains("up to 76 digits"));
        }
        assertTrue(refused("dbtable", "t", "readTimeout", "NaN").contains("ten years"));
    }

    @Test
    void namesOfSnapshots() {
        assertEquals("month end", options("dbtable", "t", "Snapshot", " month end ").snapshot());
        assertNull(options("dbtable", "t").snapshot());
        assertTrue(refused("dbtable", "t", "snapshot", " ").contains("option snapshot is empty"));
        // Sides of a join with different snapshots can't be one statement.
        assertFalse(options("dbtable", "t", "snapshot", "a")
                .isSameSource(options("dbtable", "t", "snapshot", "b")));
    }

    @Test
    void sources() {
        DrayOptions one = options("dbtable", "t", "numeric", "text");
        assertTrue(one.isSameSource(options("query", "SELECT 1", "numeric", "text")));
        assertFalse(one.isSameSource(options("dbtable", "t", "numeric", "float64")));
        assertFalse(one.isSameSource(options("dbtable", "t")));
    }

    @Test
    void oneOfTableAndQuery() {
        assertTrue(refused().contains("dbtable and query"));
        assertTrue(refused("dbtable", "t", "query", "q").contains("not both"));
        assertEquals("SELECT 1", options("query", "SELECT 1 ;\n").query());
        Map<String, String> catalog = Map.of("url", "dray://localhost");
        assertEquals("dray://localhost", new DrayOptions(catalog, true).url());
        assertThrows(DrayException.class,
                () -> new DrayOptions(Map.of("url", "dray://localhost", "query", "q"), true));
    }

    @Test
    void parts() {
        assertEquals(0, options("dbtable", "t").atMost());
        assertEquals(3, options("dbtable", "t", "numPartitions", "3").atMost());
        assertEquals(3, options("dbtable", "t", "maxConnections", "3").atMost());
        assertEquals(2, options(
                "dbtable", "t", "numPartitions", "3", "maxConnections", "2").atMost());
        for (String wrong : new String[] {"0", "-1", "65537", "1e3", ""}) {
            assertTrue(refused("dbtable", "t", "numPartitions", wrong).contains("expected"));
        }
        assertTrue(refused("dbtable", "t", "lease", "86401").contains("from 1 to 86400"));
    }

    @Test
    void connections() {
        assertEquals(60, options("dbtable", "t").connectionWaitSeconds());
        assertEquals(0, options("dbtable", "t", "connectionWait", "0").connectionWaitSeconds());
        assertTrue(refused("dbtable", "t", "connectionWait", "-1").contains("from 0 to 86400"));
        Map<String, String> given = Map.of("url", "mysql://localhost/shop", "dbtable", "t",
                "maxConnections", "2", "batchRows", "9");
        assertArrayEquals(new String[] {"batchRows", "9", "partitions", "1"},
                new DrayOptions(given, false).nativesOfWhole());
        assertArrayEquals(new String[0], options("dbtable", "t", "maxConnections", "2")
                .nativesOfWhole());
    }

    @Test
    void pushDown() {
        assertTrue(options("dbtable", "t").isPushDown());
        assertTrue(options("dbtable", "t", "pushdown", "True").isPushDown());
        assertFalse(options("dbtable", "t", "PushDown", "False").isPushDown());
        assertTrue(refused("dbtable", "t", "pushDown", "no").contains("true or false"));
        assertTrue(refused("dbtable", "t", "pushDownLimit", "no").contains("pushDown is the"));
        DataType decimal = DataTypes.createDecimalType(9, 2);
        DrayOptions exact = options("dbtable", "t", "nonfinite", "error", "numeric", "text");
        assertTrue(exact.isExact(decimal) && exact.isExact(DataTypes.DateType));
        DrayOptions rounded = options("dbtable", "t", "numeric", "decimal(9,2)");
        assertTrue(!rounded.isExact(decimal) && rounded.isExact(DataTypes.DateType));
        DrayOptions nulls = options("dbtable", "t", "nonfinite", "null");
        for (DataType type : new DataType[] {decimal, DataTypes.DateType,
            DataTypes.TimestampType, DataTypes.TimestampNTZType, new TimeType(6),
            DataTypes.CalendarIntervalType}) {
            assertFalse(nulls.isExact(type));
        }
        assertTrue(nulls.isExact(DataTypes.StringType) && nulls.isExact(DataTypes.DoubleType));
    }

    @Test
    void writing() {
        DrayOptions table = options("dbtable", "t", "lease", "5", "batchRows", "7");
        DrayOptions write = table.ofWrite(Map.of("TRUNCATE", "true", "batchBytes", "100"));
        assertTrue(write.isTruncate() && !table.isTruncate());
        assertEquals(7, write.batchRows());
        assertEquals(100, write.batchBytes());
        assertEquals(1000, table.ofWrite(Map.of("taskMemory", "8000")).batchBytes());
        for (String wrong : new String[] {"lease", "query", "numPartitions"}) {
            String said = assertThrows(DrayException.class,
                    () -> table.ofWrite(Map.of(wrong, "1"))).getMessage();
            assertTrue(said.contains("option " + wrong + " is for reading"), said);
        }
        String said = assertThrows(DrayException.class, () -> table.ofWrite(Map.of("truncate",
                "yes", "lease", "1", "batchSize", "2", "readTimeout", "0"))).getMessage();
        for (String part : new String[] {"option truncate is \"yes\"",
            "option lease is for reading", "no option batchSize: ", "option readTimeout is \"0\"",
            "writing takes url, dbtable"}) {
            assertTrue(said.contains(part), said);
        }
    }

    @Test
    void reading() {
        DrayOptions table = new DrayOptions(
                Map.of("url", "dray://localhost", "lease", "5", "numeric", "text"), true);
        DrayOptions read = table.ofRead(Map.of("Snapshot", " month end ", "pushDown", "false"));
        assertEquals("month end", read.snapshot());
        assertTrue(!read.isPushDown() && table.isPushDown());
        assertEquals(5000, read.leaseMs());
        // Spark hands the options of a table to its scans.
        assertEquals(table, table.ofRead(Map.of("URL", "dray://localhost", "numeric", "text ")));
        DrayOptions named = options("dbtable", "t", "truncate", "true");
        assertEquals(named, named.ofRead(Map.of("dbtable", "t", "truncate", "true")));
        for (String other : new String[] {"url", "dbtable", "query", "numeric", "nonfinite",
            "truncate", "stagingSchema"}) {
            String said = assertThrows(DrayException.class,
                    () -> table.ofRead(Map.of(other, "other"))).getMessage();
            assertTrue(said.contains("option " + other + " can't be given for one use"), said);
        }
        String said = assertThrows(DrayException.class, () -> table.ofRead(
                Map.of("snapshots", "a", "numPartitions", "0"))).getMessage();
        assertTrue(said.contains("snapshot is the nearest") && said.contains("expected a"), said);
    }

    @Test
    void writingIntoTheTableOfACatalog() {
        DrayOptions catalog = new DrayOptions(Map.of("url", "dray://localhost"), true);
        assertEquals(7, catalog.ofWrite(Map.of("batchRows", "7")).batchRows());
        for (String other : new String[] {"url", "dbtable"}) {
            String said = assertThrows(DrayException.class,
                    () -> catalog.ofWrite(Map.of(other, "other"))).getMessage();
            assertTrue(said.contains("option " + other + " can't be given for one use"), said);
        }
        DrayOptions named = options("dbtable", "t");
        assertEquals("t", named.ofWrite(Map.of("dbtable", "t", "url", named.url())).dbtable());
    }

    @Test
    void theReadmeHasAllOptions() throws Exception {
        Path root = Path.of(System.getProperty("dray.root"));
        String readme = Files.readString(root.resolve("java/spark/README.md"));
        for (DrayOptions.Name name : DrayOptions.Name.values()) {
            assertTrue(readme.contains("| `" + name + "` |"), name + " is not in the README");
        }
    }
}
