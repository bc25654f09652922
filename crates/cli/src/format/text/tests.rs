use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Date64Array, Decimal128Array, Decimal256Array, DurationMillisecondArray,
    DurationNanosecondArray, DurationSecondArray, Int64Array, ListArray, Time32SecondArray,
    Time64NanosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::i256;
use arrow::util::display::array_value_to_string;

use super::*;

fn shown(array: &dyn Array, row: usize) -> String {
    formatter(array, "").unwrap().value(row).try_to_string().unwrap()
}

#[test]
fn values_beyond_chrono() {
    let cases: [(ArrayRef, &str); 22] = [
        (Arc::new(Date32Array::from(vec![i32::MAX])), "+5881580-07-11"),
        (Arc::new(Date32Array::from(vec![i32::MIN])), "-5877641-06-23"),
        (Arc::new(Date64Array::from(vec![i64::MAX])), "+292278994-08-17T07:12:55.807"),
        (Arc::new(TimestampSecondArray::from(vec![i64::MAX])), "+292277026596-12-04T15:30:07"),
        (Arc::new(TimestampSecondArray::from(vec![i64::MIN])), "-292277022657-01-27T08:29:52"),
        (
            Arc::new(TimestampMillisecondArray::from(vec![i64::MIN])),
            "-292275055-05-16T16:47:04.192",
        ),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX])),
            "+294247-01-10T04:00:54.775807",
        ),
        (
            Arc::new(
                TimestampMicrosecondArray::from(vec![i64::MAX]).with_timezone("Europe/Berlin"),
            ),
            "+294247-01-10T04:00:54.775807Z",
        ),
        (
            Arc::new(TimestampSecondArray::from(vec![0]).with_timezone("Mars/Olympus")),
            "1970-01-01T00:00:00Z",
        ),
        // Amsterdam was 19 minutes and 32 seconds ahead, which is not in whole minutes.
        (
            Arc::new(
                TimestampSecondArray::from(vec![-1_577_923_200]).with_timezone("Europe/Amsterdam"),
            ),
            "1920-01-01T00:00:00Z",
        ),
        (
            Arc::new(
                TimestampSecondArray::from(vec![1_720_000_000]).with_timezone("Asia/Kathmandu"),
            ),
            "2024-07-03T15:31:40+05:45",
        ),
        (
            Arc::new(TimestampSecondArray::from(vec![1_720_000_000]).with_timezone("-03:30")),
            "2024-07-03T06:16:40-03:30",
        ),
        (Arc::new(Time32SecondArray::from(vec![86_400])), "24:00:00"),
        (Arc::new(Time64NanosecondArray::from(vec![-1])), "-00:00:00.000000001"),
        (Arc::new(DurationSecondArray::from(vec![i64::MIN])), "-PT9223372036854775808S"),
        (Arc::new(DurationMillisecondArray::from(vec![i64::MIN])), "-PT9223372036854775.808S"),
        (decimal(0, 5, -3), "0"),
        (decimal(-12, 5, -3), "-12000"),
        (decimal(-12, 5, 3), "-0.012"),
        (decimal(0, 5, 3), "0.000"),
        // More digits than the type's precision.
        (decimal(123_456_789, 3, 2), "1234567.89"),
        (
            Arc::new(
                Decimal256Array::from(vec![i256::MIN]).with_precision_and_scale(76, 0).unwrap(),
            ),
            "-57896044618658097711785492504343953926634992332820282019728792003956564819968",
        ),
    ];
    for (array, expected) in cases {
        assert_eq!(shown(&array, 0), expected, "{}", array.data_type());
    }
}

fn decimal(value: i128, precision: u8, scale: i8) -> ArrayRef {
    Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(precision, scale).unwrap())
}

#[test]
fn nested_values_and_nulls() {
    let far = Date32Array::from(vec![Some(i32::MAX), None]);
    let field = Arc::new(Field::new("item", DataType::Date32, true));
    let lists =
        ListArray::new(field, arrow::buffer::OffsetBuffer::from_lengths([2]), Arc::new(far), None);
    assert_eq!(shown(&lists, 0), "[+5881580-07-11, ]");
    let days = Date32Array::from(vec![Some(1), None]);
    let words =
        cast(&days, &DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Date32)))
            .unwrap();
    assert_eq!((shown(&words, 0), shown(&words, 1)), ("1970-01-02".to_owned(), String::new()));
}

/// For values that Arrow prints right, the text is the same.
#[test]
fn ordinary_values_look_as_arrow_prints_them() {
    let seed = RandomState::new().build_hasher().finish();
    println!("seed {seed}");
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        i64::from_ne_bytes((mixed ^ (mixed >> 31)).to_ne_bytes())
    };
    for round in 0..2_000 {
        // From seconds to chrono's whole range of about 260,000 years.
        let seconds = random() % [10, 100_000, 10_000_000_000, 8_000_000_000_000][round % 4];
        let micros = seconds * 1_000_000 + random() % [1, 1_000, 1_000_000][round % 3];
        let millis = micros.div_euclid(1_000);
        let nanos = random();
        let day = i32::try_from(seconds.div_euclid(DAY_SECONDS)).unwrap();
        let second_of_day = i32::try_from(seconds.rem_euclid(DAY_SECONDS)).unwrap();
        let recent = [micros % 1_500_000_000_000_000, 0, 1][round % 3];
        let scale = i8::try_from(random() % 10).unwrap().abs();
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Date32Array::from(vec![day])),
            Arc::new(Date64Array::from(vec![millis])),
            Arc::new(TimestampSecondArray::from(vec![seconds])),
            Arc::new(TimestampMillisecondArray::from(vec![millis]).with_timezone("UTC")),
            Arc::new(TimestampMicrosecondArray::from(vec![micros])),
            Arc::new(TimestampMicrosecondArray::from(vec![micros]).with_timezone("+01:00")),
            Arc::new(
                TimestampMicrosecondArray::from(vec![recent.abs()])
                    .with_timezone("America/New_York"),
            ),
            Arc::new(TimestampNanosecondArray::from(vec![nanos]).with_timezone("-11:30")),
            Arc::new(Time32SecondArray::from(vec![second_of_day])),
            Arc::new(Time64NanosecondArray::from(vec![
                nanos.rem_euclid(DAY_SECONDS * NANOS_PER_SECOND),
            ])),
            Arc::new(DurationNanosecondArray::from(vec![nanos])),
            Arc::new(DurationMillisecondArray::from(vec![millis])),
            Arc::new(DurationSecondArray::from(vec![seconds])),
            decimal(i128::from(nanos), 19, scale),
            decimal(i128::from(second_of_day % 100), 19, scale),
            decimal(i128::from(second_of_day), 10, -scale.min(4)),
            Arc::new(Int64Array::from(vec![nanos])),
        ];
        for array in arrays {
            if array.data_type().is_decimal() && shown(&array, 0) == "0" {
                continue;
            }
            assert_eq!(
                shown(&array, 0),
                array_value_to_string(&array, 0).unwrap(),
                "{} seed {seed}",
                array.data_type()
            );
        }
    }
}
