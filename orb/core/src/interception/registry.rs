//! The interceptors of an ORB.

use std::fmt;

use spandrel_sync::{
    Arc,
    atomic::{AtomicU8, AtomicU32, Ordering},
};

use super::{
    ClientRequestInterceptor, INITIALIZE, Interceptor, OrbInitializer, SlotId, SlotTable,
    current::{self, OrbToken},
};
use super::{IorInterceptor, ServerRequestInterceptor};
use crate::{ObjectRef, Orb, lazy_part::LazyPart, object::InvokeFn};

/// The error for a second interceptor of a kind with the same name (16.7.2.1).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("an interceptor named `{0}` is registered already")]
pub struct DuplicateName(pub String);

/// The interceptors of an ORB, in the order of their registration, and their slots.
#[derive(Clone, Default)]
pub struct RegisteredInterceptors {
    pub(crate) initializers: Vec<Arc<dyn OrbInitializer>>,
    pub(super) client: Vec<Arc<dyn ClientRequestInterceptor>>,
    pub(super) server: Vec<Arc<dyn ServerRequestInterceptor>>,
    pub(super) ior: Vec<Arc<dyn IorInterceptor>>,
    /// Makes calls with client interceptors, if there are any. A program without client interceptors does not
    /// contain it.
    invoke_fn: Option<InvokeFn>,
    /// The number of slots that were allocated.
    pub(super) slots: u32,
}

impl RegisteredInterceptors {
    /// Adds an interceptor of the client's requests.
    ///
    /// # Errors
    /// If its name is taken.
    pub(crate) fn add_client(&mut self, interceptor: Arc<dyn ClientRequestInterceptor>) -> Result<(), DuplicateName> {
        check_name(self.client.iter().map(|other| other.name()), interceptor.name())?;
        self.client.push(interceptor);
        self.invoke_fn = Some(ObjectRef::invoke_intercepted);
        Ok(())
    }

    /// Adds an interceptor of requests to servants.
    ///
    /// # Errors
    /// If its name is taken.
    pub(crate) fn add_server(&mut self, interceptor: Arc<dyn ServerRequestInterceptor>) -> Result<(), DuplicateName> {
        check_name(self.server.iter().map(|other| other.name()), interceptor.name())?;
        self.server.push(interceptor);
        Ok(())
    }

    /// Adds an interceptor of adapters that are made.
    ///
    /// # Errors
    /// If its name is taken.
    pub(crate) fn add_ior(&mut self, interceptor: Arc<dyn IorInterceptor>) -> Result<(), DuplicateName> {
        check_name(self.ior.iter().map(|other| other.name()), interceptor.name())?;
        self.ior.push(interceptor);
        Ok(())
    }

    pub(crate) fn allocate_slot(&mut self) -> SlotId {
        self.slots += 1;
        self.slots - 1
    }

    /// Calls a function for all interceptors of all kinds.
    fn for_each(&self, mut then: impl FnMut(&dyn Interceptor)) {
        self.client.iter().for_each(|interceptor| then(&**interceptor));
        self.server.iter().for_each(|interceptor| then(&**interceptor));
        self.ior.iter().for_each(|interceptor| then(&**interceptor));
    }
}

/// Checks that a name is unique. Any number may be empty (16.7.2.1).
fn check_name<'n>(mut taken: impl Iterator<Item = &'n str>, name: &str) -> Result<(), DuplicateName> {
    if !name.is_empty() && taken.any(|other| other == name) { Err(DuplicateName(name.to_owned())) } else { Ok(()) }
}

impl fmt::Debug for RegisteredInterceptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Vec::new();
        self.for_each(|interceptor| names.push(interceptor.name().to_owned()));
        f.debug_struct("RegisteredInterceptors").field("names", &names).field("slots", &self.slots).finish()
    }
}

const CLIENT: u8 = 1;
const SERVER: u8 = 2;

/// An ORB's state of interception.
#[derive(Debug, Default)]
pub struct Interception {
    /// Set when the ORB is ready: while it is being made nothing is intercepted.
    registered: LazyPart,
    /// The sides with interceptors. In most cases this is all that a call reads.
    sides: AtomicU8,
    token: OrbToken,
    requests: AtomicU32,
}

impl Interception {
    fn registered(&self) -> Option<&RegisteredInterceptors> {
        self.registered.get()
    }

    pub(crate) fn begin(&self, registered: RegisteredInterceptors) {
        let client = if registered.client.is_empty() { 0 } else { CLIENT };
        let server = if registered.server.is_empty() && registered.slots == 0 { 0 } else { SERVER };
        self.registered.get_or_make(|| registered);
        self.sides.store(client | server, Ordering::Release);
    }

    /// The function for calls with client interceptors; `None` without interceptors.
    #[inline]
    pub(crate) fn invoke_fn(&self) -> Option<InvokeFn> {
        if INITIALIZE.get().is_none() || self.sides.load(Ordering::Acquire) & CLIENT == 0 {
            return None;
        }
        self.registered()?.invoke_fn
    }

    /// The interceptors of the client's requests.
    #[inline]
    pub(crate) fn client(&self) -> &[Arc<dyn ClientRequestInterceptor>] {
        self.registered().map_or(&[], |registered| &registered.client)
    }

    /// The interceptors of requests to servants.
    #[inline]
    pub(crate) fn server(&self) -> &[Arc<dyn ServerRequestInterceptor>] {
        self.registered().map_or(&[], |registered| &registered.server)
    }

    /// The interceptors of adapters that are made.
    pub(super) fn ior(&self) -> &[Arc<dyn IorInterceptor>] {
        self.registered().map_or(&[], |registered| &registered.ior)
    }

    /// Whether server points have work for a request, be it only the slots of its thread.
    #[inline]
    pub fn has_server_points(&self) -> bool {
        self.sides.load(Ordering::Acquire) & SERVER != 0
    }

    /// A request's slots before any of them is set.
    pub(super) fn no_slots(&self) -> SlotTable {
        SlotTable::new(self.slot_count())
    }

    /// A number that no other pending request has (16.3.12.1). It is not GIOP's request id, which one
    /// connection assigns.
    pub(super) fn request_id(&self) -> u32 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    fn slot_count(&self) -> u32 {
        self.registered().map_or(0, |registered| registered.slots)
    }

    /// The calling thread's slots.
    pub(super) fn thread_slots(&self) -> SlotTable {
        current::of_thread(&self.token, self.slot_count())
    }

    /// Gives the calling thread these slots, and returns its former ones.
    pub(super) fn exchange_thread_slots(&self, slots: SlotTable) -> SlotTable {
        current::exchange(&self.token, slots)
    }

    /// Calls `destroy` on all interceptors, after the shutdown of the ORB.
    pub(crate) fn destroy(&self) {
        let Some(registered) = self.registered() else { return };
        registered.for_each(|interceptor| {
            let catch_panic = super::flow::catch_panic(|| -> Result<(), spandrel_giop::SystemException> {
                interceptor.destroy();
                Ok(())
            });
            if let Err(exception) = catch_panic {
                tracing::error!(name = interceptor.name(), %exception, "an interceptor could not be destroyed");
            }
        });
    }
}

impl Orb {
    /// Whether client interceptors are registered: no request may bypass them then.
    #[must_use]
    #[inline]
    pub fn has_client_interceptors(&self) -> bool {
        self.interception().sides.load(Ordering::Acquire) & CLIENT != 0
    }
}
