//! Changes of bindings whose replies are deferred until they are on the disk.
//!
//! A thread of the ORB that waited for the disk would be replaced by another during each change. Here it passes the
//! change to the store and goes on with its connection. The thread that commits the change, together with those of
//! other clients, sends the reply.
//!
//! All other operations, names that lead to other servers, and invalid names belong to the
//! [`ContextServant`](crate::context::ContextServant).

use spandrel::net::sync::Arc;
use spandrel::server::{DeferredOperations, ServerCall, TakenRequest};
use spandrel::services::cos_naming::naming_context::{BindError, RebindError};
use spandrel::services::cos_naming::{NameComponent, NamingContext};
use spandrel::types::{Ior, UserExceptions};
use spandrel::{ObjectRef, SystemException, SystemExceptionKind};

use crate::context::{Contexts, LastStep};
use crate::failure::Failure;
use crate::store::{ContextId, IfBound, Target};

/// The operations of all contexts that change one binding.
pub(crate) struct DeferredChanges(pub(crate) Arc<Contexts>);

/// A change of one binding.
struct Change {
    context: ContextId,
    step: NameComponent,
    /// The new target; `None` removes the binding.
    target: Option<(Target, IfBound)>,
}

impl DeferredOperations for DeferredChanges {
    fn take<'m>(&self, call: ServerCall<'m>) -> Result<TakenRequest<'m>, SystemException> {
        // A one-way is made in its order.
        if !self.0.store.defers() || !call.is_response_expected() {
            return Ok(TakenRequest::LeftToSkeleton(call));
        }
        match call.operation() {
            "bind" | "bind_context" => self.make::<BindError>(call),
            "rebind" | "rebind_context" | "unbind" => self.make::<RebindError>(call),
            _ => Ok(TakenRequest::LeftToSkeleton(call)),
        }
    }

    /// Whether the context was destroyed, or there never was one with the key.
    fn non_existent(&self) -> bool {
        let checked = self.0.require_current();
        checked.is_err_and(|error| error.kind() == SystemExceptionKind::ObjectNotExist)
    }
}

impl DeferredChanges {
    /// Makes the change of a request with these exceptions, if its context is one of this store.
    fn make<'m, E: From<Failure> + UserExceptions + 'static>(
        &self,
        call: ServerCall<'m>,
    ) -> Result<TakenRequest<'m>, SystemException> {
        let Some(Change { context, step, target }) = self.change(&call)? else {
            return Ok(TakenRequest::LeftToSkeleton(call));
        };
        let (reply, replied) = call.defer_reply::<(), E>()?;
        let of_reply = step.clone();
        let done = Box::new(move |outcome: Result<(), _>| {
            reply.send(outcome.map_err(|error| Failure::at(&of_reply, &error).into()));
        });
        match target {
            Some((target, if_bound)) => self.0.store.bind_then(context, &step, &target, if_bound, done),
            None => self.0.store.unbind_then(context, &step, done),
        }
        Ok(TakenRequest::Taken(replied))
    }

    /// The change that a request makes, if its context is one of this store.
    ///
    /// # Errors
    /// NO_PERMISSION if the peer may not make it; MARSHAL for arguments that cannot be read.
    fn change(&self, call: &ServerCall<'_>) -> Result<Option<Change>, SystemException> {
        let operation = call.operation();
        let if_bound = if operation.starts_with("rebind") { IfBound::Replace } else { IfBound::Fail };
        let (name, target) = match operation {
            "unbind" => {
                let (name,): (Vec<NameComponent>,) = call.decode_arguments()?;
                return self.change_of(operation, &name, Ok(None));
            }
            "bind" | "rebind" => {
                let (name, object): (Vec<NameComponent>, Option<ObjectRef>) = call.decode_arguments()?;
                let object = object.map(|object| self.0.checked(&object).map(Target::Object));
                (name, object.unwrap_or(Ok(Target::Object(Ior::default()))))
            }
            _ => {
                let (name, context): (Vec<NameComponent>, Option<NamingContext>) = call.decode_arguments()?;
                let context = context.map(|context| self.0.context_target(operation, &context));
                (name, context.unwrap_or(Err(Failure::InvalidName))) // the skeleton has the exception of nil
            }
        };
        self.change_of(operation, &name, target.map(|target| Some((target, if_bound))))
    }

    fn change_of(
        &self,
        operation: &str,
        name: &[NameComponent],
        target: Result<Option<(Target, IfBound)>, Failure>,
    ) -> Result<Option<Change>, SystemException> {
        let target = match target {
            Ok(target) => target,
            Err(Failure::System(exception)) => return Err(exception),
            Err(_) => return Ok(None),
        };
        let (context, step) = match self.0.follow(operation, self.0.current()?, name) {
            Ok(LastStep::Here(context, step)) => (context, step),
            Err(Failure::System(exception)) => return Err(exception),
            _ => return Ok(None),
        };
        Ok(Some(Change { context, step: step.clone(), target }))
    }
}
