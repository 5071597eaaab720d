//! The socket file of a UNIX-domain acceptor: its creation, the detection of stale ones, and its removal.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use socket2::{Domain, SockAddr, Socket, Type};
use spandrel_sync::thread;

/// The file of one acceptor; dropping it removes the file, if it is still the same.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode; `None` once the file is to stay.
    identity: Option<(u64, u64)>,
}

impl SocketFile {
    /// Binds `socket` to `path` and listens, as one step under the lock, since a file without a listener
    /// looks stale. A stale file is replaced if `replace_stale`; `mode` is the file's, if any.
    pub(super) fn bind<L>(
        socket: Socket,
        path: &Path,
        replace_stale: bool,
        mode: Option<u32>,
        listen: impl FnOnce(Socket) -> io::Result<L>,
    ) -> io::Result<(L, Self)> {
        let addr = SockAddr::unix(path)?;
        let _lock = if replace_stale { lock_folder(path)? } else { None };
        match socket.bind(&addr) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && replace_stale && is_stale(path, &addr)? => {
                fs::remove_file(path)?;
                socket.bind(&addr)?;
            }
            result => result?,
        }
        let metadata = fs::symlink_metadata(path)?;
        let file = Self { path: absolute(path), identity: Some((metadata.dev(), metadata.ino())) };
        if let Some(mode) = mode {
            fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        }
        Ok((listen(socket)?, file))
    }

    /// Leaves the file in place.
    pub(super) fn keep(mut self) {
        self.identity = None;
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let Some(identity) = self.identity else { return };
        match fs::symlink_metadata(&self.path) {
            Ok(now) if (now.dev(), now.ino()) == identity => {
                // A failure is ignored: the file is stale then, as if the process had been killed.
                let _ = fs::remove_file(&self.path);
            }
            _ => {}
        }
    }
}

/// Makes the path independent of later changes of the working directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether there is a socket without a listener.
fn is_stale(path: &Path, addr: &SockAddr) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {}
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false), // `AddrInUse` stands
        Err(error) => return Err(error),
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    probe.set_nonblocking(true)?;
    Ok(probe.connect(addr).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused))
}

/// Excludes other openers in the same folder while the result lives. No lock where the folder cannot be read.
fn lock_folder(path: &Path) -> io::Result<Option<fs::File>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(folder) = fs::File::open(folder) else { return Ok(None) };
    // Any process that may read the folder can lock it, even for ever: hence the bound.
    for _ in 0..LOCK_ATTEMPTS {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(folder)),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => thread::park_timeout(LOCK_PAUSE),
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "the folder of the socket file is locked by another process"))
}

const LOCK_ATTEMPTS: u32 = 1_000;
const LOCK_PAUSE: Duration = Duration::from_millis(2);
