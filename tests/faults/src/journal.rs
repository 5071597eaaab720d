//! A file that records executions: written by servers, and read after they have exited.
//!
//! One `write` appends a record, which never crosses a page boundary, so a killed server leaves it complete
//! or not at all.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// The number of times a request's execution began and ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Executions {
    pub begun: u32,
    pub ended: u32,
}

/// The writer of a journal.
pub struct Journal(File);

const BEGUN: u8 = b'b';
const ENDED: u8 = b'e';
/// The size of a record: its kind, its number, and padding. It divides the page size: Linux may end a `write`
/// of a process that is being killed between two pages.
const RECORD: usize = 16;

impl Journal {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(OpenOptions::new().append(true).create(true).open(path)?))
    }

    pub fn begin(&self, number: u64) -> io::Result<()> {
        self.record(BEGUN, number)
    }

    pub fn end(&self, number: u64) -> io::Result<()> {
        self.record(ENDED, number)
    }

    fn record(&self, what: u8, number: u64) -> io::Result<()> {
        let mut record = [0; RECORD];
        record[0] = what;
        record[1..9].copy_from_slice(&number.to_le_bytes());
        match (&self.0).write(&record)? {
            RECORD => Ok(()),
            short => Err(io::Error::other(format!("{short} octets of a record were written"))),
        }
    }
}

/// Reads a journal: executions by request number.
pub fn read(path: &Path) -> io::Result<HashMap<u64, Executions>> {
    let octets = std::fs::read(path)?;
    let (records, rest) = octets.as_chunks::<RECORD>();
    if !rest.is_empty() {
        return Err(io::Error::other("the journal ends within a record"));
    }
    let mut executions = HashMap::<u64, Executions>::new();
    for record in records {
        let (what, number) = (record[0], record[1..9].try_into().expect("the slice has eight octets"));
        let entry = executions.entry(u64::from_le_bytes(number)).or_default();
        *(if what == BEGUN { &mut entry.begun } else { &mut entry.ended }) += 1;
    }
    Ok(executions)
}
