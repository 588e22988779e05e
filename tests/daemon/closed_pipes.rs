//! Commands whose standard output and standard error are pipes that nobody reads any
//! more, as with `clqd servers import FILE 2>&1 | head -1`.

use std::io::PipeWriter;

use crate::sandbox::{QUICK_TIMEOUTS, Sandbox, silent_socket};

/// A pipe without a reader.
fn closed_pipe() -> PipeWriter {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer
}

/// Runs a command that nobody reads. Returns its exit code.
fn run_unread(sandbox: &Sandbox, args: &[&str]) -> Option<i32> {
    let mut command = sandbox.command(args);
    command.stdout(closed_pipe()).stderr(closed_pipe()).status().expect("clqd starts").code()
}

#[test]
fn import_and_add_whose_output_is_not_read_add_all_servers() {
    let sandbox = Sandbox::new("");
    sandbox.configure_scan(QUICK_TIMEOUTS, "");
    let daemon = sandbox.start();
    let list = sandbox.path("servers.txt");
    std::fs::write(&list, "nonsense\nquake3://127.0.0.1:1\nquake3://127.0.0.1:2\nxonotik://h\n").unwrap();
    for json in [&[][..], &["--json"]] {
        let args = [json, &["servers", "import", list.to_str().unwrap()]].concat();
        let code = run_unread(&sandbox, &args);
        assert_eq!(code, Some(1), "two lines are refused");
    }
    assert_eq!(sandbox.list(&[]).len(), 2);
    let (_socket, silent) = silent_socket();
    let silent = silent.replace("quake3://", "");
    assert_eq!(run_unread(&sandbox, &["servers", "add", &silent, "quake3://127.0.0.1:3"]), Some(1));
    assert_eq!(sandbox.list(&[]).len(), 3);
    daemon.stop();
}

#[test]
fn no_command_panics_when_nobody_reads_its_output() {
    let sandbox = Sandbox::new("");
    let lines = [
        "status",
        "--json status",
        "servers list",
        "servers list --tag nothing",
        "servers show quake3://127.0.0.1:9",
        "rescan --all-unknown",
        "top quake3://127.0.0.1:1",
        "board windows",
        "reload",
        "check-config",
        "migrate --print",
        "query --file /dev/stdin",
        "player nobody",
        "statsu",
        "--json statsu",
    ];
    let check = || {
        for line in lines {
            let code = run_unread(&sandbox, &line.split(' ').collect::<Vec<_>>());
            assert!(matches!(code, Some(0..=2)), "{line}: {code:?}");
        }
    };
    let daemon = sandbox.start();
    sandbox.ok(["servers", "add", "quake3://127.0.0.1:1"]);
    check();
    daemon.stop();
    check();
}
