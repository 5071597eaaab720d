//! Exceptions as interceptors see them: the ORB does not know the types of user exceptions.

use spandrel_cdr::{Any, CdrError, Decoder, TypeCode, Wire};
use spandrel_giop::{CompletionStatus, Message, SystemException, minor};

use crate::{Orb, UserException};

/// An exception that a request ends with (`received_exception`, `sending_exception`).
#[derive(Clone, Debug)]
pub struct RaisedException(UserExceptionBody);

#[derive(Clone, Debug)]
enum UserExceptionBody {
    System(SystemException),
    User { repository_id: Box<str>, source: ExceptionOctets, body: usize, wire: Wire, orb: Orb },
}

/// The message or the reply that contains a user exception.
#[derive(Clone, Debug)]
pub enum ExceptionOctets {
    /// Of a message that was received.
    Received(Message),
    /// Of a reply that is sent.
    Sent(Vec<u8>),
}

impl RaisedException {
    pub(crate) fn system_exception(exception: SystemException) -> Self {
        Self(UserExceptionBody::System(exception))
    }

    /// A user exception whose repository id begins at `body`; MARSHAL if it cannot be decoded.
    pub fn user_exception(source: ExceptionOctets, body: usize, wire: Wire, orb: &Orb) -> Self {
        let raised = UserExceptionBody::User { repository_id: Box::default(), source, body, wire, orb: orb.clone() };
        let read = raised.members().and_then(|mut input| input.str().map(std::borrow::Cow::into_owned));
        match (read, raised) {
            (Ok(repository_id), UserExceptionBody::User { source, body, wire, orb, .. }) => {
                let repository_id = repository_id.into_boxed_str();
                Self(UserExceptionBody::User { repository_id, source, body, wire, orb })
            }
            (Err(error), _) => {
                Self::system_exception(SystemException::from(error).with_completed(CompletionStatus::Yes))
            }
            (Ok(_), system) => Self(system),
        }
    }

    /// The repository id, such as `IDL:Bank/Account/Overdrawn:1.0` (16.3.13.5).
    #[must_use]
    pub fn repository_id(&self) -> &str {
        match &self.0 {
            UserExceptionBody::System(exception) => exception.kind().repository_id(),
            UserExceptionBody::User { repository_id, .. } => repository_id,
        }
    }

    /// The system exception; `None` for a user exception.
    #[must_use]
    pub fn system(&self) -> Option<&SystemException> {
        match &self.0 {
            UserExceptionBody::System(exception) => Some(exception),
            UserExceptionBody::User { .. } => None,
        }
    }

    /// The exception as a value of this type, if it is one.
    ///
    /// # Errors
    /// If the members are not those of the type.
    pub fn extract<X: UserException>(&self) -> Result<Option<X>, CdrError> {
        if self.system().is_some() || self.repository_id() != X::REPOSITORY_ID {
            return Ok(None);
        }
        let mut input = self.0.members()?;
        input.str()?;
        X::decode(&mut input).map(Some)
    }

    /// The exception as an `any`. A user exception needs its type: without, the result is UNKNOWN with minor
    /// code 1 (16.3.13.4).
    ///
    /// # Errors
    /// If the type is not the exception's.
    pub fn to_any(&self, type_code: Option<TypeCode>) -> Result<Any, CdrError> {
        match (&self.0, type_code) {
            (UserExceptionBody::System(exception), _) => system_any(exception),
            (user, Some(type_code)) => Any::read(type_code, &mut user.members()?),
            (UserExceptionBody::User { .. }, None) => {
                system_any(&SystemException::unknown(minor::UNLISTED_USER_EXCEPTION, CompletionStatus::Yes))
            }
        }
    }

    /// The system exception; UNKNOWN for a user exception.
    pub fn into_system(self) -> SystemException {
        match self.0 {
            UserExceptionBody::System(exception) => exception,
            UserExceptionBody::User { .. } => {
                SystemException::unknown(minor::UNLISTED_USER_EXCEPTION, CompletionStatus::Yes)
            }
        }
    }

    /// The completion status of the operation.
    pub(crate) fn completed(&self) -> CompletionStatus {
        self.system().map_or(CompletionStatus::Yes, SystemException::completed)
    }
}

impl UserExceptionBody {
    /// A decoder that begins at the repository id.
    fn members(&self) -> Result<Decoder<'_>, CdrError> {
        match self {
            Self::System(_) => Err(CdrError::Malformed("a system exception has no encoded members here")),
            Self::User { source, body, wire, orb, .. } => {
                let input = match source {
                    ExceptionOctets::Received(message) => message.decoder(orb.settings().wire.limits),
                    ExceptionOctets::Sent(octets) => Decoder::new(octets, *wire),
                };
                Ok(input.with_binder(orb).with_code_sets(wire.char_set, wire.wchar_set).at(*body))
            }
        }
    }
}

/// Encodes a system exception with its type of Part 1, Annex A.
fn system_any(exception: &SystemException) -> Result<Any, CdrError> {
    let malformed = |_| CdrError::Malformed("a name of the standard is no identifier");
    let statuses = ["COMPLETED_YES", "COMPLETED_NO", "COMPLETED_MAYBE"];
    let completion = TypeCode::enumeration("IDL:omg.org/CORBA/completion_status:1.0", "completion_status", &statuses);
    let members = [("minor", TypeCode::ULONG), ("completed", completion.map_err(malformed)?)];
    let kind = exception.kind();
    let type_code = TypeCode::exception(kind.repository_id(), kind.name(), &members).map_err(malformed)?;
    Any::write(type_code, |out| exception.encode(out))
}
