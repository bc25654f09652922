#![allow(clippy::unwrap_used, reason = "tests")]

use mongodb::bson::doc;

use super::*;
use crate::columns::Kind;

fn parse(text: &str) -> Result<Query, ServerError> {
    Query::parse(text, "shop", false)
}

#[test]
fn commands_are_passed_on_in_order() {
    let text = r#"{
        "sample": 5, "sort": {"z": 1, "a": -1}, "find": "orders",
        "filter": {"when": {"$gte": {"$date": "1970-01-01T00:00:00Z"}}, "n": {"$numberLong": "5"}},
        "limit": 10, "rest": false, "schema": {"n": "int64"}
    }"#;
    let query = parse(text).unwrap();
    let date = mongodb::bson::DateTime::from_millis(0);
    let command = doc! {
        "find": "orders", "sort": { "z": 1, "a": -1_i64 },
        "filter": { "when": { "$gte": date }, "n": 5_i64 }, "limit": 10, "batchSize": 5_i64,
    };
    // As bytes, since equal documents may have their fields in another order.
    let bytes = |document: &Document| document.to_vec().unwrap();
    assert_eq!(bytes(&query.with_batch_size(5)), bytes(&command));
    assert_eq!((query.sample, query.has_rest), (5, false));
    assert_eq!(query.columns.unwrap()[0].kind, Kind::Int64);
    let query = parse(r#"{"aggregate": "c", "pipeline": [{"$match": {}}]}"#).unwrap();
    let command =
        doc! { "aggregate": "c", "pipeline": [{ "$match": {} }], "cursor": { "batchSize": 7_i64 } };
    assert_eq!(bytes(&query.with_batch_size(7)), bytes(&command));
    assert_eq!(query.collection.as_deref(), Some("c"));
    assert_eq!(parse(r#"{"find": "c"}"#).unwrap().sample, SAMPLE);
    let double = 2.382_632_238_630_075_5e-33_f64;
    let text = format!(r#"{{"find": "c", "filter": {{"x": {double:?}}}}}"#);
    let filter = parse(&text).unwrap().command.get_document("filter").unwrap().clone();
    assert_eq!(filter, doc! { "x": double });
    assert_eq!(parse(r#"{"listCollections": 1}"#).unwrap().collection, None);
}

#[test]
fn whole_collections_are_counted() {
    let count = |text: &str| parse(text).unwrap().count();
    let members =
        r#""filter": {}, "sort": {"x": 1}, "projection": {"x": 1}, "skip": 2, "limit": 9"#;
    let counted = count(&format!(r#"{{"find": "c", {members}}}"#)).unwrap();
    let member = |name: &str| counted.get(name).cloned();
    assert_eq!(member("count"), Some(Bson::String("c".to_owned())));
    assert_eq!((member("skip"), member("limit")), (Some(Bson::Int32(2)), Some(Bson::Int32(9))));
    assert_eq!(counted.len(), 4);
    for text in [
        r#"{"find": "c", "filter": {"x": 1}}"#,
        r#"{"find": "c", "hint": "sparse"}"#,
        r#"{"aggregate": "c", "pipeline": []}"#,
        r#"{"listCollections": 1}"#,
    ] {
        assert_eq!(count(text), None, "{text}");
    }
}

#[test]
fn statements_that_are_refused() {
    for (text, what) in [
        ("SELECT 1", "not JSON that MongoDB takes: expected value at line 1"),
        ("", "not JSON"),
        ("[]", "not JSON that MongoDB takes: invalid type: sequence, expected an object"),
        ("{}", "exactly one member of find, aggregate, listCollections"),
        (r#"{"find": "a"} x"#, "trailing characters"),
        (r#"{"find": "a", "aggregate": "b"}"#, "exactly one member"),
        (r#"{"find": "a", "find": "b"}"#, "\"find\" occurs twice"),
        (r#"{"find": "a", "filter": {"x": {"y": 1, "y": 2}}}"#, "\"y\" occurs twice"),
        (r#"{"find": 1}"#, "\"find\" has to be the name of a collection"),
        (r#"{"aggregate": 1, "pipeline": []}"#, "\"aggregate\" has to be the name"),
        (r#"{"listCollections": 2}"#, "has to be 1"),
        (r#"{"find": "a", "where": {}}"#, "\"find\" has no member \"where\", only filter, proj"),
        (r#"{"find": "a", "pipeline": []}"#, "no member \"pipeline\""),
        (r#"{"drop": "a"}"#, "exactly one member"),
        (r#"{"find": "a", "filter": []}"#, "\"filter\" has to be an object"),
        (r#"{"find": "a", "filter": {"$oid": "0123456789abcdef01234567"}}"#, "an object"),
        (r#"{"find": "a", "filter": {"x": {"$oid": "1"}}}"#, "not JSON that MongoDB takes"),
        (r#"{"find": "a", "limit": -1}"#, "\"limit\" has to be a number of documents, 0 or more"),
        (r#"{"find": "a", "limit": 1.5}"#, "\"limit\""),
        (r#"{"find": "a", "skip": "1"}"#, "\"skip\""),
        (r#"{"find": "a", "filter": {"x": 18446744073709551615}}"#, "no 64-bit integer"),
        (r#"{"find": "a", "filter": {"x": -99999999999999999999}}"#, "no 64-bit integer"),
        (r#"{"find": "a", "filter": {"x": 1e400}}"#, "number out of range at line 1 column 35"),
        (r#"{"aggregate": "a"}"#, "has a \"pipeline\""),
        (r#"{"aggregate": "a", "pipeline": [1]}"#, "an array of stages"),
        (r#"{"find": "a", "sample": 0}"#, "\"sample\" is a number of documents, 1 to"),
        (r#"{"find": "a", "sample": -1}"#, "\"sample\" is a number of documents"),
        (r#"{"find": "a", "sample": 1.5}"#, "\"sample\" is a number of documents"),
        (r#"{"find": "a", "rest": 1}"#, "not JSON"),
        (r#"{"find": "a", "schema": {"a": "x"}}"#, "\"schema\": column \"a\": \"x\" is no type"),
        (r#"{"find": "a", "schema": {"a": "json", "a": "json"}}"#, "occurs twice"),
        (r#"{"find": "a", "schema": {"_rest": "json"}}"#, "\"_rest\" is for what does not fit"),
        (r#"{"find": "a", "schema": {}, "rest": false}"#, "needs a column"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.message.contains(what), "{text}: {}", error.message);
        assert_eq!((error.kind, error.sqlstate.as_str()), (ErrorKind::Query, "42601"));
    }
    let deep = format!("{{\"find\": \"a\", \"filter\": {}", "{\"a\":".repeat(100_000));
    assert!(parse(&deep).unwrap_err().message.contains("recursion limit"));
}

#[test]
fn stages_that_write() {
    for pipeline in [
        r#"[{"$match": {}}, {"$out": "b"}]"#,
        r#"[{"$merge": {"into": "b"}}]"#,
        r#"[{"$lookup": {"from": "x", "as": "y", "pipeline": [{"$out": "b"}]}}]"#,
        r#"[{"$facet": {"a": [{"$unionWith": {"coll": "x", "pipeline": [{"$merge": "b"}]}}]}}]"#,
    ] {
        let text = format!(r#"{{"aggregate": "a", "pipeline": {pipeline}}}"#);
        let error = parse(&text).unwrap_err();
        assert_eq!(error.sqlstate, "25006");
        assert!(error.message.contains("read-only"), "{}", error.message);
        Query::parse(&text, "shop", true).unwrap();
    }
    parse(r#"{"aggregate": "a", "pipeline": [{"$match": {"x": "$out"}}]}"#).unwrap();
}
