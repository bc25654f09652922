#![allow(clippy::unwrap_used, reason = "tests")]

use mongodb::bson::oid::ObjectId;
use mongodb::bson::raw::RawDocumentBuf;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{
    Binary, Bson, DateTime, Document, JavaScriptCodeWithScope, Regex, Timestamp, cstr, doc,
};

use super::*;

/// The text of a value, in both forms.
fn texts(value: impl Into<Bson>) -> [String; 2] {
    let document = RawDocumentBuf::try_from(&doc! { "x": value.into() }).unwrap();
    [Form::Canonical, Form::Relaxed].map(|form| {
        let mut text = String::new();
        write(document.get("x").unwrap().unwrap(), form, &mut text).unwrap();
        text
    })
}

#[track_caller]
fn check(value: impl Into<Bson>, canonical: &str, relaxed: &str) {
    assert_eq!(texts(value), [canonical, relaxed]);
}

#[track_caller]
fn check_both(value: impl Into<Bson>, text: &str) {
    check(value, text, text);
}

#[test]
fn numbers() {
    check(7, r#"{"$numberInt":"7"}"#, "7");
    check(i64::MIN, r#"{"$numberLong":"-9223372036854775808"}"#, "-9223372036854775808");
    check(1.5, r#"{"$numberDouble":"1.5"}"#, "1.5");
    check(-0.0, r#"{"$numberDouble":"-0.0"}"#, "-0.0");
    check(1e300, r#"{"$numberDouble":"1e300"}"#, "1e300");
    check(0.1 + 0.2, r#"{"$numberDouble":"0.30000000000000004"}"#, "0.30000000000000004");
    check_both(f64::NAN, r#"{"$numberDouble":"NaN"}"#);
    check_both(f64::NEG_INFINITY, r#"{"$numberDouble":"-Infinity"}"#);
    let decimal = Bson::Decimal128("1.50E+10".parse().unwrap());
    check_both(decimal, r#"{"$numberDecimal":"1.50E+10"}"#);
}

#[test]
fn strings() {
    check_both("a\"\\\n\r\t\0\u{1f}é\u{1f600}/", r#""a\"\\\n\r\t\u0000\u001fé😀/""#);
    check_both("", r#""""#);
    check_both(doc! { "a\"": "b" }, r#"{"a\"":"b"}"#);
}

#[test]
fn dates() {
    let date = DateTime::from_millis;
    check(
        date(1_356_351_330_501),
        r#"{"$date":{"$numberLong":"1356351330501"}}"#,
        r#"{"$date":"2012-12-24T12:15:30.501Z"}"#,
    );
    check(date(0), r#"{"$date":{"$numberLong":"0"}}"#, r#"{"$date":"1970-01-01T00:00:00Z"}"#);
    check(
        date(253_402_300_799_999),
        r#"{"$date":{"$numberLong":"253402300799999"}}"#,
        r#"{"$date":"9999-12-31T23:59:59.999Z"}"#,
    );
    check_both(date(253_402_300_800_000), r#"{"$date":{"$numberLong":"253402300800000"}}"#);
    check_both(date(-1), r#"{"$date":{"$numberLong":"-1"}}"#);
}

#[test]
fn other_types() {
    let id = ObjectId::parse_str("0123456789abcdef01234567").unwrap();
    check_both(id, r#"{"$oid":"0123456789abcdef01234567"}"#);
    check_both(true, "true");
    check_both(Bson::Null, "null");
    check_both(Bson::Undefined, r#"{"$undefined":true}"#);
    check_both(Bson::MinKey, r#"{"$minKey":1}"#);
    check_both(Bson::MaxKey, r#"{"$maxKey":1}"#);
    check_both(Timestamp { time: 9, increment: 2 }, r#"{"$timestamp":{"t":9,"i":2}}"#);
    check_both(Bson::Symbol("s".to_owned()), r#"{"$symbol":"s"}"#);
    check_both(Bson::JavaScriptCode("f()".to_owned()), r#"{"$code":"f()"}"#);
    let scope = JavaScriptCodeWithScope { code: "f()".to_owned(), scope: doc! { "a": true } };
    check_both(Bson::JavaScriptCodeWithScope(scope), r#"{"$code":"f()","$scope":{"a":true}}"#);
    let regex = Regex { pattern: cstr!("^a\"").into(), options: cstr!("i").into() };
    check_both(
        Bson::RegularExpression(regex),
        r#"{"$regularExpression":{"pattern":"^a\"","options":"i"}}"#,
    );
    for (bytes, base64) in [
        (&b""[..], ""),
        (b"\x00", "AA=="),
        (b"\xff\xfe", "//4="),
        (b"abc", "YWJj"),
        (b"abcd", "YWJjZA=="),
    ] {
        let binary = Binary { subtype: BinarySubtype::UserDefined(0x80), bytes: bytes.to_vec() };
        let text = format!(r#"{{"$binary":{{"base64":"{base64}","subType":"80"}}}}"#);
        check_both(Bson::Binary(binary), &text);
    }
    check(doc! { "a": [1, [], {}] }, r#"{"a":[{"$numberInt":"1"},[],{}]}"#, r#"{"a":[1,[],{}]}"#);
}

#[test]
fn pointers() {
    // {"p": DBPointer("db.c", ObjectId("01" * 12))}
    let mut bytes = b"\0\0\0\0\x0cp\0\x05\0\0\0db.c\0".to_vec();
    bytes.extend([1; 12]);
    bytes.push(0);
    bytes[0] = u8::try_from(bytes.len()).unwrap();
    let document = RawDocument::from_bytes(&bytes).unwrap();
    let mut text = String::new();
    write(document.get("p").unwrap().unwrap(), Form::Relaxed, &mut text).unwrap();
    let id = "01".repeat(12);
    assert_eq!(text, format!(r#"{{"$dbPointer":{{"$ref":"db.c","$id":{{"$oid":"{id}"}}}}}}"#));
}

#[test]
fn nesting_has_a_limit() {
    let nested = |levels: usize| {
        let mut document = Document::new();
        for _ in 1..levels {
            document = doc! { "a": document };
        }
        RawDocumentBuf::try_from(&document).unwrap()
    };
    let mut text = String::new();
    write(RawBsonRef::Document(&nested(NESTING_MAX)), Form::Relaxed, &mut text).unwrap();
    let error = write(RawBsonRef::Document(&nested(NESTING_MAX + 1)), Form::Relaxed, &mut text);
    assert!(error.unwrap_err().0.contains("deeper than 200 levels"));
}

/// Extended JSON is read again as what was written.
#[test]
fn text_is_read_as_the_same_values() {
    let document = doc! {
        "i": 1, "l": 1_i64 << 60, "d": -2.5e-300, "s": "\u{1}\"", "n": Bson::Null,
        "o": ObjectId::from_bytes([7; 12]), "t": DateTime::from_millis(-5),
        "b": Binary { subtype: BinarySubtype::Generic, bytes: vec![0, 255] },
        "m": [Bson::MinKey, Bson::MaxKey, Bson::Timestamp(Timestamp { time: 1, increment: 2 })],
        "q": Bson::Decimal128("12.500".parse().unwrap()), "nan": f64::INFINITY,
    };
    let raw = RawDocumentBuf::try_from(&document).unwrap();
    let mut text = String::new();
    write(RawBsonRef::Document(&raw), Form::Canonical, &mut text).unwrap();
    assert_eq!(serde_json::from_str::<Document>(&text).unwrap(), document);
}
