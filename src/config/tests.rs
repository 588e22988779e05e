//! Tests of the configuration: the shipped file against the table of keys, and the errors
//! of invalid files.

use super::*;

#[track_caller]
fn problems(text: &str, want: &[&str]) {
    let got: Vec<String> = match Config::parse(text) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(|p| format!("{}: {p}", p.line)).collect(),
    };
    assert_eq!(got, want, "of\n{text}");
}

#[test]
fn shipped_file_equals_defaults_and_documents_every_key() {
    let config = Config::parse(DEFAULTS).expect("the shipped file has no problems");
    assert_eq!(config, Config::default());
    assert_eq!(Config::parse("").expect("an empty file"), config);

    let mut section = "";
    let mut comment: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for line in DEFAULTS.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if line.starts_with('#') {
            comment.push(line);
            continue;
        } else if let Some((name, _)) = line.split_once(" = ") {
            let key = KEYS.iter().find(|k| k.section == section && k.name == name).expect(name);
            let change = if key.change == Applies::Reload { "reload" } else { "restart" };
            assert_eq!(comment.last(), Some(&format!("# {}; {change}", key.kind.range()).as_str()), "{}", key.path());
            found.push(key.path());
        }
        comment.clear();
    }
    assert_eq!(found, KEYS.iter().map(keys::KeySpec::path).collect::<Vec<_>>());
}

#[test]
fn file_overrides_only_keys_it_names() {
    let config = Config::parse("log_filter = \"debug\"\n[scan]\nretries = 0\n[elo]\nk = 30\n").expect("valid");
    let mut want = Config { log_filter: "debug".to_owned(), ..Config::default() };
    want.scan.retries = 0;
    want.elo.k = 30.0;
    assert_eq!(config, want);
}

#[test]
fn unknown_key_error_suggests_nearest_key() {
    problems("[scan]\ntimeout = 5\n", &["2: scan.timeout: unknown key; did you mean timeout_ms?"]);
    problems(
        "[scan]\n\nadress_burst_packets = 5\n",
        &["3: scan.adress_burst_packets: unknown key; did you mean address_burst_packets?"],
    );
    problems(
        "[store]\ntimeout_ms = 5\n",
        &["2: store.timeout_ms: unknown key; did you mean timeout_ms in section [scan]?"],
    );
    problems("timeout_ms = 5\n", &["1: timeout_ms: unknown key; did you mean timeout_ms in section [scan]?"]);
    problems(
        "[elo]\nlog_filter = \"info\"\n",
        &["2: elo.log_filter: unknown key; did you mean log_filter, a top-level key?"],
    );
    problems(
        "[elo]\nzzzz = 1\n",
        &["2: elo.zzzz: unknown key; the keys of [elo] are k, k_times_opponents_max, carry_over"],
    );
    problems("[sacn]\nretries = 1\n", &["1: sacn: unknown section; did you mean [scan]?"]);
    problems("scan = 5\n", &["1: scan: is a section; write [scan]"]);
    problems("[state_dir]\npath = \"x\"\n", &["1: state_dir: expected a string in quotes; found a section"]);
}

#[test]
fn invalid_value_error_names_expected_range() {
    problems(
        "[scan]\ntimeout_ms = \"5s\"\n",
        &["2: scan.timeout_ms: expected a whole number, 100 to 30000 ms; found a string"],
    );
    problems("[scan]\nretries = 11\n", &["2: scan.retries: 11 is out of range; expected a whole number, 0 to 10"]);
    problems("[scan]\nretries = -1\n", &["2: scan.retries: -1 is out of range; expected a whole number, 0 to 10"]);
    problems("[scan]\nallow_private = 1\n", &["2: scan.allow_private: expected true or false; found a whole number"]);
    problems("[elo]\nk = nan\n", &["2: elo.k: nan is out of range; expected a number, 0.1 to 1000.0"]);
    problems(
        "[clq2]\nquarter = \"Whole\"\n",
        &["2: clq2.quarter: \"Whole\" is not a valid value; expected \"whole\" or \"exact\""],
    );
    problems(
        "[names]\nignore = [\"a\", 5]\n",
        &["2: names.ignore: expected a list of strings, such as [\"a\", \"b\"]; an element is a whole number"],
    );
    problems(
        "[scan]\nopt_out = [\"192.0.2.7\", \"2001:db8::/32\", \"192.0.2.0/33\"]\n",
        &["2: scan.opt_out: \"192.0.2.0/33\" is neither an address nor a network such as \"192.0.2.0/24\""],
    );
    problems(
        "time_zone = \"Mars/Base\"\n",
        &[
            "1: time_zone: \"Mars/Base\" is not a time zone of the IANA database, such as \"UTC\" or \"Europe/Amsterdam\"",
        ],
    );
    problems(
        "[archive]\nurl = \"postgres://x/y\"\n",
        &["2: archive.url: does not begin with mysql://; expected \"mysql://user@host:3306/database\""],
    );
    problems(
        "[archive]\nurl = \"mysql://x\"\n",
        &["2: archive.url: names no database; expected \"mysql://user@host:3306/database\""],
    );
    problems(
        "[scan]\ninterval_class2_s = 60\n",
        &["2: scan.interval_class2_s: 60 is less than scan.interval_class1_s, 120; expected at least as much"],
    );
    problems(
        "[boards]\nwindows = [\"day\", \"huor keep=48\"]\n",
        &["2: boards.windows: window \"huor keep=48\": \"huor\" is not a window type; did you mean \"hour\"?"],
    );
    problems(
        "[boards]\n\nwindows = [\"day keep=3\", \"hour\", \"day keep=4\"]\n",
        &["3: boards.windows: duplicate window type day"],
    );
    problems(
        "[boards]\nwindows = [\"week keep=9\"]\n",
        &[
            "2: boards.windows: window \"week keep=9\": the week window always exists and cannot be listed; set store.keep_weeks instead",
        ],
    );
    problems(
        "[boards]\nlow_is_better = [\"point tag:race\"]\n",
        &["2: boards.low_is_better: \"point tag:race\": \"point\" is not a ranking; did you mean \"points\"?"],
    );
    problems(
        "[boards]\ntie_breakers = [\"points points\"]\n",
        &["2: boards.tie_breakers: \"points points\": a ranking cannot break its own ties; expected another ranking"],
    );
    problems(
        "[web]\nlisten = \"localhost\"\n",
        &["2: web.listen: \"localhost\" is not an address and a port such as \"127.0.0.1:8480\" or \"[::1]:8480\""],
    );
    problems(
        "[web]\nclient_burst_requests = 0\n",
        &["2: web.client_burst_requests: 0 is out of range; expected a whole number, 1 to 100000 requests"],
    );
    problems(
        "[web]\nproxies = [\"10.0.0.1\", \"10.0.0.1/8\"]\n",
        &["2: web.proxies: \"10.0.0.1/8\" is neither an address nor a network such as \"192.0.2.0/24\""],
    );
    problems(
        "[web]\nproxies = [\"::ffff:10.0.0.1\"]\n",
        &["2: web.proxies: \"::ffff:10.0.0.1\" is an IPv4 address in IPv6; write the IPv4 address"],
    );
    problems(
        "[web]\npublic_url = \"https://stats.example.org/clqd\"\n",
        &["2: web.public_url: \"https://stats.example.org/clqd\" is not the address of a site, such as \
           \"https://stats.example.org\", without a path"],
    );
    assert!(Config::parse("[web]\nlisten = \"[::]:80\"\n").is_ok_and(|config| config.web_settings().listen.is_some()));
    assert!(Config::parse("[web]\nlisten = \"\"\n").is_ok_and(|config| config.web_settings().listen.is_none()));
    assert!(Config::parse("log_filter = \"info,clqd=loud\"\n").is_err());
    assert!(Config::parse("[scan]\nretries = 99999999999999999999\n").is_err());
    let contact = |bytes| Config::parse(&format!("[scan]\ncontact = \"{}\"\n", "x".repeat(bytes)));
    assert!(contact(256).is_ok() && contact(257).is_err());
}

#[test]
fn all_problems_are_reported_by_line() {
    problems(
        "zone = 1\n[scan]\nretries = 99\nsocket = 1\n",
        &[
            "1: zone: unknown key; the top-level keys are time_zone, state_dir, control_socket, log_filter",
            "3: scan.retries: 99 is out of range; expected a whole number, 0 to 10",
            "4: scan.socket: unknown key; did you mean sockets_per_ip_version?",
        ],
    );
    let broken = Config::parse("log_filter = \n[scan]\nretries = 99\n[scan]\n").expect_err("broken");
    assert!(broken[0].line == 1 && broken[0].key.is_empty(), "{broken:?}");
    assert!(broken.iter().any(|p| p.key == "scan.retries" && p.line == 3), "{broken:?}");
}

#[test]
fn reload_keeps_keys_that_need_restart() {
    let old = Config::default();
    let new = Config::parse(
        "time_zone = \"Asia/Tokyo\"\nlog_filter = \"debug\"\n[scan]\nretries = 5\nsockets_per_ip_version = 9\n",
    )
    .expect("valid");
    let reloaded = old.plan_reload(&new);
    assert_eq!(reloaded.changed, ["log_filter", "scan.retries"]);
    assert_eq!(reloaded.needs_restart, ["time_zone", "scan.sockets_per_ip_version"]);
    let mut want = old.clone();
    want.log_filter = "debug".to_owned();
    want.scan.retries = 5;
    assert_eq!(reloaded.config, want);
    assert_eq!(old.plan_reload(&old).changed, Vec::<String>::new());
}

#[test]
fn password_is_never_shown() {
    let mut archive = Config::default().archive;
    archive.url = "mysql://clqd:secret@db:3306/clqd".to_owned();
    assert_eq!(archive.url_without_password(), "mysql://clqd@db:3306/clqd");
    assert!(!format!("{archive:?}").contains("secret"));
}

#[test]
fn missing_file_is_named_in_error() {
    let error = Config::load(Path::new("/no/such/clqd.toml")).expect_err("not there");
    assert_eq!(error.to_string(), "cannot read /no/such/clqd.toml");
}

#[test]
fn unclosed_header_is_one_problem() {
    problems(
        "state_dir = \"/x\"\n[scan\nretries = 1\ntimeout_ms = 0\n[elo]\nk = 0.0\n",
        &[
            "2: not TOML: unclosed table, expected `]` at column 6",
            "6: elo.k: 0.0 is out of range; expected a number, 0.1 to 1000.0",
        ],
    );
    problems("[scan # x\nretries = 1\n", &["1: not TOML: unclosed table, expected `]` at column 6"]);
    problems("[sc an]\nretries = 1\n", &["1: not TOML: unclosed table, expected `]` at column 4"]);
    problems("[scan", &["1: not TOML: unclosed table, expected `]` at column 6"]);
}

#[test]
fn webhook_sections_are_checked_and_reloaded() {
    let url = "url = \"https://example.org/SECRET\"\n";
    let text =
        format!("[[webhook]]\nname = \"clan\"\n{url}kind = \"discord\"\nevents = [\"server_down\"]\ntag = \"ours\"\n");
    let config = Config::parse(&text).expect("valid");
    assert_eq!(config.webhook[0].url.secret(), "https://example.org/SECRET");
    assert!(!format!("{config:?}").contains("SECRET"));
    let plan = Config::default().plan_reload(&config);
    assert_eq!((plan.changed, plan.needs_restart), (vec!["webhook".to_owned()], vec![]));
    assert_eq!(plan.config, config);
    let head = "[[webhook]]\nname = \"clan\"\n";
    problems(
        head,
        &["1: webhook: has no key url", "1: webhook: has no key events", "1: webhook: has neither a tag nor a game"],
    );
    problems(
        &format!("{head}{url}events = [\"server_up\"]\ngame = \"tf\"\n"),
        &["1: webhook: has events of servers, but no tag; only the servers of a tag are watched"],
    );
    problems(
        &format!("{head}{url}events = []\ngame = \"tf\"\ntag = \"a\"\n"),
        &["1: webhook: has no events", "1: webhook: has a tag and a game; expected one of them"],
    );
    problems(
        &format!("{head}url = \"ftp://SECRET\"\nevents = [\"down\"]\ntag = \"a\"\n"),
        &[
            "3: webhook.url: is not a URL such as \"https://example.org/hook\"",
            "4: webhook.events: \"down\" is no event; events are server_down, server_up, week_closed, new_leader",
        ],
    );
    problems(&format!("[[webhooks]]\n{url}"), &["1: webhooks: unknown section; did you mean [[webhook]]?"]);
}

#[test]
fn import_sections_are_checked_and_reloaded() {
    let text = "[[import]]\nmaster = \"dpmaster://h/Xonotic/3\"\nscheme = \"darkplaces\"\ntags = [\"a\"]\nevery_s = 3600\n\
                [[import]]\nmaster = \"steammaster://h/\\\\appid\\\\440\"\n\
                [[import]]\nmaster = \"https://h/list?key=SECRET\"\n";
    let config = Config::parse(text).expect("valid");
    let of: Vec<_> = config.import.iter().map(|i| (i.master.to_string(), i.scheme.as_deref(), i.every_s)).collect();
    assert_eq!(
        of,
        [
            ("dpmaster://h:27950/Xonotic/3".to_owned(), Some("darkplaces"), 3_600),
            ("steammaster://h:27011/\\appid\\440".to_owned(), None, 86_400),
            ("https://h/list".to_owned(), None, 86_400)
        ]
    );
    let plan = Config::default().plan_reload(&config);
    assert_eq!((plan.changed, plan.needs_restart), (vec!["import".to_owned()], vec![]));
    assert_eq!(plan.config, config);
    assert_eq!(config.plan_reload(&Config::default()).config, Config::default());

    let master = "master = \"dpmaster://h/68\"\n";
    problems(
        &format!("[[import]]\n{master}every_s = 60\n"),
        &["3: import.every_s: 60 is out of range; expected a whole number, 3600 to 2419200 s"],
    );
    problems(&format!("[[import]]\n{master}every = 3600\n"), &["3: import.every: unknown key; did you mean every_s?"]);
    problems(&format!("[[imports]]\n{master}"), &["1: imports: unknown section; did you mean [[import]]?"]);
    problems(&format!("[import]\n{master}"), &["1: import: is a list of sections; write [[import]]"]);
    problems("import = [5]\n", &["1: import: is a list of sections; write [[import]]"]);
    problems(
        "[[import]]\nevery_s = 3600\n",
        &["1: import: has no key master, the URL of a master server or of a list on a website"],
    );
    problems(
        &format!("[[import]]\n{master}tags = [\"a b\"]\n"),
        &[&format!("3: import.tags: {}", crate::api::check_tag("a b").expect("an invalid tag"))],
    );
    for (text, want) in [
        ("[[import]]\nmaster = \"dpmaster://h\"\n", "2: import.master: "),
        ("[[import]]\nmaster = \"https://h/ ?key=SECRET\"\n", "2: import.master: URL of a list \"https://h/ \": "),
        ("[[import]]\nmaster = \"dpmaster://h/68\"\nscheme = \"xonotik\"\n", "3: import.scheme: "),
    ] {
        let problems = Config::parse(text).expect_err("an invalid value");
        assert_eq!(
            problems.iter().map(|p| format!("{}: {p}", p.line)).filter(|p| p.starts_with(want)).count(),
            1,
            "{problems:?}"
        );
    }
}

#[test]
fn budget_is_checked_with_the_other_values() {
    let budget = "scan.budget: 0.5 is out of range; expected a number, 0.0, or 0.75 to 6.0";
    let k = "elo.k: 0.0 is out of range; expected a number, 0.1 to 1000.0";
    problems("[scan]\nbudget = 0.5\n[elo]\nk = 0.0\n", &[&format!("2: {budget}"), &format!("4: {k}")]);
    assert!(Config::parse("[scan]\nbudget = 0\n").is_ok() && Config::parse("[scan]\nbudget = 0.75\n").is_ok());
}

#[test]
fn each_syntax_error_is_reported_once() {
    problems(
        "[boards]\nwindows = [\"day\",\n[scan]\nretries = 1\n[elo]\nk = 0.0\n",
        &[
            "3: not TOML: string values must be quoted, expected literal string at column 2; this begins on line 2",
            "6: elo.k: 0.0 is out of range; expected a number, 0.1 to 1000.0",
        ],
    );
    problems(
        "log_filter = \"info\n[scan]\nretries = \nsockets_per_ip_version = 8\n",
        &[
            "1: not TOML: invalid basic string, expected `\"` at column 19",
            "3: not TOML: string values must be quoted, expected literal string at column 11",
        ],
    );
    let broken = "x = \n".repeat(1_000);
    assert!(Config::parse(&broken).expect_err("broken").len() <= 20);
    assert!(Config::parse(&format!("log_filter = \"\"\"{}", "\n".repeat(1_000))).expect_err("broken").len() == 1);
}

#[test]
fn invalid_utf8_error_names_line_and_column() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("clqd.toml");
    std::fs::write(&file, b"log_filter = \"info\"\n[scan]\n# \xc3\xa9 caf\xe9\n").expect("written");
    let error = Config::load(&file).expect_err("not UTF-8").to_string();
    let want = format!("{}:3: not UTF-8 at column 8 (byte 0xe9); save the file as UTF-8", file.display());
    assert!(error.ends_with(&want), "{error}");
}

#[test]
fn conflicting_paths_are_refused() {
    let state = "state_dir = \"/var/lib/clqd\"\n";
    let refused = |text: &str, want: &str| {
        problems(&format!("{state}control_socket = {text:?}\n"), &[&format!("2: control_socket: {want}")]);
    };
    problems(
        "state_dir = \"/var/lib/clqd\"\n[capture]\ndir = \"/var/lib/clqd/captures\"\n",
        &[
            "3: capture.dir: /var/lib/clqd/captures is inside state_dir, /var/lib/clqd, where only clqd may write; name a directory outside it",
        ],
    );
    refused("/var/lib/clqd", "/var/lib/clqd is state_dir, a directory; name a file");
    refused("/var/lib//clqd/.", "/var/lib/clqd is state_dir, a directory; name a file");
    refused("/var/lib/clqd/rebuild/x", "/var/lib/clqd/rebuild/x is inside /var/lib/clqd/rebuild, which clqd deletes");
    refused("/var", "/var is a directory: state_dir, /var/lib/clqd, is inside it");
    let beside = "control_socket = \"/var/lib/clqd/control.sock\"\n[capture]\ndir = \"/var/lib/clqd-captures\"\n";
    assert!(Config::parse(&format!("{state}{beside}")).is_ok());
}

/// The output of `clqd check-config` about the paths in a directory, with that directory
/// replaced.
fn check_messages(dir: &Path, text: &str) -> Vec<String> {
    let file = dir.join("clqd.toml");
    let dir = dir.display().to_string();
    std::fs::write(&file, text.replace("DIR", &dir)).expect("written");
    match Config::check(&file) {
        Ok(checked) => checked.notes,
        Err(ConfigError::Problems { problems, .. }) => {
            problems.iter().map(|p| format!("{}: {p}", p.line).replace(&dir, "DIR")).collect()
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn check_config_checks_named_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().canonicalize().expect("it is there");
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("written");
    let good = "state_dir = \"DIR/state\"\ncontrol_socket = \"DIR/sock\"\n[capture]\ndir = \"DIR/captures\"\n[archive]\n\
        password_file = \"DIR/password\"\n";
    write("password", "secret\n");
    assert_eq!(check_messages(&dir, good), Vec::<String>::new());

    let instead = |old: &str, new: &str| check_messages(&dir, &good.replace(old, new));
    assert_eq!(
        instead("DIR/password", "DIR/none"),
        ["6: archive.password_file: cannot read DIR/none: No such file or directory (os error 2)"]
    );
    assert_eq!(instead("DIR/password", "DIR"), ["6: archive.password_file: DIR is a directory"]);
    write("notes", "hello\n");
    std::fs::create_dir_all(dir.join("logs/state")).expect("made");
    assert_eq!(instead("DIR/captures", "DIR/notes"), ["4: capture.dir: DIR/notes is not a directory"]);
    assert_eq!(instead("DIR/captures", "DIR/none/x"), Vec::<String>::new(), "the daemon creates it");
    assert_eq!(instead("DIR/sock", "DIR/logs"), ["2: control_socket: DIR/logs is a directory; name a file in it"]);
    assert_eq!(
        instead("DIR/sock", "DIR/notes"),
        ["2: control_socket: DIR/notes exists and is not a socket; move it away"]
    );
    assert_eq!(instead("DIR/state", "DIR/notes"), ["1: state_dir: DIR/notes is not a directory"]);
    // A link to the state directory.
    std::os::unix::fs::symlink(dir.join("logs/state"), dir.join("link")).expect("a link");
    assert_eq!(
        check_messages(&dir, &good.replace("DIR/state", "DIR/logs/state").replace("DIR/captures", "DIR/link/captures")),
        [
            "4: capture.dir: DIR/logs/state/captures is inside state_dir, DIR/logs/state, where only clqd may write; name a directory outside it"
        ]
    );
}

#[test]
fn settings_of_tls_belong_together_and_name_pem_files() {
    let url = "[archive]\nurl = \"mysql://c@h/d\"\n";
    problems(
        &format!("{url}tls_cert = \"/a\"\ntls = \"required\"\n"),
        &["1: archive.tls_key: is empty, but archive.tls_cert is not; set both"],
    );
    problems(&format!("{url}tls_ca = \"/a\"\n"), &["3: archive.tls_ca: is set, but archive.tls is \"off\""]);
    problems("[web]\ntls_key = \"/a\"\n", &["1: web.tls_cert: is empty, but web.tls_key is not; set both"]);
    assert!(Config::parse("[archive]\ntls_ca = \"/a\"\n").is_ok(), "there is no archive");

    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().canonicalize().expect("it is there");
    std::fs::write(dir.join("ca.pem"), "hello").expect("written");
    let text = format!("state_dir = \"DIR/state\"\n{url}tls = \"verify\"\ntls_ca = \"DIR/ca.pem\"\n");
    assert_eq!(check_messages(&dir, &text), ["5: archive.tls_ca: DIR/ca.pem is not a PEM file"]);
    let want = "5: archive.tls_ca: cannot read DIR/none: No such file or directory (os error 2)";
    assert_eq!(check_messages(&dir, &text.replace("ca.pem", "none")), [want]);
    std::fs::write(dir.join("ca.pem"), "-----BEGIN CERTIFICATE-----\n").expect("written");
    assert_eq!(check_messages(&dir, &text), Vec::<String>::new());
}

#[test]
fn every_invalid_element_of_a_list_is_a_problem_on_its_line() {
    problems(
        "[scan]\nopt_out = [\n  \"192.0.2.7\",\n  \"192.0.2.9/24\",\n  7,\n  \"x\",\n]\n",
        &[
            "4: scan.opt_out: \"192.0.2.9/24\" is neither an address nor a network such as \"192.0.2.0/24\"",
            "5: scan.opt_out: expected a list of strings, such as [\"a\", \"b\"]; an element is a whole number",
            "6: scan.opt_out: \"x\" is neither an address nor a network such as \"192.0.2.0/24\"",
        ],
    );
    problems(
        "log_filter = \"inf,debgu\"\n",
        &[
            "1: log_filter: \"inf\" is not a level; did you mean \"info\"?; \"debgu\" is not a level; did you mean \"debug\"?",
        ],
    );
    let tags = "[[import]]\nmaster = \"dpmaster://h/68\"\ntags = [\"a b\", \"c d\"]\n";
    assert_eq!(Config::parse(tags).expect_err("two invalid tags").len(), 2);
}

#[test]
fn relative_paths_are_refused() {
    let text = "state_dir = \"state\"\ncontrol_socket = \"./control.sock\"\n[capture]\ndir = \"captures\"\n[archive]\npassword_file = \"password\"\n";
    let found = Config::parse(text).expect_err("relative paths");
    let keys: Vec<&str> = found.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["state_dir", "control_socket", "capture.dir", "archive.password_file"]);
    let want = "is a relative path, which is another file for each directory that clqd is started in; write the path \
                from / on";
    assert!(found.iter().all(|problem| problem.message.ends_with(want)), "{found:?}");
}

#[test]
fn control_socket_is_read_from_a_file_with_problems() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("clqd.toml");
    let default = Config::default().control_socket;
    let socket = "control_socket = \"/tmp/a.sock\"\n";
    for (text, want) in [
        (format!("{socket}[scann]\ntimeout_ms = 0\n"), Path::new("/tmp/a.sock")),
        (format!("time_zone = \"UTC\n{socket}[scan\nretries = x\n"), Path::new("/tmp/a.sock")),
        (format!("{socket}# caf\u{e9}"), Path::new("/tmp/a.sock")),
        ("control_socket = /tmp/a.sock\n".to_owned(), &default),
        ("control_socket = \"a.sock\"\n".to_owned(), &default),
        ("retries = 3\n".to_owned(), &default),
    ] {
        // Latin-1 for the one that is not UTF-8.
        let bytes: Vec<u8> = text.chars().map(|character| character as u8).collect();
        std::fs::write(&file, bytes).expect("written");
        let (found, error) = Config::control_socket_of(&file);
        assert_eq!(found, want, "{text}");
        assert!(error.is_some(), "{text}");
    }
    std::fs::write(&file, socket).expect("written");
    assert_eq!(Config::control_socket_of(&file).0, Path::new("/tmp/a.sock"));
    assert!(Config::control_socket_of(&file).1.is_none());
    let (found, error) = Config::control_socket_of(&dir.path().join("none"));
    assert_eq!(found, default);
    assert!(matches!(error, Some(ConfigError::Read { .. })), "{error:?}");
}
