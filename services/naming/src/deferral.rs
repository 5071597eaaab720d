//! Changes of bindings whose replies are deferred until they are on the disk.
//!
//! A thread of the ORB that waited for the disk would be replaced by another during each change. Here it passes the
//! change to the store and goes on with its connection. The thread that commits the change, together with those of
//! other clients, sends the reply.
//!
//! Its skeleton is written by hand, since a generated one has no call that it could defer. All other operations, names
//! that lead to other servers, and invalid names belong to the [`ContextServant`].

use std::any::Any;

use spandrel::generated::{Decode as _, Decoder, Operations};
use spandrel::net::sync::Arc;
use spandrel::server::{DeferredCall, Replied, Servant, ServerCall};
use spandrel::services::cos_naming::naming_context::{BindError, RebindError};
use spandrel::services::cos_naming::{NameComponent, NamingContext, NamingContextExtSkeleton};
use spandrel::types::{Ior, UserExceptions};
use spandrel::{ObjectRef, SystemException, SystemExceptionKind};

use crate::context::{ContextServant, Contexts, LastStep};
use crate::failure::Failure;
use crate::store::{ContextId, IfBound, Target};

/// The servant of all contexts, in front of the skeleton of [`ContextServant`].
pub(crate) struct DeferringServant {
    contexts: Arc<Contexts>,
    skeleton: Arc<NamingContextExtSkeleton<ContextServant>>,
}

/// A change of one binding.
struct Change {
    context: ContextId,
    step: NameComponent,
    /// The new target; `None` removes the binding.
    target: Option<(Target, IfBound)>,
}

/// Sends the reply of a change.
type Reply = fn(DeferredCall, Result<(), Failure>);

impl DeferringServant {
    pub(crate) fn new(contexts: &Arc<Contexts>) -> Self {
        let servant = ContextServant(Arc::clone(contexts));
        Self { contexts: Arc::clone(contexts), skeleton: Arc::new(NamingContextExtSkeleton::new(servant)) }
    }

    /// The change that a request makes, if its context is one of this store.
    ///
    /// # Errors
    /// NO_PERMISSION if the peer may not make it; MARSHAL for arguments that cannot be read.
    fn change(&self, operation: &str, arguments: &mut Decoder<'_>) -> Result<Option<Change>, SystemException> {
        let name = Vec::<NameComponent>::decode(arguments)?;
        let target = match self.target(operation, arguments)? {
            Ok(target) => target,
            Err(Failure::System(exception)) => return Err(exception),
            Err(_) => return Ok(None),
        };
        let (context, step) = match self.contexts.follow(operation, self.contexts.current()?, &name) {
            Ok(LastStep::Here(context, step)) => (context, step),
            Err(Failure::System(exception)) => return Err(exception),
            _ => return Ok(None),
        };
        Ok(Some(Change { context, step: step.clone(), target }))
    }

    /// The new target of a binding; `None` if the operation is `unbind`.
    fn target(
        &self,
        operation: &str,
        arguments: &mut Decoder<'_>,
    ) -> Result<Result<Option<(Target, IfBound)>, Failure>, SystemException> {
        let if_bound = if operation.starts_with("rebind") { IfBound::Replace } else { IfBound::Fail };
        let target = match operation {
            "unbind" => return Ok(Ok(None)),
            "bind" | "rebind" => match Option::<ObjectRef>::decode(arguments)? {
                Some(object) => self.contexts.checked(&object).map(Target::Object),
                None => Ok(Target::Object(Ior::default())),
            },
            _ => match Option::<NamingContext>::decode(arguments)? {
                Some(context) => self.contexts.context_target(operation, &context),
                None => Err(Failure::InvalidName), // the skeleton has the exception
            },
        };
        Ok(target.map(|target| Some((target, if_bound))))
    }
}

impl Servant for DeferringServant {
    fn repository_id(&self) -> &str {
        self.skeleton.repository_id()
    }

    fn is_a(&self, repository_id: &str) -> bool {
        self.skeleton.is_a(repository_id)
    }

    /// Whether the context was destroyed, or there never was one with the key.
    fn non_existent(&self) -> bool {
        let checked = self.contexts.require_current();
        checked.is_err_and(|error| error.kind() == SystemExceptionKind::ObjectNotExist)
    }

    fn direct(self: std::sync::Arc<Self>, place: &mut dyn Any) {
        Arc::clone(&self.skeleton).direct(place);
    }

    fn operations(&self) -> &'static Operations {
        self.skeleton.operations()
    }

    fn upcall(&self, operation: usize, mut call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let reply: Reply = match call.operation() {
            "bind" | "bind_context" => reply::<BindError>,
            "rebind" | "rebind_context" | "unbind" => reply::<RebindError>,
            _ => return self.skeleton.upcall(operation, call),
        };
        // A one-way is made in its order.
        if !self.contexts.store.defers() || !call.is_response_expected() {
            return self.skeleton.upcall(operation, call);
        }
        let Some(change) = self.change(call.operation(), &mut call.arguments()?)? else {
            return self.skeleton.upcall(operation, call);
        };
        let (deferred, replied) = call.defer()?;
        let Change { context, step, target } = change;
        let of_reply = step.clone();
        let done = Box::new(move |outcome: Result<(), _>| {
            reply(deferred, outcome.map_err(|error| Failure::at(&of_reply, &error)));
        });
        match target {
            Some((target, if_bound)) => self.contexts.store.bind_then(context, &step, &target, if_bound, done),
            None => self.contexts.store.unbind_then(context, &step, done),
        }
        Ok(replied)
    }
}

/// Replies with the outcome of a change.
fn reply<E: From<Failure> + UserExceptions>(deferred: DeferredCall, outcome: Result<(), Failure>) {
    let outcome = outcome.map_err(E::from);
    let replied = deferred.answer(|call| match &outcome {
        Ok(()) => call.reply(|_| Ok(())),
        Err(error) => call.raise(error),
    });
    deferred.end(replied);
}
