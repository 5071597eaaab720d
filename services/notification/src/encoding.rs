//! The size of events and values, by which memory is bounded.

use spandrel::cdr::{ByteOrder, CharSet, OctetForm, WcharSet, to_octets};
use spandrel::{CompletionStatus, SystemException};

/// The octets of an event or of a value, with its types.
pub(crate) fn encoded_octets<T: spandrel_cdr::Encode + ?Sized>(value: &T) -> Result<usize, SystemException> {
    let form = OctetForm::bare(ByteOrder::Little).code_sets(CharSet::Utf8, WcharSet::Utf16);
    let octets = to_octets(value, &form).map_err(|error| {
        let detail = move || format!("the value has no encoding: {error}");
        SystemException::bad_param(0, CompletionStatus::No).with_detail(detail)
    })?;
    Ok(octets.len())
}
