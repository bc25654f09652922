//! The limits of a source: how many connections there are at a time, who waits for them, and the
//! memory for rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use dray_client::{
    ConnectOptions, Connection, Error, Part, Plan, PlanOptions, QueryOptions, Verdict,
};
use dray_driver::{Division, Driver, Estimate, Parts, ServerError, Session, Sink, Statement};
use dray_server::{ServeOptions, SourceOptions};

use crate::common::Running;

/// A database that counts its connections.
#[derive(Debug, Clone, Default)]
struct Database(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// Connections that are open, the most of them so far, and all that ever were.
    open: AtomicUsize,
    open_max: AtomicUsize,
    opened: AtomicUsize,
    /// Whether a part is read over a connection of its own.
    opens_connections: bool,
    /// Parts that are being read, which they are until parts may end.
    reading: AtomicUsize,
    may_end: AtomicBool,
}

impl Database {
    /// One whose parts are read over connections of their own.
    fn opening() -> Self {
        Self(Arc::new(State { opens_connections: true, ..State::default() }))
    }

    fn connect(&self) -> Open {
        self.0.opened.fetch_add(1, SeqCst);
        self.0.open_max.fetch_max(self.0.open.fetch_add(1, SeqCst) + 1, SeqCst);
        Open(self.clone())
    }

    fn reading(&self) -> usize {
        self.0.reading.load(SeqCst)
    }

    fn let_parts_end(&self) {
        self.0.may_end.store(true, SeqCst);
    }

    fn open_max(&self) -> usize {
        self.0.open_max.load(SeqCst)
    }
}

/// A connection of the database.
#[derive(Debug)]
struct Open(Database);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, SeqCst);
    }
}

/// A plan of it, with its connections.
#[derive(Debug)]
struct InParts {
    database: Database,
    held: Vec<Open>,
    estimates: [Estimate; 4],
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("x", DataType::Int32, true)]))
}

impl Driver for Database {
    fn dialect(&self) -> &'static str {
        "sql"
    }

    fn open(&self, _: &mut dyn FnMut() -> bool) -> Result<Box<dyn Session>, ServerError> {
        Ok(Box::new(self.connect()))
    }
}

impl Session for Open {
    fn server(&self) -> &str {
        "counted"
    }

    fn is_usable(&self) -> bool {
        true
    }

    fn plan(
        &mut self,
        _: &Statement,
        division: &Division,
        _: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Arc<dyn Parts>>, ServerError> {
        let database = self.0.clone();
        let count = if database.0.opens_connections { 1 } else { division.connections_max };
        let held = (0..count).map(|_| database.connect()).collect();
        Ok(Some(Arc::new(InParts { database, held, estimates: Default::default() })))
    }

    fn run(&mut self, _: &Statement, sink: &mut dyn Sink) -> Result<(), ServerError> {
        // It fails if the client has left.
        let _ = sink.begin(schema(), Estimate::default());
        Ok(())
    }
}

impl Parts for InParts {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    fn reason(&self) -> Option<&str> {
        None
    }

    fn connections(&self) -> usize {
        self.held.len()
    }

    fn opens_connections(&self) -> bool {
        self.database.0.opens_connections
    }

    fn run(&self, _: usize, _: &Statement, sink: &mut dyn Sink) -> Result<(), ServerError> {
        let state = &self.database.0;
        let _own = state.opens_connections.then(|| self.database.connect());
        let _ = sink.begin(schema(), Estimate::default());
        state.reading.fetch_add(1, SeqCst);
        while !state.may_end.load(SeqCst) && !sink.is_stopped() {
            sleep(Duration::from_millis(2));
        }
        state.reading.fetch_sub(1, SeqCst);
        Ok(())
    }
}

/// A server whose source has so many connections.
fn serve(
    database: &Database,
    connections_max: usize,
    change: impl FnOnce(&mut ServeOptions),
) -> Running {
    let driver = Arc::new(database.clone());
    let server = Running::start_with(|options| {
        let source = SourceOptions::new("counted".to_owned(), driver);
        options.sources.push(SourceOptions { connections_max, ..source });
        change(options);
    });
    // It looks for its source, over a connection.
    wait_until("the server looks", || {
        database.0.opened.load(SeqCst) == 1 && database.0.open.load(SeqCst) == 0
    });
    server
}

/// Who waits gives up soon.
fn impatient(options: &mut ServeOptions) {
    options.wait_timeout = Duration::from_secs(1);
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        sleep(Duration::from_millis(5));
    }
}

fn connect(server: &Running) -> Connection {
    let uri = format!("{}?source=counted", server.unix);
    Connection::connect(&uri, &ConnectOptions::default()).unwrap()
}

/// Runs a statement, after which the client has a session.
fn run(client: &mut Connection) -> Result<(), Error> {
    client.query("1", &QueryOptions::default())?.read_all().map(drop)
}

/// A client with a session, as soon as there can be one.
fn with_session(server: &Running) -> Connection {
    let mut client = connect(server);
    wait_until("a session", || run(&mut client).is_ok());
    client
}

fn plan(client: &mut Connection) -> Result<Plan, Error> {
    let (query, plan) = (QueryOptions::default(), PlanOptions::default());
    let plan = PlanOptions { at_most: Some(8), ..plan };
    client.partitions("1", &query, &plan, &mut || Verdict::Continue)
}

fn part(plan: &Plan) -> Part {
    Part::decode(&plan.partitions()[0]).unwrap()
}

/// A client that may read the part and nothing else, and has no session.
fn reader(part: &Part) -> Connection {
    Connection::connect(&part.connect_uri(None), &ConnectOptions::default()).unwrap()
}

fn read(client: &mut Connection, part: &Part) -> Result<(), Error> {
    client.read_partition(part, &QueryOptions::default())?.read_all().map(drop)
}

fn assert_refused(answer: Result<impl Sized, Error>, what: &str) {
    let error = answer.err().unwrap();
    assert_eq!(error.sqlstate(), Some("53300"), "{error}");
    assert!(error.to_string().contains(what), "{error}");
}

#[test]
fn a_plan_leaves_connections_to_others_and_its_readers_need_none() {
    let database = Database::default();
    let server = serve(&database, 5, impatient);
    let mut planner = connect(&server);
    let plan = plan(&mut planner).unwrap();
    let others = [with_session(&server), with_session(&server)];
    assert_refused(run(&mut connect(&server)), "others use all 5");
    // One more than there are connections of the plan.
    let part = part(&plan);
    let readers = [(); 3].map(|()| {
        let (mut client, part) = (reader(&part), part.clone());
        thread::spawn(move || read(&mut client, &part))
    });
    wait_until("two parts are read", || database.reading() == 2);
    database.let_parts_end();
    for reader in readers {
        reader.join().unwrap().unwrap();
    }
    drop(others);
    assert_eq!(database.open_max(), 5);
}

#[test]
fn a_plan_where_one_connection_is_allowed_is_refused_at_once() {
    let database = Database::default();
    let server = serve(&database, 1, |_| {});
    let mut client = connect(&server);
    for _ in 0..2 {
        let needs = "a plan of parts needs 2 connections to counted, and the server allows 1";
        assert_refused(plan(&mut client), needs);
        run(&mut client).unwrap();
    }
}

#[test]
fn clients_that_plan_at_once_do_not_wait_for_each_other() {
    let database = Database::default();
    let server = serve(&database, 2, |options| options.wait_timeout = Duration::from_secs(20));
    let others = [with_session(&server), with_session(&server)];
    let planners = [(); 2].map(|()| {
        let mut client = connect(&server);
        thread::spawn(move || plan(&mut client).map(drop))
    });
    // Both wait by then.
    sleep(Duration::from_millis(500));
    drop(others);
    for planner in planners {
        planner.join().unwrap().unwrap();
    }
    assert_eq!(database.open_max(), 2);
}

#[test]
fn of_clients_with_sessions_that_plan_at_once_one_counts_as_idle() {
    let database = Database::default();
    let server = serve(&database, 2, |options| {
        options.wait_timeout = Duration::from_secs(20);
        options.stall_timeout_contended = Duration::from_millis(300);
    });
    let planners = [with_session(&server), with_session(&server)].map(|mut client| {
        thread::spawn(move || {
            let planned = plan(&mut client).map(drop);
            (planned, client)
        })
    });
    let planned = planners.map(|planner| planner.join().unwrap());
    let refused: Vec<_> =
        planned.iter().filter_map(|(planned, _)| planned.as_ref().err()).collect();
    let [refused] = refused[..] else { panic!("{planned:?}") };
    let expected =
        "the statement waited 300ms for another connection to counted, and others waited";
    assert!(refused.to_string().contains(expected), "{refused}");
    assert_eq!(refused.sqlstate(), Some("57P05"));
    assert_eq!(database.open_max(), 2);
}

#[test]
fn connections_of_a_released_plan_count_until_its_parts_are_read() {
    let database = Database::default();
    let server = serve(&database, 2, impatient);
    let mut planner = connect(&server);
    let plan = plan(&mut planner).unwrap();
    let part = part(&plan);
    let reading = thread::spawn({
        let (mut client, part) = (reader(&part), part.clone());
        move || read(&mut client, &part)
    });
    wait_until("the part is read", || database.reading() == 1);
    plan.release();
    drop(planner);
    let first = with_session(&server);
    assert_refused(run(&mut connect(&server)), "others use all 2");
    database.let_parts_end();
    reading.join().unwrap().unwrap();
    let second = with_session(&server);
    drop((first, second));
    assert_eq!(database.open_max(), 2);
}

#[test]
fn connections_for_parts_count() {
    let database = Database::opening();
    let server = serve(&database, 3, impatient);
    let mut planner = connect(&server);
    let plan = plan(&mut planner).unwrap();
    let part = part(&plan);
    // Beside the planner's session and the plan's connection.
    let reading = thread::spawn({
        let part = part.clone();
        move || (read(&mut planner, &part), planner)
    });
    wait_until("the part is read", || database.reading() == 1);
    assert_refused(run(&mut connect(&server)), "others use all 3");
    database.let_parts_end();
    let (read_part, planner) = reading.join().unwrap();
    read_part.unwrap();
    // A reader has a connection only while it reads.
    let mut readers = [reader(&part), reader(&part)];
    for client in &mut readers {
        read(client, &part).unwrap();
    }
    drop(planner);
    assert_eq!(database.open_max(), 3);
}

#[test]
fn a_part_beside_a_session_is_refused_where_there_can_be_no_connection_for_it() {
    let database = Database::opening();
    database.let_parts_end();
    let server = serve(&database, 2, |_| {});
    let mut planner = connect(&server);
    let plan = plan(&mut planner).unwrap();
    let part = part(&plan);
    assert_refused(read(&mut planner, &part), "needs 3 connections to counted");
    drop(planner);
    read(&mut reader(&part), &part).unwrap();
    assert_eq!(database.open_max(), 2);
}

#[test]
fn a_server_with_too_little_memory_for_rows_of_a_source_says_so() {
    let server = serve(&Database::default(), 1, |options| {
        options.catalog.memory_bytes = Some(16 << 20);
    });
    let error = run(&mut connect(&server)).unwrap_err();
    assert_eq!(error.sqlstate(), Some("53200"), "{error}");
    assert!(error.to_string().contains("rows of a source need 25 MB at a time"), "{error}");
}
