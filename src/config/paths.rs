//! Checks whether the configured paths are compatible with each other and with existing
//! files, and whether the machine has the configured address. Inspects files and changes none.

#![cfg_attr(not(test), expect(clippy::disallowed_types, reason = "looks whether the machine has the address"))]

use std::ffi::CString;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use nix::unistd::{Gid, Uid, User, geteuid, getgrouplist};

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
    for (key, path) in config.archive.tls_files() {
        if config.archive.is_enabled() && !path.as_os_str().is_empty() {
            found.add(key, pem_file(path));
        }
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

/// Notes for root, whose own permissions say nothing: files and ports that the owner of state_dir may not use. The daemon
/// runs as that user. `file`: the configuration.
pub(super) fn notes_on_owner(config: &Config, file: &Path) -> Vec<Finding> {
    let owner = fs::metadata(&config.state_dir).ok().and_then(|dir| User::from_uid(dir.uid().into()).ok()?);
    let Some(owner) = owner.filter(|owner| geteuid().is_root() && !owner.uid.is_root()) else { return Vec::new() };
    let groups = CString::new(&*owner.name).ok().and_then(|name| getgrouplist(&name, owner.gid).ok());
    let groups = groups.unwrap_or_else(|| vec![owner.gid]);
    let (archive, web, site) = (&config.archive, &config.web, &config.site);
    let files = [
        ("this file", file),
        ("archive.password_file", &archive.password_file),
        ("web.tls_cert", &web.tls_cert),
        ("web.tls_key", &web.tls_key),
        ("site.logo", &site.logo),
        ("site.games", &site.games),
        ("geo.database", &config.geo.database),
    ];
    let name = &owner.name;
    let files = files.into_iter().chain(archive.tls_files());
    let unreadable = files.filter(|(_, path)| !path.as_os_str().is_empty());
    let unreadable = unreadable.filter(|(_, path)| !may_read(path, owner.uid, &groups));
    let note =
        |(key, path): (_, &Path)| (key, format!("{name}, the owner of state_dir, cannot read {}", path.display()));
    let mut notes: Vec<Finding> = unreadable.map(note).collect();
    if config.web_settings().listen.is_some_and(|address| (1..1024).contains(&address.port())) {
        notes.push(("web.listen", format!("{name}, the owner of state_dir, may not open a port below 1024")));
    }
    notes
}

/// Whether the modes of a file and of the directories above it, also if it is a link, let a user read it.
fn may_read(path: &Path, uid: Uid, groups: &[Gid]) -> bool {
    let may = |path: &Path, bit: u32| {
        // A file that is missing is reported elsewhere.
        let Ok(found) = fs::metadata(path) else { return true };
        let shift = match () {
            () if found.uid() == uid.as_raw() => 6,
            () if groups.contains(&found.gid().into()) => 3,
            () => 0,
        };
        found.mode() >> shift & bit != 0
    };
    let above = |path: PathBuf| path.ancestors().skip(1).all(|dir| may(dir, 1));
    may(path, 4) && above(absolute(path)) && above(canonical(path))
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

fn pem_file(path: &Path) -> Result<(), PathError> {
    match fs::read(path) {
        Ok(bytes) if String::from_utf8_lossy(&bytes).contains("-----BEGIN ") => Ok(()),
        Ok(_) => Err(PathError::Problem(format!("{} is not a PEM file", path.display()))),
        Err(error) => Err(unusable("read", path, error)),
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn modes_of_a_file_and_of_its_directories_say_who_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let (inner, file) = (dir.path().join("live"), dir.path().join("live/key.pem"));
        let link = dir.path().join("link.pem");
        fs::create_dir(&inner).unwrap();
        fs::write(&file, "").unwrap();
        symlink(&file, &link).unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        let found = fs::metadata(&file).unwrap();
        let (other, own_group) = (Uid::from_raw(found.uid() + 1), Gid::from_raw(found.gid()));
        mode(dir.path(), 0o755);
        for (of_dir, of_file, by_owner, by_group, by_others) in [
            (0o755, 0o644, true, true, true),
            (0o755, 0o640, true, true, false),
            (0o750, 0o644, true, true, false),
            (0o700, 0o644, true, false, false),
            (0o755, 0o600, true, false, false),
            (0o755, 0o044, false, true, true),
        ] {
            mode(&inner, of_dir);
            mode(&file, of_file);
            for path in [&file, &link] {
                assert_eq!(may_read(path, found.uid().into(), &[]), by_owner, "{of_dir:o} {of_file:o}");
                assert_eq!(may_read(path, other, &[own_group]), by_group, "{of_dir:o} {of_file:o}");
                assert_eq!(may_read(path, other, &[]), by_others, "{of_dir:o} {of_file:o}");
            }
        }
        assert!(may_read(&dir.path().join("none"), other, &[]), "reported elsewhere");
    }
}
