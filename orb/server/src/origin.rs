//! Where a request comes from and its answer goes: a connection, or a caller in this ORB.

use std::fmt;

use spandrel_cdr::{Decoder, Encoder, GiopVersion, Wire};
pub(crate) use spandrel_connection::RequestKey;
use spandrel_giop::{Message, SystemException};
use spandrel_orb::{Orb, cancellation::CancellationSource, diagnostics::ConnectionMetrics};
use spandrel_sync::{Arc, time::Instant};

use super::prediction::Prediction;
use crate::{ObjectAdapter, ServingOrb};

/// The memory that an answer is charged for while it waits to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnswerKind {
    /// Itself, and the request where that is kept until the answer has been written.
    Reply { request_octets: usize },
    /// Itself: a short answer that says why there is no other.
    Refusal,
}

/// What an upcall knows of whoever asked.
pub(crate) trait RequestOrigin: Send + Sync + fmt::Debug {
    /// The ORB that is asked.
    fn orb(&self) -> &Orb;

    /// The adapter of that ORB.
    fn adapter(&self) -> &Arc<dyn ObjectAdapter> {
        self.orb().adapter()
    }

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

    /// What those have of it who measure; nothing if it is no connection.
    fn metrics(&self) -> Option<&ConnectionMetrics> {
        None
    }

    /// Takes an answer. One that cannot be delivered concerns nobody here.
    ///
    /// # Errors
    /// There is no memory to keep it until the client takes it; nothing was sent. Never for a [refusal](AnswerKind::Refusal).
    fn send(&self, answer: &Encoder<'_>, kind: AnswerKind) -> Result<(), SystemException>;

    /// Itself, for what outlives an upcall.
    fn shared(&self) -> Arc<dyn RequestOrigin>;

    /// What may cancel a request that runs.
    fn cancellation_source(&self, request_key: RequestKey, deadline: Option<Instant>) -> Arc<CancellationSource>;

    /// One more request is answered later; the key by which it [ends](Self::leave_deferred).
    ///
    /// # Errors
    /// TRANSIENT if too many are.
    fn enter_deferred(
        &self,
        request_key: RequestKey,
        octets: usize,
        cancellation: &Arc<CancellationSource>,
    ) -> Result<u64, SystemException>;

    /// A deferred call is being answered: from now on its answer counts, and the request no longer.
    fn uncharge_deferred(&self, _key: u64) {}

    /// A deferred call has ended.
    fn leave_deferred(&self, key: u64);
}
