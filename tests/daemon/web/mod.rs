//! The web interface as its clients see it: routes, errors, caching, limits, and what visitors
//! must not see. The daemon is the real one, with a few simulated servers.

mod api;
mod banners;
mod caching;
mod health;
mod history;
#[path = "../../support/http.rs"]
pub(crate) mod http;
mod limits;
mod metrics;
mod monitoring;
mod moved;
pub(crate) mod openapi;
mod pages;
mod tokens;

use clqd::fleet::{FaultShares, Fleet};

use crate::sandbox::{Daemon, Sandbox, WEB_WITHOUT_RATE_LIMIT, fleet, wait_until};

/// The public address of [`Site::with_history`].
const PUBLIC_URL: &str = "https://stats.example.org";

/// Recorded scans of a week of several servers.
const SCAN_LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/scan-log.jsonl");

/// A daemon with a web interface on a free port.
struct Site {
    sandbox: Sandbox,
    daemon: Daemon,
    address: String,
}

impl Site {
    /// `settings` are further keys of `[web]`.
    fn start(settings: &str) -> Site {
        Site::configured(|sandbox, web| sandbox.configure(&format!("{web}{settings}")))
    }

    /// `configure` writes the config file; it gets the section `[web]`.
    fn configured(configure: impl FnOnce(&Sandbox, &str)) -> Site {
        let sandbox = Sandbox::new("");
        configure(&sandbox, "[web]\nlisten = \"127.0.0.1:0\"\n");
        Site::of(sandbox)
    }

    /// Starts the daemon.
    fn of(sandbox: Sandbox) -> Site {
        let daemon = sandbox.start();
        let address = sandbox.status()["daemon"]["web"].as_str().expect("an address").to_owned();
        Site { sandbox, daemon, address }
    }

    /// A site at [`PUBLIC_URL`] whose state is that of the recorded scans, which are from 2025-W47. A test may
    /// request more than a visitor.
    fn with_history() -> Site {
        let sandbox = Sandbox::new("");
        sandbox.ok(["replay".as_ref(), SCAN_LOG.as_ref(), "--state".as_ref(), sandbox.state().as_os_str()]);
        sandbox.configure(&format!("{WEB_WITHOUT_RATE_LIMIT}public_url = \"{PUBLIC_URL}\"\n"));
        Site::of(sandbox)
    }

    /// Starts a daemon in a sandbox that may have a state.
    fn start_in(sandbox: Sandbox) -> Site {
        sandbox.configure(WEB_WITHOUT_RATE_LIMIT);
        Site::of(sandbox)
    }

    /// A site that has seen all servers of a fleet.
    fn with_fleet(servers: u32, seed: u64) -> (Site, Fleet) {
        let fleet = fleet(servers, seed, 60.0, FaultShares::NONE);
        let site = Site::start("");
        site.sandbox.add_servers(&fleet);
        wait_until("every server is seen", || {
            let list = site.sandbox.list(&[]);
            list.iter().filter(|server| !server["last_seen_ms"].is_null()).count() == servers as usize
        });
        (site, fleet)
    }

    fn get(&self, path: &str) -> http::Answer {
        http::get(&self.address, path)
    }
}
