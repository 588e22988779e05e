//! `clqd servers import --master` and the scheduled imports: a fleet whose master server lists
//! its servers, or a website with a JSON list, a daemon, and the command.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};

use crate::sandbox::{QUICK_TIMEOUTS, Sandbox, fleet, fleet_of, silent_socket, wait_until};
use clqd::fleet::FaultShares;

#[test]
fn servers_of_a_master_are_imported_and_scanned() {
    let mut fleet = fleet(12, 7, 1.0, FaultShares::NONE);
    let port = fleet.serve_master(0).expect("a free port");
    let urls = fleet.urls();
    let of = |scheme: &str| urls.iter().filter(|url| url.starts_with(scheme)).count();
    let (quake3, source) = (of("quake3"), of("source"));
    assert!(quake3 > 0 && source > 0 && quake3 + source == urls.len());
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    let (dpmaster, steam) = (format!("dpmaster://127.0.0.1:{port}/68"), format!("steammaster://127.0.0.1:{port}"));

    let out = sandbox.ok(["servers", "import", "--master", &dpmaster, "--tag", "q3"]);
    assert!(out.starts_with(&format!("{quake3} added, 0 already known, 0 refused\n")), "{out}");
    // The same servers by another request, and those of another master.
    let extended = format!("dpmaster://127.0.0.1:{port}/Quake3Arena/68");
    let rows = sandbox.json(["servers", "import", "--master", &extended, "--master", &steam]);
    let count = |outcome: &str| rows.iter().filter(|row| row["outcome"] == outcome).count();
    assert_eq!((count("added"), count("unchanged"), rows.len()), (source, quake3, urls.len()));
    assert_eq!(sandbox.list(&["--tag", "q3"]).len(), quake3);
    wait_until("every server is seen", || {
        sandbox.list(&[]).iter().filter(|server| !server["last_seen_ms"].is_null()).count() == urls.len()
    });
    let mut known: Vec<String> = sandbox.list(&[]).iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect();
    known.sort();
    let mut want = urls;
    want.sort();
    assert_eq!(known, want);
    daemon.stop();
}

#[test]
fn teeworlds_masters_of_both_versions_are_imported_and_scanned() {
    let protocols = "teeworlds=0.4,teeworlds7=0.6".parse().expect("protocols");
    let mut fleet = fleet_of(protocols, 12, 7, 1.0, FaultShares::NONE);
    let port = fleet.serve_master(0).expect("a free port");
    let mut urls = fleet.urls();
    let count = |scheme: &str| urls.iter().filter(|url| url.starts_with(scheme)).count();
    let (version6, version7) = (count("teeworlds://"), count("teeworlds7://"));
    assert!(version6 > 0 && version7 > 0 && version6 + version7 == urls.len());
    // The servers of 0.7 by the command, those of 0.6 by the configuration.
    let import = format!("[[import]]\nmaster = \"teeworldsmaster://127.0.0.1:{port}\"\n");
    let sandbox = Sandbox::new(&import);
    let daemon = sandbox.start();
    let master = format!("teeworlds7master://127.0.0.1:{port}");
    let imported = sandbox.run(["servers", "import", "--master", &master, "--tag", "tw7"]);
    let summary = format!("{version7} added, 0 already known, 0 refused\n");
    assert!(imported.out.starts_with(&summary), "{}{}", imported.out, imported.err);
    assert_eq!(sandbox.list(&["--tag", "tw7"]).len(), version7);
    daemon.wait_for_log(&format!("new={version6} known=0 refused=0 dropped=\"none\""));
    wait_until("every server is seen", || {
        sandbox.list(&[]).iter().filter(|server| !server["last_seen_ms"].is_null()).count() == urls.len()
    });
    let mut known: Vec<String> = sandbox.list(&[]).iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect();
    known.sort();
    urls.sort();
    assert_eq!(known, urls);
    daemon.stop();
}

#[test]
fn private_servers_of_a_master_are_dropped_unless_allowed() {
    let mut fleet = fleet(12, 7, 1.0, FaultShares::NONE);
    let port = fleet.serve_master(0).expect("a free port");
    let quake3 = fleet.urls().iter().filter(|url| url.starts_with("quake3")).count();
    let sandbox = Sandbox::new("");
    let config = std::fs::read_to_string(sandbox.config()).unwrap();
    std::fs::write(sandbox.config(), config.replace("allow_private = true", "allow_private = false")).unwrap();
    let daemon = sandbox.start();
    let out = sandbox.ok(["servers", "import", "--master", &format!("dpmaster://127.0.0.1:{port}/68")]);
    assert_eq!(out, format!("0 added, 0 already known, 0 refused\ndropped: {quake3} not public\n"));
    assert!(sandbox.list(&[]).is_empty());
    daemon.stop();
}

#[test]
fn json_list_is_imported_and_bad_arguments_are_refused() {
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    let list = sandbox.path("list.json");
    let text = r#"{"response":{"servers":[{"addr":"127.0.0.1:1025"},{"addr":"127.0.0.1:0"},{"addr":"host:1"}]}}"#;
    std::fs::write(&list, text).unwrap();
    let path = list.display().to_string();
    let imported = sandbox.run(["servers", "import", &path, "--tag", "steam"]);
    assert_eq!(imported.status.code(), Some(1), "{}", imported.err);
    let summary =
        "1 added, 0 already known, 1 refused\ndropped: 1 with a port below 1024\nservers that do not answer are";
    assert!(imported.out.starts_with(summary), "{}", imported.out);
    assert!(imported.err.contains("host:1: not an address with a port"), "{}", imported.err);
    assert_eq!(sandbox.list(&["--tag", "steam"])[0]["url"], "source://127.0.0.1:1025");

    // A scheme for a list that has its own.
    std::fs::write(&list, "quake3://127.0.0.1:1\n").unwrap();
    let refused = sandbox.run(["servers", "import", &path, "--scheme", "source"]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.err);
    // A port without a master.
    let closed = "127.9.98.1:1";
    let refused = sandbox.run(["servers", "import", "--master", &format!("dpmaster://{closed}/68")]);
    assert_eq!((refused.status.code(), refused.out.as_str()), (Some(1), ""));
    assert!(refused.err.contains(&format!("dpmaster://{closed}/68: cannot query {closed}")), "{}", refused.err);
    daemon.stop();
}

/// Gives each response to one request, in order.
fn website(responses: &'static [&'static str]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for response in responses {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(&stream).lines().map(Result::unwrap);
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            stream.write_all(response.as_bytes()).unwrap();
        }
    });
    address
}

const JSON_LIST: &str = concat!(
    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
    r#"{"response":{"servers":[{"addr":"127.0.0.1:1025"},{"addr":"127.0.0.1:1026"},{"addr":"host:1"}]}}"#
);

#[test]
fn json_list_of_a_website_is_imported_and_its_key_is_not_printed() {
    let address = website(&["HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", JSON_LIST]);
    let url = format!("http://{address}/list?key=SECRET");
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    let failed = sandbox.run(["servers", "import", "--master", &url]);
    assert_eq!((failed.status.code(), failed.out.as_str()), (Some(1), ""));
    let want = format!("http://{address}/list: the website responded with status 404 Not Found");
    assert!(failed.err.contains(&want) && !failed.err.contains("SECRET"), "{}", failed.err);
    let imported = sandbox.run(["servers", "import", "--master", &url, "--tag", "steam"]);
    let summary = "2 added, 0 already known, 1 refused\n";
    assert!(imported.out.starts_with(summary), "{}{}", imported.out, imported.err);
    assert!(imported.err.contains("host:1: not an address") && !imported.err.contains("SECRET"), "{}", imported.err);
    assert_eq!(sandbox.list(&["--tag", "steam"])[0]["url"], "source://127.0.0.1:1025");
    for arguments in [&["--master", "https://h/ ?key=SECRET"][..], &["http://h/?key=SECRET"]] {
        let refused = sandbox.run([&["servers", "import"], arguments].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", refused.err);
        assert!(!refused.err.contains("SECRET"), "{}", refused.err);
    }
    daemon.stop();
}

/// A website lists a server that does not answer; the second import scans it, the third does not. The key in its URL is
/// not logged.
#[test]
fn scheduled_import_scans_servers_that_did_not_answer() {
    let (socket, url) = silent_socket();
    let response: &'static str = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{{\"response\":{{\"servers\":\
         [{{\"addr\":\"{}\"}},{{\"addr\":\"host:1\"}}]}}}}",
        url.strip_prefix("quake3://").unwrap()
    )
    .leak();
    let address = website(vec![response; 3].leak());
    let section = |tag: &str| {
        let master = format!("http://{address}/list?key=SECRET");
        format!("[[import]]\nmaster = {master:?}\nscheme = \"quake3\"\ntags = [{tag:?}]\n")
    };
    let sandbox = Sandbox::new("");
    sandbox.configure_scan(QUICK_TIMEOUTS, &section("first"));
    let daemon = sandbox.start();
    daemon.wait_for_log("new=1 known=0 refused=1 dropped=\"none\"");
    let show = || sandbox.json(["servers", "show", &url])[0].clone();
    wait_until("the first scan failed", || !sandbox.list(&["--class", "7"]).is_empty());
    for (tag, want) in [("second", "scans_requested=1 not_answering=0"), ("third", "scans_requested=0 not_answering=1")]
    {
        sandbox.configure_scan(QUICK_TIMEOUTS, &section(tag));
        sandbox.ok(["reload"]);
        daemon.wait_for_log(want);
        wait_until("no scan is in progress", || show()["scan_in_progress"] == false);
        assert_eq!(show()["missed"], 2, "{tag}");
    }
    let log = daemon.stop();
    assert!(log.contains(&format!("http://{address}/list")) && !log.contains("SECRET"), "{log}");
    drop(socket);
}

#[test]
fn scheduled_import_adds_servers_and_is_reloaded() {
    let mut fleet = fleet(6, 7, 1.0, FaultShares::NONE);
    let port = fleet.serve_master(0).expect("a free port");
    let urls = fleet.urls();
    let section = |tag: &str| {
        format!("[[import]]\nmaster = \"dpmaster://127.0.0.1:{port}/68\"\ntags = [{tag:?}]\nevery_s = 3600\n")
    };
    let sandbox = Sandbox::new(&section("first"));
    let daemon = sandbox.start();
    let quake3 = urls.iter().filter(|url| url.starts_with("quake3")).count();
    daemon.wait_for_log(&format!("new={quake3} known=0 refused=0 dropped=\"none\""));
    assert_eq!(sandbox.list(&["--tag", "first"]).len(), quake3);
    sandbox.configure(&section("second"));
    assert!(sandbox.run(["reload"]).err.contains("changed: import"));
    daemon.wait_for_log(&format!("new=0 known={quake3}"));
    assert_eq!(sandbox.list(&["--tag", "second"]).len(), quake3);
    daemon.stop();
}

/// A list of 1,100 servers after one of two. It is refused until an admin accepts it; then its servers are
/// known.
#[test]
fn list_that_is_much_longer_than_the_last_one_must_be_accepted() {
    let response = |servers: usize| {
        let address = |n: usize| format!("{{\"addr\":\"127.1.{}.{}:27960\"}}", n / 250, 1 + n % 250);
        let servers: Vec<String> = (0..servers).map(address).collect();
        let body = format!("{{\"response\":{{\"servers\":[{}]}}}}", servers.join(","));
        &*format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}").leak()
    };
    let responses: Vec<&str> = (0..9).map(|n| response(if n == 0 { 2 } else { 1_100 })).collect();
    let address = website(responses.leak());
    let url = format!("http://{address}/");
    let sandbox = Sandbox::new(&format!("[[import]]\nmaster = {url:?}\n"));
    for (want, known) in [("new=2", 2), ("more than ten times as long as the last one", 2)] {
        let daemon = sandbox.start();
        daemon.wait_for_log(want);
        assert_eq!(sandbox.list(&[]).len(), known);
        daemon.stop();
    }
    let daemon = sandbox.start();
    let out = sandbox.ok(["servers", "import", "--master", &url, "--force"]);
    assert!(out.starts_with("1,098 added, 2 already known") || out.starts_with("1098 added, 2 already known"), "{out}");
    daemon.stop();
    let daemon = sandbox.start();
    daemon.wait_for_log("new=0 known=1100");
    daemon.stop();
}

/// Silent servers: one was added by hand, one was imported, one was imported and then added by hand; and one
/// was imported lately.
#[test]
fn imported_servers_that_never_answer_are_removed_and_not_imported_again() {
    let sandbox = Sandbox::new("");
    let url = |n: u8| format!("quake3://127.9.3.{n}:27960");
    let line = |days_ago: i64, fields: &str, n: u8| {
        let t = chrono::Utc::now().timestamp_millis() - days_ago * 86_400_000;
        format!("{{\"t\":{t},\"{fields},\"server\":\"{}\"}}\n", url(n))
    };
    let add = "command\":\"add\"";
    let import = "command\":\"add\",\"import\":true";
    let miss = "miss\":true";
    let log: String = [
        line(20, add, 1),
        line(20, import, 2),
        line(20, import, 3),
        line(19, add, 3),
        line(18, miss, 1),
        line(18, miss, 2),
        line(18, miss, 3),
        line(3, import, 4),
        line(2, miss, 4),
    ]
    .concat();
    let file = sandbox.path("commands.jsonl");
    std::fs::write(&file, log).unwrap();
    sandbox.replay(&file, &sandbox.state());
    let daemon = sandbox.start();
    daemon.wait_for_log("servers=1");
    let listed = || sandbox.list(&[]).iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    wait_until("the silent server is removed", || listed() == [url(1), url(3), url(4)]);
    let list = sandbox.path("list.txt");
    std::fs::write(&list, format!("{}\n{}\n", url(2), url(4))).unwrap();
    let out = sandbox.ok(["servers", "import", list.to_str().unwrap()]);
    assert!(out.starts_with("0 added, 2 already known, 0 refused"), "{out}");
    assert_eq!(listed().len(), 3);
    // By hand it is added again.
    assert!(sandbox.ok(["servers", "add", &url(2)]).contains("restored"), "by hand");
    daemon.stop();
}
