//! The encoding of events, values and records, by which memory is bounded as well.

use spandrel::cdr::{ByteOrder, CdrError, CharSet, OctetForm, WcharSet, to_octets};
use spandrel::{CompletionStatus, SystemException};

/// The form of octets: the same on each machine, with all characters.
pub(crate) fn form() -> OctetForm<'static> {
    OctetForm::bare(ByteOrder::Little).code_sets(CharSet::Utf8, WcharSet::Utf16)
}

/// An event, value or record as octets.
///
/// # Errors
/// BAD_PARAM for a value that has no encoding.
pub(crate) fn encoded<T: spandrel_cdr::Encode + ?Sized>(value: &T) -> Result<Vec<u8>, SystemException> {
    to_octets(value, &form()).map_err(no_encoding)
}

/// BAD_PARAM for a value that has no encoding.
pub(crate) fn no_encoding(error: CdrError) -> SystemException {
    let detail = move || format!("the value has no encoding: {error}");
    SystemException::bad_param(0, CompletionStatus::No).with_detail(detail)
}

/// The octets of an event or of a value, with its types.
pub(crate) fn encoded_octets<T: spandrel_cdr::Encode + ?Sized>(value: &T) -> Result<usize, SystemException> {
    encoded(value).map(|octets| octets.len())
}
