//! Requests of admins over the port: with a token, on loopback or with TLS. And the commands that the
//! documentation shows for the control socket.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::Site;
use super::http::{Answer, connect, read_answer, request};
use crate::sandbox::{Sandbox, wait_until};

/// Makes a token. Returns it, and its section.
fn new_token(sandbox: &Sandbox, name: &str, may: &[&str]) -> (String, String) {
    let permissions = may.iter().flat_map(|what| ["--may", *what]);
    let made = sandbox.ok(["token", "new", name].into_iter().chain(permissions));
    let (token, section) = made.split_once("\n\n").expect("a token and a section");
    (token.to_owned(), section.to_owned())
}

fn post(address: &str, path: &str, token: Option<&str>, body: &Value) -> Answer {
    let body = body.to_string();
    let authorization = token.map_or(String::new(), |token| format!("authorization: Bearer {token}\r\n"));
    let mut stream = connect(address);
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: clqd\r\nconnection: close\r\n{authorization}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    read_answer(&mut stream)
}

fn configure(sandbox: &Sandbox, sections: &[&str]) {
    sandbox.configure(&format!("[web]\nlisten = \"127.0.0.1:0\"\n{}", sections.concat()));
}

#[test]
fn token_permits_what_its_section_says_until_it_is_removed() {
    let sandbox = Sandbox::new("");
    let (ops, of_ops) = new_token(&sandbox, "ops", &["servers", "rescan"]);
    let (reader, of_reader) = new_token(&sandbox, "reader", &["read"]);
    assert!(!of_ops.contains(&ops), "only the hash is configured: {of_ops}");
    configure(&sandbox, &[&of_ops, &of_reader]);
    let site = Site::of(sandbox);
    let add = json!({"urls": ["quake3://127.0.0.1:9"], "tags": ["a"]});
    let send = |path: &str, token: Option<&str>, body: &Value| post(&site.address, path, token, body);

    let answer = send("/api/v1/servers/add", None, &add);
    answer.assert_problem(401, "unauthorized");
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    send("/api/v1/servers/add", Some("clqd_x"), &add).assert_problem(401, "unauthorized");
    send("/api/v1/servers/add", Some(&reader), &add).assert_problem(403, "forbidden");
    let added = send("/api/v1/servers/add", Some(&ops), &add);
    assert_eq!((added.status, added.header("content-type")), (200, Some("application/jsonl")), "{added:?}");
    assert_eq!(added.json(), json!({"kind": "change", "url": "quake3://127.0.0.1:9", "outcome": "added"}));
    let listed = send("/api/v1/servers/list", Some(&reader), &json!({}));
    assert_eq!(listed.json()["url"], "quake3://127.0.0.1:9");
    let refused = send("/api/v1/player/forget", Some(&ops), &json!({"player": "a", "game": "b"}));
    refused.assert_problem(403, "forbidden");
    assert!(refused.text().contains("may rescan, servers; this needs corrections"), "{}", refused.text());
    let backup = json!({"dir": "/tmp/clqd-backup-that-no-token-may-write"});
    send("/api/v1/backup", Some(&ops), &backup).assert_problem(403, "forbidden");
    send("/api/v1/servers/ad", Some(&ops), &add).assert_problem(404, "not_found");
    // Visitors need no token, and a right one changes nothing for them.
    for headers in [String::new(), format!("authorization: Bearer {ops}\r\n")] {
        assert_eq!(request(&site.address, "GET", "/api/v1/servers", &headers).status, 200);
    }
    let log = site.daemon.wait_for_log("a request with a token");
    assert!(log.contains("ops") && log.contains("servers.add") && !log.contains(&ops), "{log}");

    configure(&site.sandbox, &[&of_reader]);
    site.sandbox.ok(["reload"]);
    send("/api/v1/servers/add", Some(&ops), &add).assert_problem(401, "unauthorized");
    assert_eq!(send("/api/v1/servers/list", Some(&reader), &json!({})).status, 200);
    for _ in 0..10 {
        send("/api/v1/servers/add", Some("clqd_x"), &add);
    }
    let limited = send("/api/v1/servers/add", Some("clqd_x"), &add);
    limited.assert_problem(429, "too_many_requests");
    assert_eq!(limited.header("retry-after"), Some("60"));
    assert_eq!(send("/api/v1/servers/list", Some(&reader), &json!({})).status, 200, "its token is right");
    configure(&site.sandbox, &[]);
    site.sandbox.ok(["reload"]);
    send("/api/v1/servers/add", Some(&reader), &add).assert_problem(405, "method_not_allowed");
    site.daemon.stop();
}

#[test]
fn invalid_tokens_of_the_configuration_are_named() {
    let sandbox = Sandbox::new("");
    let token =
        "[[web.token]]\nname = \"a b\"\nhash = \"12\"\nmay = [\"red\"]\nmight = 1\n[[web.token]]\nname = \"x\"\n";
    configure(&sandbox, &[token]);
    let checked = sandbox.run(["check-config"]);
    assert_eq!(checked.status.code(), Some(1));
    for want in [
        "web.token.name: tag \"a b\" is not",
        "web.token.hash: expected the 64 hexadecimal digits that `clqd token new` prints",
        "web.token.may: expected one of read, rescan, servers, corrections",
        "web.token.might: unknown key",
        "web.token: has no key hash; `clqd token new` prints a whole section",
        "web.token: has no key may",
    ] {
        assert!(checked.out.contains(want) || checked.err.contains(want), "{want}: {} {}", checked.out, checked.err);
    }
    let made = sandbox.ok(["token", "new", "deploy", "--may", "rescan", "--json"]);
    let made: Value = serde_json::from_str(&made).expect("JSON");
    assert_eq!((&made["kind"], &made["may"]), (&"token".into(), &json!(["rescan"])));
    assert_eq!(sandbox.run(["token", "new", "deploy", "--may", "all"]).status.code(), Some(2));
}

/// Makes a certificate of `localhost` that signs itself, and its key.
fn certificate(dir: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (cert, key) = (dir.join(format!("{name}.pem")), dir.join(format!("{name}.key")));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout"])
        .args([key.as_os_str(), "-out".as_ref(), cert.as_os_str()])
        .output()
        .expect("openssl");
    assert!(made.status.success(), "{made:?}");
    (cert, key)
}

fn curl(arguments: &[&str]) -> Output {
    Command::new("curl").args(["--silent", "--show-error"]).args(arguments).output().expect("curl")
}

#[test]
fn port_with_a_certificate_speaks_https_and_a_reload_replaces_it() {
    let sandbox = Sandbox::new("");
    let (token, section) = new_token(&sandbox, "ops", &["servers"]);
    let dir = sandbox.state().parent().expect("a directory").to_owned();
    let ((first, first_key), (second, second_key)) = (certificate(&dir, "first"), certificate(&dir, "second"));
    let (cert, key) = (dir.join("cert.pem"), dir.join("cert.key"));
    let install = |from: &Path, from_key: &Path| {
        fs::copy(from, &cert).unwrap();
        fs::copy(from_key, &key).unwrap();
    };
    let tls = format!("tls_cert = {cert:?}\ntls_key = {key:?}\n{section}");
    install(&first, &second_key);
    configure(&sandbox, &[&tls]);
    let mismatch = sandbox.run(["check-config"]);
    let text = mismatch.out + &mismatch.err;
    assert!(text.contains("web.tls_cert: the key does not belong to the certificate"), "{text}");
    configure(&sandbox, &[&tls.replace("tls_key", "# tls_key")]);
    let half = sandbox.run(["check-config"]);
    let text = half.out + &half.err;
    assert!(text.contains("web.tls_key: is empty, but web.tls_cert is not"), "{text}");

    install(&first, &first_key);
    configure(&sandbox, &[&tls]);
    let site = Site::of(sandbox);
    let port = site.address.rsplit_once(':').expect("a port").1;
    let url = |path: &str| format!("https://localhost:{port}{path}");
    let get = |cert: &Path| curl(&["--cacert", cert.to_str().unwrap(), &url("/healthz")]);
    assert_eq!(get(&first).stdout, b"ok\n");
    assert!(!get(&second).status.success(), "another certificate is not accepted");
    assert!(!curl(&[&format!("http://localhost:{port}/healthz")]).status.success(), "there is no http");
    let header = format!("authorization: Bearer {token}");
    let body = r#"{"urls": ["quake3://127.0.0.1:9"]}"#;
    let added =
        curl(&["--cacert", first.to_str().unwrap(), "-H", &header, "--data", body, &url("/api/v1/servers/add")]);
    assert!(String::from_utf8_lossy(&added.stdout).contains("\"outcome\":\"added\""), "{added:?}");

    install(&first, &second_key);
    let refused = site.sandbox.run(["reload"]);
    assert!(refused.err.contains("the key does not belong to the certificate"), "{}", refused.err);
    assert_eq!(get(&first).stdout, b"ok\n", "the old certificate stays in use");
    install(&second, &second_key);
    site.sandbox.ok(["reload"]);
    assert_eq!(get(&second).stdout, b"ok\n");
    site.daemon.stop();
}

/// The commands of `docs/commands.md`, with the socket of this daemon.
#[test]
fn documented_curl_commands_work() {
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/commands.md")).unwrap();
    let section = docs.split("## Control socket").nth(1).expect("a section");
    let code = section.split("```sh\n").nth(1).and_then(|code| code.split("```").next()).expect("commands");
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    let code = code.replace("/run/clqd/control.sock", sandbox.socket().to_str().unwrap());
    let commands: Vec<String> = code.replace("\\\n", " ").lines().map(str::to_owned).collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    let run = |command: &str| {
        let done = Command::new("bash").args(["-c", &format!("{command} --silent --show-error")]).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let added: Value = serde_json::from_str(&run(&commands[0])).expect("a row");
    assert_eq!((&added["outcome"], &added["url"]), (&"added".into(), &"quake3://192.0.2.7:27960".into()));
    let status: Value = serde_json::from_str(&run(&commands[1])).expect("a row");
    assert_eq!(status["kind"], "status");
    // The website is there although it is off.
    let socket = sandbox.socket();
    let over = |path: &str| curl(&["--unix-socket", socket.to_str().unwrap(), &format!("http://clqd{path}")]).stdout;
    assert_eq!(over("/healthz"), b"ok\n");
    wait_until("the server is listed", || String::from_utf8_lossy(&over("/api/v1/servers")).contains("192.0.2.7"));
    daemon.stop();
}
