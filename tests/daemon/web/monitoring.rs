//! The files of `monitoring/`, with the real Prometheus: it accepts the rules and the config, scrapes
//! a daemon, and evaluates each expression of the alerts and of the dashboard. The tests fail
//! without Prometheus; `tests/run` installs it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use clqd::fleet::{Fault, FaultShares};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::{Site, http};
use crate::sandbox::{Sandbox, closed_port_url, fleet, wait_for, wait_until};

/// Metrics that a daemon without a database does not have.
const ONLY_WITH_DATABASE: &str = "clqd_archive_last_complete_age_seconds";

/// How the names of metrics begin that a daemon without other engines and scanners does not have.
const ONLY_WITH_OTHERS: [&str; 2] = ["clqd_cluster_", "clqd_scanners"];

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(repository(path)).expect(path)
}

fn dashboard() -> Value {
    serde_json::from_str(&read("monitoring/dashboard.json")).expect("JSON")
}

/// The panels that show something.
fn panels(dashboard: &Value) -> Vec<&Value> {
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    panels.filter(|panel| panel["type"] != "row").collect()
}

/// Replaces text that must be there.
#[track_caller]
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no {from:?} in {text}");
    text.replace(from, to)
}

fn started(mut command: Command) -> Child {
    command.stdin(Stdio::null()).spawn().unwrap_or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => panic!(
            "{} is not installed; on Debian: apt-get install prometheus, or run tests/run",
            command.get_program().display()
        ),
        _ => panic!("{}: {error}", command.get_program().display()),
    })
}

/// Runs promtool in a directory; it must succeed.
#[track_caller]
fn promtool(dir: &Path, args: &[&str]) {
    let mut command = Command::new("promtool");
    command.args(args).current_dir(dir).stdout(Stdio::piped()).stderr(Stdio::piped());
    let done = started(command).wait_with_output().expect("promtool ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "promtool {args:?}: {}\n{}{}", done.status, text(&done.stdout), text(&done.stderr));
}

#[test]
fn promtool_accepts_rules_and_config() {
    let dir = tempfile::tempdir().expect("a directory");
    for file in ["monitoring/alerts.yml", "monitoring/prometheus.yml", "tests/fixtures/alerts-test.yml"] {
        let path = repository(file);
        fs::copy(&path, dir.path().join(path.file_name().expect("a name"))).expect(file);
    }
    promtool(dir.path(), &["check", "rules", "alerts.yml"]);
    promtool(dir.path(), &["check", "config", "prometheus.yml"]);
    promtool(dir.path(), &["test", "rules", "alerts-test.yml"]);
}

/// Without a header that asks for another format, as `curl` requests them.
#[test]
fn promtool_accepts_the_metrics() {
    let (site, _fleet) = Site::with_fleet(3, 78);
    wait_until("a scheduled scan", || site.sandbox.status()["engine"]["lag_ms_p99"].is_number());
    for path in ["/", "/servers", "/api/v1/nothing"] {
        site.get(path);
    }
    let metrics = site.get("/metrics");
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(metrics.text().contains("# TYPE clqd_scan_lag_seconds summary\n"), "{}", metrics.text());
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("metrics"), &metrics.body).expect("a file");
    let mut command = Command::new("sh");
    command.args(["-c", "promtool check metrics <metrics 2>&1"]).current_dir(dir.path()).stdout(Stdio::piped());
    let done = started(command).wait_with_output().expect("promtool ends");
    let printed = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && printed.is_empty(), "{}: {printed}", done.status);
    site.daemon.stop();
}

#[test]
fn dashboard_is_complete() {
    let dashboard = dashboard();
    let text = dashboard.to_string();
    assert!(!text.contains("://"), "it links to other hosts");
    let variables = dashboard["templating"]["list"].as_array().expect("variables").iter();
    let variables: Vec<_> = variables.map(|variable| variable["name"].as_str().expect("a name")).collect();
    assert_eq!(variables, ["datasource", "instance"]);
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().expect("panels") {
        let title = panel["title"].as_str().expect("a title");
        assert!(!title.is_empty() && ids.insert(panel["id"].as_u64().expect("an id")), "{panel}");
        let place = |name: &str| panel["gridPos"][name].as_u64().expect(name);
        let (columns, rows) = (place("x")..place("x") + place("w"), place("y")..place("y") + place("h"));
        assert!(columns.end <= 24, "{title}");
        for cell in columns.flat_map(|x| rows.clone().map(move |y| (x, y))) {
            assert!(cells.insert(cell), "{title} covers another panel");
        }
    }
    for panel in panels(&dashboard) {
        let title = &panel["title"];
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title} has no unit");
        assert!(panel["description"].as_str().is_some_and(|text| text.ends_with('.')), "{title}");
        let targets = panel["targets"].as_array().expect("targets");
        assert!(!targets.is_empty(), "{title}");
        for of in targets.iter().chain([panel]) {
            assert_eq!(of["datasource"]["uid"], "${datasource}", "{title}");
        }
        for target in targets {
            assert!(target["expr"].as_str().expect("an expression").contains("instance=~\"$instance\""), "{title}");
        }
    }
}

/// Prometheus with the rules and a config of its own; killed when dropped.
struct Prometheus {
    child: Child,
    address: String,
}

impl Prometheus {
    fn start(sandbox: &Sandbox, target: &str) -> Prometheus {
        let dir = sandbox.path("prometheus");
        fs::create_dir(&dir).expect("a directory");
        let config = replaced(&read("monitoring/prometheus.yml"), "127.0.0.1:8480", target);
        let config = replaced(&config, "interval: 15s", "interval: 2s");
        fs::write(dir.join("prometheus.yml"), config).expect("written");
        fs::copy(repository("monitoring/alerts.yml"), dir.join("alerts.yml")).expect("copied");
        let log = dir.join("log");
        let mut command = Command::new("prometheus");
        command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:0"]);
        command.current_dir(&dir).stdout(Stdio::null()).stderr(fs::File::create(&log).expect("the log"));
        let mut prometheus = Prometheus { child: started(command), address: String::new() };
        prometheus.address = wait_for("Prometheus listens", || {
            let text = fs::read_to_string(&log).expect("the log");
            let ended = prometheus.child.try_wait().expect("a child process");
            assert!(ended.is_none(), "Prometheus ended during its start: {text}");
            let line = text.lines().find(|line| line.contains("\"Listening on\""))?;
            let (_, address) = line.split_once("address=").expect(line);
            Some(address.split(' ').next().expect(line).to_owned())
        });
        wait_until("Prometheus is ready", || http::get(&prometheus.address, "/-/ready").status == 200);
        prometheus
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        let answer = http::get(&self.address, path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()["data"].clone()
    }

    /// The samples of an expression, as of now.
    #[track_caller]
    fn query(&self, expression: &str) -> Vec<Value> {
        let data = self.get(&format!("/api/v1/query?query={}", utf8_percent_encode(expression, NON_ALPHANUMERIC)));
        data["result"].as_array().unwrap_or_else(|| panic!("{expression}: {data}")).clone()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Names of metrics of clqd in an expression.
fn metric_names(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("clqd_"))
}

#[test]
fn prometheus_evaluates_every_expression() {
    let sandbox = Sandbox::new("");
    // All optional parts; nothing answers at the address of the database.
    sandbox.configure(
        "[web]\nlisten = \"127.0.0.1:0\"\n[archive]\nurl = \"mysql://clqd@127.0.0.1:1/clqd\"\ndrain_timeout_s = 0\n",
    );
    let daemon = sandbox.start();
    let address = sandbox.status()["daemon"]["web"].as_str().expect("an address").to_owned();
    let healthy = fleet(3, 91, 60.0, FaultShares::NONE);
    sandbox.add_servers(&healthy);
    // Misses and ignored datagrams are counted by reason, so they exist once there is one.
    let malformed = fleet(2, 92, 60.0, FaultShares::NONE.with(Fault::Malformed, 1.0));
    sandbox.add_servers(&malformed);
    sandbox.ok(["servers", "add", &closed_port_url()]);
    let prometheus = Prometheus::start(&sandbox, &address);
    wait_until("the daemon is scraped", || {
        prometheus.query("up{job=\"clqd\"} == 1").iter().any(|sample| sample["metric"]["instance"] == address.as_str())
    });

    let rules = wait_for("every alert is evaluated", || {
        let groups = prometheus.get("/api/v1/rules")["groups"].as_array().expect("groups").clone();
        let rules: Vec<_> = groups.iter().flat_map(|group| group["rules"].as_array().expect("rules").clone()).collect();
        rules.iter().all(|rule| rule["health"] != "unknown").then_some(rules)
    });
    assert!(rules.len() > 10, "{rules:?}");
    let mut expressions = Vec::new();
    for rule in &rules {
        assert_eq!(rule["health"], "ok", "{rule}");
        assert!(rule["duration"].as_f64().is_some_and(|for_s| for_s > 0.0), "{rule}");
        assert!(["critical", "warning"].contains(&rule["labels"]["severity"].as_str().expect("a severity")), "{rule}");
        for name in ["summary", "description"] {
            assert!(rule["annotations"][name].as_str().is_some_and(|text| text.len() > 20), "{rule}");
        }
        let expression = rule["query"].as_str().expect("an expression").to_owned();
        prometheus.query(&expression);
        expressions.push(expression);
    }
    let dashboard = dashboard();
    for panel in panels(&dashboard) {
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("an expression");
            let expression = expression.replace("$instance", ".*").replace("$__rate_interval", "1m");
            assert!(!expression.contains('$'), "{expression}");
            if expression.contains(ONLY_WITH_DATABASE) {
                prometheus.query(&expression);
            } else {
                let what = format!("{} has data: {expression}", panel["title"]);
                wait_until(&what, || !prometheus.query(&expression).is_empty());
            }
            expressions.push(expression);
        }
    }

    let scraped = prometheus.get("/api/v1/label/__name__/values");
    let scraped: BTreeSet<&str> = scraped.as_array().expect("names").iter().filter_map(Value::as_str).collect();
    let docs = read("docs/web.md");
    for name in expressions.iter().flat_map(|expression| metric_names(expression)) {
        let is_absent = name == ONLY_WITH_DATABASE || ONLY_WITH_OTHERS.iter().any(|begin| name.starts_with(begin));
        assert!(scraped.contains(name) || is_absent, "{name} does not exist");
        // Counters of the status are documented as such, histograms by their names.
        let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
        let documented = of_histogram.unwrap_or(name);
        assert!(name.ends_with("_total") || docs.contains(documented), "{name} is not in docs/web.md");
    }
    drop(prometheus);
    daemon.stop();
}

/// The schema of a field.
fn field(document: &Value, schema: &Value, name: &str) -> Option<Value> {
    if let Some(path) = schema["$ref"].as_str() {
        return field(document, document.pointer(path.trim_start_matches('#'))?, name);
    }
    if let Some(found) = schema["properties"].get(name) {
        return Some(found.clone());
    }
    let parts = ["allOf", "anyOf", "oneOf"].iter().filter_map(|of| schema[of].as_array()).flatten();
    parts.into_iter().find_map(|part| field(document, part, name))
}

/// The table of operations.md names fields of `clqd status --json`.
#[test]
fn fields_that_deserve_an_alert_exist() {
    let site = Site::start("");
    let document = site.get("/api/v1/openapi-admin.json").json();
    let line = &document["paths"]["/api/v1/status"]["post"]["responses"]["200"]["content"]["application/jsonl"];
    let has = |path: &str| {
        let fields = path.split('.').try_fold(line["schema"].clone(), |schema, name| field(&document, &schema, name));
        fields.is_some()
    };
    assert!(has("engine.lag_ms_p99") && !has("engine.no_such_field") && !has("no_such_part"));
    let status = site.sandbox.status();
    let counters = status["counters"].as_object().expect("counters");
    let page = read("docs/operations.md");
    let table = page.split("\n| field | alert if |\n|---|---|\n").nth(1).expect("the table");
    let mut checked = 0;
    for row in table.lines().take_while(|line| line.starts_with('|')) {
        // Spans without dots outside of the first column are values, or fields of the part that the row names.
        let (first, rest) = row.trim_start_matches('|').split_once('|').expect("two columns");
        let of_first = first.split('`').skip(1).step_by(2).filter(|span| !span.starts_with("clqd "));
        let parts: BTreeSet<&str> = of_first.clone().filter_map(|span| span.split('.').next()).collect();
        let is_field = |span: &&str| span.split_once('.').is_some_and(|(part, _)| parts.contains(part));
        for span in of_first.chain(rest.split('`').skip(1).step_by(2).filter(is_field)) {
            let exists = match span.strip_prefix("counters.\"").and_then(|name| name.strip_suffix('"')) {
                Some(counter) => counters.contains_key(counter),
                None => has(span),
            };
            assert!(exists, "{span}, of {row}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
    site.daemon.stop();
}
