//! Tests of the configuration: the shipped file against the table of keys, and
//! what is said of broken files.

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
fn the_shipped_file_is_the_defaults_and_tells_range_and_change_of_every_key() {
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
            let change = if key.change == Change::Reload { "reload" } else { "restart" };
            assert_eq!(comment.last(), Some(&format!("# {}; {change}", key.kind.range()).as_str()), "{}", key.path());
            found.push(key.path());
        }
        comment.clear();
    }
    assert_eq!(found, KEYS.iter().map(keys::Key::path).collect::<Vec<_>>());
}

#[test]
fn a_file_changes_what_it_names_and_nothing_else() {
    let config = Config::parse("log = \"debug\"\n[scan]\nretries = 0\n[elo]\nk = 30\n").expect("valid");
    let mut want = Config { log: "debug".to_owned(), ..Config::default() };
    want.scan.retries = 0;
    want.elo.k = 30.0;
    assert_eq!(config, want);
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_right_one() {
    problems("[scan]\ntimeout = 5\n", &["2: scan.timeout: unknown key; did you mean timeout_ms?"]);
    problems(
        "[scan]\n\nper_adress_burst = 5\n",
        &["3: scan.per_adress_burst: unknown key; did you mean per_address_burst?"],
    );
    problems(
        "[store]\ntimeout_ms = 5\n",
        &["2: store.timeout_ms: unknown key; did you mean timeout_ms in section [scan]?"],
    );
    problems("timeout_ms = 5\n", &["1: timeout_ms: unknown key; did you mean timeout_ms in section [scan]?"]);
    problems(
        "[elo]\nlog = \"info\"\n",
        &["2: elo.log: unknown key; did you mean log, which stands above the first section?"],
    );
    problems(
        "[elo]\nzzzz = 1\n",
        &["2: elo.zzzz: unknown key; the keys of [elo] are k, k_times_opponents_max, carry_over"],
    );
    problems("[sacn]\nretries = 1\n", &["1: sacn: unknown section; did you mean [scan]?"]);
    problems("scan = 5\n", &["1: scan: is a section; write [scan]"]);
    problems("[record]\nrotate_bytes = 1\n", &["1: record: expected a text in quotes; found a section"]);
}

#[test]
fn wrong_values_tell_what_was_expected() {
    problems(
        "[scan]\ntimeout_ms = \"5s\"\n",
        &["2: scan.timeout_ms: expected a whole number, 100 to 30000 ms; found a text"],
    );
    problems("[scan]\nretries = 11\n", &["2: scan.retries: 11 is out of range; expected a whole number, 0 to 10"]);
    problems("[scan]\nretries = -1\n", &["2: scan.retries: -1 is out of range; expected a whole number, 0 to 10"]);
    problems("[scan]\nallow_private = 1\n", &["2: scan.allow_private: expected true or false; found a whole number"]);
    problems("[elo]\nk = nan\n", &["2: elo.k: nan is out of range; expected a number, 0.1 to 1000.0"]);
    problems(
        "[clq2]\nquarter = \"Whole\"\n",
        &["2: clq2.quarter: \"Whole\" is none of its values; expected \"whole\" or \"exact\""],
    );
    problems(
        "[names]\nignore = [\"a\", 5]\n",
        &["2: names.ignore: expected a list of texts, such as [\"a\", \"b\"]; found a whole number among them"],
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
        &["3: boards.windows: window type day stands there twice"],
    );
    problems(
        "[boards]\nwindows = [\"week keep=9\"]\n",
        &[
            "2: boards.windows: window \"week keep=9\": weeks are there without being named; store.keep_weeks says how many stay",
        ],
    );
    problems(
        "[boards]\nlow_is_better = [\"point tag:race\"]\n",
        &["2: boards.low_is_better: \"point tag:race\": \"point\" is not a ranking; did you mean \"points\"?"],
    );
    problems(
        "[boards]\nties = [\"points points\"]\n",
        &["2: boards.ties: \"points points\": equal scores are not parted by themselves; expected another ranking"],
    );
    assert!(Config::parse("log = \"info,clqd=loud\"\n").is_err());
    assert!(Config::parse("[scan]\nretries = 99999999999999999999\n").is_err());
}

#[test]
fn all_problems_are_told_by_line() {
    problems(
        "zone = 1\n[scan]\nretries = 99\nsocket = 1\n",
        &[
            "1: zone: unknown key; the keys of the top are time_zone, state_dir, control_socket, log, record",
            "3: scan.retries: 99 is out of range; expected a whole number, 0 to 10",
            "4: scan.socket: unknown key; did you mean sockets?",
        ],
    );
    let broken = Config::parse("log = \n[scan]\nretries = 99\n[scan]\n").expect_err("broken");
    assert!(broken[0].line == 1 && broken[0].key.is_empty(), "{broken:?}");
    assert!(broken.iter().any(|p| p.key == "scan.retries" && p.line == 3), "{broken:?}");
}

#[test]
fn a_reload_keeps_what_needs_a_restart() {
    let old = Config::default();
    let new = Config::parse("time_zone = \"Asia/Tokyo\"\nlog = \"debug\"\n[scan]\nretries = 5\nsockets = 9\n")
        .expect("valid");
    let reloaded = old.diff_reload(&new);
    assert_eq!(reloaded.changed, ["log", "scan.retries"]);
    assert_eq!(reloaded.needs_restart, ["time_zone", "scan.sockets"]);
    let mut want = old.clone();
    want.log = "debug".to_owned();
    want.scan.retries = 5;
    assert_eq!(reloaded.config, want);
    assert_eq!(old.diff_reload(&old).changed, Vec::<String>::new());
}

#[test]
fn passwords_come_from_the_file_then_the_credential_and_are_never_shown() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut archive = Config::default().archive;
    archive.url = "mysql://clqd:secret@db:3306/clqd".to_owned();
    assert_eq!(archive.url_shown(), "mysql://clqd@db:3306/clqd");
    assert!(!format!("{archive:?}").contains("secret"));
    assert_eq!(archive.password(None).expect("none"), None);
    assert_eq!(archive.password(Some(dir.path())).expect("none"), None);
    std::fs::write(dir.path().join(PASSWORD_CREDENTIAL), "\n").expect("written");
    assert_eq!(archive.password(Some(dir.path())).expect("an empty one"), None);
    std::fs::write(dir.path().join(PASSWORD_CREDENTIAL), "of the credential\n").expect("written");
    assert_eq!(archive.password(Some(dir.path())).expect("read").as_deref(), Some("of the credential"));
    archive.password_file = dir.path().join("own");
    assert!(archive.password(Some(dir.path())).is_err(), "a file that is named must be there");
    std::fs::write(dir.path().join("own"), " of the file \n").expect("written");
    assert_eq!(archive.password(Some(dir.path())).expect("read").as_deref(), Some(" of the file "));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Config::load(Path::new("/no/such/clqd.toml")).expect_err("not there");
    assert_eq!(error.to_string(), "cannot read /no/such/clqd.toml");
}
