//! Lookup of the servant for an object id (CORBA 3.3 Part 1, 15.2.6): in the active object map, as the
//! default servant, or by a servant manager: a servant activator
//! incarnates the servant at the first request (15.3.6), a servant locator for each request.

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_server::{LastTarget, Servant};
use spandrel_sync::Arc;

use crate::{
    Poa, RequestProcessingPolicy, ServantManager,
    adapter::{Adapter, MAX_WAITING, Phase, servants::Incarnation},
    error,
    objects::{ActiveObject, Forwarding, ObjectLookup},
    policies::ServantThreads,
    servant_in_use::{LocatedServant, ServantInUse},
    waiting::{Event, Ticket},
};

/// The result of the lookup.
pub(crate) enum ServantLookup {
    Found(ServantInUse),
    /// The request is forwarded to another object.
    Forward(Forwarding),
    /// The request waits, and is then dispatched again.
    Wait(Ticket),
    /// The request is dispatched again at once.
    Retry,
}

impl ServantLookup {
    /// The result for an adapter that is not open.
    fn wait_or_retry(ticket: Option<Ticket>) -> Self {
        ticket.map_or(Self::Retry, Self::Wait)
    }
}

impl Adapter {
    /// Finds the servant for this object (15.2.6).
    #[inline]
    pub(crate) fn enter(
        self: &Arc<Self>,
        id: &[u8],
        operation: &str,
        last: Option<&(impl LastTarget + ?Sized)>,
    ) -> Result<ServantLookup, SystemException> {
        if self.policies.retains() {
            match self.objects.enter(id, last, || self.is_open()) {
                ObjectLookup::Active(active) => return Ok(ServantLookup::Found(ServantInUse::Object(active))),
                ObjectLookup::Closed => return self.hold_or_reject().map(ServantLookup::wait_or_retry),
                ObjectLookup::InTransition(finished)
                    if self.policies.processing != RequestProcessingPolicy::UseActiveObjectMapOnly =>
                {
                    return wait_for_object(&finished);
                }
                // An object whose deactivation has begun no longer exists.
                ObjectLookup::InTransition(_) | ObjectLookup::NotFound => {}
            }
        }
        self.enter_inactive(id, operation)
    }

    /// Finds an active object that any thread may call, without a call to the application and without
    /// waiting.
    #[inline]
    pub(crate) fn enter_active(&self, id: &[u8]) -> Option<ServantInUse> {
        self.find_active(id, None).map(ServantInUse::Object)
    }

    /// Finds an active object for a call that does not marshal: one that any thread may call, or the executor the
    /// calling one.
    pub(crate) fn enter_direct(&self, id: &[u8]) -> Option<ServantInUse> {
        let runs_here = || self.executor.as_ref().is_some_and(|executor| executor.runs_direct_calls(id));
        if self.policies.servant_threads != ServantThreads::Executor || !self.policies.retains() || !runs_here() {
            return self.enter_active(id);
        }
        match self.objects.enter(id, None::<&dyn LastTarget>, || self.is_open()) {
            ObjectLookup::Active(active) => Some(ServantInUse::Object(active)),
            _ => None,
        }
    }

    /// As [`enter_active`](Self::enter_active), for an object of the default servant.
    pub(crate) fn enter_default(self: &Arc<Self>, id: &[u8]) -> Option<ServantInUse> {
        if !self.policies.has_default_servant()
            || self.policies.servant_threads != ServantThreads::Any
            || !self.is_open()
        {
            return None;
        }
        match self.enter_inactive(id, "_non_existent") {
            Ok(ServantLookup::Found(in_use)) => Some(in_use),
            _ => None,
        }
    }

    /// [`enter_active`](Self::enter_active), with the prediction of a connection.
    #[inline(always)]
    pub(crate) fn find_active(&self, id: &[u8], last: Option<&dyn LastTarget>) -> Option<Arc<ActiveObject>> {
        if !self.policies.retains() || self.policies.servant_threads != ServantThreads::Any {
            return None;
        }
        match self.objects.enter(id, last, || self.is_open()) {
            ObjectLookup::Active(active) => Some(active),
            _ => None,
        }
    }

    /// Finds the servant for an object that is not in the active object map.
    fn enter_inactive(self: &Arc<Self>, id: &[u8], operation: &str) -> Result<ServantLookup, SystemException> {
        if self.policies.processing == RequestProcessingPolicy::UseActiveObjectMapOnly {
            return Err(error::not_active());
        }
        if !self.objects.is_assigned(id) {
            return Err(error::not_active());
        }
        if !self.usage.start(|| self.is_open()) {
            return self.hold_or_reject().map(ServantLookup::wait_or_retry);
        }
        // Passed on in the result if that is a servant; ended here in all other cases.
        let counted = UsageGuard(self);
        let entrance = if self.policies.has_default_servant() {
            self.default_servant().map(|servant| ServantLookup::Found(ServantInUse::Default(servant)))
        } else if self.policies.retains() {
            self.incarnate(id)
        } else {
            self.locate(id, operation)
        };
        if let Ok(ServantLookup::Found(ServantInUse::Default(_) | ServantInUse::Located(_))) = &entrance {
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

    /// Calls the servant activator, once for all requests for the object (15.3.6.1).
    fn incarnate(self: &Arc<Self>, id: &[u8]) -> Result<ServantLookup, SystemException> {
        let Some(ServantManager::Activator(activator)) = self.servant_manager.read().clone() else {
            return Err(no_servant_manager());
        };
        match self.objects.begin_incarnation(id) {
            ObjectLookup::NotFound => {}
            ObjectLookup::Active(active) => return Ok(ServantLookup::Found(ServantInUse::Object(active))),
            ObjectLookup::InTransition(finished) => return wait_for_object(&finished),
            ObjectLookup::Closed => return self.hold_or_reject().map(ServantLookup::wait_or_retry),
        }
        let incarnating = IncarnationGuard { adapter: self, id, is_over: false };
        spandrel_sync::held::assert_none("a servant activator");
        let answer = activator.incarnate(&id.into(), &Poa::of(self)?);
        let answer =
            answer.and_then(|servant| self.check_servant(&servant).map(|()| servant).map_err(Incarnation::System));
        match answer {
            Ok(servant) => incarnating.end(servant).map(|active| ServantLookup::Found(ServantInUse::Object(active))),
            Err(reason) => answer_without_servant(reason),
        }
    }

    /// Calls the servant locator for this request alone (15.3.7.1).
    fn locate(self: &Arc<Self>, id: &[u8], operation: &str) -> Result<ServantLookup, SystemException> {
        let Some(ServantManager::Locator(locator)) = self.servant_manager.read().clone() else {
            return Err(no_servant_manager());
        };
        spandrel_sync::held::assert_none("a servant locator");
        match locator.preinvoke(&id.into(), &Poa::of(self)?, operation) {
            Ok((servant, _)) if let Err(exception) = self.check_servant(&servant) => Err(exception),
            Ok(servant) => Ok(ServantLookup::Found(ServantInUse::Located(Arc::new(LocatedServant::new(
                locator, operation, servant,
            ))))),
            Err(reason) => answer_without_servant(reason),
        }
    }
}

/// A place among the requests that wait for an object.
fn wait_for_object(finished: &Arc<Event>) -> Result<ServantLookup, SystemException> {
    let ticket = finished.ticket(MAX_WAITING);
    ticket.map(ServantLookup::Wait).ok_or_else(|| error::discarded("too many requests wait for the object's servant"))
}

fn answer_without_servant(reason: Incarnation) -> Result<ServantLookup, SystemException> {
    match reason {
        Incarnation::ForwardRequest(target) => Ok(ServantLookup::Forward(Forwarding { target, is_permanent: false })),
        Incarnation::ForwardPermanently(target) => {
            Ok(ServantLookup::Forward(Forwarding { target, is_permanent: true }))
        }
        Incarnation::System(exception) => Err(exception),
    }
}

fn no_servant_manager() -> SystemException {
    SystemException::obj_adapter(minor::NO_SERVANT_MANAGER, CompletionStatus::No)
        .with_detail("the adapter has no servant manager")
}

/// Guard of a counted request that uses no entry of the active object map.
struct UsageGuard<'a>(&'a Adapter);

impl Drop for UsageGuard<'_> {
    fn drop(&mut self) {
        self.0.end_counted();
    }
}

/// Guard of a call to a servant activator; its end releases the waiting requests in any case.
struct IncarnationGuard<'a> {
    adapter: &'a Arc<Adapter>,
    id: &'a [u8],
    is_over: bool,
}

impl IncarnationGuard<'_> {
    fn end(mut self, servant: Arc<dyn Servant>) -> Result<Arc<ActiveObject>, SystemException> {
        self.is_over = true;
        let active = self.adapter.objects.end_incarnation(self.id, Some(servant));
        if self.adapter.phase() >= Phase::Destroyed {
            // No other thread will end it: all earlier objects have been deactivated already.
            self.adapter.deactivate_late(self.id);
        }
        active.ok_or_else(|| {
            SystemException::obj_adapter(minor::INCARNATE_VIOLATED_POLICY, CompletionStatus::No)
                .with_detail("the servant activator returned a servant that serves another object")
        })
    }
}

impl Drop for IncarnationGuard<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.adapter.objects.end_incarnation(self.id, None);
        }
    }
}
