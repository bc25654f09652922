package dray.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.DateDayVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.NullVector;
import org.apache.arrow.vector.TimeMicroVector;
import org.apache.arrow.vector.TimeStampMicroVector;
import org.apache.arrow.vector.UInt8Vector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ParametersTest {
    @TempDir
    Path folder;

    private static List<FieldVector> values(RootAllocator allocator) {
        var bits = new BitVector("a", allocator);
        bits.setSafe(0, 1);
        var ints = new IntVector("b", allocator);
        ints.setSafe(0, -5);
        var longs = new BigIntVector("c", allocator);
        longs.setSafe(0, 1L << 40);
        var doubles = new Float8Vector("d", allocator);
        doubles.setSafe(0, 0.1);
        var decimals = new DecimalVector("e", allocator, 10, 2);
        decimals.setSafe(0, new BigDecimal("12.30"));
        var texts = new VarCharVector("f", allocator);
        texts.setSafe(0, "ü😀".getBytes(StandardCharsets.UTF_8));
        var bytes = new VarBinaryVector("g", allocator);
        bytes.setSafe(0, new byte[] {0, -1});
        var days = new DateDayVector("h", allocator);
        days.setSafe(0, -719_162);
        var times = new TimeMicroVector("i", allocator);
        times.setSafe(0, 3_661_000_000L);
        var timestamps = new TimeStampMicroVector("j", allocator);
        timestamps.setSafe(0, -1);
        var unsigned = new UInt8Vector("k", allocator);
        unsigned.setSafe(0, -1L);
        var nothing = new VarCharVector("l", allocator);
        nothing.allocateNew();
        nothing.setNull(0);
        return List.of(bits, ints, longs, doubles, decimals, texts, bytes, days, times, timestamps,
                unsigned, nothing, new NullVector("m", 1));
    }

    private void check(String uri, String bytesType) throws Exception {
        try (var allocator = new RootAllocator();
                var root = new VectorSchemaRoot(values(allocator));
                var bridge = BridgeProcess.open(folder, uri, false)) {
            root.setRowCount(1);
            String sql = "VALUES (CAST(? AS boolean), CAST(? AS int), CAST(? AS bigint),"
                    + " CAST(? AS double), CAST(? AS decimal(10,2)), CAST(? AS varchar(10)),"
                    + " CAST(? AS " + bytesType + "), CAST(? AS date), CAST(? AS time),"
                    + " CAST(? AS timestamp), CAST(? AS decimal(20,0)), CAST(? AS int),"
                    + " CAST(? AS varchar(5)))";
            assertEquals("[[true, -5, 1099511627776, 0.1, 12.30, ü😀, 00ff, -719162, 3661000000,"
                    + " 1969-12-31T23:59:59.999999, 18446744073709551615, null, null]]",
                    bridge.query(sql, root).texts().toString());
            // Too many.
            assertNotNull(bridge.query("VALUES (CAST(? AS int))", root).error());
            assertEquals("[[1]]", bridge.query("VALUES 1").texts().toString());
        }
    }

    @Test
    void h2() throws Exception {
        check("jdbc:h2:mem:", "varbinary(10)");
    }

    @Test
    void derby() throws Exception {
        check("jdbc:derby:memory:p;create=true", "varchar(10) for bit data");
    }
}
