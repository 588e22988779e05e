//! Checks whether the configured paths are compatible with each other and with existing
//! files, and whether the machine has the configured address. Inspects files and changes none.

#![cfg_attr(not(test), expect(clippy::disallowed_types, reason = "looks whether the machine has the address"))]

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

use super::Config;
use super::module_settings::SiteFileError;
use crate::web::{TlsError, TlsFiles};

/// Directory for rebuilt windows: in the state directory, since the daemon may write
/// nowhere else. It is not part of the state, and is deleted at every start.
pub fn rebuild_dir(state_dir: &Path) -> PathBuf {
    state_dir.join("rebuild")
}

/// A message about the value of a key.
pub(super) type Finding = (&'static str, String);

/// Conflicts between paths, independent of existing files.
pub(super) fn conflicts(config: &Config) -> Vec<Finding> {
    conflicts_with(config, absolute)
}

/// Problems with existing files.
#[derive(Debug, Default)]
pub(super) struct PathReport {
    pub(super) problems: Vec<Finding>,
    /// Notes on files that this user may not inspect.
    pub(super) notes: Vec<Finding>,
}

/// Inspects the files of the configured paths.
pub(super) fn check_files(config: &Config) -> PathReport {
    // Links may lead to the same file.
    let mut found = PathReport { problems: conflicts_with(config, canonical), notes: Vec::new() };
    found.add("state_dir", directory(&config.state_dir));
    found.add("control_socket", control_socket(&config.control_socket));
    if config.capture.is_enabled() {
        found.add("capture.dir", directory(&config.capture.dir));
    }
    if !config.archive.password_file.as_os_str().is_empty() {
        found.add("archive.password_file", password_file(&config.archive.password_file));
    }
    if let Some(address) = config.web_settings().listen {
        found.add("web.listen", listen_address(address));
    }
    if let Some(files) = config.tls_files() {
        found.add("web.tls_cert", certificate(&files));
    }
    found.add("site.logo", site_file(config.logo()));
    found.add("site.games", site_file(config.own_games()));
    found.add("geo.database", site_file(config.countries()));
    found
}

/// Why a file cannot be used.
enum PathError {
    Problem(String),
    /// This user may not inspect it; the daemon may run as another user.
    NotAllowed(String),
}

impl PathReport {
    fn add(&mut self, key: &'static str, looked: Result<(), PathError>) {
        match looked {
            // The conflict is reported already.
            _ if self.problems.iter().any(|(of, _)| *of == key) => {}
            Ok(()) => {}
            Err(PathError::Problem(problem)) => self.problems.push((key, problem)),
            Err(PathError::NotAllowed(note)) => self.notes.push((key, note)),
        }
    }
}

fn conflicts_with(config: &Config, place: impl Fn(&Path) -> PathBuf) -> Vec<Finding> {
    let mut found = Vec::new();
    let (state, socket) = (place(&config.state_dir), place(&config.control_socket));
    let rebuild = rebuild_dir(&state);
    let shown = |path: &Path| path.display().to_string();
    if socket == state {
        found.push(("control_socket", format!("{} is state_dir, a directory; name a file", shown(&socket))));
    } else if state.starts_with(&socket) {
        let state = shown(&state);
        found.push(("control_socket", format!("{} is a directory: state_dir, {state}, is inside it", shown(&socket))));
    } else if socket.starts_with(&rebuild) {
        let rebuild = shown(&rebuild);
        found.push(("control_socket", format!("{} is inside {rebuild}, which clqd deletes", shown(&socket))));
    }
    if config.capture.is_enabled() {
        let dir = place(&config.capture.dir);
        if dir.starts_with(&state) {
            let state = shown(&state);
            found.push((
                "capture.dir",
                format!(
                    "{} is inside state_dir, {state}, where only clqd may write; name a directory outside it",
                    shown(&dir)
                ),
            ));
        } else if dir.starts_with(&socket) {
            found.push(("capture.dir", format!("{} is control_socket; name a directory", shown(&socket))));
        }
    }
    found
}

fn directory(path: &Path) -> Result<(), PathError> {
    match file_type_of(path)? {
        Some(kind) if !kind.is_dir() => Err(PathError::Problem(format!("{} is not a directory", path.display()))),
        _ => Ok(()),
    }
}

fn control_socket(path: &Path) -> Result<(), PathError> {
    match file_type_of(path)? {
        Some(kind) if kind.is_dir() => {
            Err(PathError::Problem(format!("{} is a directory; name a file in it", path.display())))
        }
        Some(kind) if !kind.is_socket() => {
            Err(PathError::Problem(format!("{} exists and is not a socket; move it away", path.display())))
        }
        _ => Ok(()),
    }
}

fn certificate(files: &TlsFiles) -> Result<(), PathError> {
    match files.load() {
        Ok(_) => Ok(()),
        Err(TlsError::Read { path, source }) if source.kind() == ErrorKind::PermissionDenied => {
            Err(PathError::NotAllowed(format!("{} cannot be read by this user", path.display())))
        }
        Err(error) => Err(PathError::Problem(format!("{:#}", anyhow::Error::new(error)))),
    }
}

fn site_file<T>(read: Result<Option<T>, SiteFileError>) -> Result<(), PathError> {
    match read {
        Ok(_) => Ok(()),
        Err(SiteFileError::Read { path, source }) => Err(unusable("read", &path, source)),
        Err(error) => Err(PathError::Problem(error.to_string())),
    }
}

/// Whether this machine has the address. It binds any free port, because the daemon may use the
/// configured one.
fn listen_address(mut address: SocketAddr) -> Result<(), PathError> {
    address.set_port(0);
    match TcpListener::bind(address) {
        Ok(_) => Ok(()),
        Err(error) => Err(PathError::Problem(format!("cannot listen at {}: {error}", address.ip()))),
    }
}

fn password_file(path: &Path) -> Result<(), PathError> {
    match fs::File::open(path).and_then(|file| file.metadata()) {
        Ok(found) if found.is_dir() => Err(PathError::Problem(format!("{} is a directory", path.display()))),
        Ok(_) => Ok(()),
        Err(error) => Err(unusable("read", path, error)),
    }
}

/// The type of the file at a path; `None`: it does not exist, but can be created.
fn file_type_of(path: &Path) -> Result<Option<fs::FileType>, PathError> {
    match fs::metadata(path) {
        Ok(found) => Ok(Some(found.file_type())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable("look at", path, error)),
    }
}

fn unusable(what: &str, path: &Path, error: io::Error) -> PathError {
    let text = format!("cannot {what} {}: {error}", path.display());
    match error.kind() {
        ErrorKind::PermissionDenied => PathError::NotAllowed(text),
        _ => PathError::Problem(text),
    }
}

/// The absolute path, without `.` and `..`.
fn absolute(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}

/// As above, with links resolved as far as the path exists.
fn canonical(path: &Path) -> PathBuf {
    let path = absolute(path);
    let exists = path.ancestors().find_map(|part| Some((part, fs::canonicalize(part).ok()?)));
    let Some((part, mut real)) = exists else { return path };
    real.extend(path.strip_prefix(part).expect("an ancestor").components());
    real
}
