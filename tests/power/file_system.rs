//! The file systems under test, and their mounts.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sandbox::{run, try_run};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    Ext4,
    Xfs,
    Btrfs,
}

impl FileSystem {
    pub const ALL: [FileSystem; 3] = [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs];

    /// The size of a disk. XFS refuses less than 300 MB. Blocks that are not written take no memory.
    pub const DISK_BYTES: u64 = 512 << 20;

    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
        }
    }

    /// Formats a file.
    pub fn format(self, file: &Path) {
        // Discarding blocks that were never written is a waste of time.
        let options: &[&str] = match self {
            FileSystem::Ext4 => &["-q", "-F", "-E", "nodiscard"],
            FileSystem::Xfs => &["-q", "-K"],
            FileSystem::Btrfs => &["-q", "-K"],
        };
        run(Command::new(format!("mkfs.{}", self.name())).args(options).arg(file));
    }
}

/// A file system mounted through a loop device. Unmounted when dropped; the kernel then detaches the
/// loop device.
pub struct Mount {
    dir: PathBuf,
    is_mounted: bool,
}

impl Mount {
    pub fn new(kind: FileSystem, image: &Path, dir: &Path) -> Mount {
        Mount::try_new(kind, image, dir).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Error: what `mount` printed.
    pub fn try_new(kind: FileSystem, image: &Path, dir: &Path) -> Result<Mount, String> {
        let mut command = Command::new("mount");
        try_run(command.args(["-o", "loop", "-t", kind.name()]).arg(image).arg(dir))?;
        Ok(Mount { dir: dir.to_owned(), is_mounted: true })
    }

    /// Unmounts the file system, which must not be in use.
    pub fn unmount(mut self) {
        run(Command::new("umount").arg(&self.dir));
        self.is_mounted = false;
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmount = |options: &[&str]| Command::new("umount").args(options).arg(&self.dir).status();
        // After a panic a process may still use it.
        if self.is_mounted && !unmount(&["--quiet"]).is_ok_and(|status| status.success()) {
            let _ = unmount(&["--lazy"]);
        }
    }
}
