//! Checks `systemd/clqd.service` with `systemd-analyze`. The test fails without it; `tests/run`
//! installs it.

use std::path::Path;
use std::process::Command;

#[test]
fn unit_passes_systemd_analyze() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd/clqd.service");
    let text = std::fs::read_to_string(&unit).expect("the unit");
    // systemd refuses a unit whose program does not exist; use the program under test.
    let installed = text.replace("/usr/bin/clqd", env!("CARGO_BIN_EXE_clqd"));
    assert_ne!(installed, text, "the unit runs /usr/bin/clqd");
    let dir = tempfile::tempdir().expect("a directory");
    let copy = dir.path().join("clqd.service");
    std::fs::write(&copy, installed).expect("written");
    match Command::new("systemd-analyze").arg("verify").arg("--man=no").arg(&copy).output() {
        Ok(done) => {
            let printed = String::from_utf8_lossy(&done.stderr);
            let warnings: Vec<&str> = printed.lines().filter(|line| line.contains("clqd")).collect();
            assert!(done.status.success() && warnings.is_empty(), "systemd-analyze verify: {}\n{printed}", done.status);
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            panic!("systemd-analyze is not installed; on Debian: apt-get install systemd")
        }
        Err(error) => panic!("systemd-analyze: {error}"),
    }
}
