//! Where a request comes from and its answer goes: a connection, or a caller in this ORB.

use std::fmt;

use spandrel_cdr::{Decoder, Encoder, GiopVersion, Wire};
use spandrel_giop::{Message, SystemException};
use spandrel_sync::Arc;

use super::{cancellation::Cancellation, prediction::Prediction};
use crate::Orb;

/// What an upcall knows of whoever asked.
pub(crate) trait Origin: Send + Sync + fmt::Debug {
    /// The ORB that is asked.
    fn orb(&self) -> &Orb;

    /// For messages about it.
    fn name(&self) -> &str;

    /// How an answer to a message of this version is written.
    fn wire(&self, version: GiopVersion) -> Wire;

    /// Reads a message of this origin from its header's end on.
    fn decoder<'m>(&'m self, message: &'m Message) -> Decoder<'m>;

    /// What its last request was for; nothing if nobody is to guess by it.
    fn prediction(&self) -> Option<&Prediction> {
        None
    }

    /// Takes an answer. One that cannot be delivered concerns nobody here.
    fn send(&self, answer: &Encoder<'_>);

    /// Itself, for what outlives an upcall.
    fn shared(&self) -> Arc<dyn Origin>;

    /// One more request is answered later; the key by which it [ends](Self::leave_deferred).
    ///
    /// # Errors
    /// TRANSIENT if too many are.
    fn enter_deferred(
        &self,
        request_id: u32,
        is_one_way: bool,
        octets: usize,
        cancellation: &Arc<Cancellation>,
    ) -> Result<u64, SystemException>;

    /// A deferred call has ended.
    fn leave_deferred(&self, key: u64);
}
