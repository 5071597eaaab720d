//! System exceptions as values (CORBA 3.3 Part 1, Annex A; on the wire Part 2, 9.4.3.2).
//!
//! The code that raises an exception chooses its kind, minor code and completion status. For errors of encoding
//! and decoding, `From<CdrError>` chooses them here.

#[cfg(feature = "details")]
mod explained;
#[cfg(not(feature = "details"))]
mod unexplained;

use std::{error::Error, fmt};

use spandrel_cdr::{CdrError, Decoder, Encoder, ExtractError};
use spandrel_error::escape;

#[cfg(feature = "details")]
use explained::Detail;
#[cfg(not(feature = "details"))]
use unexplained::Detail;

use crate::exception_kind::{SystemExceptionKind, for_each_kind};
use crate::{GiopError, ReferenceError, ids, minor};

/// The explanation of a [`SystemException`]: a text or a closure that returns one.
pub trait Explanation {
    /// Returns the text, made only if the exception is displayed or logged.
    fn text(self) -> String;
}

impl Explanation for &str {
    fn text(self) -> String {
        self.to_owned()
    }
}

impl Explanation for String {
    fn text(self) -> String {
        self
    }
}

impl<F: FnOnce() -> String> Explanation for F {
    fn text(self) -> String {
        self()
    }
}

macro_rules! constructors {
    ($($kind:ident $constructor:ident $name:literal $doc:literal;)*) => {
        impl SystemException {
            $(
                #[doc = concat!("`", $name, "`: ", $doc, ".")]
                #[must_use]
                pub const fn $constructor(minor: u32, completed: CompletionStatus) -> Self {
                    Self::new(SystemExceptionKind::$kind, minor, completed)
                }
            )*
        }
    };
}

for_each_kind!(constructors);

/// The progress of the operation at the time of the exception.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u32)]
pub enum CompletionStatus {
    /// The operation was executed completely (`COMPLETED_YES`).
    Yes = 0,
    /// The operation was not begun.
    No = 1,
    /// The completion is unknown on this side.
    Maybe = 2,
}

impl fmt::Display for CompletionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "COMPLETED_YES",
            Self::No => "COMPLETED_NO",
            Self::Maybe => "COMPLETED_MAYBE",
        })
    }
}

/// Maximum number of characters of an explanation; longer texts are cut.
pub(crate) const MAX_DETAIL: usize = 4096;

/// A standard exception that any operation may raise.
///
/// The detail is for people on this side: it is not sent unless the server is told to send it, and equality ignores
/// it. A [public detail](Self::with_public_detail) accompanies the exception to the client.
///
/// ```
/// # use spandrel_giop as spandrel;
/// use spandrel::{CompletionStatus, SystemException, SystemExceptionKind};
///
/// let error = SystemException::transient(0, CompletionStatus::No).with_detail("the queue is full");
/// assert_eq!(error.kind(), SystemExceptionKind::Transient);
/// // Nothing was executed: the call can be repeated.
/// assert_eq!(error.completed(), CompletionStatus::No);
/// assert!(error.to_string().starts_with("CORBA::TRANSIENT (minor 0x00000000"));
/// ```
#[derive(Clone)]
pub struct SystemException {
    kind: SystemExceptionKind,
    completed: CompletionStatus,
    /// Whether a call has ended in it, so that its status is that of this call.
    is_of_call: bool,
    /// Whether its public detail may be sent: not if the exception is that of a call which the servant has made.
    is_public: bool,
    minor: u32,
    detail: Detail,
}
spandrel_error::debug_as_report!(SystemException);

// Every invocation returns it as its error type: a larger one would slow each result.
const _: () = assert!(size_of::<SystemException>() <= 24);

impl SystemException {
    /// Whether exceptions keep their explanations and causes: the feature `details`. Code that only prepares
    /// an explanation need not run otherwise.
    pub const KEEPS_DETAIL: bool = Detail::IS_KEPT;

    /// An exception without detail.
    #[must_use]
    pub const fn new(kind: SystemExceptionKind, minor: u32, completed: CompletionStatus) -> Self {
        Self { kind, completed, is_of_call: false, is_public: false, minor, detail: Detail::NONE }
    }

    /// An exception that a servant raises, with its explanation: a text, or a closure that makes one. It has minor code
    /// 0 and is COMPLETED_MAYBE, since the operation has begun; [`not_executed`](Self::not_executed) says that nothing
    /// was changed. The text is for the log of the server; [`public`](Self::public) sends it to the client, too.
    ///
    /// ```
    /// # use spandrel_giop as spandrel;
    /// use spandrel::SystemException;
    /// use spandrel::SystemExceptionKind::BadParam;
    ///
    /// fn set_speed(speed: i32) -> Result<(), SystemException> {
    ///     if speed < 0 {
    ///         return Err(SystemException::raised(BadParam, "speed is negative").not_executed().public());
    ///     }
    ///     Ok(())
    /// }
    /// # assert!(set_speed(1).is_ok());
    /// # assert!(set_speed(-1).unwrap_err().to_string().ends_with("COMPLETED_NO): speed is negative"));
    /// ```
    #[must_use]
    pub fn raised(kind: SystemExceptionKind, text: impl Explanation) -> Self {
        Self::new(kind, 0, CompletionStatus::Maybe).with_detail(text)
    }

    /// Lets the explanation accompany the exception to the client, whatever the server's options are, as by
    /// [`with_public_detail`](Self::with_public_detail). It must reveal nothing that the client may not know.
    #[must_use]
    pub fn public(self) -> Self {
        match self.detail.text().map(str::to_owned) {
            Some(text) => self.with_public_detail(text),
            None => self,
        }
    }

    /// The exception of an operation that was not executed: COMPLETED_NO. The client may call it again.
    #[must_use]
    pub const fn not_executed(self) -> Self {
        self.with_completed(CompletionStatus::No)
    }

    /// Adds an explanation: a text, or a closure that makes one. It may contain what a peer wrote, so it is
    /// [escaped](spandrel_error::escape), and cut to 4,096 characters. Without the feature `details` it is dropped,
    /// and the closure is not called.
    #[must_use]
    #[inline]
    pub fn with_detail(mut self, text: impl Explanation) -> Self {
        self.detail.set_text(|| escape(&text.text()).at_most(MAX_DETAIL).to_string());
        self
    }

    /// Adds an explanation that accompanies the exception to the client, whatever the server's options are. It must
    /// reveal nothing that the client does not know, such as the operation that it has called and its own identity. It
    /// is escaped and cut as by [`with_detail`](Self::with_detail), and dropped without the feature `details`.
    #[must_use]
    #[inline]
    pub fn with_public_detail(mut self, text: impl Explanation) -> Self {
        self.detail.set_public_text(|| escape(&text.text()).at_most(MAX_DETAIL).to_string());
        self.is_public = true;
        self
    }

    /// Adds the error that caused the exception. Without the feature `details` it is dropped.
    #[must_use]
    #[inline]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.detail.set_source(source);
        self
    }

    /// Replaces the completion status by that of the caller's own operation.
    #[must_use]
    pub const fn with_completed(mut self, completed: CompletionStatus) -> Self {
        (self.completed, self.is_of_call) = (completed, false);
        self
    }

    /// Marks the exception as the outcome of a call. Its completion status is that of the called operation.
    /// Its public explanation is not public to the clients of an operation that passes the exception on.
    #[must_use]
    pub const fn of_call(mut self) -> Self {
        (self.is_of_call, self.is_public) = (true, false);
        self
    }

    /// The exception as the outcome of an operation that has passed it on. The status COMPLETED_NO of [a
    /// call](Self::of_call) that the operation made becomes COMPLETED_MAYBE: that operation itself has begun. Other
    /// exceptions keep their status.
    #[must_use]
    pub const fn passed_on(self) -> Self {
        match self.completed {
            CompletionStatus::No if self.is_of_call => self.with_completed(CompletionStatus::Maybe),
            _ => self,
        }
    }

    /// The kind of exception, such as TRANSIENT; its minor code says more.
    #[must_use]
    pub const fn kind(&self) -> SystemExceptionKind {
        self.kind
    }

    /// The minor code: vendor in the upper 20 bits, reason below; see [`minor`] and [`ids`].
    #[must_use]
    pub const fn minor(&self) -> u32 {
        self.minor
    }

    /// Whether the operation was executed, as far as the raiser knows.
    #[must_use]
    pub const fn completed(&self) -> CompletionStatus {
        self.completed
    }

    /// The explanation, if this side has one: the detail, or else the public one.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.text().or_else(|| self.detail.public_text())
    }

    /// The explanation that accompanies the exception to the client, if it has one.
    #[must_use]
    pub fn public_detail(&self) -> Option<&str> {
        self.detail.public_text().filter(|_| self.is_public)
    }

    /// Whether the client would learn no reason: the explanation is not public, and the minor code has no meaning.
    #[must_use]
    pub fn withholds_reason(&self) -> bool {
        Detail::IS_KEPT && self.public_detail().is_none() && self.detail().is_some() && self.meaning().is_none()
    }

    /// The meaning of the minor code, if it is one of the standard or of Spandrel.
    fn meaning(&self) -> Option<&'static str> {
        minor::describe(self.kind, self.minor).or_else(|| ids::describe(self.minor))
    }

    /// Writes the body of a Reply with status SYSTEM_EXCEPTION: repository id, minor code, completion status.
    ///
    /// # Errors
    /// None so far.
    pub fn encode(&self, out: &mut Encoder<'_>) -> Result<(), CdrError> {
        out.short_str(self.kind.repository_id())?;
        out.u32(self.minor);
        out.u32(self.completed as u32);
        Ok(())
    }

    /// Decodes the fields after the repository id. An unknown id becomes UNKNOWN with the decoded minor code
    /// and status.
    ///
    /// # Errors
    /// [`CdrError::Truncated`]; [`CdrError::BadEnum`] for an unknown completion status.
    pub fn decode(repository_id: &str, input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let minor = input.u32()?;
        let completed = match input.u32()? {
            0 => CompletionStatus::Yes,
            1 => CompletionStatus::No,
            2 => CompletionStatus::Maybe,
            value => return Err(CdrError::BadEnum { name: "CompletionStatus", value }),
        };
        Ok(match SystemExceptionKind::from_repository_id(repository_id) {
            Some(kind) => Self::new(kind, minor, completed),
            None => Self::unknown(minor, completed).with_detail(|| format!("the peer raised {repository_id}")),
        })
    }
}

impl PartialEq for SystemException {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.minor, self.completed) == (other.kind, other.minor, other.completed)
    }
}

impl Eq for SystemException {}

impl fmt::Display for SystemException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CORBA::{} (minor {:#010x}", self.kind.name(), self.minor)?;
        // The table of meanings is an explanation, too: a program without the feature `details` does not contain it.
        if Detail::IS_KEPT
            && let Some(meaning) = self.meaning()
        {
            write!(f, ": {meaning}")?;
        }
        write!(f, ", {})", self.completed)?;
        match self.detail() {
            Some(text) => write!(f, ": {text}"),
            None => Ok(()),
        }
    }
}

impl Error for SystemException {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.detail.source()
    }
}

impl From<CdrError> for SystemException {
    /// MARSHAL, or BAD_PARAM and DATA_CONVERSION where the caller's value is at fault; COMPLETED_NO.
    fn from(cause: CdrError) -> Self {
        let (kind, minor) = match &cause {
            CdrError::NotRepresentable { .. }
            | CdrError::NotOneOctet { .. }
            | CdrError::CharBeyondLatin1 { .. }
            | CdrError::NotText(_) => (SystemExceptionKind::DataConversion, minor::CHARACTER_NOT_IN_CODE_SET),
            CdrError::FixedOverflow { .. } => (SystemExceptionKind::DataConversion, 0),
            CdrError::WideInGiop10 => (SystemExceptionKind::Marshal, minor::WCHAR_BY_GIOP_1_0_CLIENT),
            CdrError::WideInGiop11(_) => (SystemExceptionKind::CodesetIncompatible, minor::NO_COMMON_CODE_SET),
            CdrError::NoWcharSet => (SystemExceptionKind::BadParam, minor::NO_WCHAR_CODE_SET),
            CdrError::NulInString => (SystemExceptionKind::BadParam, ids::BAD_PARAM_NUL_IN_STRING),
            CdrError::BadDiscriminator { .. } => (SystemExceptionKind::BadParam, ids::BAD_PARAM_DISCRIMINATOR),
            CdrError::Truncated { .. } => (SystemExceptionKind::Marshal, ids::MARSHAL_TRUNCATED),
            CdrError::LengthBeyondInput { .. } => (SystemExceptionKind::Marshal, ids::MARSHAL_LENGTH),
            CdrError::OverBound { .. } => (SystemExceptionKind::Marshal, ids::MARSHAL_OVER_BOUND),
            CdrError::TooLong { .. } => (SystemExceptionKind::Marshal, ids::MARSHAL_TOO_LONG),
            CdrError::BadBoolean(_) | CdrError::BadEnum { .. } => {
                (SystemExceptionKind::Marshal, ids::MARSHAL_BAD_VALUE)
            }
            CdrError::UnterminatedString | CdrError::StrayNul => {
                (SystemExceptionKind::Marshal, ids::MARSHAL_BAD_STRING)
            }
            CdrError::UnknownValue { .. } => (SystemExceptionKind::Marshal, minor::NO_VALUE_FACTORY),
            CdrError::TooDeep { .. } => (SystemExceptionKind::Marshal, ids::MARSHAL_TOO_DEEP),
            CdrError::TooMuchMemory { .. } => (SystemExceptionKind::ImpLimit, ids::IMP_LIMIT_DECODED),
            CdrError::NoMemory(_) => (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED),
            _ => (SystemExceptionKind::Marshal, ids::MARSHAL_OTHER),
        };
        let detail = || match &cause {
            CdrError::NotRepresentable { .. } => {
                format!(
                    "{cause}; use a server with a native code set that has it (-ORBNativeCharCodeSet, -ORBNativeWCharCodeSet)"
                )
            }
            _ => cause.to_string(),
        };
        Self::new(kind, minor, CompletionStatus::No).with_detail(detail).with_source(cause)
    }
}

impl From<ExtractError> for SystemException {
    /// BAD_PARAM for a value of another type, otherwise as for a [`CdrError`]; COMPLETED_NO.
    fn from(cause: ExtractError) -> Self {
        match cause {
            ExtractError::Value(cause) => cause.into(),
            other => Self::bad_param(0, CompletionStatus::No).with_detail(|| other.to_string()).with_source(other),
        }
    }
}

impl From<GiopError> for SystemException {
    /// MARSHAL for a malformed body, INV_OBJREF for a malformed profile, COMM_FAILURE for a malformed stream.
    ///
    /// The status is COMPLETED_MAYBE: the peer may have executed the request before it sent the malformed
    /// octets.
    fn from(cause: GiopError) -> Self {
        let (kind, minor) = match &cause {
            GiopError::Body { .. } => (SystemExceptionKind::Marshal, ids::MARSHAL_HEADER),
            GiopError::Profile { .. } => (SystemExceptionKind::InvObjref, ids::INV_OBJREF_PROFILE),
            GiopError::TooLarge { .. } => (SystemExceptionKind::ImpLimit, ids::IMP_LIMIT_MESSAGE),
            _ => (SystemExceptionKind::CommFailure, ids::COMM_FAILURE_PROTOCOL),
        };
        Self::new(kind, minor, CompletionStatus::Maybe).with_detail(|| cause.to_string()).with_source(cause)
    }
}

impl From<ReferenceError> for SystemException {
    /// BAD_PARAM with the standard's minor codes 7 to 10; COMPLETED_NO.
    fn from(cause: ReferenceError) -> Self {
        let minor = match &cause {
            ReferenceError::UnknownScheme(_) => minor::BAD_SCHEME_NAME,
            ReferenceError::NoAddress(_)
            | ReferenceError::NoProtocol { .. }
            | ReferenceError::BadVersion { .. }
            | ReferenceError::BadHost { .. }
            | ReferenceError::BadPort { .. } => minor::BAD_ADDRESS,
            ReferenceError::NoProfile(_) => minor::BAD_URL_OTHER,
            _ => minor::BAD_SCHEME_SPECIFIC_PART,
        };
        Self::bad_param(minor, CompletionStatus::No).with_detail(|| cause.to_string()).with_source(cause)
    }
}
