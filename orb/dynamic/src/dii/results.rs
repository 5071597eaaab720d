//! The results of a request, decoded one by one.

use spandrel_cdr::{Any, CdrError, Decode, Decoder, TcKind, TypeCode, Typed, walk};
use spandrel_giop::{CompletionStatus, SystemException};

use super::body::Argument;

/// The results in a reply, in order: the return value unless that is `void`, then the `inout` and `out`
/// arguments.
///
/// Decoding in this order visits each once, at the least cost.
#[derive(Debug)]
pub struct Results<'r> {
    input: Decoder<'r>,
    return_type: Option<&'r TypeCode>,
    arguments: std::slice::Iter<'r, Argument>,
    operation: &'r str,
}

impl<'r> Results<'r> {
    pub(super) fn new(
        input: Decoder<'r>,
        return_type: &'r TypeCode,
        arguments: &'r [Argument],
        operation: &'r str,
    ) -> Self {
        let return_type = Some(return_type).filter(|type_code| type_code.kind() != TcKind::Void);
        Self { input, return_type, arguments: arguments.iter(), operation }
    }

    /// The type of the next result; `None` after the last.
    fn next_type(&mut self) -> Option<&'r TypeCode> {
        if let Some(type_code) = self.return_type.take() {
            return Some(type_code);
        }
        self.arguments.by_ref().find(|argument| argument.mode.is_returned()).map(|argument| &argument.type_code)
    }

    fn expect(&mut self) -> Result<&'r TypeCode, SystemException> {
        let operation = self.operation;
        self.next_type().ok_or_else(|| {
            SystemException::bad_param(0, CompletionStatus::Yes)
                .with_detail(|| format!("`{operation}` has no further results"))
        })
    }

    /// Decodes the next result: the return value, then `inout` and `out` arguments in order.
    ///
    /// # Errors
    /// BAD_PARAM for another type, or after the last result; MARSHAL for malformed octets.
    pub fn take<T: Decode + Typed>(&mut self) -> Result<T, SystemException> {
        let type_code = self.expect()?;
        self.check(type_code, &T::type_code())?;
        self.decode()
    }

    /// As [`Results::take`], of a type that has been checked.
    pub(super) fn decode<T: Decode>(&mut self) -> Result<T, SystemException> {
        T::decode(&mut self.input).map_err(|error| self.unreadable(error))
    }

    /// The next result as an `Any`.
    ///
    /// # Errors
    /// BAD_PARAM after the last result; MARSHAL for malformed octets.
    pub fn take_any(&mut self) -> Result<Any, SystemException> {
        let type_code = self.expect()?;
        Any::read(type_code.clone(), &mut self.input).map_err(|error| self.unreadable(error))
    }

    /// Skips the next result without decoding it into a value.
    ///
    /// # Errors
    /// BAD_PARAM after the last result; MARSHAL for malformed octets.
    pub fn skip(&mut self) -> Result<(), SystemException> {
        let type_code = self.expect()?;
        walk::skip(type_code, &mut self.input).map_err(|error| self.unreadable(error))
    }

    pub(super) fn check(&self, type_code: &TypeCode, expected: &TypeCode) -> Result<(), SystemException> {
        if type_code.equivalent(expected) {
            return Ok(());
        }
        let detail = || format!("this result of `{}` is of type `{type_code}`, not `{expected}`", self.operation);
        Err(SystemException::bad_param(0, CompletionStatus::Yes).with_detail(detail))
    }

    fn unreadable(&self, error: CdrError) -> SystemException {
        SystemException::from(error)
            .with_completed(CompletionStatus::Yes)
            .with_detail(|| format!("the reply to `{}` cannot be decoded", self.operation))
    }
}
