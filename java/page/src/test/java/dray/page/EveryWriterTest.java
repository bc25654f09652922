package dray.page;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dray.page.generated.every.Every;
import dray.page.generated.every.EveryBuilder;
import dray.page.generated.every.EveryPage;
import dray.page.generated.every.StructsItem;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Generated writers of every type write what the values say, of random objects. */
class EveryWriterTest {
    interface Setter {
        void set(Every.Writer writer, Object value);
    }

    private static final Map<String, Setter> SETTERS = new LinkedHashMap<>();

    private static void put(String name, Setter setter) {
        SETTERS.put(name, setter);
    }

    private static String text(Object value) {
        return (String) value;
    }

    private static int integer(Object value) {
        return Integer.parseInt(text(value));
    }

    private static long number(Object value) {
        return Long.parseLong(text(value));
    }

    private static long bits(Object value) {
        return Long.parseUnsignedLong(text(value), 16);
    }

    private static byte[] hex(Object value) {
        return HexFormat.of().parseHex(text(value));
    }

    private static Object part(Object value, int i) {
        return ((List<?>) value).get(i);
    }

    private static BigDecimal decimal(Object value, int scale) {
        return new BigDecimal(new BigInteger(text(value)), scale);
    }

    private static byte[] interval(Object value) {
        List<?> parts = (List<?>) value;
        ByteBuffer bytes = ByteBuffer.allocate(parts.size() > 2 ? 16 : 8)
                .order(ByteOrder.LITTLE_ENDIAN);
        bytes.putInt(integer(parts.get(0))).putInt(integer(parts.get(1)));
        if (parts.size() > 2) {
            bytes.putLong(number(parts.get(2)));
        }
        return bytes.array();
    }

    private static int size(Object value) {
        return ((List<?>) value).size();
    }

    private static void each(Object values, Consumer<Object> add, Runnable addMissing) {
        for (Object value : (List<?>) values) {
            if (value == null) {
                addMissing.run();
            } else {
                add.accept(value);
            }
        }
    }

    static {
        values();
        lists();
        nested();
    }

    private static void values() {
        put("bool", (w, v) ->
                w.bool((boolean) v));
        put("bool_or_null", (w, v) ->
                w.boolOrNull((boolean) v));
        put("i8", (w, v) ->
                w.i8(Byte.parseByte(text(v))));
        put("i8_or_null", (w, v) ->
                w.i8OrNull(Byte.parseByte(text(v))));
        put("i16", (w, v) ->
                w.i16(Short.parseShort(text(v))));
        put("i16_or_null", (w, v) ->
                w.i16OrNull(Short.parseShort(text(v))));
        put("i32", (w, v) ->
                w.i32(integer(v)));
        put("i32_or_null", (w, v) ->
                w.i32OrNull(integer(v)));
        put("i64", (w, v) ->
                w.i64(number(v)));
        put("i64_or_null", (w, v) ->
                w.i64OrNull(number(v)));
        put("u8", (w, v) ->
                w.u8(integer(v)));
        put("u8_or_null", (w, v) ->
                w.u8OrNull(integer(v)));
        put("u16", (w, v) ->
                w.u16(integer(v)));
        put("u16_or_null", (w, v) ->
                w.u16OrNull(integer(v)));
        put("u32", (w, v) ->
                w.u32(number(v)));
        put("u32_or_null", (w, v) ->
                w.u32OrNull(number(v)));
        put("u64", (w, v) ->
                w.u64(Long.parseUnsignedLong(text(v))));
        put("u64_or_null", (w, v) ->
                w.u64OrNull(Long.parseUnsignedLong(text(v))));
        put("f16", (w, v) ->
                w.f16((short) bits(v)));
        put("f16_or_null", (w, v) ->
                w.f16OrNull((short) bits(v)));
        put("f32", (w, v) ->
                w.f32(Float.intBitsToFloat((int) bits(v))));
        put("f32_or_null", (w, v) ->
                w.f32OrNull(Float.intBitsToFloat((int) bits(v))));
        put("f64", (w, v) ->
                w.f64(Double.longBitsToDouble(bits(v))));
        put("f64_or_null", (w, v) ->
                w.f64OrNull(Double.longBitsToDouble(bits(v))));
        put("dec32", (w, v) ->
                w.dec32(integer(v)));
        put("dec32_or_null", (w, v) ->
                w.dec32OrNull(integer(v)));
        put("dec64", (w, v) ->
                w.dec64(number(v)));
        put("dec64_or_null", (w, v) ->
                w.dec64OrNull(number(v)));
        put("dec128", (w, v) ->
                w.dec128(new BigInteger(text(v))));
        put("dec128_or_null", (w, v) ->
                w.dec128OrNull(new BigInteger(text(v))));
        put("dec256", (w, v) ->
                w.dec256(new BigInteger(text(v))));
        put("dec256_or_null", (w, v) ->
                w.dec256OrNull(new BigInteger(text(v))));
        put("date", (w, v) ->
                w.date(integer(v)));
        put("date_or_null", (w, v) ->
                w.dateOrNull(integer(v)));
        put("date_ms", (w, v) ->
                w.dateMs(number(v)));
        put("date_ms_or_null", (w, v) ->
                w.dateMsOrNull(number(v)));
        put("time_s", (w, v) ->
                w.timeS(integer(v)));
        put("time_s_or_null", (w, v) ->
                w.timeSOrNull(integer(v)));
        put("time_ns", (w, v) ->
                w.timeNs(number(v)));
        put("time_ns_or_null", (w, v) ->
                w.timeNsOrNull(number(v)));
        put("at_us", (w, v) ->
                w.atUs(number(v)));
        put("at_us_or_null", (w, v) ->
                w.atUsOrNull(number(v)));
        put("local_ms", (w, v) ->
                w.localMs(number(v)));
        put("local_ms_or_null", (w, v) ->
                w.localMsOrNull(number(v)));
        put("took_us", (w, v) ->
                w.tookUs(number(v)));
        put("took_us_or_null", (w, v) ->
                w.tookUsOrNull(number(v)));
        put("months", (w, v) ->
                w.months(integer(v)));
        put("months_or_null", (w, v) ->
                w.monthsOrNull(integer(v)));
        put("day_time", (w, v) ->
                w.dayTime(integer(part(v, 0)), integer(part(v, 1))));
        put("day_time_or_null", (w, v) ->
                w.dayTimeOrNull(integer(part(v, 0)), integer(part(v, 1))));
        put("month_day_nano", (w, v) ->
                w.monthDayNano(integer(part(v, 0)), integer(part(v, 1)),
                number(part(v, 2))));
        put("month_day_nano_or_null", (w, v) ->
                w.monthDayNanoOrNull(integer(part(v, 0)), integer(part(v, 1)),
                number(part(v, 2))));
        put("text", (w, v) ->
                w.text(text(v)));
        put("text_or_null", (w, v) ->
                w.textOrNull(text(v)));
        put("binary", (w, v) ->
                w.binary(hex(v)));
        put("binary_or_null", (w, v) ->
                w.binaryOrNull(hex(v)));
        put("uuid", (w, v) ->
                w.uuid(hex(v)));
        put("uuid_or_null", (w, v) ->
                w.uuidOrNull(hex(v)));
    }

    private static void lists() {
        put("bool_list", (w, v) -> {
            var list = w.boolList(size(v));
            each(v, x -> list.add((boolean) x), list::addMissing);
        });
        put("bool_list_or_null", (w, v) -> {
            var list = w.boolListOrNull(size(v));
            each(v, x -> list.add((boolean) x), list::addMissing);
        });
        put("i8_list", (w, v) -> {
            var list = w.i8List(size(v));
            each(v, x -> list.add(Byte.parseByte(text(x))), list::addMissing);
        });
        put("i8_list_or_null", (w, v) -> {
            var list = w.i8ListOrNull(size(v));
            each(v, x -> list.add(Byte.parseByte(text(x))), list::addMissing);
        });
        put("i16_list", (w, v) -> {
            var list = w.i16List(size(v));
            each(v, x -> list.add(Short.parseShort(text(x))), list::addMissing);
        });
        put("i16_list_or_null", (w, v) -> {
            var list = w.i16ListOrNull(size(v));
            each(v, x -> list.add(Short.parseShort(text(x))), list::addMissing);
        });
        put("i32_list", (w, v) -> {
            var list = w.i32List(size(v));
            each(v, x -> list.add(integer(x)), list::addMissing);
        });
        put("i32_list_or_null", (w, v) -> {
            var list = w.i32ListOrNull(size(v));
            each(v, x -> list.add(integer(x)), list::addMissing);
        });
        put("i64_list", (w, v) -> {
            var list = w.i64List(size(v));
            each(v, x -> list.add(number(x)), list::addMissing);
        });
        put("i64_list_or_null", (w, v) -> {
            var list = w.i64ListOrNull(size(v));
            each(v, x -> list.add(number(x)), list::addMissing);
        });
        put("u8_list", (w, v) -> {
            var list = w.u8List(size(v));
            each(v, x -> list.add((byte) integer(x)), list::addMissing);
        });
        put("u8_list_or_null", (w, v) -> {
            var list = w.u8ListOrNull(size(v));
            each(v, x -> list.add((byte) integer(x)), list::addMissing);
        });
        put("u16_list", (w, v) -> {
            var list = w.u16List(size(v));
            each(v, x -> list.add((short) integer(x)), list::addMissing);
        });
        put("u16_list_or_null", (w, v) -> {
            var list = w.u16ListOrNull(size(v));
            each(v, x -> list.add((short) integer(x)), list::addMissing);
        });
        put("u32_list", (w, v) -> {
            var list = w.u32List(size(v));
            each(v, x -> list.add((int) number(x)), list::addMissing);
        });
        put("u32_list_or_null", (w, v) -> {
            var list = w.u32ListOrNull(size(v));
            each(v, x -> list.add((int) number(x)), list::addMissing);
        });
        put("u64_list", (w, v) -> {
            var list = w.u64List(size(v));
            each(v, x -> list.add(Long.parseUnsignedLong(text(x))), list::addMissing);
        });
        put("u64_list_or_null", (w, v) -> {
            var list = w.u64ListOrNull(size(v));
            each(v, x -> list.add(Long.parseUnsignedLong(text(x))), list::addMissing);
        });
        put("f16_list", (w, v) -> {
            var list = w.f16List(size(v));
            each(v, x -> list.add((short) bits(x)), list::addMissing);
        });
        put("f16_list_or_null", (w, v) -> {
            var list = w.f16ListOrNull(size(v));
            each(v, x -> list.add((short) bits(x)), list::addMissing);
        });
        put("f32_list", (w, v) -> {
            var list = w.f32List(size(v));
            each(v, x -> list.add(Float.intBitsToFloat((int) bits(x))), list::addMissing);
        });
        put("f32_list_or_null", (w, v) -> {
            var list = w.f32ListOrNull(size(v));
            each(v, x -> list.add(Float.intBitsToFloat((int) bits(x))), list::addMissing);
        });
        put("f64_list", (w, v) -> {
            var list = w.f64List(size(v));
            each(v, x -> list.add(Double.longBitsToDouble(bits(x))), list::addMissing);
        });
        put("f64_list_or_null", (w, v) -> {
            var list = w.f64ListOrNull(size(v));
            each(v, x -> list.add(Double.longBitsToDouble(bits(x))), list::addMissing);
        });
        put("dec32_list", (w, v) -> {
            var list = w.dec32List(size(v));
            each(v, x -> list.add(decimal(x, 2)), list::addMissing);
        });
        put("dec32_list_or_null", (w, v) -> {
            var list = w.dec32ListOrNull(size(v));
            each(v, x -> list.add(decimal(x, 2)), list::addMissing);
        });
        put("dec64_list", (w, v) -> {
            var list = w.dec64List(size(v));
            each(v, x -> list.add(decimal(x, -2)), list::addMissing);
        });
        put("dec64_list_or_null", (w, v) -> {
            var list = w.dec64ListOrNull(size(v));
            each(v, x -> list.add(decimal(x, -2)), list::addMissing);
        });
        put("dec128_list", (w, v) -> {
            var list = w.dec128List(size(v));
            each(v, x -> list.add(decimal(x, 10)), list::addMissing);
        });
        put("dec128_list_or_null", (w, v) -> {
            var list = w.dec128ListOrNull(size(v));
            each(v, x -> list.add(decimal(x, 10)), list::addMissing);
        });
        put("dec256_list", (w, v) -> {
            var list = w.dec256List(size(v));
            each(v, x -> list.add(decimal(x, 0)), list::addMissing);
        });
        put("dec256_list_or_null", (w, v) -> {
            var list = w.dec256ListOrNull(size(v));
            each(v, x -> list.add(decimal(x, 0)), list::addMissing);
        });
        put("date_list", (w, v) -> {
            var list = w.dateList(size(v));
            each(v, x -> list.add(integer(x)), list::addMissing);
        });
        put("date_list_or_null", (w, v) -> {
            var list = w.dateListOrNull(size(v));
            each(v, x -> list.add(integer(x)), list::addMissing);
        });
        put("date_ms_list", (w, v) -> {
            var list = w.dateMsList(size(v));
            each(v, x -> list.add(number(x)), list::addMissing);
        });
        put("date_ms_list_or_null", (w, v) -> {
            var list = w.dateMsListOrNull(size(v));
            each(v, x -> list.add(number(x)), list::addMissing);
        });
        put("time_s_list", (w, v) -> {
            var list = w.timeSList(size(v));
            each(v, x -> list.add(integer(x)), list::addMissing);
        });
        put("time_s_list_or_null", (w, v) -> {
            var list = w.timeSListOrNull(size(v));
            each(v, x -> list.add(integer(x)), list::addMissing);
        });
        put("time_ns_list", (w, v) -> {
            var list = w.timeNsList(size(v));
            each(v, x -> list.add(number(x)), list::addMissing);
        });
        put("time_ns_list_or_null", (w, v) -> {
            var list = w.timeNsListOrNull(size(v));
            each(v, x -> list.add(number(x)), list::addMissing);
        });
        put("at_us_list", (w, v) -> {
            var list = w.atUsList(size(v));
            each(v, x -> list.add(number(x)), list::addMissing);
        });
        put("at_us_list_or_null", (w, v) -> {
            var list = w.atUsListOrNull(size(v));
            each(v, x -> list.add(number(x)), list::addMissing);
        });
        put("local_ms_list", (w, v) -> {
            var list = w.localMsList(size(v));
            each(v, x -> list.add(number(x)), list::addMissing);
        });
        put("local_ms_list_or_null", (w, v) -> {
            var list = w.localMsListOrNull(size(v));
            each(v, x -> list.add(number(x)), list::addMissing);
        });
        put("took_us_list", (w, v) -> {
            var list = w.tookUsList(size(v));
            each(v, x -> list.add(number(x)), list::addMissing);
        });
        put("took_us_list_or_null", (w, v) -> {
            var list = w.tookUsListOrNull(size(v));
            each(v, x -> list.add(number(x)), list::addMissing);
        });
        put("months_list", (w, v) -> {
            var list = w.monthsList(size(v));
            each(v, x -> list.add(integer(x)), list::addMissing);
        });
        put("months_list_or_null", (w, v) -> {
            var list = w.monthsListOrNull(size(v));
            each(v, x -> list.add(integer(x)), list::addMissing);
        });
        put("day_time_list", (w, v) -> {
            var list = w.dayTimeList(size(v));
            each(v, x -> list.add(interval(x)), list::addMissing);
        });
        put("day_time_list_or_null", (w, v) -> {
            var list = w.dayTimeListOrNull(size(v));
            each(v, x -> list.add(interval(x)), list::addMissing);
        });
        put("month_day_nano_list", (w, v) -> {
            var list = w.monthDayNanoList(size(v));
            each(v, x -> list.add(interval(x)), list::addMissing);
        });
        put("month_day_nano_list_or_null", (w, v) -> {
            var list = w.monthDayNanoListOrNull(size(v));
            each(v, x -> list.add(interval(x)), list::addMissing);
        });
        put("text_list", (w, v) -> {
            var list = w.textList(size(v));
            each(v, x -> list.add(text(x)), list::addMissing);
        });
        put("text_list_or_null", (w, v) -> {
            var list = w.textListOrNull(size(v));
            each(v, x -> list.add(text(x)), list::addMissing);
        });
        put("binary_list", (w, v) -> {
            var list = w.binaryList(size(v));
            each(v, x -> list.add(hex(x)), list::addMissing);
        });
        put("binary_list_or_null", (w, v) -> {
            var list = w.binaryListOrNull(size(v));
            each(v, x -> list.add(hex(x)), list::addMissing);
        });
        put("uuid_list", (w, v) -> {
            var list = w.uuidList(size(v));
            each(v, x -> list.add(hex(x)), list::addMissing);
        });
        put("uuid_list_or_null", (w, v) -> {
            var list = w.uuidListOrNull(size(v));
            each(v, x -> list.add(hex(x)), list::addMissing);
        });
    }

    private static void pair(StructsItem.Writer writer, Object value) {
        if (part(value, 0) != null) {
            writer.a(Byte.parseByte(text(part(value, 0))));
        }
        writer.b(text(part(value, 1)));
    }

    private static void nested() {
        put("nothing_list", (w, v) -> w.nothingList(size(v)));
        put("nothing_list_or_null", (w, v) -> w.nothingListOrNull(size(v)));
        put("class", (w, v) -> w.class_(integer(v)));
        put("hashCode", (w, v) -> w.hashCode_(integer(v)));
        put("a_b", (w, v) -> w.aB(integer(v)));
        put("aB", (w, v) -> w.aB_2(integer(v)));
        put("x y/z \"*/\n\\u0041", (w, v) -> w.xYZU0041(integer(v)));
        put("gr\u00f6\u00dfe", (w, v) -> w.grE(integer(v)));
        put("has_a_b", (w, v) -> w.hasAB_3(integer(v)));
        put("", (w, v) -> w.unnamed(integer(v)));
        put("1st", (w, v) -> w._1st(integer(v)));
        put("dictionary", (w, v) -> w.dictionary(text(v)));
        put("String", (w, v) -> {
            if (part(v, 0) != null) {
                w.string().a(Byte.parseByte(text(part(v, 0))));
            }
            w.string().b(text(part(v, 1)));
        });
        put("inner", (w, v) -> {
            var inner = w.inner();
            if (part(v, 0) != null) {
                inner.x(integer(part(v, 0)));
            }
            var three = inner.three(3);
            each(part(v, 1), x -> three.add(integer(x)), () -> { });
            if (part(v, 2) != null) {
                var deep = inner.deep();
                if (part(part(v, 2), 0) != null) {
                    deep.a(Byte.parseByte(text(part(part(v, 2), 0))));
                }
                deep.b(text(part(part(v, 2), 1)));
            }
        });
        put("structs", (w, v) -> {
            var list = w.structs(size(v));
            each(v, x -> pair(list.next(), x), list::addMissing);
        });
        put("pairs", (w, v) -> {
            var list = w.pairs(2);
            each(v, x -> {
                var item = list.next();
                if (part(x, 0) != null) {
                    item.a(Byte.parseByte(text(part(x, 0))));
                }
                item.b(text(part(x, 1)));
            }, () -> { });
        });
        put("lists", (w, v) -> {
            var list = w.lists(size(v));
            each(v, x -> {
                var inner = list.next(size(x));
                each(x, y -> inner.add(number(y)), inner::addMissing);
            }, list::addMissing);
        });
        put("lists_of_structs", (w, v) -> {
            var list = w.listsOfStructs(size(v));
            each(v, x -> {
                var inner = list.next(size(x));
                each(x, y -> {
                    var item = inner.next();
                    if (part(y, 0) != null) {
                        item.a(Byte.parseByte(text(part(y, 0))));
                    }
                    item.b(text(part(y, 1)));
                }, () -> { });
            }, () -> { });
        });
        put("map", (w, v) -> {
            var list = w.map(size(v));
            each(v, x -> {
                var entry = list.next().key(text(part(x, 0)));
                if (part(x, 1) != null) {
                    entry.value(number(part(x, 1)));
                }
            }, () -> { });
        });
        put("maps", (w, v) -> {
            var list = w.maps(size(v));
            each(v, x -> {
                var map = list.next(size(x));
                each(x, y -> {
                    var entry = map.next().key(integer(part(y, 0)));
                    if (part(y, 1) != null) {
                        var pair = entry.value();
                        if (part(part(y, 1), 0) != null) {
                            pair.a(Byte.parseByte(text(part(part(y, 1), 0))));
                        }
                        pair.b(text(part(part(y, 1), 1)));
                    }
                }, () -> { });
            }, () -> { });
        });
    }

    @Test
    void everyFieldIsWritten() {
        Layout layout = EveryPage.LAYOUT;
        List<String> names = layout.schema().fields().stream().map(Field::name).toList();
        assertEquals(names.size(), SETTERS.size() + 2, "all but those of type null");
        long seed = Long.parseLong(System.getenv().getOrDefault("DRAY_SEED", "1"));
        for (int round = 0; round < 300; round++) {
            List<Object> row = new RandomValues(new Random(seed + round)).row(layout);
            var builder = new EveryBuilder();
            Every.Writer writer = builder.begin();
            for (int i = 0; i < names.size(); i++) {
                if (row.get(i) != null) {
                    SETTERS.get(names.get(i)).set(writer, row.get(i));
                }
            }
            builder.end();
            VerifiedPage page = builder.finish().get(0);
            VerifiedPage.verify(layout, page.bytes());
            assertEquals(List.of(row), Values.rows(page), "seed " + (seed + round));
            ByteBuffer expected = ValuePages.page(layout, List.of(row),
                    page.bytes().limit(), page.header().large(), 0);
            assertArrayEquals(expected.array(), BuildTest.bytes(page));
        }
        System.out.println("300 random objects of " + names.size()
                + " fields were built by generated writers");
    }
}
