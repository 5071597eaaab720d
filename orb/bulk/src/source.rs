//! Sources of octets: memory and files.

use std::{fmt, fs::File, io, path::Path};

/// The octets of a transfer, at the side that sends. They must not change during it.
pub trait Source: Send + Sync {
    /// The number of octets; `None` if the end shows in [`read_at`](Self::read_at) only.
    fn length(&self) -> Option<u64>;

    /// Reads octets at this offset; zero is the end.
    ///
    /// # Errors
    /// Those of the storage; they end the transfer, and the peer gets their text.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The file that has exactly these octets, which the kernel may send.
    fn file(&self) -> Option<&File> {
        None
    }

    /// Whether the file may be passed to the peer as an open file: it is open for reading alone.
    fn is_passable(&self) -> bool {
        false
    }

    /// CRC-32 of all octets, if it is known without reading them.
    fn checksum(&self) -> Option<u32> {
        None
    }
}

impl Source for Vec<u8> {
    fn length(&self) -> Option<u64> {
        Some(self.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let count = buffer.len().min(self.len() - begin);
        buffer[..count].copy_from_slice(&self[begin..begin + count]);
        Ok(count)
    }
}

/// A file, sent by the kernel where the connection is not encrypted.
///
/// The kernel sends without a checksum, because this process does not see the octets, unless
/// [`with_checksum`](Self::with_checksum) states one that is stored beside the file.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    length: u64,
    checksum: Option<u32>,
}

impl FileSource {
    /// The octets that the file has now.
    ///
    /// # Errors
    /// The errors of opening; [`io::ErrorKind::InvalidInput`] if it is not a regular file.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let irregular = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        // Opening a pipe would wait for its writer.
        if !std::fs::metadata(&path)?.is_file() {
            return Err(irregular());
        }
        let file = File::open(path)?;
        let data = file.metadata()?;
        if !data.is_file() {
            return Err(irregular());
        }
        Ok(Self { file, length: data.len(), checksum: None })
    }

    /// States the CRC-32 of the file, which the receiver compares.
    #[must_use]
    pub fn with_checksum(mut self, checksum: u32) -> Self {
        self.checksum = Some(checksum);
        self
    }
}

impl Source for FileSource {
    fn length(&self) -> Option<u64> {
        Some(self.length)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        read_file_at(&self.file, &mut buffer[..count], offset)
    }

    fn file(&self) -> Option<&File> {
        Some(&self.file)
    }

    fn is_passable(&self) -> bool {
        true
    }

    fn checksum(&self) -> Option<u32> {
        self.checksum
    }
}

#[cfg(unix)]
pub(crate) fn read_file_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
pub(crate) fn read_file_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

impl fmt::Debug for dyn Source + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({:?} octets)", self.length())
    }
}

/// The checksum of the octets before a position, for parts that are read in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Digest {
    pub(crate) position: u64,
    hasher: crc32fast::Hasher,
}

impl Digest {
    /// The digest of all octets before `offset`, which it reads.
    pub(crate) fn read_to(source: &dyn Source, offset: u64) -> io::Result<Self> {
        let mut digest = Self::default();
        let mut buffer = vec![0; BUFFER];
        while digest.position < offset {
            let count = usize::try_from(offset - digest.position).unwrap_or(usize::MAX).min(BUFFER);
            match source.read_at(&mut buffer[..count], digest.position)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => digest.add(&buffer[..count]),
            }
        }
        Ok(digest)
    }

    pub(crate) fn add(&mut self, octets: &[u8]) {
        self.hasher.update(octets);
        self.position += octets.len() as u64;
    }

    pub(crate) fn value(&self) -> u32 {
        self.hasher.clone().finalize()
    }
}

/// The octets of one read.
pub(crate) const BUFFER: usize = 256 << 10;
