//! TLS to a MariaDB with a certificate, with wrong authorities, with a certificate of the client, and to one without TLS;
//! and accounts whose method of authentication is known, or not.

use std::path::PathBuf;
use std::sync::Arc;

use crate::database::{Database, Server};
use clqd::archive::{Archive, ArchiveError, ArchiveSettings, FaultKind, Tls};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls").join(name)
}

fn server_with_tls() -> Server {
    let option = |name: &str, file_name: &str| format!("--{name}={}", file(file_name).display());
    let options = [option("ssl-ca", "ca.pem"), option("ssl-cert", "server.pem"), option("ssl-key", "server.key")];
    Server::start_with(&options.each_ref().map(String::as_str))
}

/// The cipher of a connection; empty: it is not encrypted.
async fn cipher(settings: &ArchiveSettings) -> Result<String, ArchiveError> {
    let mut archive = Archive::connect(settings).await?;
    let cipher = archive.cipher().await?;
    archive.close().await;
    Ok(cipher)
}

async fn refused(settings: &ArchiveSettings, kind: FaultKind, words: &[&str]) {
    let error = cipher(settings).await.expect_err("it is refused");
    let message = error.to_string();
    assert_eq!(error.kind(), kind, "{message}");
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
}

#[tokio::test]
async fn connection_is_encrypted_as_the_settings_demand() {
    let database = Database::on_server(Arc::new(server_with_tls())).await;
    database.migrate().await;
    let with = |tls| ArchiveSettings { tls, ..database.settings() };
    assert_eq!(cipher(&with(Tls::Off)).await.unwrap(), "");
    for tls in [Tls::Preferred, Tls::Required] {
        assert_ne!(cipher(&with(tls)).await.unwrap(), "", "{tls:?}");
    }
    let verified = ArchiveSettings { tls_ca: file("ca.pem"), ..with(Tls::Verify) };
    assert_ne!(cipher(&verified).await.unwrap(), "");
    // Rows are written through it, also by LOAD DATA.
    let outbox = crate::database::world::Outbox::new(5);
    let (status, seen) = tokio::sync::watch::channel(clqd::archive::WorkerStatus::default());
    clqd::archive::run(verified.clone(), outbox.clone(), || 1, async {}, status).await;
    assert_eq!((seen.borrow().failures, seen.borrow().fault.clone()), (0, None));
    assert!(seen.borrow().rows_written > 10);

    refused(&with(Tls::Verify), FaultKind::Tls, &["UnknownIssuer"]).await;
    let other = ArchiveSettings { tls_ca: file("other-ca.pem"), ..with(Tls::Verify) };
    refused(&other, FaultKind::Tls, &["invalid peer certificate"]).await;
    // The certificate is that of 127.0.0.1.
    let named = ArchiveSettings { url: verified.url.replace("127.0.0.1", "localhost"), ..verified.clone() };
    refused(&named, FaultKind::Tls, &["not valid for"]).await;
    for (settings, words) in [
        (ArchiveSettings { tls_ca: "/nowhere.pem".into(), ..with(Tls::Verify) }, "archive.tls_ca /nowhere.pem"),
        (ArchiveSettings { tls_ca: file("../scan-log.jsonl"), ..with(Tls::Verify) }, "not a PEM file"),
        (ArchiveSettings { tls_cert: file("client.pem"), ..with(Tls::Verify) }, "tls_key"),
        (ArchiveSettings { tls_ca: file("ca.pem"), ..with(Tls::Off) }, "archive.tls is"),
        (ArchiveSettings { url: format!("{}?require_ssl=true", verified.url), ..verified.clone() }, "set archive.tls"),
    ] {
        refused(&settings, FaultKind::Settings, &[words]).await;
    }

    // An account that demands a certificate of the client.
    let grant = format!("GRANT ALL ON {}.* TO 'certified'@'%'", database.name());
    database.run("CREATE USER 'certified'@'%' IDENTIFIED BY 'c' REQUIRE X509").await;
    database.run(&grant).await;
    let certified = ArchiveSettings { url: verified.url.replace("test:test@", "certified:c@"), ..verified };
    refused(&certified, FaultKind::AccessDenied, &["certified"]).await;
    let identity = ArchiveSettings { tls_cert: file("client.pem"), tls_key: file("client.key"), ..certified.clone() };
    assert_ne!(cipher(&identity).await.unwrap(), "");
    let wrong = ArchiveSettings { tls_cert: file("client.pem"), tls_key: file("server.key"), ..certified };
    refused(&wrong, FaultKind::Tls, &[]).await;
}

#[tokio::test]
async fn server_without_tls_is_used_only_if_the_settings_allow_it() {
    let database = Database::on_server(Arc::new(Server::start_with(&["--skip-ssl"]))).await;
    let with = |tls| ArchiveSettings { tls, ..database.settings() };
    for tls in [Tls::Off, Tls::Preferred] {
        assert_eq!(cipher(&with(tls)).await.unwrap(), "", "{tls:?}");
    }
    for tls in [Tls::Required, Tls::Verify] {
        refused(&with(tls), FaultKind::Tls, &["does not offer it"]).await;
    }
}

#[tokio::test]
async fn accounts_log_in_by_known_methods_and_others_are_named() {
    let database = Database::on_server(Arc::new(Server::start_with(&["--plugin-load-add=auth_ed25519"]))).await;
    database.run("CREATE USER 'modern'@'%' IDENTIFIED VIA ed25519 USING PASSWORD('secret')").await;
    database.run("CREATE USER 'local'@'%' IDENTIFIED VIA unix_socket").await;
    for user in ["modern", "local"] {
        database.run(&format!("GRANT ALL ON {}.* TO '{user}'@'%'", database.name())).await;
    }
    let url = |account: &str| database.url().replace("test:test@", account);
    let with = |account: &str| ArchiveSettings { url: url(account), ..database.settings() };
    assert_eq!(cipher(&with("modern:secret@")).await.unwrap(), "");
    refused(&with("modern:wrong@"), FaultKind::AccessDenied, &["modern"]).await;
    refused(&with("local:x@"), FaultKind::AccessDenied, &["local", "1698"]).await;
}
