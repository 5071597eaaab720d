//! The output of servers: a file for each below `logs`, and one older file of each.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use spandrel::services::activation::is_server_name;

/// The folder of the output.
#[derive(Clone, Debug)]
pub(crate) struct Logs {
    folder: PathBuf,
    /// The size from which a file is moved away.
    limit: u64,
}

impl Logs {
    pub(crate) fn new(data: &Path, limit: u64) -> Self {
        Self { folder: data.join("logs"), limit }
    }

    /// The file of a server, for appending: its processes write to it without help of the activator, and go on when
    /// that ends.
    pub(crate) fn open(&self, server: &str) -> io::Result<File> {
        fs::create_dir_all(&self.folder)?;
        File::options().create(true).append(true).open(self.path(server))
    }

    fn path(&self, server: &str) -> PathBuf {
        self.folder.join(format!("{server}.log"))
    }

    /// The last octets of a server's output.
    fn tail(&self, server: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(self.path(server))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
        let mut octets = Vec::new();
        // The file may grow meanwhile.
        file.take(most).read_to_end(&mut octets)?;
        Ok(octets)
    }

    /// Moves the content of a file that has grown beyond the limit to `NAME.log.1`. Output written during the copy is
    /// lost.
    pub(crate) fn bound(&self, server: &str) -> io::Result<()> {
        let path = self.path(server);
        let Ok(file) = fs::metadata(&path) else { return Ok(()) };
        if file.len() <= self.limit {
            return Ok(());
        }
        let mut older = File::create(path.with_extension("log.1"))?;
        let mut newer = File::open(&path)?;
        if file.len() > 2 * self.limit {
            // The rest is older than what fits.
            newer.seek(SeekFrom::End(-self.limit.cast_signed()))?;
        }
        io::copy(&mut newer, &mut older)?;
        File::options().write(true).open(&path)?.set_len(0) // processes append, so that they go on at its start
    }
}

/// The end of a server's output, at most `most` octets, from the data folder of an activator. Older output
/// that was moved to another file is left out.
///
/// # Errors
/// `NotFound` for a server that has written nothing; `InvalidInput` for an invalid name; those of the file system.
pub fn output_of(data: &Path, server: &str, most: u64) -> io::Result<Vec<u8>> {
    if !is_server_name(server) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "invalid name of a server"));
    }
    Logs::new(data, u64::MAX).tail(server, most)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn output_is_bounded_while_a_process_goes_on_writing() {
        let data = tempfile::tempdir().unwrap();
        let logs = Logs::new(data.path(), 100);
        let mut output = logs.open("bank").unwrap();
        output.write_all(&[b'a'; 150]).unwrap();
        logs.bound("bank").unwrap();
        output.write_all(b"later").unwrap();
        assert_eq!(output_of(data.path(), "bank", 3).unwrap(), b"ter");
        assert_eq!(output_of(data.path(), "../bank", 3).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(fs::read(logs.path("bank")).unwrap(), b"later");
        output.write_all(&[b'b'; 1_000]).unwrap();
        logs.bound("bank").unwrap();
        assert_eq!(fs::read(logs.path("bank")).unwrap(), b"");
        assert_eq!(fs::read(data.path().join("logs/bank.log.1")).unwrap(), [b'b'; 100]);
    }
}
