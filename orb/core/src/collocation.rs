//! Direct calls on objects of the same ORB (paper 001's collocation strategies).
//!
//! A direct call is made by a generated stub: it names the servant trait and the method, and [`direct`] has the adapter find the servant. Nothing
//! is kept from call to call, so that there is nothing to be out of date: deactivation, another servant, a holding manager show in the next call.
//! Calls through the adapter are [`local`](crate::server).

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use spandrel_giop::SystemException;
use spandrel_sync::{Arc, atomic::Ordering};

use crate::{
    Collocation, ObjectRef, Servant,
    destination::Destination,
    server::{collocated, panicked},
    upcalls::UpcallScope,
};

/// A skeleton, as what implements one of its interfaces' servant traits.
pub trait Facet<T: ?Sized>: Send + Sync {
    /// The implementation.
    fn facet(&self) -> &T;
}

/// Where a skeleton puts itself.
type SkeletonCell<T> = Option<Arc<dyn Facet<T>>>;

/// Puts a skeleton into a place for this servant trait, or gives it back.
///
/// # Errors
/// The skeleton, if the place is for another trait.
#[inline]
pub fn offer<T: ?Sized + 'static, S: Facet<T> + 'static>(skeleton: Arc<S>, place: &mut dyn Any) -> Result<(), Arc<S>> {
    let Some(place) = place.downcast_mut::<SkeletonCell<T>>() else { return Err(skeleton) };
    *place = Some(skeleton);
    Ok(())
}

/// Calls the servant of an object of this ORB, if that may be done without marshaling; otherwise the call is to be made as any other, and
/// `upcall` was not used.
#[inline]
pub fn direct<T: ?Sized + 'static, R, E: From<SystemException>>(
    object: &ObjectRef,
    operation: &str,
    upcall: impl FnOnce(&T) -> Result<R, E>,
) -> Option<Result<R, E>> {
    let destination = object.direct_destination()?;
    let (mut upcall, mut outcome) = (Some(upcall), None);
    let ended = object.enter(destination, operation, &mut |servant| {
        let mut place: SkeletonCell<T> = None;
        Arc::clone(servant).direct(&mut place);
        if let (Some(facet), Some(upcall)) = (place, upcall.take()) {
            outcome = Some(upcall(facet.facet()));
        }
    });
    match ended {
        Ok(()) => outcome,
        Err(exception) => Some(Err(exception.into())),
    }
}

impl ObjectRef {
    /// Where a direct call goes, if there may be one.
    #[inline]
    fn direct_destination(&self) -> Option<&Destination> {
        let orb = self.orb();
        if orb.settings().serving.collocation != Collocation::Direct || self.is_forwarded() || orb.is_intercepting() {
            return None;
        }
        // What is wrong with the reference is said by the call that is made instead.
        let destinations = self.profile_destinations().ok()?;
        let destination = &destinations[self.preferred().load(Ordering::Relaxed) % destinations.len()];
        (destination.is_here && collocated::is_settled(orb)).then_some(destination)
    }

    /// Enters the object in place of a request. Without an error it may be that `upcall` was not called.
    fn enter(
        &self,
        destination: &Destination,
        operation: &str,
        upcall: &mut dyn FnMut(&Arc<dyn Servant>),
    ) -> Result<(), SystemException> {
        let orb = self.orb();
        let Some(adapter) = orb.adapter() else { return Ok(()) };
        let _running = orb.locals().enter(orb)?;
        let call_policies = self.call_policies();
        if call_policies.start_times.is_some() {
            // By the way on which that is obeyed.
            return Ok(());
        }
        let deadline = call_policies.deadline;
        let _scope = UpcallScope::enter();
        let _deadline = deadline.as_ref().and_then(|deadline| collocated::limit(orb, deadline));
        let entered = catch_unwind(AssertUnwindSafe(|| adapter.enter(&destination.object_key, operation, upcall)));
        match entered {
            Ok(Ok(true)) => self.set_bound(true),
            Ok(Ok(false)) => return Ok(()),
            Ok(Err(exception)) => return Err(exception),
            Err(panic) => {
                let exception = panicked(operation, &*panic);
                tracing::error!(%exception, "in a direct call");
                return Err(exception);
            }
        }
        match deadline {
            Some(deadline) if deadline.remaining().is_zero() => Err(collocated::too_late()),
            _ => Ok(()),
        }
    }
}
