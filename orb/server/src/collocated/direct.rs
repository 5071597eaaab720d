//! Direct calls on objects of the same ORB (paper 001's collocation strategies).
//!
//! A generated stub makes a direct call: it names the servant trait and the method, and [`direct`] has the
//! adapter find the servant. No state is kept between calls, so that deactivation, another servant or a
//! holding manager affect the next call.
//!
//! Direct calls marshal nothing and make no request. Marshaled calls on objects of the same ORB belong to
//! the parent module.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use spandrel_giop::SystemException;
use spandrel_orb::{
    Collocation, ObjectRef, UserExceptions,
    internal::{Destination, UpcallScope},
};
use spandrel_sync::{Arc, atomic::Ordering};

use super::delivery::too_late;
use crate::{
    Servant, collocated,
    resources::ServingOrb,
    upcall::{dispatch, reply::panicked},
};

/// A skeleton as the implementation of one of its interfaces' servant traits.
pub trait Facet<T: ?Sized>: Send + Sync {
    /// The value whose methods direct calls run.
    fn facet(&self) -> &T;
}

/// The cell that a skeleton puts itself into.
type SkeletonCell<T> = Option<Arc<dyn Facet<T>>>;

/// Puts a skeleton into a cell for this servant trait, or returns it.
///
/// # Errors
/// The skeleton, if the cell is for another trait.
#[inline]
pub fn offer<T: ?Sized + 'static, S: Facet<T> + 'static>(skeleton: Arc<S>, cell: &mut dyn Any) -> Result<(), Arc<S>> {
    let Some(cell) = cell.downcast_mut::<SkeletonCell<T>>() else { return Err(skeleton) };
    *cell = Some(skeleton);
    Ok(())
}

/// Calls the servant of an object of the same ORB, if that is possible without marshaling. Returns `None`
/// without using `upcall` otherwise; the stub then makes an ordinary call.
#[inline]
pub fn direct<T: ?Sized + 'static, R, E: UserExceptions>(
    object: &ObjectRef,
    operation: &str,
    upcall: impl FnOnce(&T) -> Result<R, E>,
) -> Option<Result<R, E>> {
    let destination = direct_destination(object)?;
    let (mut upcall, mut outcome) = (Some(upcall), None);
    let ended = enter(object, destination, operation, &mut |servant| {
        let mut cell: SkeletonCell<T> = None;
        Arc::clone(servant).direct(&mut cell);
        if let (Some(facet), Some(upcall)) = (cell, upcall.take()) {
            outcome = Some(upcall(facet.facet()));
        }
    });
    match ended {
        Ok(()) => outcome.map(|outcome| outcome.map_err(of_call)),
        Err(exception) => Some(Err(exception.of_call().into())),
    }
}

/// Marks a system exception of the servant as the outcome of a call.
#[cold]
fn of_call<E: UserExceptions>(error: E) -> E {
    match error.members() {
        Ok(_) => error,
        Err(exception) => exception.passed_on().of_call().into(),
    }
}

/// The destination of a direct call, if one is possible.
#[inline]
fn direct_destination(object: &ObjectRef) -> Option<&Destination> {
    let orb = object.orb();
    if orb.settings().collocation != Collocation::Direct || object.is_forwarded() || orb.is_intercepting() {
        return None;
    }
    // The ordinary call reports errors in the reference.
    let destinations = object.profile_destinations().ok()?;
    let destination = &destinations[object.preferred().load(Ordering::Relaxed) % destinations.len()];
    (destination.is_collocated && collocated::is_settled(orb)).then_some(destination)
}

/// Runs `upcall` on the object. Without an error, `upcall` may not have been called.
fn enter(
    object: &ObjectRef,
    destination: &Destination,
    operation: &str,
    upcall: &mut dyn FnMut(&Arc<dyn Servant>),
) -> Result<(), SystemException> {
    let orb = object.orb();
    let resources = orb.resources();
    let _running = resources.running_calls.enter(orb)?;
    let call_policies = object.call_policies();
    if call_policies.start_times.is_some() {
        // The ordinary call obeys start times.
        return Ok(());
    }
    let deadline = call_policies.deadline;
    let _scope = UpcallScope::enter();
    let _deadline = deadline.as_ref().and_then(|deadline| collocated::limit(orb, deadline));
    let result = catch_unwind(AssertUnwindSafe(|| {
        dispatch::call_directly(&*resources.adapter, &destination.object_key, operation, upcall)
    }));
    match result {
        Ok(Ok(true)) => object.set_bound(true),
        Ok(Ok(false)) => return Ok(()),
        Ok(Err(exception)) => return Err(exception),
        Err(panic) => {
            let exception = panicked(operation, &*panic);
            tracing::error!(%exception, "a servant panicked in a direct call");
            return Err(exception);
        }
    }
    match deadline {
        Some(deadline) if deadline.remaining().is_zero() => Err(too_late()),
        _ => Ok(()),
    }
}
