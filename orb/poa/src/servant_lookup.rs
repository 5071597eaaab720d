//! From an object id to what serves the request (CORBA 3.3 Part 1, 15.2.6): the active object map, the default servant, or a servant manager.

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{Servant, ServerCall};
use spandrel_sync::Arc;

use crate::{
    Poa, RequestProcessingPolicy, ServantManager, ThreadPolicy,
    adapter::{Adapter, MAX_WAITING, Phase, servants::Incarnation},
    error,
    in_use::{InUse, Located},
    objects::{Active, Forwarding, Found, LastTarget},
    signal::{Signal, Ticket},
};

/// What is to become of a request.
pub(crate) enum Entrance {
    Serve(InUse),
    /// Another object is to be asked.
    Forward(Forwarding),
    /// It waits, and then begins anew.
    Wait(Ticket),
    /// It begins anew at once.
    Again,
}

impl Entrance {
    /// After what an adapter that is not open has said.
    fn after(ticket: Option<Ticket>) -> Self {
        ticket.map_or(Self::Again, Self::Wait)
    }
}

impl Adapter {
    /// Finds what serves a request for this object (15.2.6).
    #[inline]
    pub(crate) fn enter(
        self: &Arc<Self>,
        id: &[u8],
        operation: &str,
        last: Option<&impl LastTarget>,
    ) -> Result<Entrance, SystemException> {
        if self.policies.retains() {
            match self.objects.enter(id, last, || self.is_open()) {
                Found::Active(active) => return Ok(Entrance::Serve(InUse::Object(active))),
                Found::Shut => return self.refuse().map(Entrance::after),
                Found::Busy(over) if self.policies.processing != RequestProcessingPolicy::UseActiveObjectMapOnly => {
                    return wait_for(&over);
                }
                // What is being deactivated exists no longer.
                Found::Busy(_) | Found::Nothing => {}
            }
        }
        self.enter_inactive(id, operation)
    }

    /// Finds what serves this object without asking or waiting for anybody: an object of the map that any thread may serve.
    #[inline]
    pub(crate) fn enter_active(&self, id: &[u8]) -> Option<InUse> {
        if !self.policies.retains() || self.policies.thread != ThreadPolicy::OrbCtrlModel {
            return None;
        }
        match self.objects.enter(id, None::<&ServerCall<'_>>, || self.is_open()) {
            Found::Active(active) => Some(InUse::Object(active)),
            _ => None,
        }
    }

    /// Finds what serves an object that is not in the active object map.
    fn enter_inactive(self: &Arc<Self>, id: &[u8], operation: &str) -> Result<Entrance, SystemException> {
        if self.policies.processing == RequestProcessingPolicy::UseActiveObjectMapOnly {
            return Err(error::not_active());
        }
        if self.objects.check_made(id).is_err() {
            return Err(error::not_active());
        }
        if !self.usage.start(|| self.is_open()) {
            return self.refuse().map(Entrance::after);
        }
        // Ended by what is returned, if that serves; here in all other cases.
        let counted = Counted(self);
        let entrance = if self.policies.has_default_servant() {
            self.default_servant().map(|servant| Entrance::Serve(InUse::Default(servant)))
        } else if self.policies.retains() {
            self.incarnate(id)
        } else {
            self.locate(id, operation)
        };
        if let Ok(Entrance::Serve(InUse::Default(_) | InUse::Located(_))) = &entrance {
            std::mem::forget(counted);
        }
        entrance
    }

    fn default_servant(&self) -> Result<Arc<dyn Servant>, SystemException> {
        self.default_servant.read().clone().ok_or_else(|| {
            SystemException::obj_adapter(minor::NO_DEFAULT_SERVANT, CompletionStatus::No)
                .with_detail("the adapter has no default servant")
        })
    }

    /// Has the servant activator find a servant, once for all requests that want it (15.3.6.1).
    fn incarnate(self: &Arc<Self>, id: &[u8]) -> Result<Entrance, SystemException> {
        let Some(ServantManager::Activator(activator)) = self.servant_manager.read().clone() else {
            return Err(no_servant_manager());
        };
        match self.objects.begin_incarnation(id) {
            Found::Nothing => {}
            Found::Active(active) => return Ok(Entrance::Serve(InUse::Object(active))),
            Found::Busy(over) => return wait_for(&over),
            Found::Shut => return self.refuse().map(Entrance::after),
        }
        let incarnating = Incarnating { adapter: self, id, is_over: false };
        spandrel_sync::held::assert_none("a servant activator");
        let answer = activator.incarnate(&id.into(), &Poa::of(self)?);
        match answer {
            Ok(servant) => incarnating.end(servant).map(|active| Entrance::Serve(InUse::Object(active))),
            Err(why) => not_incarnated(why),
        }
    }

    /// Has the servant locator find a servant for this request alone (15.3.7.1).
    fn locate(self: &Arc<Self>, id: &[u8], operation: &str) -> Result<Entrance, SystemException> {
        let Some(ServantManager::Locator(locator)) = self.servant_manager.read().clone() else {
            return Err(no_servant_manager());
        };
        spandrel_sync::held::assert_none("a servant locator");
        match locator.preinvoke(&id.into(), &Poa::of(self)?, operation) {
            Ok(found) => Ok(Entrance::Serve(InUse::Located(Arc::new(Located::new(locator, operation, found))))),
            Err(why) => not_incarnated(why),
        }
    }
}

/// A place among those that wait for an object.
fn wait_for(over: &Arc<Signal>) -> Result<Entrance, SystemException> {
    let ticket = over.ticket(MAX_WAITING);
    ticket.map(Entrance::Wait).ok_or_else(|| error::discarded("too many requests wait for the object's servant"))
}

fn not_incarnated(why: Incarnation) -> Result<Entrance, SystemException> {
    match why {
        Incarnation::ForwardRequest(target) => Ok(Entrance::Forward(Forwarding { target, is_permanent: false })),
        Incarnation::ForwardPermanently(target) => Ok(Entrance::Forward(Forwarding { target, is_permanent: true })),
        Incarnation::System(exception) => Err(exception),
    }
}

fn no_servant_manager() -> SystemException {
    SystemException::obj_adapter(minor::NO_SERVANT_MANAGER, CompletionStatus::No)
        .with_detail("the adapter has no servant manager")
}

/// The time in which a request that uses no entry of the active object map is counted.
struct Counted<'a>(&'a Adapter);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.end_counted();
    }
}

/// The time in which an activator is asked; whatever it does, the others must not wait for ever.
struct Incarnating<'a> {
    adapter: &'a Arc<Adapter>,
    id: &'a [u8],
    is_over: bool,
}

impl Incarnating<'_> {
    fn end(mut self, servant: Arc<dyn Servant>) -> Result<Arc<Active>, SystemException> {
        self.is_over = true;
        let active = self.adapter.objects.end_incarnation(self.id, Some(servant));
        if self.adapter.phase() >= Phase::Gone {
            // Nobody else will end it: all objects that there were have been deactivated already.
            self.adapter.deactivate_late(self.id);
        }
        active.ok_or_else(|| {
            SystemException::obj_adapter(minor::INCARNATE_VIOLATED_POLICY, CompletionStatus::No)
                .with_detail("the servant activator gave a servant that stands behind another object")
        })
    }
}

impl Drop for Incarnating<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.adapter.objects.end_incarnation(self.id, None);
        }
    }
}
