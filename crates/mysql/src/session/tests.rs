//! Sessions with a scripted server.

use mysql_common::constants::CapabilityFlags;

use super::*;

const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const END: &[u8] = b"\xfe\0\0\x02\0\0\0";
const OLD_END: &[u8] = b"\xfe\0\0\x02\0";
const MORE: &[u8] = b"\0\0\0\x0a\0\0\0";
const INTERRUPTED: &[u8] = b"\xff\x25\x05#70100Query execution was interrupted";

/// A server that sends its packets, whatever it receives.
struct Script {
    answers: std::io::Cursor<Vec<u8>>,
    received: Vec<u8>,
}

impl Script {
    /// The commands that it has received, each as its name and argument.
    fn commands(&self) -> Vec<String> {
        let mut commands = Vec::new();
        let mut rest = self.received.as_slice();
        while let [a, b, c, _, payload @ ..] = rest {
            let (payload, after) = payload.split_at(u32::from_le_bytes([*a, *b, *c, 0]) as usize);
            let argument = String::from_utf8_lossy(&payload[1..]);
            commands.push(match payload[0] {
                0x03 => argument.into_owned(),
                0x16 => format!("prepare {argument}"),
                0x17 => format!("execute {}", payload[1]),
                0x19 => format!("close {}", payload[1]),
                other => format!("{other}"),
            });
            rest = after;
        }
        commands
    }
}

impl Read for Script {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.answers.read(buffer)
    }
}

impl Write for Script {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        self.received.extend(buffer);
        Ok(buffer.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn server(deprecates_eof: bool) -> Server {
    let mut capabilities = CapabilityFlags::CLIENT_SESSION_TRACK;
    capabilities.set(CapabilityFlags::CLIENT_DEPRECATE_EOF, deprecates_eof);
    Server::new("8.0.36", 7, capabilities.bits(), 0)
}

/// The packets of an answer, numbered from 1.
fn answer<P: AsRef<[u8]>>(payloads: &[P]) -> Vec<u8> {
    let mut out = Vec::new();
    for (payload, sequence) in payloads.iter().zip(1u8..) {
        out.extend(packet(payload.as_ref(), sequence));
    }
    out
}

fn packet(payload: &[u8], sequence: u8) -> Vec<u8> {
    let [a, b, c, ..] = payload.len().to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}

/// A column `v` of a type, with the collation utf8mb4_general_ci.
fn definition(type_code: u8) -> Vec<u8> {
    let tail = [0x0c, 45, 0, 0xff, 0, 0, 0, type_code, 0, 0, 0, 0, 0];
    [b"\x03def\0\0\0\x01v\x01v".as_slice(), &tail].concat()
}

const BIGINT: u8 = 8;
const FLOAT: u8 = 4;
const TIMESTAMP: u8 = 7;
const VARCHAR: u8 = 253;

/// The answer to a preparation: statement 1, of so many columns and parameters.
fn prepared(columns: u8, parameters: u8, deprecates_eof: bool) -> Vec<u8> {
    let head = [0, 1, 0, 0, 0, columns, 0, parameters, 0, 0, 0, 0].to_vec();
    let mut packets = vec![head];
    for count in [parameters, columns].into_iter().filter(|count| *count > 0) {
        packets.extend((0..count).map(|_| definition(BIGINT)));
        packets.extend((!deprecates_eof).then(|| OLD_END.to_vec()));
    }
    answer(&packets)
}

fn row(value: i64) -> Vec<u8> {
    [&[0, 0][..], &value.to_le_bytes()].concat()
}

/// A result of one BIGINT.
fn result(rows: &[Vec<u8>], end: &[u8]) -> Vec<u8> {
    let head = [vec![1], definition(BIGINT)];
    let packets: Vec<_> = head.iter().chain(rows).map(Vec::as_slice).chain([end]).collect();
    answer(&packets)
}

fn session_of(server: Server, answers: &[Vec<u8>]) -> Session<Script> {
    let answers = std::io::Cursor::new(answers.concat());
    Session::new(Script { answers, received: Vec::new() }, server)
}

fn session(answers: &[Vec<u8>]) -> Session<Script> {
    session_of(server(true), answers)
}

fn no_cancel() -> impl FnMut() -> Result<()> {
    || Ok(())
}

/// The number of rows of the next statement.
fn read(session: &mut Session<Script>, statement: &str) -> Result<usize> {
    read_with(session, statement, &Options::default())
}

fn read_with(session: &mut Session<Script>, statement: &str, options: &Options) -> Result<usize> {
    session.start(statement, &[], options, &mut no_cancel())?;
    let mut rows = 0;
    while let Some(built) = session.next_batch(None, &mut no_cancel())? {
        rows += built.batch().rows;
    }
    Ok(rows)
}

#[test]
fn rows_and_what_follows() {
    let mut session = session(&[
        prepared(1, 0, true),
        result(&[row(1), row(2)], END),
        // It is kept: no second preparation.
        result(&[row(3)], b"\xfe\0\0\x03\0\0\0"),
        prepared(0, 0, true),
        answer(&[b"\0\x05\0\x02\0\0\0"]),
    ]);
    assert_eq!(read(&mut session, "SELECT 1").unwrap(), 2);
    assert!(session.is_usable() && !session.is_in_transaction());
    assert_eq!(read(&mut session, "SELECT 1").unwrap(), 1);
    assert!(session.is_in_transaction());
    assert_eq!(session.bytes(), 30);
    assert_eq!(read(&mut session, "DELETE FROM t").unwrap(), 0);
    assert_eq!(session.rows_changed(), Some(5));
    assert!(!session.is_in_transaction());
    assert_eq!(session.take_profile().columns.len(), 1);
}

#[test]
fn old_ends() {
    let server = || Server::new("5.6.51", 7, 0, 0);
    let answers = [
        prepared(1, 0, false),
        answer(&[&[1][..], &definition(BIGINT), OLD_END, &row(1), OLD_END]),
    ];
    let mut session = session_of(server(), &[answers.concat()]);
    assert_eq!(read(&mut session, "SELECT 1").unwrap(), 1);
    // It does not report settings, so it is asked once it may have changed them.
    let set = [prepared(0, 0, false), answer(&[OK])].concat();
    let settings = |values: &[u8]| {
        let varchar = definition(VARCHAR);
        answer(&[&[3][..], &varchar, &varchar, &varchar, OLD_END, values, OLD_END])
    };
    let same = settings(b"\x06+00:00\x07utf8mb4\x07utf8mb4");
    let mut session =
        session_of(server(), &[set.clone(), same, answers.concat(), answers[1].clone()]);
    read(&mut session, "SET sql_mode = ''").unwrap();
    assert_eq!(read(&mut session, "SELECT 1").unwrap(), 1);
    assert_eq!(read(&mut session, "SELECT 1").unwrap(), 1);
    let question = &Settings::new(false).question();
    let expected = [
        "prepare SET sql_mode = ''",
        "execute 1",
        "close 1",
        question,
        "prepare SELECT 1",
        "execute 1",
        "execute 1",
    ];
    assert_eq!(session.stream().commands(), expected);
    let latin1 = settings(b"\x06+00:00\x06latin1\xfb");
    let mut session = session_of(server(), &[set.clone(), latin1, answers.concat()]);
    read(&mut session, "SET NAMES latin1").unwrap();
    let error = read(&mut session, "SELECT 1").unwrap_err();
    assert!(error.to_string().contains("character_set_results"), "{error}");
    assert!(session.is_running());
    // An answer whose row has more values than columns.
    let wrong = [&[1][..], &definition(VARCHAR), OLD_END, b"\x06+00:00\x07utf8mb4", OLD_END];
    let mut session = session_of(server(), &[set, answer(&wrong)]);
    read(&mut session, "SET NAMES latin1").unwrap();
    read(&mut session, "SELECT 1").unwrap_err();
    assert!(session.is_broken());
}

/// What the server has left of one statement, it gives to the next: nothing runs in between.
#[test]
fn nothing_runs_before_what_reads_the_one_before() {
    let failed: &[u8] = b"\xff\x26\x04#23000Duplicate entry";
    let warnings = || answer(&[&[1][..], &definition(VARCHAR), b"\x011", END]);
    let count = || [prepared(1, 0, true), result(&[row(1)], END)].concat();
    let mut session = session(&[
        prepared(0, 0, true),
        answer(&[failed]),
        warnings(),
        count(),
        // The question, whose answer was due since the statement failed.
        answer(&[&[1][..], &definition(VARCHAR), b"\x06+00:00", END]),
        answer(&[failed]),
    ]);
    read(&mut session, "INSERT INTO t VALUES (1)").unwrap_err();
    assert_eq!(read(&mut session, "SHOW WARNINGS").unwrap(), 1);
    assert_eq!(read(&mut session, "SELECT ROW_COUNT()").unwrap(), 1);
    read(&mut session, "SELECT 1").unwrap_err();
    let expected = [
        "prepare INSERT INTO t VALUES (1)",
        "execute 1",
        "SHOW WARNINGS",
        "prepare SELECT ROW_COUNT()",
        "execute 1",
        &Settings::new(true).question(),
        "prepare SELECT 1",
    ];
    assert_eq!(session.stream().commands(), expected);
}

/// The server reads a prepared statement as it did when it prepared it: in that database, by that
/// mode.
#[test]
fn statements_are_forgotten_with_what_they_mean() {
    let one = || [prepared(1, 0, true), result(&[row(1)], END)].concat();
    let none = |ok: &[u8]| [prepared(0, 0, true), answer(&[ok])].concat();
    let select = ["prepare SELECT 1", "execute 1"];
    for (statement, ok) in [
        ("USE b", OK),
        ("SET sql_mode = 'ANSI'", OK),
        ("CALL p()", OK),
        ("/*!50000 USE b */", OK),
        // Its text does not tell that it changes a variable, or the database.
        ("INSERT INTO t VALUES (1)", b"\0\0\0\x02\x40\0\0\0\x07\0\x05\x01m\x02ab"),
        ("INSERT INTO t VALUES (1)", b"\0\0\0\x02\x40\0\0\0\x04\x01\x02\x01b"),
    ] {
        // What it reports is asked about, if the statement may have changed that.
        let varchar = definition(VARCHAR);
        let values = b"\x06+00:00\x07utf8mb4\x07utf8mb4\x01*";
        let settings = answer(&[&[4][..], &varchar, &varchar, &varchar, &varchar, values, END]);
        let is_asked = effect::may_change_reports(statement);
        let settings = if is_asked { settings } else { Vec::new() };
        let mut session = session(&[one(), none(ok), settings, one(), none(ok)]);
        read(&mut session, "SELECT 1").unwrap();
        read(&mut session, statement).unwrap();
        read(&mut session, "SELECT 1").unwrap();
        read(&mut session, statement).unwrap();
        let mut commands = session.stream().commands();
        // The server closes what is forgotten, at some time.
        let closed = commands.iter().filter(|command| *command == "close 1").count();
        assert!(closed >= 2, "{statement}: {commands:?}");
        let question = Settings::new(true).question();
        assert_eq!(commands.contains(&question), is_asked, "{statement}");
        commands.retain(|command| command != "close 1" && *command != question);
        let prepare = format!("prepare {statement}");
        let other = [prepare.as_str(), "execute 1"];
        assert_eq!(commands, [select, other, select, other].concat(), "{statement}");
    }
    // A transaction keeps them.
    let mut session = session(&[
        one(),
        none(OK),
        result(&[row(1)], END),
        none(OK),
        answer(&[OK]),
        result(&[row(1)], END),
    ]);
    for statement in ["SELECT 1", "BEGIN", "SELECT 1", "COMMIT", "BEGIN", "SELECT 1"] {
        read(&mut session, statement).unwrap();
    }
}

/// A result that ends anywhere before its end is an error, and the connection is given up.
#[test]
fn cut_off() {
    let whole = [prepared(1, 0, true), result(&[row(1), row(2)], END)].concat();
    for end in 0..whole.len() {
        let mut session = session(&[whole[..end].to_vec()]);
        let error = read(&mut session, "SELECT 1").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connection, "{end}: {error}");
        assert!(session.is_broken(), "{end}");
        // What follows is no empty result.
        session.next_batch(None, &mut no_cancel()).unwrap_err();
    }
    let mut session = session(&[whole]);
    assert_eq!(read(&mut session, "SELECT 1").unwrap(), 2);
}

#[test]
fn hostile_answers() {
    let defined = definition(BIGINT);
    let wrong_number = [answer(&[&[1][..], &defined]), packet(&row(1), 9)].concat();
    for (case, result) in [
        ("a wrong sequence number", wrong_number),
        ("no columns and no OK", answer(&[&[0xfe][..]])),
        ("too many columns", answer(&[&[0xfc, 0x01, 0x10][..]])),
        ("columns and more", answer(&[&[1, 1][..]])),
        ("an empty packet", answer(&[&[][..]])),
        ("an empty row", answer(&[&[1][..], &defined, &[]])),
        ("no definition", answer(&[&[1][..], b"\x03def"])),
        ("a row without its value", answer(&[&[1][..], &defined, &[0, 0]])),
        ("a row without its bitmap", answer(&[&[1][..], &defined, &[0]])),
        ("a row with more", answer(&[&[1][..], &defined, &[&row(1)[..], &[1]].concat()])),
        ("an end that is cut off", answer(&[&[1][..], &defined, &[0xfe, 0]])),
        ("an error that is cut off", answer(&[&[1][..], &defined, &[0xff, 0]])),
        ("more after the end", [result(&[], MORE_END), answer(&[OK])].concat()),
    ] {
        let mut session = session(&[prepared(1, 0, true), result]);
        let error = read(&mut session, "SELECT 1").unwrap_err();
        assert!(!session.is_usable(), "{case}: {error}");
        assert_eq!(error.kind(), ErrorKind::Protocol, "{case}: {error}");
    }
    // More columns than a result may have.
    let mut session = session(&[answer(&[[0, 1, 0, 0, 0, 0x01, 0x10, 0, 0, 0, 0, 0]])]);
    let error = read(&mut session, "SELECT 1").unwrap_err();
    assert!(error.to_string().contains("4097 columns") && session.is_broken(), "{error}");
}

/// The end of rows after which another result comes.
const MORE_END: &[u8] = b"\xfe\0\0\x0a\0\0\0";

#[test]
fn errors_of_the_server() {
    let error: &[u8] = b"\xff\x7a\x04#42S02Table 'd.t' doesn't exist";
    let mut session = session(&[
        answer(&[error]),
        prepared(1, 0, true),
        result(&[row(1)], INTERRUPTED),
        // The connection was closed while nobody read.
        packet(b"\xff\xbf\x0f#HY000The client was disconnected", 0),
    ]);
    let found = read(&mut session, "SELECT * FROM t").unwrap_err();
    assert_eq!((found.code(), found.sqlstate()), (Some(1146), Some("42S02")));
    assert!(session.is_usable());
    let found = read(&mut session, "SELECT 1").unwrap_err();
    assert!(found.is_interrupted() && session.is_usable(), "{found}");
    let found = read(&mut session, "SELECT 2").unwrap_err();
    assert_eq!((found.code(), found.kind()), (Some(4031), ErrorKind::Connection));
    assert!(session.is_broken());
}

/// A server that has closed the connection, and what it sent before.
struct Closed(std::io::Cursor<Vec<u8>>);

impl Read for Closed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A statement that is not taken fails with the reason that the server has given, else with the
/// reasons that it may have.
#[test]
fn closed_connections() {
    let refused = |sent: Vec<u8>| {
        let mut session = Session::new(Closed(std::io::Cursor::new(sent)), server(true));
        let error =
            session.start("SELECT 1", &[], &Options::default(), &mut no_cancel()).unwrap_err();
        assert!(session.is_broken() && error.kind() == ErrorKind::Connection, "{error}");
        error
    };
    let too_large: &[u8] = b"\xff\x81\x04#08S01Got a packet bigger than 'max_allowed_packet' bytes";
    // The numbers of a statement of several packets have gone on.
    for number in [0, 1, 3] {
        assert_eq!(refused(packet(too_large, number)).code(), Some(1153));
    }
    for sent in [Vec::new(), packet(too_large, 1)[..20].to_vec(), packet(OK, 1)] {
        let error = refused(sent);
        assert_eq!((error.code(), error.message()), (None, "the connection to the server broke"));
        assert!(error.hint().unwrap().contains("max_allowed_packet"), "{error}");
    }
    // What is sent to nobody may seem to have been taken.
    let error = read(&mut session(&[]), "SELECT 1").unwrap_err();
    assert!(error.hint().unwrap().contains("wait_timeout"), "{error}");
    // Once an answer has begun, the reasons are others.
    let begun = prepared(1, 0, true)[..9].to_vec();
    let error = read(&mut session(&[begun]), "SELECT 1").unwrap_err();
    assert_eq!(error.hint(), Some("what had arrived of a result is not whole"));
}

#[test]
fn drained() {
    let whole = [prepared(1, 0, true), result(&[row(1), row(2)], INTERRUPTED)].concat();
    // The caller stops after so many batches.
    for batches in 0..4 {
        let mut session = session(&[whole.clone(), answer(&[OK])]);
        let options = Options { batch_rows: 1, ..Options::default() };
        let mut left = batches;
        let mut reads = |session: &mut Session<Script>| -> Result<()> {
            session.start("SELECT 1", &[], &options, &mut no_cancel())?;
            while left > 0 && session.next_batch(None, &mut no_cancel())?.is_some() {
                left -= 1;
            }
            Ok(())
        };
        let read = reads(&mut session);
        session.drain(&mut no_cancel()).unwrap();
        assert!(session.is_usable(), "{batches}: {read:?}");
        session.ask("DO 0", &mut no_cancel()).unwrap();
    }
    // It had ended before the cancel came, which then ends the next statement.
    let whole = [prepared(1, 0, true), result(&[row(1)], END)].concat();
    for late in [vec![], answer(&[INTERRUPTED])] {
        let mut session = session(&[whole.clone(), late, answer(&[OK]), answer(&[OK])]);
        session.start("SELECT 1", &[], &Options::default(), &mut no_cancel()).unwrap();
        session.settle(&mut no_cancel()).unwrap_err();
        session.drain(&mut no_cancel()).unwrap();
        session.settle(&mut no_cancel()).unwrap();
        session.ask("SELECT 1", &mut no_cancel()).unwrap();
    }
}

#[test]
fn statements_that_are_not_prepared() {
    let refused: &[u8] = b"\xff\x0f\x05#HY000This command is not supported";
    let text = answer(&[&[1][..], &definition(BIGINT), b"\x012", b"\xfb", END]);
    let mut session = session(&[
        answer(&[refused]),
        text,
        answer(&[refused]),
        answer(&[&[1][..], &definition(FLOAT), b"\x031.5", END]),
    ]);
    assert_eq!(read(&mut session, "SHOW x").unwrap(), 2);
    let error = read(&mut session, "SHOW y").unwrap_err();
    assert!(error.to_string().contains("FLOAT") && session.is_running(), "{error}");
    session.next_batch(None, &mut no_cancel()).unwrap_err();
    let mut session = session_of(server(true), &[answer(&[refused])]);
    let one = [Parameter::Null];
    let error = session.start("SHOW x", &one, &Options::default(), &mut no_cancel()).unwrap_err();
    assert!(error.to_string().contains("does not prepare") && session.is_usable(), "{error}");
}

#[test]
fn results_of_procedures() {
    let (name, settings) = (definition(VARCHAR), b"\x06+00:00\x07utf8mb4\x07utf8mb4\x01*");
    let mut session = session(&[
        prepared(0, 0, true),
        // OK, rows, OK: the numbers go on.
        answer(&[MORE, &[1], &definition(BIGINT), &row(1), MORE_END, OK]),
        // It may have changed what is reported of the session.
        answer(&[&[4][..], &name, &name, &name, &name, settings, END]),
        // A procedure is not kept prepared.
        prepared(0, 0, true),
        answer(&[&[1][..], &definition(BIGINT), MORE_END, &[1], &definition(BIGINT), &row(1), END]),
        answer(&[OK]),
    ]);
    assert_eq!(read(&mut session, "CALL p()").unwrap(), 1);
    let error = read(&mut session, "CALL p()").unwrap_err();
    assert!(error.to_string().contains("more than once") && session.is_usable(), "{error}");
    session.ask("DO 0", &mut no_cancel()).unwrap();
}

#[test]
fn parameters_are_counted() {
    let mut session = session(&[prepared(1, 2, true), result(&[row(1)], END)]);
    let error = read(&mut session, "SELECT ? + ?").unwrap_err();
    assert!(error.to_string().contains("2 parameters, 0 values"), "{error}");
    let two = [Parameter::Signed(1), Parameter::Null];
    session.start("SELECT ? + ?", &two, &Options::default(), &mut no_cancel()).unwrap();
    assert_eq!(session.next_batch(None, &mut no_cancel()).unwrap().unwrap().batch().rows, 1);
}

#[test]
fn stale_statements_are_prepared_again() {
    let again: &[u8] = b"\xff\x4f\x06#HY000Prepared statement needs to be re-prepared";
    let mut session = session(&[
        prepared(1, 0, true),
        result(&[row(1)], END),
        answer(&[again]),
        prepared(1, 0, true),
        result(&[row(1), row(2)], END),
        answer(&[again]),
        prepared(1, 0, true),
        answer(&[&[1][..], &definition(TIMESTAMP), END]),
    ]);
    for rows in [1, 2, 0] {
        assert_eq!(read(&mut session, "SELECT 1").unwrap(), rows);
    }
}

#[test]
fn large_rows() {
    // A text value whose length needs 8 bytes comes in two packets, and begins as an end does.
    let length = 0xff_ffff + 100;
    let mut value = vec![0xfe];
    value.extend((length as u64).to_le_bytes());
    value.resize(value.len() + length, b'x');
    let (first, second) = value.split_at(0xff_ffff);
    let refused: &[u8] = b"\xff\x0f\x05#HY000This command is not supported";
    let result =
        [answer(&[&[1][..], &definition(VARCHAR), first, second, b"\x01x", END]), answer(&[OK])]
            .concat();
    let mut session = session(&[answer(&[refused]), result.clone()]);
    assert_eq!(read(&mut session, "SHOW x").unwrap(), 2);
    for row_bytes_max in [1 << 20, 0xff_ffff, value.len() - 1] {
        let mut session = session_of(server(true), &[answer(&[refused]), result.clone()]);
        let options = Options { row_bytes_max, ..Options::default() };
        let error = read_with(&mut session, "SHOW x", &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(error.to_string().contains("row_bytes_max") && session.is_running(), "{error}");
        session.drain(&mut no_cancel()).unwrap();
        assert!(session.is_usable());
    }
}

#[test]
fn settings_that_change() {
    let changed = |name: &str, value: &str| {
        let entry = [&[name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()];
        let entry = entry.concat();
        let entry = [&[0, entry.len() as u8][..], &entry].concat();
        answer(&[[b"\0\0\0\x02\x40\0\0\0", &[entry.len() as u8][..], &entry].concat()])
    };
    let timestamp = || answer(&[&[1][..], &definition(TIMESTAMP), END]);
    let mut session = session(&[
        prepared(0, 0, true),
        changed("time_zone", "+02:00"),
        prepared(1, 0, true),
        timestamp(),
        answer(&[OK]),
    ]);
    assert_eq!(read(&mut session, "SET time_zone = '+02:00'").unwrap(), 0);
    let error = read(&mut session, "SELECT now").unwrap_err();
    assert!(error.hint().unwrap().contains("+00:00"), "{error}");
    session.drain(&mut no_cancel()).unwrap();
    let mut session = session_of(
        server(true),
        &[prepared(0, 0, true), changed("character_set_client", "latin1")],
    );
    read(&mut session, "SET NAMES latin1").unwrap();
    let error = read(&mut session, "SELECT 'ü'").unwrap_err();
    assert!(error.to_string().contains("latin1") && session.is_usable(), "{error}");
}

/// The request for a file of this name.
fn request(name: &str) -> Vec<u8> {
    [b"\xfb", name.as_bytes()].concat()
}

#[test]
fn rows_as_a_file() {
    let (asked, taken) = (request(FILE_NAME), b"\0\x02\0\x02\0\x01\0".to_vec());
    // After two parts and the end comes packet 5.
    let mut session = session(&[answer(&[&asked]), packet(&taken, 5), answer(&[OK])]);
    assert!(session.start_load("LOAD DATA", &mut no_cancel()).unwrap());
    assert!(session.is_loading() && session.is_running() && !session.is_usable());
    for part in [b"1\n", b"2\n"] {
        session.send_load(part, &mut no_cancel()).unwrap();
    }
    let found = session.end_load(&mut no_cancel()).unwrap();
    assert_eq!(found, Taken { rows: 2, warnings: 1 });
    session.ask("DO 0", &mut no_cancel()).unwrap();
}

#[test]
fn files_are_ended_when_rows_are_drained() {
    let asked = request(FILE_NAME);
    let mut session = session(&[answer(&[&asked]), packet(INTERRUPTED, 4), answer(&[OK])]);
    assert!(session.start_load("LOAD DATA", &mut no_cancel()).unwrap());
    session.send_load(b"1\n", &mut no_cancel()).unwrap();
    session.drain(&mut no_cancel()).unwrap();
    assert!(session.is_usable() && !session.is_loading());
}

#[test]
fn files_that_a_server_may_not_have() {
    let disabled: &[u8] = b"\xff\x46\x10#HY000The used command is not allowed";
    let mut refused = session(&[answer(&[disabled])]);
    assert!(!refused.start_load("LOAD DATA", &mut no_cancel()).unwrap() && refused.is_usable());
    for (case, first) in [
        ("another file", request("/etc/passwd")),
        ("no name", request("")),
        ("rows", vec![1]),
        ("no request", OK.to_vec()),
    ] {
        let mut session = session(&[answer(&[first])]);
        let error = session.start_load("LOAD DATA", &mut no_cancel()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{case}: {error}");
        assert!(session.is_broken(), "{case}");
    }
    // Other statements: the file is empty, whatever its name, and their answer is read.
    for name in ["/etc/passwd", FILE_NAME, ""] {
        let asked = [answer(&[request(name)]), packet(OK, 3)].concat();
        let mut session = session(&[prepared(0, 0, true), asked.clone(), asked, answer(&[OK])]);
        let error = read(&mut session, "SELECT 1").unwrap_err();
        assert_eq!((error.kind(), session.is_usable()), (ErrorKind::Usage, true), "{error}");
        session.ask("SELECT 1", &mut no_cancel()).unwrap_err();
        session.ask("SELECT 1", &mut no_cancel()).unwrap();
    }
    // A server that asks again and again.
    let again: Vec<_> = (0..20).flat_map(|i| packet(&request("x"), 1 + 2 * i)).collect();
    let mut session = session(&[again]);
    let error = session.ask("SELECT 1", &mut no_cancel()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
}
