//! Fills an archive from the state of a daemon, end to end: `cargo bench --bench fill`.
//!
//! Writes a log of `CLQD_ROWS` players (default 300,000) in a closed week, and of half of them again in a running one,
//! 250 to a server, and replays it. A daemon with this state then fills an empty database on a private MariaDB. After
//! every row of seven large tables was changed, it fills it again (`clqd archive resend`). Beside each,
//! the `mariadb` client loads the same rows of all tables into another database on the same server with LOAD DATA LOCAL
//! INFILE (REPLACE).
//!
//! Printed are the time by the clock and the CPU time of both sides, and the ratios of LOAD DATA's to clqd's. The time
//! of a fill begins with the first player in the database. CPU time includes the removal of old versions of rows, which
//! the database does afterwards, and whatever else the daemon does: it scans nothing, but it has the website and builds
//! boards. `CLQD_BINARY`: another build of clqd. The results are in docs/benchmarks.md.

#[path = "../tests/support/database/mod.rs"]
mod database;
mod measure;
#[path = "measure/process.rs"]
mod process;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use database::{Database, Server};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use process::{Running, cpu_s, status, wait_until};

const PLAYERS_PER_SERVER: u32 = 250;
/// Players on a server at the same time.
const LIST: u32 = 25;
/// Lists of each group of players, two minutes apart.
const LISTS_OF_GROUP: u32 = 3;
const GAP_MS: i64 = 120_000;
const WEEK_MS: i64 = 7 * 86_400_000;

/// First words of names.
const WORDS: [&str; 8] = ["Anarki", "|clan| Visor", "Crash", "x", "The Sarge", "^1Doom^7 Klesk", "été", "Ranger jr"];

fn main() -> anyhow::Result<()> {
    let rows: u32 = std::env::var("CLQD_ROWS").ok().map_or(Ok(300_000), |text| text.parse()).context("CLQD_ROWS")?;
    let dir = tempfile::tempdir()?;
    let log = dir.path().join("log.jsonl");
    write_log(&log, rows / PLAYERS_PER_SERVER)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let options =
        ["--innodb-buffer-pool-size=2G", "--innodb-log-file-size=512M", "--local-infile=1", "--max-allowed-packet=16M"];
    let database = runtime.block_on(Database::on_server(Arc::new(Server::start_with(&options))));
    let value = |sql: &str| runtime.block_on(database.value(sql));
    let mariadbd: u32 = std::fs::read_to_string(value("SELECT @@pid_file"))?.trim().parse()?;

    let clqd = Clqd::new(dir.path());
    // Without an archive: the outbox stays empty, and everything is written later.
    clqd.write_config("")?;
    clqd.run(&["replay", &log.display().to_string(), "--state", &clqd.path("state").display().to_string()])?;
    clqd.write_config(&format!("[archive]\nurl = \"{}\"\nbackoff_s_max = 1", database.url()))?;
    // It waits, because the database has no tables yet.
    let daemon = Running::start(clqd.command().arg("run").stdout(Stdio::null()))?;
    let socket = clqd.path("control.sock");
    wait_until("the daemon", || {
        Ok(status(&socket).is_ok_and(|it| it.archive.is_some_and(|it| it.public.fault.is_some())))
    })?;
    std::thread::sleep(Duration::from_secs(10));

    let cpu = || Ok::<_, anyhow::Error>((daemon.cpu_s()?, cpu_s(mariadbd)?));
    let is_filled = || {
        let status = status(&socket)?;
        let archive = status.archive.context("an archive")?;
        Ok(archive.public.fault.is_none()
            && archive.public.resync.is_none()
            && status.outbox_entries == 0
            && archive.public.last_complete_ms.is_some())
    };
    // Until then, the database does work of earlier statements.
    let purged = || {
        let length = "SELECT variable_value FROM information_schema.global_status WHERE \
                      variable_name = 'INNODB_HISTORY_LIST_LENGTH'";
        wait_until("the purge of old rows", || Ok(value(length).parse::<u64>()? < 100))
    };
    clqd.run(&["migrate"])?;
    while value("SELECT COUNT(*) FROM player") == "0" {
        std::thread::sleep(Duration::from_millis(2));
    }
    let (began, before) = (Instant::now(), cpu()?);
    wait_for_fill(is_filled)?;
    let clock_s = began.elapsed().as_secs_f64();
    purged()?;
    let fill = Cost::until(clock_s, before, cpu()?);
    let tables = runtime.block_on(dump(&database, &dir.path().join("dump")))?;
    println!("{} rows of {} tables", tables.iter().map(|table| table.rows).sum::<u64>(), tables.len());
    tables.iter().for_each(|table| println!("  {:>9} {}", table.rows, table.name));
    let loaded = runtime.block_on(database.beside("clqd_loaded"));
    fill.print("first fill", &load(&loaded, &tables, "", mariadbd, purged)?);

    for database in [&database, &loaded] {
        for (table, change) in CHANGES {
            runtime.block_on(database.run(&format!("UPDATE {table} SET {change}")));
        }
    }
    purged()?;
    let (began, before) = (Instant::now(), cpu()?);
    clqd.run(&["archive", "resend"])?;
    wait_for_fill(is_filled)?;
    let clock_s = began.elapsed().as_secs_f64();
    purged()?;
    let refill = Cost::until(clock_s, before, cpu()?);
    refill.print("all rows change", &load(&loaded, &tables, "REPLACE", mariadbd, purged)?);
    for (table, _) in CHANGES {
        let count = format!("SELECT BIT_XOR(CRC32(CONCAT_WS(',', {}))) FROM {table}", columns_of(&tables, table));
        ensure!(value(&count) == runtime.block_on(loaded.value(&count)), "{table} is not equal in both databases");
    }
    daemon.stop()
}

/// How every row of the large tables is changed, so that clqd has to write all of them.
const CHANGES: [(&str, &str); 7] = [
    ("player", "display = CONCAT(LEFT(display, 200), '!')"),
    ("player_word", "word = CONCAT(LEFT(word, 60), '!')"),
    ("player_week", "points = points + 1, clq1_reached_after_ms = clq1_reached_after_ms + 1"),
    ("player_total", "points = points + 1"),
    ("board_step", "board_order = CONCAT('a', LEFT(board_order, 20))"),
    ("best_position", "position = position + 1"),
    ("player_session", "seen = seen + 1"),
];

fn wait_for_fill(is_filled: impl Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    while !is_filled()? {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

struct Clqd {
    binary: PathBuf,
    dir: PathBuf,
}

impl Clqd {
    fn new(dir: &Path) -> Clqd {
        let binary = std::env::var_os("CLQD_BINARY").map_or(env!("CARGO_BIN_EXE_clqd").into(), PathBuf::from);
        Clqd { binary, dir: dir.to_owned() }
    }

    fn write_config(&self, archive: &str) -> anyhow::Result<()> {
        let text = format!(
            "state_dir = {:?}\ncontrol_socket = {:?}\nlog_filter = \"warn\"\n\
             [scan]\ninterval_class1_s = 86400\ninterval_class2_s = 86400\ninterval_class3_s = 86400\n\
             [clock]\nsynchronised = \"never\"\n[web]\nlisten = \"127.0.0.1:0\"\n{archive}\n",
            self.path("state"),
            self.path("control.sock"),
        );
        Ok(std::fs::write(self.path("clqd.toml"), text)?)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("--config").arg(self.path("clqd.toml"));
        command
    }

    fn run(&self, args: &[&str]) -> anyhow::Result<()> {
        let output = self.command().args(args).output()?;
        ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

/// Lists of all servers: a week ago of all players, now of every second group of them.
fn write_log(log: &Path, servers: u32) -> anyhow::Result<()> {
    let now_ms = clqd::clock::system_ms();
    let mut out = BufWriter::with_capacity(1 << 20, File::create(log)?);
    let groups = PLAYERS_PER_SERVER / LIST;
    for (end_ms, every) in [(now_ms - WEEK_MS, 1), (now_ms, 2)] {
        let lists = groups / every * LISTS_OF_GROUP;
        for list in 0..lists {
            let group = list / LISTS_OF_GROUP * every;
            for server in 0..servers {
                let spread_ms = i64::from(server) * GAP_MS / i64::from(servers);
                let at_ms = end_ms - i64::from(lists - list) * GAP_MS + spread_ms;
                write!(
                    out,
                    "{{\"t\":{at_ms},\"server\":\"quake3://127.{}.{}.{}:27960\",\"game\":\"baseq3\",\"map\":\"q3dm{}\",\
                     \"hostname\":\"A server of the bench {server}\",\"slots\":32,\"players\":[",
                    1 + (server >> 16),
                    server >> 8 & 255,
                    server & 255,
                    group % 17,
                )?;
                for n in 0..LIST {
                    let player = server * PLAYERS_PER_SERVER + group * LIST + n;
                    write!(
                        out,
                        "{}{{\"name\":\"{} {player}\",\"points\":{},\"ping\":40,\"bot\":false}}",
                        if n == 0 { "" } else { "," },
                        WORDS[player as usize % WORDS.len()],
                        list % LISTS_OF_GROUP * (5 + player * 7 % 13),
                    )?;
                }
                out.write_all(b"]}\n")?;
            }
        }
    }
    Ok(out.flush()?)
}

/// Time by the clock, and CPU time of the client and of the database, seconds.
struct Cost {
    clock_s: f64,
    client_s: f64,
    database_s: f64,
}

impl Cost {
    fn until(clock_s: f64, before: (f64, f64), after: (f64, f64)) -> Cost {
        Cost { clock_s, client_s: after.0 - before.0, database_s: after.1 - before.1 }
    }

    fn cpu_s(&self) -> f64 {
        self.client_s + self.database_s
    }

    fn print(&self, what: &str, load: &Cost) {
        println!("{what}:");
        for (name, it) in [("clqd", self), ("LOAD DATA", load)] {
            println!(
                "  {name:<9} {:>6.1} s; CPU {:>6.1} s: client {:.1}, database {:.1}",
                it.clock_s,
                it.cpu_s(),
                it.client_s,
                it.database_s
            );
        }
        println!(
            "  ratio: {:.2} by the clock, {:.2} of CPU time",
            load.clock_s / self.clock_s,
            load.cpu_s() / self.cpu_s()
        );
    }
}

/// A table whose rows are in a file.
struct Dumped {
    name: String,
    columns: String,
    file: PathBuf,
    rows: u64,
}

fn columns_of<'t>(tables: &'t [Dumped], name: &str) -> &'t str {
    tables.iter().find(|table| table.name == name).map_or("NULL", |table| &table.columns)
}

/// Writes the rows of all tables to files, in order of the primary key. The server writes them, as another user.
async fn dump(database: &Database, dir: &Path) -> anyhow::Result<Vec<Dumped>> {
    std::fs::create_dir(dir)?;
    for dir in [dir, dir.parent().context("a parent")?] {
        std::fs::set_permissions(dir, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
    }
    let mut tables = Vec::new();
    let of_tables = "SELECT c.table_name, GROUP_CONCAT(c.column_name ORDER BY c.ordinal_position) FROM \
                     information_schema.columns c JOIN information_schema.tables t ON t.table_schema = c.table_schema AND \
                     t.table_name = c.table_name AND t.table_type = 'BASE TABLE' WHERE c.table_schema = DATABASE() AND \
                     COALESCE(c.generation_expression, '') = '' AND c.table_name NOT LIKE 'clq\\_%' GROUP BY 1";
    for row in database.rows(of_tables).await {
        let [name, columns] = <[String; 2]>::try_from(row).expect("two columns");
        let rows = database.value(&format!("SELECT COUNT(*) FROM {name}")).await.parse()?;
        let file = dir.join(&name);
        let select = format!(
            "SELECT {columns} INTO OUTFILE '{}' CHARACTER SET binary FROM {name} FORCE INDEX (PRIMARY)",
            file.display()
        );
        database.run(&select).await;
        if rows > 0 {
            tables.push(Dumped { name, columns, file, rows });
        }
    }
    Ok(tables)
}

/// Loads the files with the `mariadb` client, a transaction for each table.
fn load(
    to: &Database,
    tables: &[Dumped],
    on_duplicate: &str,
    mariadbd: u32,
    purged: impl Fn() -> anyhow::Result<()>,
) -> anyhow::Result<Cost> {
    let load = |Dumped { name, columns, file, .. }: &Dumped| {
        format!(
            "LOAD DATA LOCAL INFILE '{}' {on_duplicate} INTO TABLE {name} CHARACTER SET binary ({columns});",
            file.display()
        )
    };
    let sql: String = tables.iter().map(load).collect();
    let address = to.address();
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "--local-infile=1", "--protocol=tcp", "-utest", "-ptest"]);
    client.args([format!("-h{}", address.ip()), format!("-P{}", address.port()), to.name.clone(), "-e".into(), sql]);
    let children_s = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        anyhow::Ok((usage.user_time() + usage.system_time()).num_milliseconds() as f64 / 1_000.0)
    };
    let (began, before) = (Instant::now(), (children_s()?, cpu_s(mariadbd)?));
    let done = client.output().context("the mariadb client")?;
    ensure!(done.status.success(), "mariadb: {}", String::from_utf8_lossy(&done.stderr));
    let clock_s = began.elapsed().as_secs_f64();
    purged()?;
    Ok(Cost::until(clock_s, before, (children_s()?, cpu_s(mariadbd)?)))
}
