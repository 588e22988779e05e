//! `clqd cluster demo`: its parts are killed, and the others go on.

use crate::sandbox::Sandbox;

#[test]
#[ignore = "starts a cluster; tests/run --cluster"]
fn demonstration_heals() {
    let arguments = "cluster demo --plain --servers 40 --seconds 50 --kill-every 12";
    let said = Sandbox::new("").ok(arguments.split(' '));
    for want in ["3 nodes ready, 3 engines", "is killed", "starts again", " leads, ", "all servers are scanned again, "]
    {
        assert!(said.contains(want), "{want}: {said}");
    }
    assert!(said.contains("The demo has ended"), "{said}");
}
