//! The certificate of the port.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// The files of a certificate and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, then those of its issuers.
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} has no {what} in PEM", path.display())]
    NoPem { path: PathBuf, what: &'static str },
    #[error("the key does not belong to the certificate, or one of them cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

impl TlsFiles {
    /// Reads both files.
    pub fn load(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let certs = CertificateDer::pem_file_iter(&self.cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let certs = certs.map_err(|error| unreadable(&self.cert, "certificate", error))?;
        if certs.is_empty() {
            return Err(TlsError::NoPem { path: self.cert.clone(), what: "certificate" });
        }
        let key =
            PrivateKeyDer::from_pem_file(&self.key).map_err(|error| unreadable(&self.key, "private key", error))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?.with_no_client_auth();
        let mut config = builder.with_single_cert(certs, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn unreadable(path: &Path, what: &'static str, error: pem::Error) -> TlsError {
    let path = path.to_owned();
    match error {
        pem::Error::Io(source) => TlsError::Read { path, source },
        _ => TlsError::NoPem { path, what },
    }
}
