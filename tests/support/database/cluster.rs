//! A Galera cluster for tests: three MariaDB nodes on loopback, in a temporary directory. Nodes
//! can be killed, paused and shut down, and return.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Database, SUPERVISOR, find, unprivileged_user};

/// Number of nodes: after one has failed, the others still are a majority.
pub const NODES: usize = 3;

/// Where Debian's package galera-4 has its library.
const PROVIDERS: [&str; 2] = ["/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so"];

/// Time limit for a node to start or to return. A machine without load needs ten seconds.
const START_S_MAX: u64 = 240;

/// A cluster; all nodes are killed when it is dropped.
pub struct Cluster {
    dir: tempfile::TempDir,
    nodes: Vec<Node>,
}

struct Node {
    dir: PathBuf,
    port: u16,
    /// Ports of the replication, of incremental and of complete state transfers.
    group_port: u16,
    ist_port: u16,
    sst_port: u16,
    supervisor: Option<Child>,
}

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL.
    Kill,
    /// SIGSTOP: it keeps its connections and does not respond.
    Pause,
    /// SIGTERM: it ends its connections and leaves the cluster.
    ShutDown,
}

impl Cluster {
    /// Starts three nodes and creates the database `clqd`. Panics if Galera is not installed.
    pub async fn start() -> Cluster {
        let dir = tempfile::Builder::new().prefix("clqd-test-cluster-").tempdir().unwrap();
        // All are bound at once, so that they differ.
        let sockets: Vec<_> = (0..4 * NODES).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> = sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect();
        drop(sockets);
        let nodes = ports.chunks(4).enumerate().map(|(index, ports)| Node {
            dir: dir.path().join(format!("node{index}")),
            port: ports[0],
            group_port: ports[1],
            ist_port: ports[2],
            sst_port: ports[3],
            supervisor: None,
        });
        let nodes = nodes.collect();
        let mut cluster = Cluster { dir, nodes };
        cluster.install();
        // One after the other: a node transfers its state to one new node at a time.
        for index in 0..NODES {
            cluster.launch(index, index == 0);
            cluster.wait_until_synced(index).await;
        }
        let mut conn = cluster.server_conn(0).await.unwrap();
        conn.query_drop("CREATE DATABASE clqd CHARACTER SET utf8mb4").await.unwrap();
        cluster.wait_until_equal().await;
        cluster
    }

    /// The database through one node.
    pub fn database(&self, index: usize) -> Database {
        let root_url = format!("mysql://test:test@{}", self.address(index));
        Database { name: "clqd".into(), root_url, server: None }
    }

    /// `host:port` of a node.
    pub fn address(&self, index: usize) -> String {
        format!("127.0.0.1:{}", self.nodes[index].port)
    }

    /// A URL with all nodes, beginning with this one.
    pub fn url_from(&self, first: usize) -> String {
        let hosts: Vec<String> = (0..NODES).map(|offset| self.address((first + offset) % NODES)).collect();
        url_of(&hosts)
    }

    /// The node with this `host:port`.
    pub fn index_of(&self, address: &str) -> usize {
        (0..NODES).find(|&index| self.address(index) == address).expect("a node's address")
    }

    pub fn inflict(&mut self, index: usize, fault: Fault) {
        match fault {
            Fault::Kill => self.nodes[index].kill(),
            Fault::Pause => self.nodes[index].pause(),
            Fault::ShutDown => self.nodes[index].signal(Signal::SIGTERM),
        }
    }

    /// Lets a node return.
    pub async fn restore(&mut self, index: usize, fault: Fault) {
        match fault {
            Fault::Pause => self.nodes[index].signal(Signal::SIGCONT),
            Fault::Kill => self.launch(index, false),
            Fault::ShutDown => {
                self.nodes[index].wait_until_ended().await;
                self.launch(index, false);
            }
        }
    }

    /// Cuts a node off from the other nodes, or ends that. Clients still reach it.
    pub async fn set_cut_off(&self, index: usize, is_cut_off: bool) {
        let set = format!("SET GLOBAL wsrep_provider_options = 'gmcast.isolate={}'", u8::from(is_cut_off));
        self.wait_for("a node that can be cut off", async || {
            self.server_conn(index).await?.query_drop(&set).await.ok()
        })
        .await;
    }

    /// Kills all nodes at once, and starts them again: first the one that has the most transactions.
    pub async fn kill_all_and_restart(&mut self) {
        self.nodes.iter_mut().for_each(Node::kill);
        let positions: Vec<i64> = self.nodes.iter().map(Node::recovered_position).collect();
        let first = (0..NODES).max_by_key(|&index| positions[index]).expect("nodes");
        let state = self.nodes[first].dir.join("data/grastate.dat");
        let text = std::fs::read_to_string(&state).expect("the state of a node");
        std::fs::write(&state, text.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1")).expect("written");
        self.launch(first, true);
        self.wait_until_synced(first).await;
        (1..NODES).for_each(|offset| self.launch((first + offset) % NODES, false));
        self.wait_until_all_synced().await;
    }

    /// Starts nodes again that have ended by themselves, as systemd does: Galera ends a node whose state transfer fails.
    /// Restarts nodes that Galera has disconnected, too, as an admin does.
    async fn restart_ended(&mut self) {
        for index in 0..NODES {
            let has_ended = self.nodes[index].has_ended();
            if has_ended || self.status(index, "wsrep_cluster_status").await.as_deref() == Some("Disconnected") {
                println!(
                    "node {index} has {} by itself, and is started again",
                    if has_ended { "ended" } else { "left" }
                );
                self.nodes[index].kill();
                self.launch(index, false);
            }
        }
    }

    /// Waits until all nodes are members and have applied the same transactions. Nothing may
    /// write meanwhile.
    pub async fn wait_until_equal(&mut self) {
        self.wait_until_all_synced().await;
        self.wait_for("equal nodes", async || self.agreed("wsrep_last_committed").await.map(drop)).await;
    }

    /// Waits until all nodes are members and can be written.
    pub async fn wait_until_all_synced(&mut self) {
        for _ in 0..START_S_MAX / 10 {
            self.restart_ended().await;
            if tokio::time::timeout(Duration::from_secs(10), self.all_synced()).await.is_ok() {
                return;
            }
        }
        panic!("not all nodes are synced within {START_S_MAX} s\n{}", self.logs());
    }

    async fn all_synced(&self) {
        // At first, a node that was paused does not know that the others have excluded it, because
        // its view of the cluster is older than theirs.
        self.wait_for("one view of the cluster", async || {
            self.agreed("wsrep_cluster_conf_id").await?;
            (self.agreed("wsrep_cluster_size").await? == NODES.to_string()).then_some(())
        })
        .await;
        for index in 0..NODES {
            self.wait_until_synced(index).await;
        }
    }

    /// A status variable that is equal on all nodes.
    async fn agreed(&self, name: &str) -> Option<String> {
        let value = self.status(0, name).await?;
        for index in 1..NODES {
            if self.status(index, name).await? != value {
                return None;
            }
        }
        Some(value)
    }

    async fn wait_until_synced(&self, index: usize) {
        self.wait_for("a synced node", async || {
            let state = self.status(index, "wsrep_local_state_comment").await?;
            (state == "Synced" && self.status(index, "wsrep_ready").await? == "ON").then_some(())
        })
        .await;
    }

    async fn wait_for(&self, what: &str, condition: impl AsyncFn() -> Option<()>) {
        let limit = Duration::from_secs(START_S_MAX);
        let reached = async {
            // A paused node accepts a connection and never responds.
            while tokio::time::timeout(Duration::from_secs(10), condition()).await.ok().flatten().is_none() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        if tokio::time::timeout(limit, reached).await.is_err() {
            panic!("not within {START_S_MAX} s: {what}\n{}", self.logs());
        }
    }

    /// A status variable of a node; `None`: it does not respond.
    async fn status(&self, index: usize, name: &str) -> Option<String> {
        let read = async {
            let mut conn = self.server_conn(index).await?;
            let row: Option<(String, String)> =
                conn.query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'")).await.ok()?;
            row.map(|(_, value)| value)
        };
        // A node may accept a connection and never respond.
        tokio::time::timeout(Duration::from_secs(10), read).await.ok().flatten()
    }

    async fn server_conn(&self, index: usize) -> Option<Conn> {
        let url = format!("mysql://test:test@{}?prefer_socket=false", self.address(index));
        Conn::new(Opts::from_url(&url).unwrap()).await.ok()
    }

    /// The last lines of the nodes' logs.
    fn logs(&self) -> String {
        let last_lines = |node: &Node| {
            let log = std::fs::read_to_string(node.dir.join("log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            format!("{}:\n{}", node.dir.display(), lines[lines.len().saturating_sub(40)..].join("\n"))
        };
        self.nodes.iter().map(last_lines).collect::<Vec<_>>().join("\n")
    }

    /// Creates the directories, and the system tables of the first node. The others get them
    /// from it.
    fn install(&self) {
        let script = "CREATE USER IF NOT EXISTS 'test'@'%' IDENTIFIED BY 'test';\n\
                      GRANT ALL ON *.* TO 'test'@'%' WITH GRANT OPTION;\n";
        std::fs::write(self.dir.path().join("init.sql"), script).unwrap();
        for node in &self.nodes {
            std::fs::create_dir_all(node.dir.join("data")).unwrap();
        }
        if let Some(user) = unprivileged_user() {
            let status = Command::new("chown").arg("-R").arg(user).arg(self.dir.path()).status().unwrap();
            assert!(status.success());
        }
        let installer = find("mariadb-install-db").expect("apt-get install mariadb-server");
        let mut install = Command::new(installer);
        install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
        install.arg("--innodb-log-file-size=16M");
        install.arg(format!("--datadir={}", self.nodes[0].dir.join("data").display()));
        install.args(unprivileged_user().map(|user| format!("--user={user}")));
        let output = install.env("TMPDIR", self.dir.path()).output().unwrap();
        assert!(output.status.success(), "mariadb-install-db: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts a node. `is_first`: it forms a new cluster, else it joins the others.
    fn launch(&mut self, index: usize, is_first: bool) {
        let provider = provider();
        let members: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.group_port)).collect();
        let members = if is_first { String::new() } else { members.join(",") };
        let (dir, mariadbd) = (self.dir.path(), find("mariadbd").expect("apt-get install mariadb-server"));
        let node = &mut self.nodes[index];
        // It has the process before.
        _ = std::fs::remove_file(node.dir.join("pid"));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(node.dir.join("log")).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", SUPERVISOR, "supervisor"]).arg(mariadbd).arg("--no-defaults");
        for (option, file) in [("datadir", "data"), ("socket", "socket"), ("pid-file", "pid")] {
            command.arg(format!("--{option}={}", node.dir.join(file).display()));
        }
        if is_first {
            command.arg(format!("--init-file={}", dir.join("init.sql").display()));
        }
        command.args(unprivileged_user().map(|user| format!("--user={user}")));
        // gcache.recover=no: otherwise a restart after a kill may take many gigabytes of memory.
        // A node that does not respond is excluded after two to three seconds.
        let options = [
            "gcache.recover=no".to_owned(),
            "gcache.size=32M".to_owned(),
            format!("gmcast.listen_addr=tcp://127.0.0.1:{}", node.group_port),
            format!("ist.recv_addr=127.0.0.1:{}", node.ist_port),
            "evs.keepalive_period=PT0.5S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT3S".to_owned(),
            // Else a node that was paused gives up soon, and stays away until it is restarted.
            "evs.install_timeout=PT3S;evs.max_install_timeouts=20".to_owned(),
        ];
        command.args([
            format!("--port={}", node.port),
            format!("--wsrep-provider={provider}"),
            format!("--wsrep-cluster-address=gcomm://{members}"),
            format!("--wsrep-node-name=node{index}"),
            format!("--wsrep-sst-receive-address=127.0.0.1:{}", node.sst_port),
            format!("--wsrep-provider-options={}", options.join(";")),
        ]);
        command.args([
            "--bind-address=127.0.0.1",
            "--wsrep-on=ON",
            "--wsrep-cluster-name=clqd-test",
            "--wsrep-node-address=127.0.0.1",
            "--wsrep-sst-method=rsync",
            "--binlog-format=ROW",
            "--innodb-autoinc-lock-mode=2",
            "--innodb-buffer-pool-size=64M",
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-log-file-size=16M",
            "--key-buffer-size=1M",
            "--max-allowed-packet=256K",
            "--performance-schema=OFF",
        ]);
        command.env("TMPDIR", &node.dir).stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log);
        node.supervisor = Some(command.spawn().unwrap());
    }
}

/// Galera's library.
fn provider() -> &'static str {
    PROVIDERS.into_iter().find(|file| Path::new(file).exists()).expect(
        "these tests need Galera and rsync: apt-get install galera-4 rsync, or use tests/run --cluster, which installs them",
    )
}

/// A URL of the database through these hosts.
pub fn url_of(hosts: &[String]) -> String {
    format!("mysql://test:test@{}/clqd", hosts.join(","))
}

impl Node {
    /// The last transaction in the files of a node that was killed.
    fn recovered_position(&self) -> i64 {
        // Reading the cache of write sets may take all memory.
        _ = std::fs::remove_file(self.dir.join("data/galera.cache"));
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 4000000; exec timeout -s KILL 60 \"$@\"", "recover"]);
        command.arg(find("mariadbd").expect("apt-get install mariadb-server"));
        command.arg("--no-defaults").arg(format!("--datadir={}", self.dir.join("data").display()));
        command.args(unprivileged_user().map(|user| format!("--user={user}")));
        command.args(["--wsrep-recover", "--wsrep-on=ON", "--wsrep-cluster-address=gcomm://", "--binlog-format=ROW"]);
        command.arg(format!("--wsrep-provider={}", provider())).arg("--innodb-log-file-size=16M");
        command.arg("--wsrep-provider-options=gcache.recover=no;gcache.size=32M");
        command.arg(format!("--socket={}", self.dir.join("recover").display())).env("TMPDIR", &self.dir);
        for _ in 0..5 {
            let output = command.output().unwrap();
            let log = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
            let position = log.lines().find_map(|line| line.split_once("Recovered position: "));
            let number = position.and_then(|(_, position)| position.rsplit(':').next()?.trim().parse().ok());
            if let Some(number) = number {
                return number;
            }
            println!("no position; trying again: {}", log.lines().last().unwrap_or_default());
        }
        panic!("no position of {}", self.dir.display());
    }

    /// Whether the process of a node that was started has ended.
    fn has_ended(&self) -> bool {
        let Ok(pid) = std::fs::read_to_string(self.dir.join("pid")) else { return false };
        // PID (NAME) STATE; its supervisor may not have waited for it yet.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        self.supervisor.is_some() && stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
    }

    fn pid(&self) -> i32 {
        std::fs::read_to_string(self.dir.join("pid")).expect("the node runs").trim().parse().unwrap()
    }

    /// Stops the process, and waits until each of its threads has stopped: on a busy machine they
    /// continue for a while.
    fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        let threads = format!("/proc/{}/task", self.pid());
        let is_stopped = |thread: std::io::Result<std::fs::DirEntry>| {
            // PID (NAME) STATE; a thread may have ended.
            let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        };
        while !std::fs::read_dir(&threads).unwrap().all(is_stopped) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("the node runs");
    }

    fn kill(&mut self) {
        if let Some(mut supervisor) = self.supervisor.take() {
            drop(supervisor.stdin.take());
            let _ = supervisor.wait();
        }
    }

    /// Waits for the end of a node that was shut down, and then for its supervisor.
    async fn wait_until_ended(&mut self) {
        // MariaDB deletes the file at its end.
        for _ in 0..START_S_MAX * 10 {
            if !self.dir.join("pid").exists() {
                return self.kill();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("a node does not end within {START_S_MAX} s");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}
