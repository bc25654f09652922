//! A real PostgreSQL server for one test, with its own folder and a free port; it stops when it is
//! dropped.

#![allow(dead_code, reason = "each test uses some of it")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The superuser, trusted over the Unix socket and 127.0.0.1 unless `hba` says otherwise.
pub const SUPERUSER: &str = "postgres";

pub struct Server {
    pub port: u16,
    pub socket_dir: PathBuf,
    folder: TempDir,
    process: Child,
}

impl Server {
    /// Starts a server with these settings of `postgresql.conf` and lines of `pg_hba.conf`.
    pub fn start(settings: &[(&str, &str)], hba: Option<&str>) -> Self {
        Self::start_with(settings, hba, &[])
    }

    /// `start`, with files in the data folder, such as keys: names and texts.
    pub fn start_with(
        settings: &[(&str, &str)],
        hba: Option<&str>,
        files: &[(&str, &str)],
    ) -> Self {
        let folder = tempfile::Builder::new().prefix("dray-pg-").tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        give_away(folder.path());
        give_away(&data);
        let initdb = as_server_user(&program("initdb"))
            .args([
                "--no-sync",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--username",
                SUPERUSER,
            ])
            .arg("--pgdata")
            .arg(&data)
            .current_dir("/")
            .output()
            .unwrap();
        assert!(initdb.status.success(), "{}", String::from_utf8_lossy(&initdb.stderr));
        for (name, text) in files {
            fs::write(data.join(name), text).unwrap();
            fs::set_permissions(data.join(name), fs::Permissions::from_mode(0o600)).unwrap();
            give_away(&data.join(name));
        }
        if let Some(hba) = hba {
            fs::write(data.join("pg_hba.conf"), hba).unwrap();
        }
        let port = free_port();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = as_server_user(&program("postgres"));
        command.arg("-D").arg(&data).arg("-p").arg(port.to_string()).arg("-k").arg(folder.path());
        for (name, value) in
            [("listen_addresses", "127.0.0.1"), ("fsync", "off"), ("shared_buffers", "16MB")]
        {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        for (name, value) in settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let process = command.current_dir("/").stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let mut server = Self { port, socket_dir: folder.path().to_owned(), folder, process };
        server.wait();
        server
    }

    /// The server's uri over TCP, for the superuser.
    pub fn uri(&self) -> String {
        format!("postgresql://{SUPERUSER}@127.0.0.1:{}/postgres", self.port)
    }

    /// The server's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Runs statements over the Unix socket, and returns their output.
    pub fn sql(&self, statements: &str) -> String {
        let output = Command::new(program("psql"))
            .args([
                "-X",
                "-q",
                "-At",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                SUPERUSER,
                "-d",
                "postgres",
                "-c",
                statements,
            ])
            .arg("-h")
            .arg(&self.socket_dir)
            .args(["-p", &self.port.to_string()])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{statements}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let ready = Command::new(program("pg_isready"))
                .args(["-q", "-p", &self.port.to_string(), "-h"])
                .arg(&self.socket_dir)
                .status()
                .unwrap();
            if ready.success() {
                return;
            }
            let ended = self.process.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "the server does not start:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = as_server_user(&program("pg_ctl"))
            .args(["stop", "-m", "immediate", "-D"])
            .arg(self.folder.path().join("data"))
            .current_dir("/")
            .output();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A program of the newest PostgreSQL that Debian has installed.
fn program(name: &str) -> PathBuf {
    let mut versions: Vec<_> = fs::read_dir("/usr/lib/postgresql")
        .expect("PostgreSQL in /usr/lib/postgresql")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("bin").join(name).exists())
        .collect();
    versions
        .sort_by_key(|path| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()));
    versions.last().expect("a PostgreSQL server").join("bin").join(name)
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A command that runs as another user than root: PostgreSQL and its poolers refuse root.
pub fn as_server_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
    command
}

/// A TCP port of the loopback interface that is not in use. It lies below the ports that Linux
/// gives to clients: one of these could be taken before the server listens.
pub fn free_port() -> u16 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = (std::process::id() % 1_000_000) * 61 + CALLS.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + u16::try_from(number % 22_768).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn give_away(path: &Path) {
    if is_root() {
        let user = fs::read_to_string("/etc/passwd").unwrap();
        let user =
            user.lines().find(|line| line.starts_with("postgres:")).expect("a user postgres");
        let number = |field: usize| user.split(':').nth(field).unwrap().parse().unwrap();
        chown(path, Some(number(2)), Some(number(3))).unwrap();
        if path.is_dir() {
            // The tests use the sockets and the log, too.
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}
