//! Naming contexts as servants: names, compound names and federation, with the exceptions of the specification
//! (Naming Service 1.3, 2.3 and 2.4).
//!
//! One default servant serves all contexts of a store: the object id is the id of the context. A compound name is
//! followed from context to context of the store. A context of another server gets the rest of the name, in one call
//! with a time limit. Where that is impossible, the client may go on by itself (CannotProceed).

use std::cell::Cell;
use std::str;
use std::time::Duration;

use spandrel::authorization::PathCheck;
use spandrel::net::sync::Arc;
use spandrel::poa::{Current, ObjectId};
use spandrel::services::cos_naming::naming_context::{
    BindContextError, BindError, BindNewContextError, DestroyError, InvalidName as InvalidNameException, NotEmpty,
    NotFoundReason, RebindContextError, RebindError, ResolveError, UnbindError,
};
use spandrel::services::cos_naming::naming_context_ext::{
    InvalidAddress, ResolveStrError, StringName, ToNameError, ToStringError, ToUrlError, UrlString,
};
use spandrel::services::cos_naming::{
    BindingIterator, BindingList, Name, NameComponent, NamingContext, NamingContextExtServant, NamingContextServant,
};
use spandrel::services::name::{self, InvalidName};
use spandrel::types::Ior;
use spandrel::{CompletionStatus, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind};

use crate::failure::{Failure, system};
use crate::iterators::{self, Iterators};
use crate::store::{ContextId, IfBound, Store, StoreError, Target};

/// The repository id of the contexts.
pub(crate) const CONTEXT_TYPE: &str = "IDL:omg.org/CosNaming/NamingContextExt:1.0";

/// The parts that all contexts share.
#[derive(Debug)]
pub(crate) struct Contexts {
    pub(crate) orb: Orb,
    pub(crate) poa: Poa,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) path_check: Option<PathCheck>,
    pub(crate) iterators: Arc<Iterators>,
    /// The time limit of a call on a context of another server.
    pub(crate) federation_timeout: Duration,
    /// The largest reference that is bound, in octets of its profiles.
    pub(crate) max_reference: usize,
}

/// The last step of a compound name.
pub(crate) enum LastStep<'n> {
    /// In a context of this store.
    Here(ContextId, &'n NameComponent),
    /// In a context of another server, with the rest of the name.
    Elsewhere(NamingContext, &'n [NameComponent]),
}

impl Contexts {
    /// The reference of a context.
    pub(crate) fn reference(&self, context: ContextId) -> Result<ObjectRef, SystemException> {
        let id = ObjectId::from(context.0.to_string().as_str());
        Ok(self.poa.create_reference_with_id(&id, CONTEXT_TYPE)?)
    }

    /// The context that a request is for.
    pub(crate) fn current(&self) -> Result<ContextId, SystemException> {
        let id = Current::new().object_id().map_err(|_| unknown_context())?;
        str::from_utf8(id.as_bytes()).ok().and_then(|id| id.parse().ok()).map(ContextId).ok_or_else(unknown_context)
    }

    /// Checks that the context of the request exists.
    pub(crate) fn require_current(&self) -> Result<(), SystemException> {
        self.store.path(self.current()?).map(drop).map_err(|error| system(&error))
    }

    /// Follows a name to its last step, as far as the peer may use the name.
    ///
    /// The policy decides about the whole name as it was given, also about the part that another server answers. A
    /// context on the way may have another path than the name so far, by which it was made: the rest of the name is
    /// decided by that path, too. So no other binding of a context is a way round a rule.
    ///
    /// # Errors
    /// NO_PERMISSION before a binding is looked up, so that no answer tells which names exist below a denied path.
    pub(crate) fn follow<'n>(
        &self,
        operation: &str,
        start: ContextId,
        name: &'n [NameComponent],
    ) -> Result<LastStep<'n>, Failure> {
        valid(name::check(name))?.map_err(|_| Failure::InvalidName)?;
        let (mut context, mut decided) = (start, None);
        for (index, step) in name.iter().enumerate() {
            if let Some(path_check) = &self.path_check {
                let path = self.path(context, &name[index..]).map_err(|error| system(&error))?;
                // A context without a path of its own has that of the name.
                if index == 0 || path.is_some() && path != decided {
                    path_check.check(operation, path.as_deref())?;
                    decided = path;
                }
            }
            if index + 1 == name.len() {
                return Ok(LastStep::Here(context, step));
            }
            context = match self.lookup(context, step) {
                Ok(Target::Context(next)) => next,
                Ok(Target::ForeignContext(ior)) => {
                    return Ok(LastStep::Elsewhere(self.foreign(ior), &name[index + 1..]));
                }
                Ok(Target::Object(_)) => {
                    return Err(Failure::NotFound(NotFoundReason::NotContext, name[index..].to_vec()));
                }
                Err(StoreError::NotBound) => {
                    return Err(Failure::NotFound(NotFoundReason::MissingNode, name[index..].to_vec()));
                }
                Err(error) => return Err(system(&error).into()),
            };
        }
        Err(Failure::InvalidName)
    }

    /// The path of a name in a context; of the context itself for an empty name. `None` for a context without a path.
    fn path(&self, context: ContextId, name: &[NameComponent]) -> Result<Option<String>, StoreError> {
        let path = self.store.path(context)?;
        Ok(path.map(|path| match (path.is_empty(), name) {
            (_, []) => path,
            (true, name) => name::to_string(name),
            (false, name) => format!("{path}/{}", name::Path(name)),
        }))
    }

    /// The target of one step.
    fn lookup(&self, context: ContextId, step: &NameComponent) -> Result<Target, StoreError> {
        let target = self.store.lookup(context, step)?;
        Ok(match &target {
            // The endpoints may be others than when it was bound.
            Target::ForeignContext(ior) => self.own_context(ior).map_or(target, Target::Context),
            _ => target,
        })
    }

    /// Runs the last step of an operation on a name: in the store, or as a call on another server's context.
    fn with_name<T>(
        &self,
        operation: &str,
        name: &[NameComponent],
        here: impl FnOnce(ContextId, &NameComponent) -> Result<T, StoreError>,
        elsewhere: impl FnOnce(&NamingContext, &[NameComponent]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let start = self.current()?;
        if name.is_empty() {
            self.store.path(start).map_err(|error| system(&error))?; // OBJECT_NOT_EXIST comes first
        }
        match self.follow(operation, start, name)? {
            LastStep::Here(context, step) => here(context, step).map_err(|error| Failure::at(step, &error)),
            LastStep::Elsewhere(context, rest) => {
                let Some(_call) = ForeignCall::begin() else {
                    return Err(Failure::CannotProceed(context, rest.to_vec()));
                };
                elsewhere(&context, rest).map_err(|failure| match failure {
                    // The client may have a way to that server. Other exceptions are the server's answer.
                    Failure::System(exception) if is_unreachable(exception.kind()) => {
                        tracing::debug!(%exception, "a context of another server is unreachable");
                        Failure::CannotProceed(context, rest.to_vec())
                    }
                    failure => failure,
                })
            }
        }
    }

    /// Whether the peer may use a context, by the path by which it was made.
    fn check_path(&self, operation: &str, context: ContextId) -> Result<(), SystemException> {
        let Some(path_check) = &self.path_check else { return Ok(()) };
        let path = self.path(context, &[]).map_err(|error| system(&error))?;
        path_check.check(operation, path.as_deref())
    }

    /// A context of another server, whose calls end in time. None of them reaches this service: the peer would have
    /// the rights of this process.
    fn foreign(&self, ior: Ior) -> NamingContext {
        let context = self.orb.reference(ior).with_timeout(Some(self.federation_timeout));
        context.excluding_own_endpoints().unchecked_narrow()
    }

    /// The context of this store that a reference denotes, however its server is addressed.
    fn own_context(&self, ior: &Ior) -> Option<ContextId> {
        let id = self.poa.key_to_id(&self.orb.own_object_key(ior)?)?;
        str::from_utf8(id.as_bytes()).ok().and_then(|id| id.parse().ok()).map(ContextId)
    }

    /// The target of a binding to a context: one of this store by its id, if the peer may use that: keys of
    /// contexts can be guessed.
    pub(crate) fn context_target(&self, operation: &str, context: &NamingContext) -> Result<Target, Failure> {
        let object: ObjectRef = context.clone().into();
        if let Some(id) = self.own_context(object.ior()) {
            self.check_path(operation, id)?;
            return Ok(Target::Context(id));
        }
        Ok(Target::ForeignContext(self.checked(&object)?))
    }

    /// A reference of a size that may be stored.
    pub(crate) fn checked(&self, object: &ObjectRef) -> Result<Ior, Failure> {
        let ior = object.ior();
        let octets = ior.type_id.len() + ior.profiles.iter().map(|profile| profile.data.len()).sum::<usize>();
        if octets > self.max_reference {
            let limit = self.max_reference;
            let exception = SystemException::imp_limit(0, CompletionStatus::No)
                .with_detail(move || format!("the reference has {octets} octets, and the limit is {limit}"));
            return Err(exception.into());
        }
        Ok(ior.clone())
    }

    fn resolve(&self, name: &[NameComponent]) -> Result<Option<ObjectRef>, Failure> {
        let target = self.with_name(
            "resolve",
            name,
            |context, step| self.lookup(context, step).map(Ok),
            |context, rest| Ok(Err(context.resolve(rest)?)),
        )?;
        match target {
            Ok(Target::Context(context)) => Ok(Some(self.reference(context)?)),
            Ok(Target::Object(ior)) if ior.is_nil() => Ok(None),
            Ok(Target::Object(ior) | Target::ForeignContext(ior)) => Ok(Some(self.orb.reference(ior))),
            Err(resolved) => Ok(resolved),
        }
    }

    fn bind_object(
        &self,
        operation: &str,
        name: &[NameComponent],
        object: Option<&ObjectRef>,
        if_bound: IfBound,
        elsewhere: impl FnOnce(&NamingContext, &[NameComponent]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let ior = object.map(|object| self.checked(object)).transpose()?.unwrap_or_default();
        let bind = |context, step: &_| self.store.bind(context, step, &Target::Object(ior), if_bound);
        self.with_name(operation, name, bind, elsewhere)
    }

    fn bind_given_context(
        &self,
        operation: &str,
        name: &[NameComponent],
        context: Option<&NamingContext>,
        if_bound: IfBound,
        elsewhere: impl FnOnce(&NamingContext, &[NameComponent]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // Nil cannot be a context (2.3.3).
        let context = context.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No))?;
        let target = self.context_target(operation, context)?;
        let bind = |context, step: &_| self.store.bind(context, step, &target, if_bound);
        self.with_name(operation, name, bind, elsewhere)
    }
}

/// A call on a context of another server. A name may lead from there back to this server, where the same thread can
/// serve it. So a thread has a limit of such calls within one another: each takes a part of its stack.
struct ForeignCall(());

impl ForeignCall {
    const MAX: u32 = 16;

    /// `None` if the thread has as many calls as it may.
    fn begin() -> Option<Self> {
        FOREIGN_CALLS.with(|calls| {
            let more = calls.get() + 1;
            (more <= Self::MAX).then(|| {
                calls.set(more);
                Self(())
            })
        })
    }
}

impl Drop for ForeignCall {
    fn drop(&mut self) {
        FOREIGN_CALLS.with(|calls| calls.set(calls.get() - 1));
    }
}

thread_local! {
    /// The calls of the thread that have not ended.
    static FOREIGN_CALLS: Cell<u32> = const { Cell::new(0) };
}

/// The servant of all contexts.
#[derive(Clone, Debug)]
pub(crate) struct ContextServant(pub(crate) Arc<Contexts>);

impl NamingContextServant for ContextServant {
    fn bind(&self, n: &[NameComponent], obj: Option<&ObjectRef>) -> Result<(), BindError> {
        Ok(self.0.bind_object("bind", n, obj, IfBound::Fail, |context, rest| Ok(context.bind(rest, obj)?))?)
    }

    fn rebind(&self, n: &[NameComponent], obj: Option<&ObjectRef>) -> Result<(), RebindError> {
        Ok(self.0.bind_object("rebind", n, obj, IfBound::Replace, |context, rest| Ok(context.rebind(rest, obj)?))?)
    }

    fn bind_context(&self, n: &[NameComponent], nc: Option<&NamingContext>) -> Result<(), BindContextError> {
        let elsewhere = |context: &NamingContext, rest: &[_]| Ok(context.bind_context(rest, nc)?);
        Ok(self.0.bind_given_context("bind_context", n, nc, IfBound::Fail, elsewhere)?)
    }

    fn rebind_context(&self, n: &[NameComponent], nc: Option<&NamingContext>) -> Result<(), RebindContextError> {
        let elsewhere = |context: &NamingContext, rest: &[_]| Ok(context.rebind_context(rest, nc)?);
        Ok(self.0.bind_given_context("rebind_context", n, nc, IfBound::Replace, elsewhere)?)
    }

    fn resolve(&self, n: &[NameComponent]) -> Result<Option<ObjectRef>, ResolveError> {
        Ok(self.0.resolve(n)?)
    }

    fn unbind(&self, n: &[NameComponent]) -> Result<(), UnbindError> {
        let here = |context, step: &_| self.0.store.unbind(context, step);
        Ok(self.0.with_name("unbind", n, here, |context, rest| Ok(context.unbind(rest)?))?)
    }

    fn new_context(&self) -> Result<Option<NamingContext>, SystemException> {
        let contexts = &self.0;
        let current = contexts.current()?;
        contexts.check_path("new_context", current)?;
        contexts.store.path(current).map_err(|error| system(&error))?; // it exists
        let created = contexts.store.new_context().map_err(|error| system(&error))?;
        Ok(Some(contexts.reference(created)?.unchecked_narrow()))
    }

    fn bind_new_context(&self, n: &[NameComponent]) -> Result<Option<NamingContext>, BindNewContextError> {
        let created = self.0.with_name(
            "bind_new_context",
            n,
            |context, step| self.0.store.bind_new_context(context, step).map(Ok),
            |context, rest| Ok(Err(context.bind_new_context(rest)?)),
        )?;
        match created {
            Ok(context) => Ok(Some(self.0.reference(context)?.unchecked_narrow())),
            Err(created) => Ok(created),
        }
    }

    fn destroy(&self) -> Result<(), DestroyError> {
        let current = self.0.current()?;
        self.0.check_path("destroy", current)?;
        self.0.store.destroy(current).map_err(|error| match error {
            StoreError::NotEmpty(_) => NotEmpty {}.into(),
            error => system(&error).into(),
        })
    }

    fn list(&self, how_many: u32) -> Result<(BindingList, Option<BindingIterator>), SystemException> {
        let contexts = &self.0;
        let current = contexts.current()?;
        contexts.check_path("list", current)?;
        iterators::list(&contexts.iterators, &contexts.store, current, how_many)
    }
}

impl NamingContextExtServant for ContextServant {
    fn to_string(&self, n: &[NameComponent]) -> Result<StringName, ToStringError> {
        self.0.require_current()?;
        valid(name::check(n))?.map_err(|_| InvalidNameException {})?;
        Ok(name::to_string(n))
    }

    fn to_name(&self, sn: &str) -> Result<Name, ToNameError> {
        self.0.require_current()?;
        Ok(valid(name::parse(sn))?.map_err(|_| InvalidNameException {})?)
    }

    fn to_url(&self, addr: &str, sn: &str) -> Result<UrlString, ToUrlError> {
        self.0.require_current()?;
        if !is_address(addr) {
            return Err(InvalidAddress {}.into());
        }
        valid(name::parse(sn))?.map_err(|_| InvalidNameException {})?;
        Ok(format!("corbaname:{addr}#{}", name::escape_for_url(sn)))
    }

    fn resolve_str(&self, sn: &str) -> Result<Option<ObjectRef>, ResolveStrError> {
        let name = valid(name::parse(sn))?.map_err(|_| InvalidNameException {})?;
        Ok(self.0.resolve(&name)?)
    }
}

/// The outcome of a check of a name: IMP_LIMIT for a name beyond the limits.
fn valid<T>(checked: Result<T, InvalidName>) -> Result<Result<T, InvalidName>, SystemException> {
    match checked {
        Err(error @ (InvalidName::TooManyComponents | InvalidName::LongComponent)) => {
            Err(SystemException::imp_limit(0, CompletionStatus::No).with_detail(move || error.to_string()))
        }
        checked => Ok(checked),
    }
}

/// Whether a text is the address list of a `corbaloc` URL (2.4.2.2, 2.5.3), such as `:host:2809` or `iiop:1.2@host`.
fn is_address(text: &str) -> bool {
    const PROTOCOLS: [&str; 6] = ["", "iiop", "ssliop", "uds", "shm", "rir"];
    let protocol = text.split_once(':').map(|(protocol, _)| protocol);
    let is_of_url = !text.ends_with("::") && !text.contains(|letter: char| letter == '#' || letter.is_whitespace());
    // A version is followed by a host (2.4.2.2).
    let has_hosts = text
        .split(',')
        .filter_map(|address| address.split_once('@'))
        .all(|(_, host)| !host.is_empty() && !host.starts_with(':'));
    is_of_url
        && has_hosts
        && protocol.is_some_and(|protocol| PROTOCOLS.contains(&protocol))
        && format!("corbaloc:{text}/NameService").parse::<spandrel::types::ObjectUrl>().is_ok()
}

/// Whether an exception says that no server answered.
fn is_unreachable(kind: SystemExceptionKind) -> bool {
    use SystemExceptionKind::{CommFailure, InvObjref, NoResponse, Timeout, Transient};
    matches!(kind, CommFailure | InvObjref | NoResponse | Timeout | Transient)
}

fn unknown_context() -> SystemException {
    SystemException::object_not_exist(0, CompletionStatus::No).with_detail("the key is not that of a naming context")
}
