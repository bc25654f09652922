//! `dray export` to an object store, interrupted while the store answers slowly. Python tests what
//! is written.

use std::net::TcpListener;
use std::sync::{Condvar, Mutex};

use super::*;

/// A store that takes parts, and answers them only once it is told to.
struct Store {
    url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// What has happened, in this order.
    log: Mutex<Vec<&'static str>>,
    answers: Mutex<bool>,
    told: Condvar,
}

impl Store {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let of_connections = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&of_connections);
                std::thread::spawn(move || shared.serve(stream.unwrap()));
            }
        });
        Self { url, shared }
    }

    fn log(&self) -> Vec<&'static str> {
        self.shared.log.lock().unwrap().clone()
    }

    fn answer(&self) {
        *self.shared.answers.lock().unwrap() = true;
        self.shared.told.notify_all();
    }
}

impl Shared {
    /// Serves a connection until the client is gone.
    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        loop {
            let head: Vec<String> = (&mut reader)
                .lines()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let Some(request) = head.first() else { return };
            let length = head.iter().find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
            });
            let mut body = vec![0; length.unwrap_or(0)];
            if reader.read_exact(&mut body).is_err() {
                return;
            }
            let answer = self.handle(request);
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn handle(&self, request: &str) -> String {
        let happened = |what| self.log.lock().unwrap().push(what);
        match request.split(' ').next().unwrap() {
            "POST" => {
                let begun = "<InitiateMultipartUploadResult><Bucket>lake</Bucket><Key>x.csv</Key>\
                             <UploadId>1</UploadId></InitiateMultipartUploadResult>";
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{begun}", begun.len())
            }
            "PUT" => {
                happened("a part came");
                let answers = self.answers.lock().unwrap();
                drop(self.told.wait_while(answers, |answers| !*answers).unwrap());
                happened("it is stored");
                "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 0\r\n\r\n".to_owned()
            }
            "DELETE" => {
                happened("the upload is aborted");
                "HTTP/1.1 204 No Content\r\n\r\n".to_owned()
            }
            _ => panic!("{request}"),
        }
    }
}

/// Starts an export that never ends, and waits until it waits for the store's answer to a part.
fn waiting_export(fixture: &Fixture, store: &Store) -> Running {
    let mut command = program();
    command.args(["export", &fixture.uri, ENDLESS, "-o", "s3://lake/x.csv"]);
    command.envs([
        ("AWS_ENDPOINT_URL", store.url.as_str()),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "writer"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
    ]);
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Running(command.spawn().unwrap());
    wait_until("a part comes", || !store.log().is_empty());
    let mut sent = 0;
    wait_until("the program takes no more rows", || {
        std::thread::sleep(Duration::from_millis(200));
        let before = std::mem::replace(&mut sent, fixture.metric("dray_chunks_sent_total"));
        before == sent
    });
    running
}

/// Sends two signals. They are of two kinds, since the second of one kind could replace the first.
fn interrupt_twice(running: &Running) {
    running.interrupt();
    send_signal("TERM", &format!("-{}", running.0.id()));
}

/// It would stay, invisible and paid for.
#[test]
fn a_part_on_its_way_arrives_before_the_abort() {
    let (fixture, store) = (Fixture::start(), Store::start());
    let running = waiting_export(&fixture, &store);
    interrupt_twice(&running);
    // Time for an abort that comes too early.
    std::thread::sleep(Duration::from_millis(500));
    store.answer();
    let (code, error) = running.wait();
    assert_eq!(code, Some(130), "{error}");
    assert_eq!(store.log(), ["a part came", "it is stored", "the upload is aborted"]);
}

#[test]
fn a_third_signal_does_not_wait_for_the_store() {
    let (fixture, store) = (Fixture::start(), Store::start());
    let mut running = waiting_export(&fixture, &store);
    interrupt_twice(&running);
    wait_until("the program ends", || {
        running.interrupt();
        running.0.try_wait().unwrap().is_some()
    });
    assert_eq!(running.wait().0, Some(130));
    assert_eq!(store.log(), ["a part came"]);
}
