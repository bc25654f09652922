package dray.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class DirectColumnTest {
    private static final DataType MONEY = DataTypes.createDecimalType(18, 2);

    private final BufferAllocator allocator = new RootAllocator();

    @AfterEach
    void nothingIsLeft() {
        allocator.close();
    }

    private static DirectColumn column(FieldVector vector, int rows, DataType type) {
        vector.setValueCount(rows);
        DirectColumn column = DirectColumn.of(vector, type);
        column.refresh();
        return column;
    }

    @Test
    void numbersAndNulls() {
        try (IntVector vector = new IntVector("n", allocator)) {
            for (int row : List.of(0, 2, 8, 9)) {
                vector.setSafe(row, row * row - 5);
            }
            DirectColumn column = column(vector, 10, DataTypes.IntegerType);
            assertEquals(6, column.numNulls());
            assertTrue(column.hasNull());
            for (int row = 0; row < 10; row++) {
                assertEquals(vector.isNull(row), column.isNullAt(row));
                if (!vector.isNull(row)) {
                    assertEquals(row * row - 5, column.getInt(row));
                }
            }
        }
    }

    @Test
    void bits() {
        try (BitVector vector = new BitVector("b", allocator)) {
            for (int row = 0; row < 20; row++) {
                vector.setSafe(row, row % 3 == 0 ? 1 : 0);
            }
            DirectColumn column = column(vector, 20, DataTypes.BooleanType);
            for (int row = 0; row < 20; row++) {
                assertEquals(row % 3 == 0, column.getBoolean(row));
            }
        }
    }

    @Test
    void stringsAndBytes() {
        byte[] text = "Grüße, 🦆".getBytes(StandardCharsets.UTF_8);
        try (VarCharVector strings = new VarCharVector("s", allocator);
                VarBinaryVector binaries = new VarBinaryVector("b", allocator)) {
            strings.setSafe(0, text);
            strings.setSafe(2, new byte[0]);
            binaries.setSafe(0, text);
            DirectColumn string = column(strings, 3, DataTypes.StringType);
            DirectColumn binary = column(binaries, 2, DataTypes.BinaryType);
            assertEquals("Grüße, 🦆", string.getUTF8String(0).toString());
            assertNull(string.getUTF8String(1));
            assertEquals("", string.getUTF8String(2).toString());
            assertArrayEquals(text, binary.getBinary(0));
            assertNull(binary.getBinary(1));
        }
    }

    @Test
    void decimals() {
        try (DecimalVector vector = new DecimalVector("d", allocator, 18, 2)) {
            BigDecimal least = new BigDecimal("-9999999999999999.99");
            vector.setSafe(0, least);
            vector.setSafe(2, new BigDecimal("0.07"));
            DirectColumn column = column(vector, 3, MONEY);
            assertEquals(least, column.getDecimal(0, 18, 2).toJavaBigDecimal());
            assertNull(column.getDecimal(1, 18, 2));
            assertEquals(new BigDecimal("0.07"), column.getDecimal(2, 18, 2).toJavaBigDecimal());
        }
    }

    @Test
    void aDecimalThatIsTooLarge() {
        try (DecimalVector vector = new DecimalVector("d", allocator, 18, 2)) {
            vector.allocateNew(1);
            vector.setIndexDefined(0);
            vector.getDataBuffer().setLong(Long.BYTES, 1);
            DirectColumn column = column(vector, 1, MONEY);
            assertThrows(ArithmeticException.class, () -> column.getDecimal(0, 18, 2));
        }
    }

    @Test
    void wideDecimalsAreNotReadDirectly() {
        try (DecimalVector vector = new DecimalVector("d", allocator, 19, 2)) {
            assertNull(DirectColumn.of(vector, DataTypes.createDecimalType(19, 2)));
        }
    }

    @Test
    void rowsOfABatchThatIsGone() {
        try (IntVector vector = new IntVector("n", allocator)) {
            vector.setSafe(0, 1);
            DirectColumn column = column(vector, 1, DataTypes.IntegerType);
            assertThrows(IndexOutOfBoundsException.class, () -> column.getInt(1));
            assertThrows(IndexOutOfBoundsException.class, () -> column.getInt(-1));
            column.close();
            assertThrows(IndexOutOfBoundsException.class, () -> column.getInt(0));
        }
    }
}
