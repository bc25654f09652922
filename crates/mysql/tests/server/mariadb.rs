//! A MariaDB server of the test's own.

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use dray_mysql::{ConnectParams, LoggedIn, Result, connect};
use tempfile::TempDir;

/// How long a server may take to start, and a login.
const START_TIME: Duration = Duration::from_secs(60);

/// A server on a port of 127.0.0.1 and a Unix socket, with files in a folder of its own. Its user
/// `tester` with the password `secret` may do everything.
pub struct Server {
    folder: TempDir,
    process: Child,
    pub port: u16,
}

impl Server {
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[])
    }

    /// Starts a server that finds these files in its folder.
    pub fn start_with(arguments: &[&str], files: &[(&str, &str)]) -> Self {
        // Paths of Unix sockets have to be short.
        let folder = tempfile::Builder::new().prefix("dray-maria-").tempdir_in("/tmp").unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let user = whoami::username().unwrap();
        let data = folder.path().join("data");
        let made = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--user={user}"))
            .env("TMPDIR", folder.path())
            .output()
            .expect("mariadb-install-db makes the server's files");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = free_port();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new(
            ["/usr/sbin/mariadbd", "mariadbd"]
                [usize::from(!Path::new("/usr/sbin/mariadbd").exists())],
        )
        .arg("--no-defaults")
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--socket={}", folder.path().join("socket").display()))
        .arg(format!("--pid-file={}", folder.path().join("pid").display()))
        .arg(format!("--port={port}"))
        .arg(format!("--user={user}"))
        .args(["--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=0"])
        .args(["--innodb-buffer-pool-size=32M", "--max-allowed-packet=64M"])
        .args(arguments)
        // A server that starts deletes the temporary tables of others in the same folder.
        .env("TMPDIR", folder.path())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .expect("mariadbd runs");
        let mut server = Self { folder, process, port };
        server.await_ready();
        server.sql(&[
            "CREATE USER tester IDENTIFIED BY 'secret'",
            "GRANT ALL ON *.* TO tester WITH GRANT OPTION",
            "CREATE DATABASE shop",
        ]);
        server
    }

    fn await_ready(&mut self) {
        let deadline = Instant::now() + START_TIME;
        while let Err(error) = self.log_in(&self.root()) {
            let ended = self.process.try_wait().unwrap();
            if ended.is_some() || Instant::now() > deadline {
                let log = std::fs::read_to_string(self.folder.path().join("log"));
                panic!("the server does not start: {error}\n{}", log.unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The uri of a user, by TCP.
    pub fn uri(&self, user: &str, query: &str) -> String {
        format!("mysql://{user}@127.0.0.1:{}/shop?{query}", self.port)
    }

    fn root(&self) -> String {
        format!("mysql://root@/?socket={}", self.path("socket").display())
    }

    /// Logs in without the option files of whoever runs this.
    pub fn log_in(&self, uri: &str) -> Result<LoggedIn> {
        let none = self.path("no.cnf");
        std::fs::write(&none, "").unwrap();
        let separator = if uri.contains('?') { '&' } else { '?' };
        let uri = format!("{uri}{separator}defaults-file={}", none.display());
        let params = ConnectParams::parse_with(&uri, &|_| None)?;
        connect(&params, START_TIME, &mut || true)
    }

    /// A session of `tester`.
    pub fn session(&self) -> LoggedIn {
        self.log_in(&self.uri("tester:secret", "")).unwrap()
    }

    /// Runs statements as the superuser.
    pub fn sql(&self, statements: &[&str]) {
        let mut login = self.log_in(&self.root()).unwrap();
        for statement in statements {
            login.session.ask(statement, &mut || Ok(())).expect(statement);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _: io::Result<()> = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A TCP port of the loopback interface that is not in use. It lies below the ports that Linux
/// gives to clients: one of these could be taken before the server listens.
fn free_port() -> u16 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = (std::process::id() % 1_000_000) * 61 + CALLS.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + u16::try_from(number % 22_768).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
