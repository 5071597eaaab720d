//! Destinations of octets: memory and files.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The destination of a transfer's octets, at the side that receives.
pub trait Sink: Send {
    /// Takes octets, in order. After a broken connection they go on where they ended.
    ///
    /// # Errors
    /// Those of the storage; they end the transfer, and the peer gets their text.
    fn write(&mut self, octets: &[u8]) -> io::Result<()>;

    /// Called once, when all octets have come and their checksum is right; the sender is told of success after it.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Vec<u8> {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.extend_from_slice(octets);
        Ok(())
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        (**self).write(octets)
    }

    fn finish(&mut self) -> io::Result<()> {
        (**self).finish()
    }
}

/// A file that has its name only once it is whole and on the disk. Until then the octets are in a hidden file beside it,
/// which is removed if the transfer fails.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    partial: PathBuf,
    file: File,
}

impl FileSink {
    /// A new file; one that has the name already is replaced at the end.
    ///
    /// # Errors
    /// The errors of making a file.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
        let number = getrandom::u64().map_err(io::Error::other)?;
        let partial = path.with_file_name(format!(".{name}.{number:016x}.part"));
        let file = File::options().write(true).create_new(true).open(&partial)?;
        Ok(Self { path, partial, file })
    }

    /// The name of the whole file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Sink for FileSink {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.file.write_all(octets)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.partial, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if cfg!(unix) { File::open(folder.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.partial); // it has the other name if the transfer is complete
    }
}
