//! The output of servers: a file for each below `logs`, and one older file of each.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

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
            io::Seek::seek(&mut newer, io::SeekFrom::End(-self.limit.cast_signed()))?;
        }
        io::copy(&mut newer, &mut older)?;
        File::options().write(true).open(&path)?.set_len(0) // processes append, so that they go on at its start
    }
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
        assert_eq!(fs::read(logs.path("bank")).unwrap(), b"later");
        output.write_all(&[b'b'; 1_000]).unwrap();
        logs.bound("bank").unwrap();
        assert_eq!(fs::read(logs.path("bank")).unwrap(), b"");
        assert_eq!(fs::read(data.path().join("logs/bank.log.1")).unwrap(), [b'b'; 100]);
    }
}
