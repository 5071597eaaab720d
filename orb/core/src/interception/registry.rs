//! The interceptors of an ORB.

use std::fmt;

use spandrel_sync::Arc;

use super::{
    ClientRequestInterceptor, Interceptor, IorInterceptor, ServerRequestInterceptor,
    slots::{self, SlotTable},
};
use crate::{
    ObjectRef, Orb,
    orb::{
        interception_state::{InterceptionPoints, InterceptionState, SlotId},
        parts,
    },
    reference::object::InvokeFn,
};

/// The error for a second interceptor of a kind with the same name (16.7.2.1).
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[error("an interceptor named `{0}` is registered already")]
pub struct DuplicateName(pub String);
spandrel_error::debug_as_report!(DuplicateName);

/// The interceptors of an ORB, in the order of their registration, and their slots.
#[derive(Clone, Default)]
pub(crate) struct RegisteredInterceptors {
    pub(super) client: Vec<Arc<dyn ClientRequestInterceptor>>,
    pub(super) server: Vec<Arc<dyn ServerRequestInterceptor>>,
    pub(super) ior: Vec<Arc<dyn IorInterceptor>>,
    /// Makes calls with client interceptors or binding policies, if there are any. A program without both does not
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
        self.invoke_fn.get_or_insert(ObjectRef::invoke_intercepted);
        Ok(())
    }

    /// Has calls bound by the ORB's binding policies.
    pub(super) fn bind_calls(&mut self) {
        self.invoke_fn = Some(ObjectRef::invoke_bound);
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
fn check_name<'n>(mut names: impl Iterator<Item = &'n str>, name: &str) -> Result<(), DuplicateName> {
    if !name.is_empty() && names.any(|other| other == name) { Err(DuplicateName(name.to_owned())) } else { Ok(()) }
}

impl fmt::Debug for RegisteredInterceptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Vec::new();
        self.for_each(|interceptor| names.push(interceptor.name().to_owned()));
        f.debug_struct("RegisteredInterceptors").field("names", &names).field("slots", &self.slots).finish()
    }
}

/// Gives an ORB that is ready its interceptors.
pub(super) fn begin(orb: &Orb, registered: RegisteredInterceptors) {
    let has_server_points = !registered.server.is_empty() || registered.slots > 0;
    let points = InterceptionPoints { client: registered.invoke_fn.is_some(), server: has_server_points };
    orb.interception().begin(registered, points, destroy);
}

/// The interceptors, once the ORB is ready.
fn registered(state: &InterceptionState) -> Option<&RegisteredInterceptors> {
    state.registered()
}

/// The function for calls with client interceptors or binding policies; `None` without both.
#[inline]
pub(crate) fn invoke_fn(orb: &Orb) -> Option<InvokeFn> {
    // The first condition alone keeps the rest out of a program without interceptors.
    if parts::are_in_use() && orb.interception().has_client_points() {
        registered(orb.interception())?.invoke_fn
    } else {
        None
    }
}

/// The interceptors of an ORB's requests.
#[inline]
pub(crate) fn client_interceptors(orb: &Orb) -> &[Arc<dyn ClientRequestInterceptor>] {
    registered(orb.interception()).map_or(&[], |registered| &registered.client)
}

/// The interceptors of requests to servants.
#[inline]
pub(super) fn server_interceptors(orb: &Orb) -> &[Arc<dyn ServerRequestInterceptor>] {
    registered(orb.interception()).map_or(&[], |registered| &registered.server)
}

/// The interceptors of adapters that are made.
pub(crate) fn ior_interceptors(orb: &Orb) -> &[Arc<dyn IorInterceptor>] {
    registered(orb.interception()).map_or(&[], |registered| &registered.ior)
}

/// A request's slots before any of them is set.
pub(super) fn no_slots(orb: &Orb) -> SlotTable {
    SlotTable::new(slot_count(orb))
}

fn slot_count(orb: &Orb) -> u32 {
    registered(orb.interception()).map_or(0, |registered| registered.slots)
}

/// The calling thread's slots.
pub(super) fn thread_slots(orb: &Orb) -> SlotTable {
    slots::of_thread(orb.interception().token(), slot_count(orb))
}

/// Gives the calling thread these slots, and returns its former ones.
pub(super) fn exchange_thread_slots(orb: &Orb, slots: SlotTable) -> SlotTable {
    slots::exchange(orb.interception().token(), slots)
}

/// Calls `destroy` on all interceptors, after the shutdown of the ORB.
fn destroy(state: &InterceptionState) {
    let Some(registered) = registered(state) else { return };
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
