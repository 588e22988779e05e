//! The HTTP client of scanners and of engines that join a cluster.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// `ca`: a PEM file with the authority of the certificate; `None`: those of the system's list. `timeout`: of a whole
/// request.
pub fn new(ca: Option<&Path>, timeout: Option<Duration>) -> anyhow::Result<ureq::Agent> {
    let mut tls = TlsConfig::builder();
    if let Some(path) = ca {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let certificate =
            Certificate::from_pem(&bytes).with_context(|| format!("{} is no certificate in PEM", path.display()))?;
        tls = tls.root_certs(RootCerts::Specific(Arc::new(vec![certificate])));
    }
    let config = ureq::Agent::config_builder()
        .user_agent(concat!("clqd/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_global(timeout)
        // A redirect could send the token elsewhere.
        .max_redirects(0)
        .http_status_as_error(false)
        .tls_config(tls.build());
    Ok(config.build().new_agent())
}
