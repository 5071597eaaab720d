//! The text that accompanies a system exception (CORBA 3.3 Part 2, 7.7.1, `ExceptionDetailMessage`).
//!
//! It travels in a service context of the reply, as a `wstring` in the form of GIOP 1.2.
//!
//! The text is chosen where the exception is raised; for errors of encoding that is `From<CdrError>` in
//! `exception`.

use spandrel_cdr::{ByteOrder, CdrError, Decoder, Encoder, GiopVersion, Wire};

use crate::exception::MAX_DETAIL;
use crate::{ServiceContext, SystemException};

/// The id of the service context.
pub const CONTEXT_EXCEPTION_DETAIL: u32 = 14;

/// The context with the detail of an exception; `None` without one.
#[must_use]
pub fn exception_detail(exception: &SystemException) -> Option<ServiceContext> {
    context(exception.detail()?)
}

/// The context with the [public detail](SystemException::public_detail) of an exception, or
/// [`WITHHELD_DETAIL`] if the client would learn no reason; `None` without a text.
#[must_use]
pub fn public_exception_detail(exception: &SystemException) -> Option<ServiceContext> {
    let withheld = || exception.withholds_reason().then_some(WITHHELD_DETAIL);
    context(exception.public_detail().or_else(withheld)?)
}

/// The text that a client gets if it would learn [no reason](SystemException::withholds_reason) otherwise.
pub const WITHHELD_DETAIL: &str = "the reason is in this server's log (`-ORBExceptionDetails yes` sends it)";

fn context(text: &str) -> Option<ServiceContext> {
    let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2));
    out.u8(ByteOrder::NATIVE.flag());
    out.wstr(text).ok()?;
    Some(ServiceContext { id: CONTEXT_EXCEPTION_DETAIL, data: out.to_vec() })
}

/// The text of such a context, escaped and cut as [`SystemException::with_detail`] does.
///
/// # Errors
/// [`CdrError`] for octets that are not an encapsulated `wstring`.
pub fn read_exception_detail(data: &[u8]) -> Result<String, CdrError> {
    let text = Decoder::of_encapsulation(data, Wire::new(ByteOrder::Big, GiopVersion::V1_2))?.wstr()?;
    Ok(spandrel_error::escape(text.trim_end()).at_most(MAX_DETAIL).to_string())
}

#[cfg(test)]
mod tests {
    use crate::{CompletionStatus, minor};

    use super::*;

    fn said(text: &str) -> Option<String> {
        let exception = SystemException::internal(0, CompletionStatus::No).with_detail(text);
        let context = exception_detail(&exception)?;
        assert_eq!(context.id, CONTEXT_EXCEPTION_DETAIL);
        read_exception_detail(&context.data).ok()
    }

    #[test]
    fn a_detail_survives_encoding_and_decoding() {
        let if_kept = |text| SystemException::KEEPS_DETAIL.then_some(text);
        for text in ["", "plain", "h\u{e9}, \u{20ac} and \u{1f980}"] {
            assert_eq!(said(text).as_deref(), if_kept(text));
        }
        assert_eq!(said("a\0b\nc\u{1b}[31m\u{9b} ").as_deref(), if_kept(r"a\u0000b\nc\u001b[31m\u009b"));
        let longest = SystemException::KEEPS_DETAIL.then_some(MAX_DETAIL + "…".len());
        assert_eq!(said(&"x".repeat(10_000)).map(|text| text.len()), longest);
        assert_eq!(exception_detail(&SystemException::internal(0, CompletionStatus::No)), None);
    }

    #[test]
    fn a_detail_that_is_not_public_is_replaced_by_where_it_is() {
        let sent = |exception| public_exception_detail(&exception).map(|it| read_exception_detail(&it.data).unwrap());
        let plain = || SystemException::internal(0, CompletionStatus::No);
        let if_kept = |text: &str| SystemException::KEEPS_DETAIL.then(|| text.to_owned());
        assert_eq!(sent(plain()), None);
        let timeout = SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::No).with_detail("slow");
        assert_eq!(sent(timeout), None, "the minor code tells the reason");
        assert_eq!(sent(plain().with_detail("/etc/secret")), if_kept(WITHHELD_DETAIL));
        assert_eq!(sent(plain().with_detail("/etc/secret").with_public_detail("no file")), if_kept("no file"));
    }

    #[test]
    fn a_text_of_either_byte_order_is_read() {
        // As other ORBs write it: big-endian, without a byte order mark; and little-endian with one.
        assert_eq!(read_exception_detail(b"\0\0\0\0\0\0\0\x04\0o\0k").as_deref(), Ok("ok"));
        assert_eq!(read_exception_detail(b"\x01\0\0\0\x06\0\0\0\xff\xfeo\0k\0").as_deref(), Ok("ok"));
    }

    #[test]
    fn octets_that_are_no_encapsulated_wstring_are_rejected() {
        for data in
            [&b""[..], b"\0", b"\0\0\0\0\xff\xff\xff\xff", b"\0\0\0\0\0\0\0\x03abc", b"\0\0\0\0\0\0\0\x02\xd8\0"]
        {
            assert!(read_exception_detail(data).is_err(), "{data:?}");
        }
    }
}
