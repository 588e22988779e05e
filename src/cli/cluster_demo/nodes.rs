//! The database nodes: MariaDB with Galera.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use nix::unistd::{User, geteuid};
use tempfile::TempDir;

use super::parts::Part;
use super::{COUNT, free_ports};
use crate::archive::{Archive, ArchiveSettings};

/// Where distributions have Galera's library.
const PROVIDERS: [&str; 3] =
    ["/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so", "/usr/lib64/galera/libgalera_smm.so"];

const HOW_TO_INSTALL: &str =
    "install MariaDB with Galera, such as with `apt-get install mariadb-server galera-4 rsync`";

/// The nodes, and how one is begun anew.
pub struct Nodes {
    pub parts: Vec<Part>,
    addresses: Vec<SocketAddr>,
    members: String,
    dirs: Vec<PathBuf>,
    /// Deleted when the nodes have ended. MariaDB's account may enter no other one.
    _dir: TempDir,
}

impl Nodes {
    /// Creates the files of the nodes in a temporary directory.
    pub fn create() -> anyhow::Result<Nodes> {
        let (mariadbd, installer) = (find("mariadbd")?, find("mariadb-install-db")?);
        let provider = PROVIDERS.into_iter().find(|path| Path::new(path).exists());
        let provider = provider.with_context(|| format!("Galera's library is missing: {HOW_TO_INSTALL}"))?;
        let ports = free_ports(4 * COUNT)?;
        let address = |port: usize| SocketAddr::from(([127, 0, 0, 1], ports[port]));
        let addresses: Vec<SocketAddr> = (0..COUNT).map(|n| address(4 * n)).collect();
        let members: Vec<String> = (0..COUNT).map(|n| address(4 * n + 1).to_string()).collect();
        let temporary = tempfile::Builder::new().prefix("clqd-cluster-demo-").tempdir();
        let temporary = temporary.context("cannot create a temporary directory")?;
        let dir = temporary.path();
        let dirs: Vec<PathBuf> = (0..COUNT).map(|n| dir.join(format!("node{}", n + 1))).collect();
        let created = dirs.iter().try_for_each(|dir| std::fs::create_dir_all(dir.join("data")));
        created.with_context(|| format!("cannot create {}", dir.display()))?;
        let accounts = dir.join("accounts.sql");
        std::fs::write(
            &accounts,
            "CREATE DATABASE IF NOT EXISTS clqd CHARACTER SET utf8mb4;\n\
             CREATE USER IF NOT EXISTS 'clqd'@'%' IDENTIFIED BY 'clqd';\nGRANT ALL ON clqd.* TO 'clqd'@'%';\n",
        )?;
        // MariaDB does not run as root.
        let user = if geteuid().is_root() { User::from_name("mysql")? } else { None };
        for path in [dir, &accounts].into_iter().map(Path::to_owned).chain(own_dirs(&dirs)) {
            user.iter().try_for_each(|user| chown(&path, Some(user.uid.as_raw()), Some(user.gid.as_raw())))?;
        }
        let user = user.map(|user| format!("--user={}", user.name));
        let mut install = Command::new(installer);
        install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", LOG_FILE_SIZE]);
        install.arg(format!("--datadir={}", dirs[0].join("data").display())).args(&user).env("TMPDIR", dir);
        let installed = install.output().context("cannot run mariadb-install-db")?;
        ensure!(
            installed.status.success(),
            "mariadb-install-db: {}",
            String::from_utf8_lossy(&installed.stderr).trim()
        );
        let part = |n: usize| {
            let own = &dirs[n];
            let group = [
                "gcache.recover=no".to_owned(),
                "gcache.size=32M".to_owned(),
                format!("gmcast.listen_addr=tcp://{}", members[n]),
                format!("ist.recv_addr={}", address(4 * n + 2)),
                // A node that does not answer is excluded after two to three seconds.
                "evs.keepalive_period=PT0.5S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT3S".to_owned(),
                // Else a node that was paused gives up soon, and stays away until it is restarted.
                "evs.install_timeout=PT3S;evs.max_install_timeouts=20".to_owned(),
            ];
            let mut options = vec![
                "--no-defaults".to_owned(),
                format!("--datadir={}", own.join("data").display()),
                format!("--socket={}", own.join("socket").display()),
                format!("--pid-file={}", own.join("pid").display()),
                format!("--init-file={}", accounts.display()),
                format!("--port={}", addresses[n].port()),
                format!("--wsrep-provider={provider}"),
                format!("--wsrep-provider-options={}", group.join(";")),
                format!("--wsrep-sst-receive-address={}", address(4 * n + 3)),
            ];
            options.extend(user.clone());
            options.extend(OPTIONS.map(str::to_owned));
            let options = options.into_iter().map(OsString::from).collect();
            Part::new(format!("node {}", n + 1), &mariadbd, options, own.join("log"))
        };
        let parts = (0..COUNT).map(part).collect();
        Ok(Nodes { parts, addresses, members: members.join(","), dirs, _dir: temporary })
    }

    /// The database, through the nodes from one on.
    pub fn url_from(&self, first: usize) -> String {
        let hosts: Vec<String> = (0..COUNT).map(|n| self.addresses[(first + n) % COUNT].to_string()).collect();
        format!("mysql://clqd:clqd@{}/clqd", hosts.join(","))
    }

    /// Starts a node. The first one, and the one that was killed last of all, begins a new cluster, which the others
    /// join. Returns whether it has started.
    pub fn start(&mut self, node: usize) -> anyhow::Result<bool> {
        let is_last = |other: &Part| other.is_away() && other.killed() <= self.parts[node].killed();
        let begins = self.parts.iter().all(is_last);
        if !begins && self.parts.iter().all(Part::is_away) {
            return Ok(false);
        }
        let members = if begins { String::new() } else { self.members.clone() };
        if begins {
            let path = self.dirs[node].join("data/grastate.dat");
            if let Ok(state) = std::fs::read_to_string(&path) {
                std::fs::write(&path, state.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1"))?;
            }
        }
        self.parts[node].start(&[format!("--wsrep-cluster-address=gcomm://{members}")])?;
        Ok(true)
    }

    /// Whether a node takes statements.
    pub async fn is_ready(&self, node: usize) -> bool {
        if self.parts[node].is_away() {
            return false;
        }
        let settings = ArchiveSettings {
            url: format!("mysql://clqd:clqd@{}/clqd", self.addresses[node]),
            connect_timeout_ms: 500,
            query_timeout_ms: 1_000,
            ..ArchiveSettings::default()
        };
        match Archive::connect_to_read(&settings).await {
            Ok(archive) => {
                archive.close().await;
                true
            }
            Err(_) => false,
        }
    }
}

const LOG_FILE_SIZE: &str = "--innodb-log-file-size=48M";

/// What is the same for all nodes.
const OPTIONS: [&str; 12] = [
    "--bind-address=127.0.0.1",
    "--wsrep-on=ON",
    "--wsrep-cluster-name=clqd-demo",
    "--wsrep-node-address=127.0.0.1",
    "--wsrep-sst-method=rsync",
    "--binlog-format=ROW",
    "--innodb-autoinc-lock-mode=2",
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=2",
    LOG_FILE_SIZE,
    "--key-buffer-size=1M",
    "--performance-schema=OFF",
];

fn own_dirs(dirs: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    dirs.iter().flat_map(|dir| [dir.clone(), dir.join("data")])
}

fn find(program: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin", "/usr/bin"].map(PathBuf::from));
    match dirs.map(|dir| dir.join(program)).find(|file| file.is_file()) {
        Some(file) => Ok(file),
        None => bail!("{program} is not installed: {HOW_TO_INSTALL}"),
    }
}
