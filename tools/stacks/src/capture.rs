//! Captures of Ethernet frames in the pcap format.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Instant;

/// A capture that is being written. Times count from its beginning.
pub(crate) struct Capture {
    file: File,
    begin: Instant,
}

impl Capture {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut file = File::create(path)?;
        let words: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 0x0004_0000, 1];
        for word in words {
            file.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { file, begin: Instant::now() })
    }

    pub(crate) fn add(&mut self, frame: &[u8]) -> io::Result<()> {
        let time = self.begin.elapsed();
        let words = [time.as_secs() as u32, time.subsec_micros(), frame.len() as u32, frame.len() as u32];
        let mut record = Vec::with_capacity(16 + frame.len());
        words.iter().for_each(|word| record.extend(word.to_le_bytes()));
        record.extend_from_slice(frame);
        self.file.write_all(&record)
    }
}
