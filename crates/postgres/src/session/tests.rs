//! Sessions with a scripted server.

use super::*;

/// A server that sends its messages and ignores what it receives.
struct Script(std::io::Cursor<Vec<u8>>);

impl Read for Script {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Script {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        Ok(buffer.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![tag];
    message.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    message.extend(body);
    message
}

fn row(value: &str) -> Vec<u8> {
    let mut body = 1u16.to_be_bytes().to_vec();
    body.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
    body.extend(value.bytes());
    message(b'D', &body)
}

fn described() -> Vec<u8> {
    // One column `v` of type text (oid 25).
    message(b'T', b"\0\x01v\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0")
}

fn setting(name: &str, value: &str) -> Vec<u8> {
    message(b'S', format!("{name}\0{value}\0").as_bytes())
}

fn tag(tag: &str) -> Vec<u8> {
    message(b'C', format!("{tag}\0").as_bytes())
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// The answer to a statement: its preparation, a description, and the rest.
fn answer(described: Vec<u8>, rest: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let begin = [message(b'1', b""), message(b't', b"\0\0"), described, message(b'2', b"")];
    begin.into_iter().chain(rest).collect()
}

fn session(messages: &[Vec<u8>]) -> Session<Script> {
    Session::new(Script(std::io::Cursor::new(messages.concat())), 15, &BTreeMap::new())
}

fn no_cancel() -> impl FnMut() -> Result<()> {
    || Ok(())
}

/// The rows of the next statement.
fn read(session: &mut Session<Script>, statement: &str) -> Result<usize> {
    session.start(statement, &[], &Options::default(), &mut no_cancel())?;
    let mut rows = 0;
    while let Some(built) = session.next_batch(None, &mut no_cancel())? {
        rows += built.batch().rows;
    }
    Ok(rows)
}

#[test]
fn rows_are_as_many_as_the_server_says() {
    let rows = |count: usize, tag_of: &str| {
        let rows = (0..count).map(|i| row(&i.to_string())).chain([tag(tag_of), ready()]);
        read(&mut session(&answer(described(), rows.collect())), "SELECT v FROM t")
    };
    for right in ["SELECT 200", "INSERT 0 200", "FETCH 200", "EXPLAIN", "CALL"] {
        assert_eq!(rows(200, right).unwrap(), 200, "{right}");
    }
    for (count, wrong) in [
        (199, "SELECT 200"),
        (201, "SELECT 200"),
        (0, "UPDATE 1"),
        (1, "DELETE 0"),
        (3, "INSERT 0 2"),
    ] {
        let error = rows(count, wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
        assert!(
            error.to_string().contains(wrong) && error.to_string().contains(&count.to_string()),
            "{error}"
        );
    }
    // CREATE TABLE AS returns no rows, whatever it counts.
    let none = |rest: Vec<Vec<u8>>| {
        read(&mut session(&answer(message(b'n', b""), rest)), "CREATE TABLE u AS TABLE t")
    };
    assert_eq!(none(vec![tag("SELECT 200"), ready()]).unwrap(), 0);
    assert!(none(vec![row("1"), tag("SELECT 1"), ready()]).is_err());
}

/// Each message is lost, doubled, or swapped with the next. Then all rows arrive or there is an
/// error. A missing step is an error, since the rows may belong to the statement before.
#[test]
fn no_message_is_lost_or_doubled() {
    let rows = (0..20).map(|i| row(&i.to_string())).chain([tag("SELECT 20"), ready()]);
    let whole = answer(described(), rows.collect());
    assert_eq!(read(&mut session(&whole), "SELECT v FROM t").unwrap(), 20);
    for i in 0..whole.len() {
        let (mut lost, mut doubled, mut swapped) = (whole.clone(), whole.clone(), whole.clone());
        lost.remove(i);
        doubled.insert(i, whole[i].clone());
        if i + 1 < whole.len() {
            swapped.swap(i, i + 1);
        }
        // A `t` without parameters says nothing, and the next statement sees a second `Z`.
        for (how, messages, harmless) in
            [("lost", lost, "t"), ("doubled", doubled, "tZ"), ("swapped", swapped, "DZ")]
        {
            if let Ok(rows) = read(&mut session(&messages), "SELECT v FROM t") {
                assert!(
                    rows == 20 && harmless.contains(char::from(whole[i][0])),
                    "{i} {how}: {rows} rows"
                );
            }
        }
    }
}

#[test]
fn no_step_of_a_copy_is_missing() {
    let start = |steps: &[u8], loaded: bool| {
        let said = steps.iter().map(|step| match step {
            b'C' => tag("SELECT 1"),
            b'H' => message(b'H', b"\0\0\x01\0\0"),
            step => message(*step, b""),
        });
        let mut session = session(&said.collect::<Vec<_>>());
        session.extension_loaded = loaded;
        let parameter = Parameter { oid: 23, text: Some("1".to_owned()) };
        session.start_copy("SELECT $1", &[parameter], "FORMAT dray", &mut no_cancel()).is_ok()
    };
    assert!(start(b"12H", true) && start(b"12C12H", false));
    for (wrong, loaded) in [
        (b"2H".as_slice(), true),
        (b"1H", true),
        (b"12C2H", false),
        (b"12CH", false),
        (b"12H", false),
    ] {
        assert!(!start(wrong, loaded), "{wrong:?}");
    }
}

#[test]
fn nothing_follows_the_end() {
    let rest = vec![row("1"), tag("SELECT 1"), row("2"), ready()];
    let error = read(&mut session(&answer(described(), rest)), "SELECT v FROM t").unwrap_err();
    assert!(error.to_string().contains("after the statement's end"), "{error}");
}

#[test]
fn rows_of_a_copy() {
    let copy = |after: &[Vec<u8>]| {
        let begin = [message(b'H', b"\0\0\x01\0\0"), message(b'd', b"data")];
        let mut session = session(&[&begin, after].concat());
        session.extension_loaded = true;
        let started = session.start_copy("SELECT v FROM t", &[], "FORMAT dray", &mut no_cancel());
        assert!(matches!(started, Ok(CopyStart::Started)));
        session.read_copy(&mut [0; 4], &mut no_cancel()).unwrap();
        session.finish_copy(5, &mut no_cancel())
    };
    let done = message(b'c', b"");
    copy(&[done.clone(), tag("COPY 5"), ready()]).unwrap();
    for wrong in [
        &[done.clone(), tag("COPY 4"), ready()][..],
        &[tag("COPY 5"), ready()],
        &[done.clone(), done.clone(), tag("COPY 5"), ready()],
        &[done.clone(), tag("COPY 5"), tag("COPY 5"), ready()],
        &[done.clone(), tag("COPY 5"), message(b'd', b"more"), ready()],
        &[message(b'd', b"more"), done.clone(), tag("COPY 5"), ready()],
        &[done, setting("client_encoding", "LATIN1"), tag("COPY 5"), ready()],
    ] {
        assert!(copy(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn own_statements() {
    let ask =
        |messages: &[Vec<u8>]| session(messages).ask("BEGIN; SELECT 1; SELECT 2", &mut no_cancel());
    let rows = [
        tag("BEGIN"),
        described(),
        row("1"),
        tag("SELECT 1"),
        described(),
        row("2"),
        tag("SELECT 1"),
        ready(),
    ];
    assert_eq!(ask(&rows).unwrap(), [[Some("1".to_owned())], [Some("2".to_owned())]]);
    for i in 0..rows.len() {
        let mut doubled = rows.to_vec();
        doubled.insert(i, rows[i].clone());
        assert!(matches!(rows[i][0], b'C' | b'T' | b'Z') || ask(&doubled).is_err(), "{i}");
    }
    assert!(ask(&[described(), tag("SELECT 1"), ready()]).is_err());
}

#[test]
fn settings_that_results_depend_on() {
    // A changed setting is reported before ReadyForQuery; by servers before version 14, at once.
    let late = vec![row("x"), tag("SELECT 1"), setting("client_encoding", "LATIN1"), ready()];
    let early = vec![setting("client_encoding", "LATIN1"), row("x"), tag("SELECT 1"), ready()];
    let back = vec![
        setting("DateStyle", "German, DMY"),
        row("x"),
        setting("DateStyle", "ISO, DMY"),
        tag("SELECT 1"),
        ready(),
    ];
    for rest in [late, early, back] {
        let error = read(&mut session(&answer(described(), rest)), "SELECT f()").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    let set =
        answer(message(b'n', b""), vec![tag("SET"), setting("client_encoding", "LATIN1"), ready()]);
    let reset =
        answer(message(b'n', b""), vec![tag("SET"), setting("client_encoding", "UTF8"), ready()]);
    let rows = answer(described(), vec![row("x"), tag("SELECT 1"), ready()]);
    let mut session = session(&[set, reset, rows].concat());
    assert_eq!(read(&mut session, "SET client_encoding TO latin1").unwrap(), 0);
    for refused in ["SELECT 'é'", "SET application_name = 'é'"] {
        let error = read(&mut session, refused).unwrap_err();
        assert!(error.to_string().contains("client_encoding was set to \"LATIN1\""), "{error}");
        assert!(session.describe(refused, &[], &Options::default(), &mut no_cancel()).is_err());
        assert!(session.start_copy(refused, &[], "FORMAT dray", &mut no_cancel()).is_err());
    }
    assert_eq!(read(&mut session, "RESET client_encoding").unwrap(), 0);
    let local = "SELECT set_config('Client_Encoding', 'LATIN1', true), v FROM t";
    assert!(read(&mut session, local).is_err());
    assert_eq!(read(&mut session, "SELECT 'é'").unwrap(), 1);
}

#[test]
fn strings_end_where_the_server_says() {
    let set = answer(
        message(b'n', b""),
        vec![tag("SET"), setting("standard_conforming_strings", "off"), ready()],
    );
    let mut session = session(&set);
    let statement = r"SELECT 'a\'; SELECT 'b'";
    assert_eq!(session.enclosable(statement), None);
    read(&mut session, "SET standard_conforming_strings = off").unwrap();
    assert_eq!(session.enclosable(statement), None);
    assert!(session.enclosable(r"SELECT 'a\'; --'").is_some());
}
