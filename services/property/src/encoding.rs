//! The octets of types and values on the disk, and in the limits.

use spandrel::cdr::{ByteOrder, CdrError, CharSet, OctetForm, WcharSet};
use spandrel::{CompletionStatus, SystemException};

/// The form of a value on the disk: the same on each machine, with all characters.
pub(crate) fn form() -> OctetForm<'static> {
    OctetForm::bare(ByteOrder::Little).code_sets(CharSet::Utf8, WcharSet::Utf16)
}

/// The octets that a property or a constraint counts for: its name, and its type or value as encoded in that form.
///
/// # Errors
/// BAD_PARAM for a value without an encoding.
pub(crate) fn octets_of(name: &str, encoded: Result<Vec<u8>, CdrError>) -> Result<usize, SystemException> {
    let octets = encoded.map_err(|error| {
        let detail = move || format!("the value has no encoding: {error}");
        SystemException::bad_param(0, CompletionStatus::No).with_detail(detail)
    })?;
    Ok(name.len() + octets.len())
}
