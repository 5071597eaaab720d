//! The redo log of versions whose stores had no header.
//!
//! A record, at a multiple of eight octets from the beginning of the file, with numbers in little-endian order:
//!
//! | octets | contents |
//! | --- | --- |
//! | 4 | CRC-32 of the octets below, without the padding |
//! | 4 | length of the payload |
//! | 8 | salt |
//! | 8 | number of records with this salt before this one |
//! | | payload; padding |
//!
//! Behind the records with the salt of the store are zeros, or records of before.

use super::{ALIGNMENT, is_zero, read_all};
use crate::error::RedoLogError;
use crate::header::Fields;
use crate::storage::Storage;

const HEADER: usize = 24;

/// Reads logs of versions whose stores had no header.
#[derive(Debug)]
pub struct EarlierLog;

impl EarlierLog {
    /// The payloads of the records with a salt, in their order, from a log that had at least `size` octets.
    ///
    /// # Errors
    /// A file that cannot be read, is missing, or is damaged.
    pub fn read(storage: &Storage, salt: u64, size: Option<u64>) -> Result<Vec<Vec<u8>>, RedoLogError> {
        let octets = read_all(&*storage.open_log()?)?;
        let (length, size) = (octets.len() as u64, size.unwrap_or(1));
        if length < size {
            return Err(RedoLogError::Incomplete { octets: length, size });
        }
        let (mut payloads, mut offset) = (Vec::new(), 0);
        while let Some(record) = record_at(&octets, offset)
            && (record.salt, record.count) == (salt, payloads.len() as u64)
        {
            payloads.push(record.payload.to_vec());
            offset = record.end;
        }
        let places = (offset..octets.len()).step_by(ALIGNMENT);
        let later = places.filter_map(|at| record_at(&octets, at)).filter(|record| record.salt == salt).count();
        // A log has a record at its beginning, of any salt, once it was in use.
        let is_damaged = payloads.is_empty() && record_at(&octets, 0).is_none() && !is_zero(&octets);
        if later > 0 || is_damaged {
            return Err(RedoLogError::Damaged { offset, sound: payloads.len(), later });
        }
        Ok(payloads)
    }
}

struct Record<'l> {
    salt: u64,
    count: u64,
    payload: &'l [u8],
    /// The offset of the next record.
    end: usize,
}

/// The valid record at an offset.
fn record_at(octets: &[u8], offset: usize) -> Option<Record<'_>> {
    let record = octets.get(offset..)?;
    let mut fields = Fields(record.get(..HEADER)?);
    let checksum = u32::from_le_bytes(fields.take());
    let length = usize::try_from(u32::from_le_bytes(fields.take())).ok()?;
    let [salt, count] = [0; 2].map(|_| u64::from_le_bytes(fields.take()));
    let payload = record[HEADER..].get(..length)?;
    let is_valid = salt != 0 && crc32fast::hash(&record[4..HEADER + length]) == checksum;
    is_valid.then(|| Record { salt, count, payload, end: offset + (HEADER + length).next_multiple_of(ALIGNMENT) })
}
