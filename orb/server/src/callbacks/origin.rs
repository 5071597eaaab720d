//! The peer of a connection that this ORB has opened, as an origin of requests.

use std::sync::OnceLock;

use spandrel_cdr::{Decoder, Encoder, GiopVersion, Wire};
use spandrel_giop::{Message, SystemException, TransmissionCodeSets};
use spandrel_orb::{
    CancelReason, Orb,
    internal::{ClientConnection, ServerSettings, cancellation::CancellationSource},
};
use spandrel_sync::{Arc, Mutex, time::Instant};
use spandrel_transport::{Address, Charge, ReactorTransport, ReceiveBudget};

use super::{Callbacks, queue::CallbackQueue};
use crate::{
    connection::{no_room_for_reply, too_many_deferred},
    reply_urgency,
    resources::ServingOrb,
    upcall::origin::{AnswerKind, RequestKey, RequestOrigin, UnusedSource, UpcallNumber, UpcallServices},
};

/// The peer of a connection that this ORB has opened, and its requests.
#[derive(Debug)]
pub(super) struct CallbackPeer {
    /// The name of the peer, for log messages.
    pub(super) name: String,
    pub(super) address: Arc<Address>,
    pub(super) settings: Arc<ServerSettings>,
    /// The memory limit for replies that wait on the connection.
    pub(super) intake: Arc<ReceiveBudget>,
    /// The code sets that the peer uses, once a request has named them.
    pub(super) code_sets: OnceLock<TransmissionCodeSets>,
    pub(super) queue: Mutex<CallbackQueue>,
}

impl CallbackPeer {
    pub(super) fn bare_decoder<'m>(&'m self, orb: &'m Orb, message: &'m Message) -> Decoder<'m> {
        message.decoder(self.settings.limits).with_binder(orb)
    }

    pub(super) fn code_sets(&self) -> TransmissionCodeSets {
        self.code_sets.get().copied().unwrap_or(TransmissionCodeSets::UNNEGOTIATED)
    }

    pub(super) fn wire(&self, version: GiopVersion) -> Wire {
        let wire = Wire { limits: self.settings.limits, ..Wire::new(self.settings.order, version) };
        self.code_sets().on(wire)
    }
}

/// The origin of one request over a connection of this side. It keeps the connection open until the request
/// is answered.
#[derive(Clone, Debug)]
pub(super) struct CallbackOrigin {
    pub(super) orb: Orb,
    pub(super) connection: Arc<ClientConnection>,
    pub(super) callbacks: Arc<Callbacks>,
    /// The cancellation of the request.
    pub(super) cancellation: Arc<CancellationSource>,
}

impl RequestOrigin for CallbackOrigin {
    fn orb(&self) -> &Orb {
        &self.orb
    }

    fn services(&self) -> &dyn UpcallServices {
        &**self.orb.resources()
    }

    fn name(&self) -> &str {
        &self.callbacks.peer.name
    }

    fn peer_address(&self) -> Option<&Arc<Address>> {
        Some(&self.callbacks.peer.address)
    }

    fn transport(&self) -> Option<&Arc<dyn ReactorTransport>> {
        Some(self.connection.transport())
    }

    fn wire(&self, version: GiopVersion) -> Wire {
        self.callbacks.peer.wire(version)
    }

    fn decoder<'m>(&'m self, message: &'m Message) -> Decoder<'m> {
        let code_sets = self.callbacks.peer.code_sets();
        self.callbacks.peer.bare_decoder(&self.orb, message).with_code_sets(code_sets.char_set, code_sets.wchar_set)
    }

    fn account(&self) -> Option<&Arc<ReceiveBudget>> {
        Some(&self.callbacks.peer.intake)
    }

    fn send(&self, answer: &Encoder<'_>, kind: AnswerKind) -> Result<(), SystemException> {
        if self.orb.is_copied() {
            std::process::abort();
        }
        // An urgent reply does not wait for those of other requests.
        let (urgency, is_reply) = (reply_urgency::on_shared_connection(), matches!(kind, AnswerKind::Reply { .. }));
        if is_reply && urgency == 0 && self.callbacks.hold(&self.connection, answer) {
            return Ok(());
        }
        let intake = &self.callbacks.peer.intake;
        let charge = match kind {
            // Without the request, which is not kept.
            AnswerKind::Reply { .. } => Charge::new(intake, answer.position()),
            AnswerKind::Refusal => Charge::beyond_limit(intake, answer.position()),
        };
        match (charge, kind) {
            (Ok(charge), _) => self.connection.answer(answer, charge, urgency),
            (Err(no_room), AnswerKind::Reply { .. }) => {
                self.orb.statistics().refused_memory();
                return Err(no_room_for_reply(&no_room));
            }
            (Err(_), AnswerKind::Refusal) => self.connection.cut(),
        }
        Ok(())
    }

    fn shared(&self) -> Arc<dyn RequestOrigin> {
        Arc::new(self.clone())
    }

    /// Returns the cancellation of the one request of this origin.
    fn cancellation_source(&self, _request_key: RequestKey, _deadline: Option<Instant>) -> Arc<CancellationSource> {
        Arc::clone(&self.cancellation)
    }

    fn mark_replying(&self, _upcall: UpcallNumber) {
        _ = self.cancellation.mark_replying(); // such requests are not ended early
    }

    fn enter_deferred(
        &self,
        request_key: RequestKey,
        _octets: usize,
        _unused: UnusedSource,
    ) -> Result<(u64, Arc<CancellationSource>), SystemException> {
        let entered = self.callbacks.peer.queue.lock().defer(request_key, &self.cancellation);
        let key = entered.map_err(|limit| {
            self.orb.statistics().refused_deferred();
            too_many_deferred(limit)
        })?;
        // Checked afterwards: a thread that ends the connection first closes it and then cancels the entries.
        if !request_key.is_one_way && self.connection.is_closed() {
            self.cancellation.cancel(CancelReason::ConnectionLost);
        }
        Ok((key, Arc::clone(&self.cancellation)))
    }

    fn leave_deferred(&self, key: u64) {
        let left = self.callbacks.peer.queue.lock().leave(key);
        drop(left);
    }
}
