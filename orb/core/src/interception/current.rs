//! Slots of the thread and of the request, which interceptors read and set: `PortableInterceptor::Current` (16.4.2).

use spandrel_cdr::Any;

use super::{
    registry::{exchange_thread_slots, thread_slots},
    slots::InvalidSlot,
};
use crate::{
    Orb,
    orb::{WeakOrb, interception_state::SlotId},
};

/// The slots of the calling thread, for services of one ORB (`PortableInterceptor::Current`).
///
/// It does not keep the ORB alive, so that interceptors may have one. Without the ORB there are no slots.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::{BidirectionalPolicy, policy::*}; } pub mod cdr { pub use spandrel_cdr::GiopVersion; } pub mod types { pub use spandrel_cdr::Any; } }
/// use spandrel::Orb;
/// use spandrel::types::Any;
///
/// let (builder, user) = Orb::builder().allocate_slot();
/// let orb = builder.build()?;
/// let current = orb.pi_current();
/// current.set_slot(user, Any::new("ada")?)?; // Interceptors read it by `ClientRequestInfo::slot`.
/// assert_eq!(current.slot(user)?.extract::<String>()?, "ada");
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PiCurrent(WeakOrb);

impl PiCurrent {
    pub(crate) fn of(orb: &Orb) -> Self {
        Self(WeakOrb::of(orb))
    }

    /// The value of a slot of the calling thread; an `any` without a value if it is not set.
    ///
    /// # Errors
    /// A slot that was not allocated.
    pub fn slot(&self, id: SlotId) -> Result<Any, InvalidSlot> {
        thread_slots(&self.orb(id)?).get(id)
    }

    /// Sets a slot of the calling thread, for its requests and the code that it runs.
    ///
    /// # Errors
    /// A slot that was not allocated.
    pub fn set_slot(&self, id: SlotId, data: Any) -> Result<(), InvalidSlot> {
        let orb = self.orb(id)?;
        let mut slots = thread_slots(&orb);
        slots.set(id, data)?;
        drop(exchange_thread_slots(&orb, slots));
        Ok(())
    }

    fn orb(&self, id: SlotId) -> Result<Orb, InvalidSlot> {
        self.0.upgrade().ok_or(InvalidSlot(id))
    }
}
