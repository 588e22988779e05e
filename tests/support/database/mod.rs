//! A database for tests: a private MariaDB on a free port, and in it an empty database for
//! each test.
//!
//! `tests/run` starts one server for all tests and passes its address in
//! `CLQD_TEST_MYSQL` (`mysql://user:password@host:port`, an account with all privileges).
//! Without that, the first test of a process starts a server, which ends with the last
//! test. If MariaDB is missing, the tests fail; they are not skipped.

#![allow(dead_code, reason = "each test program uses a part of this module")]

pub mod cluster;
pub mod proxy;
pub mod world;

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use clqd::archive::{Archive, ArchiveSettings};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Row, Value};

/// An empty database for one test.
pub struct Database {
    pub name: String,
    root_url: String,
    server: Option<Arc<Server>>,
}

impl Database {
    /// Panics if MariaDB is not installed.
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
        let mut conn = Conn::new(Opts::from_url(&database.root_url).unwrap()).await.expect("a running test database");
        conn.query_drop(format!("DROP DATABASE IF EXISTS {}", database.name)).await.unwrap();
        conn.query_drop(format!("CREATE DATABASE {} CHARACTER SET utf8mb4", database.name)).await.unwrap();
        conn.disconnect().await.unwrap();
        database
    }

    /// A database on a server that the test may kill.
    pub async fn on_server(server: Arc<Server>) -> Database {
        let database = Database { name: "clqd".into(), root_url: server.url(), server: Some(server) };
        let mut conn = Conn::new(Opts::from_url(&database.root_url).unwrap()).await.unwrap();
        conn.query_drop("CREATE DATABASE clqd CHARACTER SET utf8mb4").await.unwrap();
        conn.disconnect().await.unwrap();
        database
    }

    /// Another database with tables on the same server.
    pub async fn beside(&self, name: &str) -> Database {
        self.run(&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4")).await;
        let database = Database { name: name.into(), root_url: self.root_url.clone(), server: self.server.clone() };
        database.migrate().await;
        database
    }

    /// Creates the tables.
    pub async fn migrate(&self) {
        let mut archive = Archive::connect(&self.settings()).await.unwrap();
        archive.migrate().await.unwrap();
        archive.close().await;
    }

    /// The name of the database on its server.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn url(&self) -> String {
        format!("{}/{}", self.root_url, self.name)
    }

    pub fn address(&self) -> SocketAddr {
        let opts = Opts::from_url(&self.root_url).unwrap();
        format!("{}:{}", opts.ip_or_hostname(), opts.tcp_port()).parse().unwrap()
    }

    /// Settings that connect to this database, with fast retries.
    pub fn settings(&self) -> ArchiveSettings {
        ArchiveSettings {
            url: self.url(),
            query_timeout_ms: 30_000,
            connect_timeout_ms: 2_000,
            backoff_ms_min: 10,
            backoff_ms_max: 50,
            drain_timeout_s: 60,
            ..ArchiveSettings::default()
        }
    }

    /// Settings that connect through a proxy at this address.
    pub fn settings_through(&self, address: SocketAddr) -> ArchiveSettings {
        let url = self.url().replace(&self.address().to_string(), &address.to_string());
        assert_ne!(url, self.url());
        ArchiveSettings { url, ..self.settings() }
    }

    pub async fn conn(&self) -> Conn {
        self.conn_as(None).await
    }

    /// Connects with another account: user and password.
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

    /// All rows of a result, every value as text; `NULL` as `"NULL"`.
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
        Value::Bytes(bytes) => String::from_utf8(bytes).expect("text; select HEX() of binary columns"),
        other => other.as_sql(true),
    }
}

/// The server of this process; it runs while a test uses it.
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

/// A private MariaDB. When this is dropped, it ends and its files are deleted. It also ends when
/// the test process is killed, because its supervisor process then reads the end of a pipe.
pub struct Server {
    dir: tempfile::TempDir,
    port: u16,
    supervisor: Mutex<Child>,
    /// Options in addition to those of all tests.
    options: Mutex<Vec<String>>,
}

/// One file for all tables, which grows in small steps.
pub const ONE_FILE: [&str; 2] = ["--innodb-file-per-table=0", "--innodb-autoextend-increment=4"];

/// Waits for the end of its input, then kills the server.
const SUPERVISOR: &str = r#""$@" & server=$!; read -r line; kill -9 $server; wait $server 2>/dev/null"#;

impl Server {
    pub fn start() -> Server {
        Server::start_with(&[])
    }

    /// Starts a server with further options, which override those of all tests.
    pub fn start_with(options: &[&str]) -> Server {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let mariadbd = find("mariadbd").expect(
            "these tests need MariaDB: apt-get install mariadb-server, or use tests/run, which installs it, \
             or set CLQD_TEST_MYSQL=mysql://user:password@host:port",
        );
        let installer = find("mariadb-install-db").expect("mariadb-install-db is installed with mariadbd");
        let dir = tempfile::Builder::new().prefix("clqd-test-db-").tempdir().unwrap();
        let mut install = Command::new(installer);
        install.args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--innodb-log-file-size=16M",
        ]);
        install.arg(format!("--datadir={}", dir.path().join("data").display()));
        if let Some(user) = unprivileged_user() {
            // mariadbd refuses to run as root.
            let status = Command::new("chown").arg(user).arg(dir.path()).status().unwrap();
            assert!(status.success());
            install.arg(format!("--user={user}"));
        }
        let output = install.env("TMPDIR", dir.path()).output().unwrap();
        assert!(output.status.success(), "mariadb-install-db: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::write(
            dir.path().join("init.sql"),
            "CREATE USER IF NOT EXISTS 'test'@'%' IDENTIFIED BY 'test';\nGRANT ALL ON *.* TO 'test'@'%' WITH GRANT OPTION;\n",
        )
        .unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let supervisor = Mutex::new(launch(&mariadbd, dir.path(), port, &options));
        let server = Server { dir, port, supervisor, options: Mutex::new(options) };
        server.wait_until_up();
        server
    }

    pub fn url(&self) -> String {
        format!("mysql://test:test@127.0.0.1:{}", self.port)
    }

    /// Kills the server with SIGKILL and restarts it on the same files.
    pub fn kill_and_restart(&self) {
        self.kill();
        let options = self.options.lock().unwrap().clone();
        *self.supervisor.lock().unwrap() = launch(&find("mariadbd").unwrap(), self.dir.path(), self.port, &options);
        self.wait_until_up();
    }

    /// As [`Server::kill_and_restart`]. `may_grow`: whether the file of all tables may become larger than it is, and some
    /// MB. The server was started with [`ONE_FILE`].
    pub fn kill_and_restart_with_disk(&self, may_grow: bool) {
        let bytes = std::fs::metadata(self.dir.path().join("data/ibdata1")).unwrap().len();
        let most = format!("--innodb-data-file-path=ibdata1:12M:autoextend:max:{}M", bytes.div_ceil(1 << 20) + 4);
        let options = ONE_FILE.map(str::to_owned).into_iter().chain((!may_grow).then_some(most));
        *self.options.lock().unwrap() = options.collect();
        self.kill_and_restart();
    }

    pub fn kill(&self) {
        let mut supervisor = self.supervisor.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        drop(supervisor.stdin.take());
        let _ = supervisor.wait();
    }

    fn wait_until_up(&self) {
        for _ in 0..6_000 {
            // A server that accepts connections sends a greeting.
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
                if stream.read(&mut [0; 4]).is_ok_and(|len| len > 0) {
                    return;
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        panic!("MariaDB did not start within 300 s: {log}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn launch(mariadbd: &Path, dir: &Path, port: u16, options: &[String]) -> Child {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(dir.join("log")).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", SUPERVISOR, "supervisor"]).arg(mariadbd).arg("--no-defaults");
    command.arg(format!("--datadir={}", dir.join("data").display()));
    command.arg(format!("--socket={}", dir.join("socket").display()));
    command.arg(format!("--pid-file={}", dir.join("pid").display()));
    command.arg(format!("--init-file={}", dir.join("init.sql").display()));
    command.arg(format!("--port={port}"));
    if let Some(user) = unprivileged_user() {
        command.arg(format!("--user={user}"));
    }
    // With a binary log, creating functions requires more privileges. Buffers and packets are
    // small like the tests.
    command.args([
        "--bind-address=127.0.0.1",
        "--log-bin=binlog",
        "--server-id=1",
        "--innodb-buffer-pool-size=64M",
        // Commits survive a kill of the process, but not a power cut; writes are fewer.
        "--innodb-flush-log-at-trx-commit=2",
        "--innodb-log-file-size=16M",
        "--key-buffer-size=1M",
        "--max-allowed-packet=256K",
        "--performance-schema=OFF",
    ]);
    command.args(options).env("TMPDIR", dir);
    command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

/// The user that runs MariaDB if the test runs as root.
fn unprivileged_user() -> Option<&'static str> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let known = |name: &str| nix::unistd::User::from_name(name).ok().flatten().is_some();
    Some(if known("mysql") { "mysql" } else { "nobody" })
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    dirs.extend(["/usr/sbin", "/usr/local/sbin", "/usr/bin"].map(PathBuf::from));
    dirs.into_iter().map(|dir| dir.join(program)).find(|file| file.is_file())
}
