//! Long data in both directions.

use crate::idl::*;
use crate::patterns::Pattern;
use crate::values::{self, Value};

/// Checks the pattern received and returns the pattern requested.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carrier;

fn carry<T: Pattern + Value>(seed: u32, data: &T, len: usize, answer: u32) -> Result<T, Mismatch> {
    values::same("data", data, &T::pattern(seed, len)).map_err(|what| Mismatch { what })?;
    Ok(T::pattern(seed + 1, answer as usize))
}

impl BulkServant for Carrier {
    fn octets(&self, seed: u32, data: &[u8], answer: u32) -> Result<OctetSeq, bulk::OctetsError> {
        Ok(carry(seed, &data.to_vec(), data.len(), answer)?)
    }

    fn doubles(&self, seed: u32, data: &[f64], answer: u32) -> Result<DoubleSeq, bulk::DoublesError> {
        Ok(carry(seed, &data.to_vec(), data.len(), answer)?)
    }

    fn structs(&self, seed: u32, data: &[BinStruct], answer: u32) -> Result<BinStructSeq, bulk::StructsError> {
        Ok(carry(seed, &data.to_vec(), data.len(), answer)?)
    }

    fn strings(&self, seed: u32, data: &[String], answer: u32) -> Result<StringSeq, bulk::StringsError> {
        Ok(carry(seed, &data.to_vec(), data.len(), answer)?)
    }

    fn text(&self, seed: u32, data: &str, answer: u32) -> Result<String, bulk::TextError> {
        Ok(carry(seed, &data.to_owned(), data.chars().count(), answer)?)
    }
}
