//! A FUSE file system with one file, `disk`, that is a [`Disk`].
//!
//! The loop driver turns each request of a block device into a read, a write or an fsync of its
//! file. The file is opened with `FOPEN_DIRECT_IO`: the kernel keeps no pages of it, so every
//! write of the block device arrives here before it is completed, and every flush arrives as
//! an fsync. (The loop driver may do buffered or direct IO; with this flag both are the same.)
//! One thread serves all requests, so the order of the recording is the order of arrival.
//!
//! This process must never read or write files on a file system on the disk itself: if the
//! process is killed, such a thread would wait for a reply that this process can no longer give.
//! Child processes do that.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite,
    Request, TimeOrNow, WriteFlags,
};

use crate::disk::Disk;

/// The kernel may keep names and attributes: they never change.
const TTL: Duration = Duration::from_secs(3_600);
const NAME: &str = "disk";
const FILE: INodeNo = INodeNo(2);

/// A disk that both the file system and the test use.
#[derive(Clone)]
pub struct SharedDisk(Arc<Mutex<Disk>>);

impl SharedDisk {
    pub fn new(bytes: u64) -> SharedDisk {
        SharedDisk(Arc::new(Mutex::new(Disk::new(bytes))))
    }

    pub fn lock(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().expect("no thread panics while it has the disk")
    }
}

/// A mounted file system with the file of a disk. Unmounted when dropped.
pub struct DiskFile {
    _session: BackgroundSession,
    dir: PathBuf,
}

impl DiskFile {
    /// Mounts the file system on an existing directory.
    pub fn mount(disk: SharedDisk, dir: &Path) -> DiskFile {
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("clqd-power".to_owned())];
        let session = fuser::spawn_mount(Server(disk), dir, &config).expect("FUSE mounts");
        DiskFile { _session: session, dir: dir.to_owned() }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.join(NAME)
    }
}

struct Server(SharedDisk);

impl Server {
    fn attr(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0o755, 0),
            FILE => (FileType::RegularFile, 0o600, self.0.lock().bytes()),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn reply_attr(&self, inode: INodeNo, reply: ReplyAttr) {
        match self.attr(inode) {
            Some(attr) => reply.attr(&TTL, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }
}

impl Filesystem for Server {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attr(FILE) {
            Some(attr) if parent == INodeNo::ROOT && name == NAME => reply.entry(&TTL, &attr, Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.reply_attr(inode, reply);
    }

    /// Programs may set times; a change of the size is refused.
    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<std::time::SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<std::time::SystemTime>,
        _chgtime: Option<std::time::SystemTime>,
        _bkuptime: Option<std::time::SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if size.is_some_and(|size| size != self.0.lock().bytes()) {
            return reply.error(Errno::EPERM);
        }
        self.reply_attr(inode, reply);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        len: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let data = self.0.lock().read(offset, len as usize);
        reply.data(&data);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.0.lock().write(offset, data);
        match written {
            Ok(()) => reply.written(u32::try_from(data.len()).expect("a write of FUSE is at most 16 MiB")),
            Err(_) => reply.error(Errno::ENOSPC),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.0.lock().flush();
        reply.ok();
    }
}
