//! Clients of a TCP address that move to the server's local socket, or stay (protocol.md section
//! 11).

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use dray_client::{ConnectOptions, Connection, ErrorKind, QueryOptions};
use dray_wire::{
    ClientSession, ErrorKind as WireErrorKind, Instance, ServerError, ServerEvent, ServerSession,
    Welcome,
};

use crate::common::Running;

const MOVED: &str = "over a Unix socket";
const STAYED: &str = "over TCP";

fn connect(uri: &str) -> Connection {
    Connection::connect(uri, &ConnectOptions::default()).unwrap()
}

/// Asserts that all rows come, and over what.
fn assert_answers(connection: &mut Connection, transport: &str) {
    let mut results =
        connection.query("SELECT sum(n) AS n FROM numbers", &QueryOptions::default()).unwrap();
    let batches = results.read_all().unwrap();
    assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().value(0), 499_999_500_000);
    assert_eq!(results.stats().path.reason, transport);
}

/// The bytes of the next frame.
fn frame(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    stream.read_exact(&mut bytes).unwrap();
    let payload_bytes = u32::from_le_bytes(*bytes.first_chunk().unwrap());
    bytes.resize(8 + payload_bytes as usize, 0);
    stream.read_exact(&mut bytes[8..]).unwrap();
    bytes
}

/// The server's answer to a hello.
fn greet(stream: &mut (impl Read + Write), token: &str) -> ServerEvent {
    let (mut session, mut hello) = (ClientSession::default(), Vec::new());
    session.hello(token, "test", "", &mut hello).unwrap();
    stream.write_all(&hello).unwrap();
    let answer = frame(stream);
    let (header, payload) = answer.split_first_chunk().unwrap();
    session.message(session.frame(header).unwrap(), payload).unwrap()
}

fn instance(server: &Running, token: &str) -> Instance {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    match greet(&mut stream, token) {
        ServerEvent::Welcome(Welcome { instance, .. }) => instance,
        other => panic!("{other:?}"),
    }
}

fn local_address(instance: Instance) -> SocketAddr {
    SocketAddr::from_abstract_name(instance.socket_name().unwrap()).unwrap()
}

#[test]
fn a_client_of_this_host_moves() {
    let server = Running::start();
    let uri = format!("dray://{}", server.address);
    let mut connection = connect(&uri);
    assert_answers(&mut connection, MOVED);
    assert_eq!(connection.place(), uri);
    // It has left TCP.
    server.wait_for("connections_open", 1.0);
    let named = format!("dray://localhost:{}", server.address.rsplit(':').next().unwrap());
    assert_answers(&mut connect(&named), MOVED);
    assert_answers(&mut connect(&format!("{uri}?local_socket=true")), MOVED);
}

#[test]
fn a_client_stays_if_it_is_told_to() {
    let server = Running::start();
    let uri = format!("dray://{}", server.address);
    assert_answers(&mut connect(&format!("{uri}?local_socket=false")), STAYED);
    let options = ConnectOptions { local_socket: false, ..ConnectOptions::default() };
    assert_answers(&mut Connection::connect(&uri, &options).unwrap(), STAYED);
    assert!(format!("{uri}?local_socket=no").parse::<dray_client::Uri>().is_ok());
    let error = Connection::connect(&format!("{uri}?local_socket=no"), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
}

#[test]
fn only_servers_on_plain_tcp_have_a_local_socket() {
    let instances = [Running::start(), Running::start()].map(|server| instance(&server, ""));
    assert!(instances[0] != instances[1] && !instances.contains(&Instance::NONE));
    let behind_proxy = Running::start_with(|options| options.behind_proxy = true);
    assert_eq!(instance(&behind_proxy, ""), Instance::NONE);
    assert_answers(&mut connect(&format!("dray://{}", behind_proxy.address)), STAYED);
    let without_tcp = Running::start_with(|options| options.listen.clear());
    let mut stream = UnixStream::connect(without_tcp.socket_path()).unwrap();
    let ServerEvent::Welcome(welcome) = greet(&mut stream, "") else { panic!("not a welcome") };
    assert_eq!(welcome.instance, Instance::NONE);
}

#[test]
fn a_client_of_version_2_gets_the_welcome_that_it_knows() {
    let server = Running::start();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    // The hello of protocol.md section 7.
    stream.write_all(b"\x11\0\0\0\x01\0\0\0DRAY\x02\0\x02\0\0\0\0\0\x01\0\0\0t").unwrap();
    let name = concat!("dray ", env!("CARGO_PKG_VERSION"));
    let bytes = u8::try_from(name.len()).unwrap();
    let mut expected = vec![bytes + 6, 0, 0, 0, 0x81, 0, 0, 0, 2, 0, bytes, 0, 0, 0];
    expected.extend_from_slice(name.as_bytes());
    assert_eq!(frame(&mut stream), expected);
}

#[test]
fn the_local_socket_asks_for_the_token_too() {
    let server = Running::start_with(|options| options.token = Some("s3cret".into()));
    let uri = |token: &str| format!("dray://{token}@{}", server.address);
    assert_answers(&mut connect(&uri("s3cret")), MOVED);
    let error = Connection::connect(&uri("wrong"), &ConnectOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Authentication, "{error}");
    let address = local_address(instance(&server, "s3cret"));
    for token in ["", "wrong"] {
        let answer = greet(&mut UnixStream::connect_addr(&address).unwrap(), token);
        let ServerEvent::Error(ServerError { kind, .. }) = answer else { panic!("{answer:?}") };
        assert_eq!(kind, WireErrorKind::Authentication);
    }
    let answer = greet(&mut UnixStream::connect_addr(&address).unwrap(), "s3cret");
    assert!(matches!(answer, ServerEvent::Welcome(_)), "{answer:?}");
}

#[test]
fn a_client_stays_if_no_second_connection_is_free() {
    let server = Running::start_with(|options| options.connections_max = 1);
    assert_answers(&mut connect(&format!("dray://{}", server.address)), STAYED);
}

/// An instance that no server draws, for a test of this process.
fn made_up(test: u8) -> Instance {
    let mut bytes = [test; 16];
    bytes[..4].copy_from_slice(&std::process::id().to_le_bytes());
    Instance::new(bytes)
}

/// The uri of a way to the server on which its instance becomes another one.
fn renamed(server: &Running, instance: Instance) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("dray://{}", listener.local_addr().unwrap());
    let mut server = TcpStream::connect(&server.address).unwrap();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        let mut welcome = frame(&mut server);
        // It follows the frame's header, the version, and the server's name.
        let name_bytes = u32::from_le_bytes(*welcome[10..].first_chunk().unwrap());
        let at = 14 + name_bytes as usize;
        welcome[at..at + 16].copy_from_slice(instance.bytes());
        client.write_all(&welcome).unwrap();
        // It ends when the server closes the connection.
        let _ = std::io::copy(&mut server, &mut client);
    });
    uri
}

/// Answers one hello on the local socket of an instance, and waits until the client leaves.
fn impostor(instance: Instance, answer: Vec<u8>) -> JoinHandle<()> {
    let listener = UnixListener::bind_addr(&local_address(instance)).unwrap();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        frame(&mut client);
        client.write_all(&answer).unwrap();
        let _ = client.read_to_end(&mut Vec::new());
    })
}

#[test]
fn a_client_stays_if_nobody_listens() {
    let server = Running::start();
    assert_answers(&mut connect(&renamed(&server, made_up(1))), STAYED);
}

#[test]
fn a_client_stays_if_another_server_listens() {
    let server = Running::start();
    let welcome = |instance| {
        let mut out = Vec::new();
        ServerSession::default().welcome("impostor", instance, "", &mut out).unwrap();
        out
    };
    let answers = [
        welcome(made_up(100)),
        welcome(Instance::NONE),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        // Silence.
        Vec::new(),
    ];
    for (answer, test) in answers.into_iter().zip(2..) {
        let impostor = impostor(made_up(test), answer);
        let began = Instant::now();
        let mut connection = connect(&renamed(&server, made_up(test)));
        assert!(began.elapsed() < Duration::from_secs(5), "it waits for a second at most");
        assert_answers(&mut connection, STAYED);
        impostor.join().unwrap();
    }
}
