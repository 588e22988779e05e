//! A database for tests: a private MariaDB on a free port, and in it an empty database for
//! each test.
//!
//! `tests/run` starts one server for all tests and passes its address in
//! `CLQD_TEST_MYSQL` (`mysql://user:password@host:port`, an account with all privileges).
//! Without that, the first test of a process starts a server, which ends with the last
//! test. If MariaDB is missing, the tests fail; they are not skipped.

#![allow(dead_code)] // each test binary uses its part

pub mod proxy;
pub mod world;

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use clqd::archive::ArchiveSettings;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Row, Value};

/// An empty database of its own.
pub struct Database {
    pub name: String,
    root_url: String,
    server: Option<Arc<Server>>,
}

impl Database {
    /// Panics where there is no MariaDB.
    pub async fn new() -> Database {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (root_url, server) = match std::env::var("CLQD_TEST_MYSQL") {
            Ok(url) => (url.trim_end_matches('/').to_owned(), None),
            Err(_) => {
                let server = shared_server();
                (server.url(), Some(server))
            }
        };
        let name = format!("clqd_test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let database = Database { name, root_url, server };
        let mut conn = Conn::new(Opts::from_url(&database.root_url).unwrap()).await.expect("the test database answers");
        conn.query_drop(format!("DROP DATABASE IF EXISTS {}", database.name)).await.unwrap();
        conn.query_drop(format!("CREATE DATABASE {} CHARACTER SET utf8mb4", database.name)).await.unwrap();
        conn.disconnect().await.unwrap();
        database
    }

    /// A database on its own server, which the test may kill.
    pub async fn in_server(server: Arc<Server>) -> Database {
        let database = Database { name: "clqd".into(), root_url: server.url(), server: Some(server) };
        let mut conn = Conn::new(Opts::from_url(&database.root_url).unwrap()).await.unwrap();
        conn.query_drop("CREATE DATABASE clqd CHARACTER SET utf8mb4").await.unwrap();
        conn.disconnect().await.unwrap();
        database
    }

    pub fn url(&self) -> String {
        format!("{}/{}", self.root_url, self.name)
    }

    pub fn address(&self) -> SocketAddr {
        let opts = Opts::from_url(&self.root_url).unwrap();
        format!("{}:{}", opts.ip_or_hostname(), opts.tcp_port()).parse().unwrap()
    }

    /// Settings that lead here, quick to try again.
    pub fn settings(&self) -> ArchiveSettings {
        ArchiveSettings {
            url: self.url(),
            query_timeout_ms: 10_000,
            connect_timeout_ms: 2_000,
            backoff_ms_min: 10,
            backoff_ms_max: 50,
            drain_timeout_s: 60,
            ..ArchiveSettings::default()
        }
    }

    /// Settings that lead here by way of another address.
    pub fn settings_by(&self, address: SocketAddr) -> ArchiveSettings {
        let url = self.url().replace(&self.address().to_string(), &address.to_string());
        assert_ne!(url, self.url());
        ArchiveSettings { url, ..self.settings() }
    }

    pub async fn conn(&self) -> Conn {
        self.conn_as(None).await
    }

    /// As an account of its own: user and password.
    pub async fn conn_as(&self, account: Option<(&str, &str)>) -> Conn {
        let mut opts = OptsBuilder::from_opts(Opts::from_url(&self.url()).unwrap()).prefer_socket(false);
        if let Some((user, password)) = account {
            opts = opts.user(Some(user)).pass(Some(password));
        }
        Conn::new(opts).await.unwrap()
    }

    pub async fn run(&self, sql: &str) {
        self.conn().await.query_drop(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// All rows of an answer, every value as text; no value is `NULL`.
    pub async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let rows: Vec<Row> = self.conn().await.query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        rows.into_iter().map(|row| row.unwrap().into_iter().map(text).collect()).collect()
    }

    /// The single value of a result.
    pub async fn value(&self, sql: &str) -> String {
        let rows = self.rows(sql).await;
        assert_eq!((rows.len(), rows[0].len()), (1, 1), "{sql}");
        rows[0][0].clone()
    }
}

fn text(value: Value) -> String {
    match value {
        Value::NULL => "NULL".into(),
        Value::Bytes(bytes) => String::from_utf8(bytes).expect("ask for HEX() of what is not text"),
        other => other.as_sql(true),
    }
}

/// The server of this process: alive while a test has it.
fn shared_server() -> Arc<Server> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(Server::start());
    *shared = Arc::downgrade(&server);
    server
}

/// A private MariaDB. When this is dropped, it ends and its files are deleted; also when
/// the test process is killed, because its guardian process then reads the end of a pipe.
pub struct Server {
    folder: tempfile::TempDir,
    port: u16,
    guardian: Mutex<Child>,
    /// Options besides those of all tests.
    options: Vec<String>,
}

/// Waits for the end of its input, then kills the server.
const GUARDIAN: &str = r#""$@" & server=$!; read -r line; kill -9 $server; wait $server 2>/dev/null"#;

impl Server {
    pub fn start() -> Server {
        Server::start_with(&[])
    }

    /// With further options, which win over those of all tests.
    pub fn start_with(options: &[&str]) -> Server {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let mariadbd = find("mariadbd").expect(
            "these tests need MariaDB: apt-get install mariadb-server, or use tests/run, which does it, \
             or set CLQD_TEST_MYSQL=mysql://user:password@host:port",
        );
        let installer = find("mariadb-install-db").expect("mariadb-install-db stands beside mariadbd");
        let folder = tempfile::Builder::new().prefix("clqd-test-db-").tempdir().unwrap();
        let mut install = Command::new(installer);
        install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
        install.arg(format!("--datadir={}", folder.path().join("data").display()));
        if let Some(user) = other_user() {
            // mariadbd refuses to run as root.
            let owned = Command::new("chown").arg(user).arg(folder.path()).status().unwrap();
            assert!(owned.success());
            install.arg(format!("--user={user}"));
        }
        let output = install.env("TMPDIR", folder.path()).output().unwrap();
        assert!(output.status.success(), "mariadb-install-db: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::write(
            folder.path().join("init.sql"),
            "CREATE USER IF NOT EXISTS 'test'@'%' IDENTIFIED BY 'test';\nGRANT ALL ON *.* TO 'test'@'%' WITH GRANT OPTION;\n",
        )
        .unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let guardian = Mutex::new(launch(&mariadbd, folder.path(), port, &options));
        let server = Server { folder, port, guardian, options };
        server.wait_until_up();
        server
    }

    pub fn url(&self) -> String {
        format!("mysql://test:test@127.0.0.1:{}", self.port)
    }

    /// Kills the server, as a power cut does, and restarts it on the same files.
    pub fn kill_and_restart(&self) {
        self.kill();
        *self.guardian.lock().unwrap() =
            launch(&find("mariadbd").unwrap(), self.folder.path(), self.port, &self.options);
        self.wait_until_up();
    }

    pub fn kill(&self) {
        let mut guardian = self.guardian.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        drop(guardian.stdin.take());
        let _ = guardian.wait();
    }

    fn wait_until_up(&self) {
        for _ in 0..600 {
            // The first bytes are a greeting, once it takes connections.
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
                if stream.read(&mut [0; 4]).is_ok_and(|len| len > 0) {
                    return;
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        panic!("MariaDB did not come up in 30 s: {log}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn launch(mariadbd: &Path, folder: &Path, port: u16, options: &[String]) -> Child {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", GUARDIAN, "guardian"]).arg(mariadbd).arg("--no-defaults");
    command.arg(format!("--datadir={}", folder.join("data").display()));
    command.arg(format!("--socket={}", folder.join("socket").display()));
    command.arg(format!("--pid-file={}", folder.join("pid").display()));
    command.arg(format!("--init-file={}", folder.join("init.sql").display()));
    command.arg(format!("--port={port}"));
    if let Some(user) = other_user() {
        command.arg(format!("--user={user}"));
    }
    // A binary log, because with one functions are harder to create; small
    // buffers and packets, because tests are.
    command.args([
        "--bind-address=127.0.0.1",
        "--log-bin=binlog",
        "--server-id=1",
        "--innodb-buffer-pool-size=64M",
        // Survives a killed process, though not a power cut, and spares the disk.
        "--innodb-flush-log-at-trx-commit=2",
        "--innodb-log-file-size=16M",
        "--key-buffer-size=1M",
        "--max-allowed-packet=256K",
        "--performance-schema=OFF",
    ]);
    command.args(options).env("TMPDIR", folder);
    command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

/// Whom to run MariaDB as, where we are root.
fn other_user() -> Option<&'static str> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let known = |name: &str| nix::unistd::User::from_name(name).ok().flatten().is_some();
    Some(if known("mysql") { "mysql" } else { "nobody" })
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/sbin", "/usr/local/sbin", "/usr/bin"].map(PathBuf::from));
    folders.into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
}
