package dray.page;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dray.page.generated.every.Deep;
import dray.page.generated.every.Every;
import dray.page.generated.every.EveryPage;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/** Generated accessors of every type read what was written, of random objects. */
class EveryTypeTest {
    private static final Map<String, Function<Every, Object>> GETTERS = new LinkedHashMap<>();

    interface Item<L> {
        Object get(L list, int i);
    }

    private static <L extends ListView> List<Object> list(L list, Item<L> item) {
        var items = new ArrayList<>();
        for (int i = 0; i < list.size(); i++) {
            items.add(list.has(i) ? item.get(list, i) : null);
        }
        return items;
    }

    private static String hex(long bits, int digits) {
        return String.format("%0" + digits + "x", bits);
    }

    private static List<Object> interval(ByteBuffer bytes) {
        var parts = new ArrayList<>(
                List.<Object>of("" + Memory.getInt(bytes, 0), "" + Memory.getInt(bytes, 4)));
        if (bytes.limit() > 8) {
            parts.add("" + Memory.getLong(bytes, 8));
        }
        return parts;
    }

    static {
        values(GETTERS);
        lists(GETTERS);
        nested(GETTERS);
    }

    private static void values(Map<String, Function<Every, Object>> getters) {
        getters.put("bool", e -> e.bool());
        getters.put("bool_or_null", e -> e.hasBoolOrNull()
                ? e.boolOrNull() : null);
        getters.put("i8", e -> "" + e.i8());
        getters.put("i8_or_null", e -> e.hasI8OrNull()
                ? "" + e.i8OrNull() : null);
        getters.put("i16", e -> "" + e.i16());
        getters.put("i16_or_null", e -> e.hasI16OrNull()
                ? "" + e.i16OrNull() : null);
        getters.put("i32", e -> "" + e.i32());
        getters.put("i32_or_null", e -> e.hasI32OrNull()
                ? "" + e.i32OrNull() : null);
        getters.put("i64", e -> "" + e.i64());
        getters.put("i64_or_null", e -> e.hasI64OrNull()
                ? "" + e.i64OrNull() : null);
        getters.put("u8", e -> "" + e.u8());
        getters.put("u8_or_null", e -> e.hasU8OrNull()
                ? "" + e.u8OrNull() : null);
        getters.put("u16", e -> "" + e.u16());
        getters.put("u16_or_null", e -> e.hasU16OrNull()
                ? "" + e.u16OrNull() : null);
        getters.put("u32", e -> "" + e.u32());
        getters.put("u32_or_null", e -> e.hasU32OrNull()
                ? "" + e.u32OrNull() : null);
        getters.put("u64", e -> e.u64Unsigned().toString());
        getters.put("u64_or_null", e -> e.hasU64OrNull()
                ? e.u64OrNullUnsigned().toString() : null);
        getters.put("f16", e -> hex(e.f16() & 0xffff, 4));
        getters.put("f16_or_null", e -> e.hasF16OrNull()
                ? hex(e.f16OrNull() & 0xffff, 4) : null);
        getters.put("f32", e -> hex(Float.floatToRawIntBits(e.f32()) & 0xffff_ffffL, 8));
        getters.put("f32_or_null", e -> e.hasF32OrNull()
                ? hex(Float.floatToRawIntBits(e.f32OrNull()) & 0xffff_ffffL, 8) : null);
        getters.put("f64", e -> hex(Double.doubleToRawLongBits(e.f64()), 16));
        getters.put("f64_or_null", e -> e.hasF64OrNull()
                ? hex(Double.doubleToRawLongBits(e.f64OrNull()), 16) : null);
        getters.put("dec32", e -> "" + e.dec32());
        getters.put("dec32_or_null", e -> e.hasDec32OrNull()
                ? "" + e.dec32OrNull() : null);
        getters.put("dec64", e -> "" + e.dec64());
        getters.put("dec64_or_null", e -> e.hasDec64OrNull()
                ? "" + e.dec64OrNull() : null);
        getters.put("dec128", e -> "" + e.dec128());
        getters.put("dec128_or_null", e -> e.hasDec128OrNull()
                ? "" + e.dec128OrNull() : null);
        getters.put("dec256", e -> "" + e.dec256());
        getters.put("dec256_or_null", e -> e.hasDec256OrNull()
                ? "" + e.dec256OrNull() : null);
        getters.put("date", e -> "" + e.date());
        getters.put("date_or_null", e -> e.hasDateOrNull()
                ? "" + e.dateOrNull() : null);
        getters.put("date_ms", e -> "" + e.dateMs());
        getters.put("date_ms_or_null", e -> e.hasDateMsOrNull()
                ? "" + e.dateMsOrNull() : null);
        getters.put("time_s", e -> "" + e.timeS());
        getters.put("time_s_or_null", e -> e.hasTimeSOrNull()
                ? "" + e.timeSOrNull() : null);
        getters.put("time_ns", e -> "" + e.timeNs());
        getters.put("time_ns_or_null", e -> e.hasTimeNsOrNull()
                ? "" + e.timeNsOrNull() : null);
        getters.put("at_us", e -> "" + e.atUs());
        getters.put("at_us_or_null", e -> e.hasAtUsOrNull()
                ? "" + e.atUsOrNull() : null);
        getters.put("local_ms", e -> "" + e.localMs());
        getters.put("local_ms_or_null", e -> e.hasLocalMsOrNull()
                ? "" + e.localMsOrNull() : null);
        getters.put("took_us", e -> "" + e.tookUs());
        getters.put("took_us_or_null", e -> e.hasTookUsOrNull()
                ? "" + e.tookUsOrNull() : null);
        getters.put("months", e -> "" + e.months());
        getters.put("months_or_null", e -> e.hasMonthsOrNull()
                ? "" + e.monthsOrNull() : null);
        getters.put("day_time", e -> List.of("" + e.dayTimeDays(), "" + e.dayTimeMilliseconds()));
        getters.put("day_time_or_null", e -> e.hasDayTimeOrNull()
                ? List.of("" + e.dayTimeOrNullDays(), "" + e.dayTimeOrNullMilliseconds()) : null);
        getters.put("month_day_nano", e ->
                List.of("" + e.monthDayNanoMonths(), "" + e.monthDayNanoDays(),
                "" + e.monthDayNanoNanoseconds()));
        getters.put("month_day_nano_or_null", e -> e.hasMonthDayNanoOrNull()
                ? List.of("" + e.monthDayNanoOrNullMonths(), "" + e.monthDayNanoOrNullDays(),
                "" + e.monthDayNanoOrNullNanoseconds()) : null);
        getters.put("text", e -> "" + e.text());
        getters.put("text_or_null", e -> e.hasTextOrNull()
                ? "" + e.textOrNull() : null);
        getters.put("binary", e -> "" + e.binary());
        getters.put("binary_or_null", e -> e.hasBinaryOrNull()
                ? "" + e.binaryOrNull() : null);
        getters.put("uuid", e -> "" + e.uuid());
        getters.put("uuid_or_null", e -> e.hasUuidOrNull()
                ? "" + e.uuidOrNull() : null);
    }

    private static void lists(Map<String, Function<Every, Object>> getters) {
        getters.put("bool_list", e -> list(e.boolList(), (l, i) -> l.get(i)));
        getters.put("bool_list_or_null", e -> e.hasBoolListOrNull()
                ? list(e.boolListOrNull(), (l, i) -> l.get(i)) : null);
        getters.put("i8_list", e -> list(e.i8List(), (l, i) -> "" + l.get(i)));
        getters.put("i8_list_or_null", e -> e.hasI8ListOrNull()
                ? list(e.i8ListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("i16_list", e -> list(e.i16List(), (l, i) -> "" + l.get(i)));
        getters.put("i16_list_or_null", e -> e.hasI16ListOrNull()
                ? list(e.i16ListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("i32_list", e -> list(e.i32List(), (l, i) -> "" + l.get(i)));
        getters.put("i32_list_or_null", e -> e.hasI32ListOrNull()
                ? list(e.i32ListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("i64_list", e -> list(e.i64List(), (l, i) -> "" + l.get(i)));
        getters.put("i64_list_or_null", e -> e.hasI64ListOrNull()
                ? list(e.i64ListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("u8_list", e -> list(e.u8List(), (l, i) -> "" + l.getUnsigned(i)));
        getters.put("u8_list_or_null", e -> e.hasU8ListOrNull()
                ? list(e.u8ListOrNull(), (l, i) -> "" + l.getUnsigned(i)) : null);
        getters.put("u16_list", e -> list(e.u16List(), (l, i) -> "" + l.getUnsigned(i)));
        getters.put("u16_list_or_null", e -> e.hasU16ListOrNull()
                ? list(e.u16ListOrNull(), (l, i) -> "" + l.getUnsigned(i)) : null);
        getters.put("u32_list", e -> list(e.u32List(), (l, i) -> "" + l.getUnsigned(i)));
        getters.put("u32_list_or_null", e -> e.hasU32ListOrNull()
                ? list(e.u32ListOrNull(), (l, i) -> "" + l.getUnsigned(i)) : null);
        getters.put("u64_list", e ->
                list(e.u64List(), (l, i) -> Numbers.unsigned(l.get(i)).toString()));
        getters.put("u64_list_or_null", e -> e.hasU64ListOrNull()
                ? list(e.u64ListOrNull(), (l, i) -> Numbers.unsigned(l.get(i)).toString()) : null);
        getters.put("f16_list", e -> list(e.f16List(), (l, i) -> hex(l.getUnsigned(i), 4)));
        getters.put("f16_list_or_null", e -> e.hasF16ListOrNull()
                ? list(e.f16ListOrNull(), (l, i) -> hex(l.getUnsigned(i), 4)) : null);
        getters.put("f32_list", e ->
                list(e.f32List(), (l, i) ->
                        hex(Float.floatToRawIntBits(l.get(i)) & 0xffff_ffffL, 8)));
        getters.put("f32_list_or_null", e -> e.hasF32ListOrNull()
                ? list(e.f32ListOrNull(), (l, i) ->
                        hex(Float.floatToRawIntBits(l.get(i)) & 0xffff_ffffL, 8)) : null);
        getters.put("f64_list", e ->
                list(e.f64List(), (l, i) -> hex(Double.doubleToRawLongBits(l.get(i)), 16)));
        getters.put("f64_list_or_null", e -> e.hasF64ListOrNull()
                ? list(e.f64ListOrNull(), (l, i) ->
                        hex(Double.doubleToRawLongBits(l.get(i)), 16)) : null);
        getters.put("dec32_list", e ->
                list(e.dec32List(), (l, i) -> l.get(i).unscaledValue().toString()));
        getters.put("dec32_list_or_null", e -> e.hasDec32ListOrNull()
                ? list(e.dec32ListOrNull(), (l, i) -> l.get(i).unscaledValue().toString()) : null);
        getters.put("dec64_list", e ->
                list(e.dec64List(), (l, i) -> l.get(i).unscaledValue().toString()));
        getters.put("dec64_list_or_null", e -> e.hasDec64ListOrNull()
                ? list(e.dec64ListOrNull(), (l, i) -> l.get(i).unscaledValue().toString()) : null);
        getters.put("dec128_list", e ->
                list(e.dec128List(), (l, i) -> l.get(i).unscaledValue().toString()));
        getters.put("dec128_list_or_null", e -> e.hasDec128ListOrNull()
                ? list(e.dec128ListOrNull(), (l, i) -> l.get(i).unscaledValue().toString()) : null);
        getters.put("dec256_list", e ->
                list(e.dec256List(), (l, i) -> l.get(i).unscaledValue().toString()));
        getters.put("dec256_list_or_null", e -> e.hasDec256ListOrNull()
                ? list(e.dec256ListOrNull(), (l, i) -> l.get(i).unscaledValue().toString()) : null);
        getters.put("date_list", e -> list(e.dateList(), (l, i) -> "" + l.get(i)));
        getters.put("date_list_or_null", e -> e.hasDateListOrNull()
                ? list(e.dateListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("date_ms_list", e -> list(e.dateMsList(), (l, i) -> "" + l.get(i)));
        getters.put("date_ms_list_or_null", e -> e.hasDateMsListOrNull()
                ? list(e.dateMsListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("time_s_list", e -> list(e.timeSList(), (l, i) -> "" + l.get(i)));
        getters.put("time_s_list_or_null", e -> e.hasTimeSListOrNull()
                ? list(e.timeSListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("time_ns_list", e -> list(e.timeNsList(), (l, i) -> "" + l.get(i)));
        getters.put("time_ns_list_or_null", e -> e.hasTimeNsListOrNull()
                ? list(e.timeNsListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("at_us_list", e -> list(e.atUsList(), (l, i) -> "" + l.get(i)));
        getters.put("at_us_list_or_null", e -> e.hasAtUsListOrNull()
                ? list(e.atUsListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("local_ms_list", e -> list(e.localMsList(), (l, i) -> "" + l.get(i)));
        getters.put("local_ms_list_or_null", e -> e.hasLocalMsListOrNull()
                ? list(e.localMsListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("took_us_list", e -> list(e.tookUsList(), (l, i) -> "" + l.get(i)));
        getters.put("took_us_list_or_null", e -> e.hasTookUsListOrNull()
                ? list(e.tookUsListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("months_list", e -> list(e.monthsList(), (l, i) -> "" + l.get(i)));
        getters.put("months_list_or_null", e -> e.hasMonthsListOrNull()
                ? list(e.monthsListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("day_time_list", e ->
                list(e.dayTimeList(), (l, i) -> interval(l.get(i).buffer())));
        getters.put("day_time_list_or_null", e -> e.hasDayTimeListOrNull()
                ? list(e.dayTimeListOrNull(), (l, i) -> interval(l.get(i).buffer())) : null);
        getters.put("month_day_nano_list", e ->
                list(e.monthDayNanoList(), (l, i) -> interval(l.get(i).buffer())));
        getters.put("month_day_nano_list_or_null", e -> e.hasMonthDayNanoListOrNull()
                ? list(e.monthDayNanoListOrNull(), (l, i) -> interval(l.get(i).buffer())) : null);
        getters.put("text_list", e -> list(e.textList(), (l, i) -> "" + l.get(i)));
        getters.put("text_list_or_null", e -> e.hasTextListOrNull()
                ? list(e.textListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("binary_list", e -> list(e.binaryList(), (l, i) -> "" + l.get(i)));
        getters.put("binary_list_or_null", e -> e.hasBinaryListOrNull()
                ? list(e.binaryListOrNull(), (l, i) -> "" + l.get(i)) : null);
        getters.put("uuid_list", e -> list(e.uuidList(), (l, i) -> "" + l.get(i)));
        getters.put("uuid_list_or_null", e -> e.hasUuidListOrNull()
                ? list(e.uuidListOrNull(), (l, i) -> "" + l.get(i)) : null);
    }

    private static List<Object> deep(Deep deep) {
        return java.util.Arrays.asList(deep.hasA() ? "" + deep.a() : null, deep.b().toString());
    }

    private static void nested(Map<String, Function<Every, Object>> getters) {
        for (String name : List.of("nothing", "nothing_or_null")) {
            getters.put(name, e -> null);
        }
        getters.put("nothing_list", e -> list(e.nothingList(), (l, i) -> null));
        getters.put("nothing_list_or_null", e -> e.hasNothingListOrNull()
                ? list(e.nothingListOrNull(), (l, i) -> null) : null);
        getters.put("class", e -> "" + e.class_());
        getters.put("hashCode", e -> e.hasHashCode_() ? "" + e.hashCode_() : null);
        getters.put("x y/z \"*/\n\\u0041", e -> e.hasXYZU0041() ? "" + e.xYZU0041() : null);
        getters.put("gr\u00f6\u00dfe", e -> "" + e.grE());
        getters.put("a_b", e -> e.hasAB() ? "" + e.aB() : null);
        getters.put("aB", e -> e.hasAB_2() ? "" + e.aB_2() : null);
        getters.put("has_a_b", e -> "" + e.hasAB_3());
        getters.put("", e -> "" + e.unnamed());
        getters.put("1st", e -> "" + e._1st());
        getters.put("dictionary", e -> e.hasDictionary() ? e.dictionary().toString() : null);
        getters.put("String", e -> java.util.Arrays.asList(
                e.string().hasA() ? "" + e.string().a() : null, "" + e.string().b()));
        getters.put("inner", e -> !e.hasInner() ? null : java.util.Arrays.asList(
                e.inner().hasX() ? "" + e.inner().x() : null,
                list(e.inner().three(), (l, i) -> "" + l.get(i)),
                e.inner().hasDeep() ? deep(e.inner().deep()) : null));
        getters.put("structs", e -> !e.hasStructs() ? null : list(e.structs(), (l, i) ->
                java.util.Arrays.asList(l.get(i).hasA() ? "" + l.get(i).a() : null,
                        "" + l.get(i).b())));
        getters.put("pairs", e -> !e.hasPairs() ? null : list(e.pairs(), (l, i) ->
                java.util.Arrays.asList(l.get(i).hasA() ? "" + l.get(i).a() : null,
                        "" + l.get(i).b())));
        getters.put("lists", e -> list(e.lists(), (l, i) ->
                list(l.get(i), (items, j) -> "" + items.get(j))));
        getters.put("lists_of_structs", e -> list(e.listsOfStructs(), (l, i) ->
                list(l.get(i), (items, j) -> java.util.Arrays.asList(
                        items.get(j).hasA() ? "" + items.get(j).a() : null,
                        "" + items.get(j).b()))));
        getters.put("map", e -> list(e.map(), (l, i) -> java.util.Arrays.asList(
                "" + l.get(i).key(), l.get(i).hasValue() ? "" + l.get(i).value() : null)));
        getters.put("maps", e -> list(e.maps(), (l, i) -> list(l.get(i), (entries, j) -> {
            var entry = entries.get(j);
            return java.util.Arrays.asList("" + entry.key(), !entry.hasValue() ? null
                    : java.util.Arrays.asList(entry.value().hasA() ? "" + entry.value().a() : null,
                            "" + entry.value().b()));
        })));
    }

    @Test
    void everyFieldIsReadAsItWasWritten() {
        Layout layout = EveryPage.LAYOUT;
        List<String> names = layout.schema().fields().stream().map(Field::name).toList();
        assertEquals(java.util.Set.copyOf(names), GETTERS.keySet());
        long seed = Long.parseLong(System.getenv().getOrDefault("DRAY_SEED", "1"));
        int objects = 0;
        for (int round = 0; round < 300; round++) {
            List<Object> row = new RandomValues(new Random(seed + round)).row(layout);
            ByteBuffer page = ValuePages.page(layout, List.of(row), 1 << 20, false, 0);
            VerifiedPage verified = VerifiedPage.verify(layout, page);
            assertEquals(List.of(row), Values.rows(verified));
            Every every = new EveryPage(verified).get(0);
            for (int i = 0; i < names.size(); i++) {
                assertEquals(row.get(i), GETTERS.get(names.get(i)).apply(every),
                        names.get(i) + " of seed " + (seed + round));
            }
            objects++;
        }
        System.out.println(objects + " random objects of " + names.size()
                + " fields were read as they were written, by generated accessors");
    }
}
