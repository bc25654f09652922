//! A MongoDB deployment that statements are passed on to.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dray_driver::{Driver, ErrorKind, ServerError, cannot_connect, error};
use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind as Cause;
use mongodb::event::EventHandler;
use mongodb::event::sdam::SdamEvent;
use mongodb::options::{ClientOptions, ConnectionString, ServerMonitoringMode};
use mongodb::{Client, Database};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::sentence;
use crate::session::Session;

/// How long a server is looked for, unless the uri says.
const SERVER_SELECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a stopped statement may go on.
const STOP_LATENCY: Duration = Duration::from_millis(25);

/// A database of a MongoDB deployment.
pub struct Mongo {
    name: String,
    options: ClientOptions,
    database: String,
    writable: bool,
    background: Background,
}

impl Mongo {
    /// The database at `uri`, as the source `name`. Stages of a pipeline that write are refused
    /// unless it is `writable`. Does not connect.
    ///
    /// # Errors
    /// A sentence without the uri, which may have a password, if it can't be used.
    pub fn new(name: &str, uri: &str, writable: bool) -> Result<Self, String> {
        let expected = "mongodb://USER@HOST/DATABASE";
        if uri.starts_with("mongodb+srv:") {
            return Err(format!(
                "the source {name}: mongodb+srv:// asks DNS for the hosts, which Dray does not; \
                 name them: mongodb://HOST,HOST/DATABASE?tls=true&replicaSet=NAME"
            ));
        }
        let background = Background::start()
            .map_err(|cause| format!("the source {name}: can't start a thread: {cause}"))?;
        let parsed = ConnectionString::parse(uri)
            .and_then(|uri| background.handle.block_on(async { ClientOptions::parse(uri).await }));
        let mut options = parsed.map_err(|cause| match uri.contains('@') {
            // What the driver says may have parts of a password that is not encoded.
            true => format!(
                "the source {name} has not a uri that MongoDB's driver reads: expected \
                 {expected}, with % and two digits for special characters of a password"
            ),
            false => format!("the source {name}: {cause}"),
        })?;
        let Some(database) = options.default_database.clone() else {
            return Err(format!("the source {name}: its uri names no database: {expected}"));
        };
        // Each session has a client of its own.
        options.max_pool_size = Some(1);
        options.min_pool_size = None;
        options.server_monitoring_mode.get_or_insert(ServerMonitoringMode::Poll);
        options.server_selection_timeout.get_or_insert(SERVER_SELECTION_TIMEOUT);
        options
            .app_name
            .get_or_insert_with(|| concat!("dray-relay ", env!("CARGO_PKG_VERSION")).to_owned());
        Ok(Self { name: name.to_owned(), options, database, writable, background })
    }
}

/// Without the options, which may have a password.
impl fmt::Debug for Mongo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, database, writable, .. } = self;
        f.debug_struct("Mongo")
            .field("name", name)
            .field("database", database)
            .field("writable", writable)
            .finish_non_exhaustive()
    }
}

impl Driver for Mongo {
    fn dialect(&self) -> &'static str {
        "mongodb"
    }

    fn open(
        &self,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Box<dyn dray_driver::Session>, ServerError> {
        let failures = Arc::new(Failures::default());
        let mut options = self.options.clone();
        options.sdam_event_handler = Some(failures.clone().handler());
        let connecting = connect(options, &self.database);
        let (database, server) = match self.background.wait(keep_waiting, connecting) {
            Some(Ok(connected)) => connected,
            Some(Err(cause)) => {
                return Err(match (&*cause.kind, failures.text()) {
                    (Cause::ServerSelection { .. }, Some(text)) => {
                        cannot_connect(&self.name, &text)
                    }
                    _ => cannot_connect(&self.name, &sentence(&cause)),
                });
            }
            None => return Err(error(ErrorKind::Cancelled, "", "cancelled", "")),
        };
        Ok(Box::new(Session {
            name: self.name.clone(),
            server,
            database,
            background: self.background.clone(),
            writable: self.writable,
            is_lost: false,
        }))
    }
}

/// Why servers did not answer. The driver's own error has this in Rust's notation.
#[derive(Debug, Default)]
struct Failures(Mutex<BTreeMap<String, String>>);

impl Failures {
    fn handler(self: Arc<Self>) -> EventHandler<SdamEvent> {
        EventHandler::callback(move |event| {
            if let SdamEvent::ServerHeartbeatFailed(event) = event
                && let Ok(mut failures) = self.0.lock()
            {
                failures.insert(event.server_address.to_string(), sentence(&event.failure));
            }
        })
    }

    /// A clause; None if no server has failed to answer.
    fn text(&self) -> Option<String> {
        let failures = self.0.lock().ok()?;
        let clauses: Vec<_> =
            failures.iter().map(|(address, cause)| format!("{address}: {cause}")).collect();
        (!clauses.is_empty()).then(|| clauses.join("; "))
    }
}

/// Connects and logs in. Returns the server's name too.
async fn connect(
    options: ClientOptions,
    database: &str,
) -> mongodb::error::Result<(Database, String)> {
    let database = Client::with_options(options)?.database(database);
    let answer: Document = database.run_command(doc! { "buildInfo": 1 }).await?;
    let server = match answer.get_str("version") {
        Ok(version) => format!("MongoDB {version}"),
        Err(_) => "MongoDB".to_owned(),
    };
    Ok((database, server))
}

/// The thread in which the driver watches the servers and ends cursors, also between statements.
#[derive(Debug, Clone)]
pub(crate) struct Background {
    handle: Handle,
    _runtime: Arc<Owned>,
}

#[derive(Debug)]
struct Owned(Option<Runtime>);

impl Background {
    fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("dray-mongo")
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        Ok(Self { handle, _runtime: Arc::new(Owned(Some(runtime))) })
    }

    /// Waits for an answer in the caller's thread; None if `keep_waiting` returns false first.
    pub(crate) fn wait<T>(
        &self,
        keep_waiting: &mut dyn FnMut() -> bool,
        answer: impl Future<Output = T>,
    ) -> Option<T> {
        self.handle.block_on(async {
            tokio::select! {
                biased;
                answer = answer => Some(answer),
                () = until_stopped(keep_waiting) => None,
            }
        })
    }
}

impl Drop for Owned {
    /// Does not wait for the thread: that would panic in a thread of another runtime.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Ends when waiting should.
async fn until_stopped(keep_waiting: &mut dyn FnMut() -> bool) {
    while keep_waiting() {
        tokio::time::sleep(STOP_LATENCY).await;
    }
}
