//! A server that gives all rows, and then fails to close their operation: answers of Spark 4.3 as
//! they were recorded, over a socket.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use dray_driver::{Driver, Estimate, Sink, Statement, Stopped};
use dray_hive::Hive;

/// Where a status of an answer to CloseOperation is, from its end.
const STATUS_FROM_END: usize = 4;
/// `ERROR_STATUS`.
const FAILED: u8 = 3;

#[derive(Default)]
struct Rows(usize);

impl Sink for Rows {
    fn begin(&mut self, _schema: SchemaRef, _estimate: Estimate) -> Result<(), Stopped> {
        Ok(())
    }

    fn batch(&mut self, batch: RecordBatch) -> Result<(), Stopped> {
        self.0 += batch.num_rows();
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn watch(&self) -> Box<dyn Fn() -> bool + Send> {
        Box::new(|| false)
    }
}

fn read(stream: &mut TcpStream, bytes: usize) -> Vec<u8> {
    let mut read = vec![0; bytes];
    stream.read_exact(&mut read).unwrap();
    read
}

fn length(bytes: &[u8]) -> usize {
    u32::from_be_bytes(bytes.try_into().unwrap()) as usize
}

/// Lets a user in, and answers until the session is closed. From the second on, no operation can be
/// closed.
fn serve(mut stream: TcpStream) {
    for _ in 0..2 {
        let header = read(&mut stream, 5);
        read(&mut stream, length(&header[1..]));
    }
    stream.write_all(&[5, 0, 0, 0, 0]).unwrap();
    let (mut closed, mut fetched) = (0, 0);
    loop {
        let frame = read(&mut stream, 4);
        let call = read(&mut stream, length(&frame));
        let name_end = 8 + length(&call[4..8]);
        let mut answer = match &call[8..name_end] {
            b"OpenSession" => include_bytes!("recorded/open_session.bin").to_vec(),
            b"GetInfo" => include_bytes!("recorded/info.bin").to_vec(),
            b"ExecuteStatement" => include_bytes!("recorded/execute.bin").to_vec(),
            b"GetOperationStatus" => include_bytes!("recorded/finished.bin").to_vec(),
            b"GetResultSetMetadata" => include_bytes!("recorded/columns.bin").to_vec(),
            b"FetchResults" => {
                fetched += 1;
                match fetched % 2 {
                    1 => include_bytes!("recorded/rows.bin").to_vec(),
                    _ => include_bytes!("recorded/no_rows.bin").to_vec(),
                }
            }
            b"CloseOperation" => {
                closed += 1;
                let mut answer = include_bytes!("recorded/close.bin").to_vec();
                if closed > 1 {
                    let at = answer.len() - STATUS_FROM_END;
                    answer[at] = FAILED;
                }
                answer
            }
            b"CloseSession" => return,
            other => panic!("{}", other.escape_ascii()),
        };
        // The number of the call.
        answer[name_end..name_end + 4].copy_from_slice(&call[name_end..name_end + 4]);
        stream.write_all(&(answer.len() as u32).to_be_bytes()).unwrap();
        stream.write_all(&answer).unwrap();
    }
}

#[test]
fn rows_that_have_all_come_are_a_result() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("spark://me@{}/", listener.local_addr().unwrap());
    let server = thread::spawn(move || serve(listener.accept().unwrap().0));
    let mut session = Hive::new("lake", &uri, false).unwrap().open(&mut || true).unwrap();
    let statement = Statement { sql: "SELECT * FROM t".to_owned(), ..Statement::default() };
    for _ in 0..2 {
        let mut rows = Rows::default();
        session.run(&statement, &mut rows).unwrap();
        assert_eq!(rows.0, 3);
        assert!(session.is_usable());
    }
    drop(session);
    server.join().unwrap();
}
