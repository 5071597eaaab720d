//! What requests that are put together at run time know of themselves (16.3.12.3 to 16.3.12.7). Stubs know it at compile time only.

use std::cell::RefCell;

use spandrel_cdr::{Any, TypeCode, Wire};
use spandrel_giop::{CompletionStatus, Message, SystemException};
use spandrel_sync::{Arc, thread_local};

use crate::{Context, Orb, client::Reply};

/// Which way a parameter goes (`CORBA::ParameterMode`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u32)]
pub enum ParameterMode {
    /// To the object.
    In = 0,
    /// Back from it.
    Out = 1,
    /// Both.
    InOut = 2,
}

/// A parameter of a request (`Dynamic::Parameter`).
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its value; that of an `out` parameter is there once it has come.
    pub argument: Option<Any>,
    /// Its type.
    pub type_code: TypeCode,
    /// Which way it goes.
    pub mode: ParameterMode,
}

/// A request that was put together at run time, as interceptors see it.
#[derive(Clone, Debug, Default)]
pub struct DynamicRequest {
    /// Its parameters, in order.
    pub arguments: Vec<Parameter>,
    /// What the operation returns.
    pub return_type: TypeCode,
    /// The types of the exceptions that it raises.
    pub exceptions: Vec<TypeCode>,
    /// The names of its `context` clause.
    pub contexts: Vec<String>,
    /// What goes with it of those.
    pub operation_context: Context,
}

/// What came back for a dynamic request, not yet read.
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

    /// What the operation returned, and its parameters with their new values.
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
    /// What the next request of this thread is.
    static NEXT: RefCell<Option<Arc<DynamicRequest>>> = const { RefCell::new(None) };
}

/// What the request is that begins now; nothing for those of stubs.
pub(super) fn take() -> Option<Arc<DynamicRequest>> {
    NEXT.with(|next| next.borrow_mut().take())
}

impl Orb {
    /// Makes a request, of which interceptors learn by `described` what stubs could not tell them. It is not called if there are none.
    pub fn describing<R>(&self, described: impl FnOnce() -> DynamicRequest, request: impl FnOnce() -> R) -> R {
        if !self.has_client_interceptors() {
            return request();
        }
        let described = Arc::new(described());
        NEXT.with(|next| next.borrow_mut().replace(described));
        let made = request();
        // It may have failed before it began.
        drop(take());
        made
    }
}
