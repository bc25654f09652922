//! Plans of a source whose answers reach nobody: what the server holds for them is free at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use dray_client::{ConnectOptions, Connection, PlanOptions, QueryOptions, Verdict};
use dray_driver::{Division, Driver, Estimate, Parts, ServerError, Session, Sink, Statement};
use dray_server::SourceOptions;

use crate::common::Running;

/// A database of one table, which has so many columns as a statement says.
#[derive(Debug, Clone, Default)]
struct Columns {
    /// Plans that are held.
    held: Arc<AtomicUsize>,
    /// Plans that were made.
    planned: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Whole {
    schema: SchemaRef,
    held: Arc<AtomicUsize>,
}

impl Driver for Columns {
    fn dialect(&self) -> &'static str {
        "sql"
    }

    fn open(&self, _: &mut dyn FnMut() -> bool) -> Result<Box<dyn Session>, ServerError> {
        Ok(Box::new(self.clone()))
    }
}

impl Session for Columns {
    fn server(&self) -> &str {
        "columns"
    }

    fn is_usable(&self) -> bool {
        true
    }

    fn plan(
        &mut self,
        statement: &Statement,
        _: &Division,
        _: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Arc<dyn Parts>>, ServerError> {
        let columns: usize = statement.sql.parse().unwrap();
        let fields = (0..columns).map(|i| Field::new(format!("c{i}"), DataType::Int32, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        // So long that the client looks whether to go on.
        sleep(Duration::from_millis(500));
        self.held.fetch_add(1, Ordering::SeqCst);
        self.planned.fetch_add(1, Ordering::SeqCst);
        Ok(Some(Arc::new(Whole { schema, held: self.held.clone() })))
    }

    fn run(&mut self, _: &Statement, _: &mut dyn Sink) -> Result<(), ServerError> {
        unreachable!("nothing is read")
    }
}

impl Parts for Whole {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn estimates(&self) -> &[Estimate] {
        const ONE: [Estimate; 1] =
            [Estimate { rows: dray_driver::Known::Unknown, bytes: dray_driver::Known::Unknown }];
        &ONE
    }

    fn reason(&self) -> Option<&str> {
        Some("it has one part")
    }

    fn connections(&self) -> usize {
        1
    }

    fn opens_connections(&self) -> bool {
        false
    }

    fn run(&self, _: usize, _: &Statement, _: &mut dyn Sink) -> Result<(), ServerError> {
        unreachable!("nothing is read")
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.held.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A server whose source `columns` has two connections, one for a client and one for a plan.
fn serve(database: &Columns) -> Running {
    let driver = Arc::new(database.clone());
    Running::start_with(|options| {
        let source = SourceOptions::new("columns".to_owned(), driver);
        options.sources.push(SourceOptions { connections_max: 2, ..source });
    })
}

fn connect(server: &Running) -> Connection {
    let uri = format!("{}?source=columns", server.unix);
    Connection::connect(&uri, &ConnectOptions::default()).unwrap()
}

fn assert_none_is_held(database: &Columns) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while database.held.load(Ordering::SeqCst) > 0 {
        assert!(Instant::now() < deadline, "the plan is held");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_plan_that_no_message_can_carry_is_not_held() {
    let database = Columns::default();
    let server = serve(&database);
    let mut client = connect(&server);
    let (query, plan) = (QueryOptions::default(), PlanOptions::default());
    let error = client.partitions("70000", &query, &plan, &mut || Verdict::Continue).unwrap_err();
    assert_eq!(error.sqlstate(), Some("54011"), "{error}");
    assert_none_is_held(&database);
    // Its connection is free for another one.
    let held = client.partitions("3", &query, &plan, &mut || Verdict::Continue).unwrap();
    assert_eq!((held.schema().fields().len(), database.held.load(Ordering::SeqCst)), (3, 1));
    drop(held);
    assert_none_is_held(&database);
}

#[test]
fn a_plan_that_crosses_its_cancel_is_not_held() {
    let database = Columns::default();
    let server = serve(&database);
    let mut client = connect(&server);
    let (query, plan) = (QueryOptions::default(), PlanOptions::default());
    let planned = database.planned.clone();
    let mut has_waited = false;
    let mut cancel = || {
        if std::mem::replace(&mut has_waited, true) {
            return Verdict::Cancel;
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while planned.load(Ordering::SeqCst) == 0 {
            assert!(Instant::now() < deadline, "no plan was made");
            sleep(Duration::from_millis(5));
        }
        // The plan arrives meanwhile.
        sleep(Duration::from_millis(500));
        Verdict::Cancel
    };
    let error = client.partitions("3", &query, &plan, &mut cancel).unwrap_err();
    assert_eq!(error.kind(), dray_client::ErrorKind::Cancelled, "{error}");
    assert_none_is_held(&database);
}
