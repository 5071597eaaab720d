//! Descriptions of dynamic requests (16.3.12.3 to 16.3.12.7). Stubs have this information at compile time
//! only.

use std::cell::RefCell;

use spandrel_cdr::{Any, TypeCode, Wire};
use spandrel_giop::{CompletionStatus, Message, SystemException};
use spandrel_sync::{Arc, thread_local};

use crate::{Context, Orb, client::Reply};

/// The direction of a parameter (`CORBA::ParameterMode`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u32)]
pub enum ParameterMode {
    /// The caller sends the value.
    In = 0,
    /// The reply brings the value.
    Out = 1,
    /// The caller sends a value, and the reply brings the new one.
    InOut = 2,
}

/// A parameter of a request, with its value as far as it is known (`Dynamic::Parameter`).
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its value; for an `out` parameter, `None` before the reply.
    pub argument: Option<Any>,
    /// The IDL type, known even while there is no value.
    pub type_code: TypeCode,
    /// Whether the request, the reply or both carry the value.
    pub mode: ParameterMode,
}

/// A dynamic request as interceptors see it.
#[derive(Clone, Debug, Default)]
pub struct DynamicRequest {
    /// Its parameters in the order of IDL, without the result.
    pub arguments: Vec<Parameter>,
    /// The type of the return value; `void` for an operation without one.
    pub return_type: TypeCode,
    /// The types of the exceptions that the operation raises.
    pub exceptions: Vec<TypeCode>,
    /// The names of the operation's `context` clause.
    pub contexts: Vec<String>,
    /// The values of these names that are sent with the request.
    pub operation_context: Context,
}

/// The encoded result of a dynamic request.
#[derive(Clone, Debug)]
pub(super) struct UndecodedResult {
    message: Message,
    body: usize,
    wire: Wire,
}

impl UndecodedResult {
    pub(super) fn of(reply: &Reply) -> Self {
        Self { message: reply.message.clone(), body: reply.body, wire: reply.wire }
    }

    /// Decodes the result and the parameters with their new values.
    pub(super) fn read(&self, orb: &Orb, request: &DynamicRequest) -> Result<(Any, Vec<Parameter>), SystemException> {
        let input = self.message.decoder(orb.settings().wire.limits).with_binder(orb);
        let mut input = input.with_code_sets(self.wire.char_set, self.wire.wchar_set).at(self.body);
        let unreadable = |error| SystemException::from(error).with_completed(CompletionStatus::Yes);
        let result = Any::read(request.return_type.clone(), &mut input).map_err(unreadable)?;
        let mut arguments = request.arguments.clone();
        for parameter in arguments.iter_mut().filter(|parameter| parameter.mode != ParameterMode::In) {
            parameter.argument = Some(Any::read(parameter.type_code.clone(), &mut input).map_err(unreadable)?);
        }
        Ok((result, arguments))
    }
}

thread_local! {
    /// The description of this thread's next request.
    static NEXT: RefCell<Option<Arc<DynamicRequest>>> = const { RefCell::new(None) };
}

/// Takes the description of the request that begins now; `None` for requests of stubs.
pub(super) fn take() -> Option<Arc<DynamicRequest>> {
    NEXT.with(|next| next.borrow_mut().take())
}

/// Makes a request with this description for interceptors.
pub(crate) fn describing<R>(description: DynamicRequest, request: impl FnOnce() -> R) -> R {
    let description = Arc::new(description);
    NEXT.with(|next| next.borrow_mut().replace(description));
    let outcome = request();
    // It may have failed before it began.
    drop(take());
    outcome
}
