//! The peer of a connection that this ORB has opened, as an origin of requests.

use spandrel_cdr::{Decoder, Encoder, GiopVersion, Wire};
use spandrel_giop::{Message, SystemException};
use spandrel_orb::{CancelReason, Orb, cancellation::CancellationSource, client::ClientConnection};
use spandrel_sync::{Arc, time::Instant};
use spandrel_transport::Charge;

use super::Callbacks;
use crate::{
    connection::{no_room_for_reply, too_many_deferred},
    resources::ServingOrb,
    upcall::origin::{AnswerKind, RequestKey, RequestOrigin, UpcallServices},
};

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
        &self.callbacks.name
    }

    fn wire(&self, version: GiopVersion) -> Wire {
        self.callbacks.wire(version)
    }

    fn decoder<'m>(&'m self, message: &'m Message) -> Decoder<'m> {
        let code_sets = self.callbacks.code_sets();
        self.callbacks.bare_decoder(&self.orb, message).with_code_sets(code_sets.char_set, code_sets.wchar_set)
    }

    fn send(&self, answer: &Encoder<'_>, kind: AnswerKind) -> Result<(), SystemException> {
        if self.orb.is_copied() {
            std::process::abort();
        }
        let intake = &self.callbacks.intake;
        let charge = match kind {
            // Without the request, which is not kept.
            AnswerKind::Reply { .. } => Charge::new(intake, answer.position()),
            AnswerKind::Refusal => Charge::beyond_limit(intake, answer.position()),
        };
        match (charge, kind) {
            (Ok(charge), _) => self.connection.answer(answer, charge),
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

    fn enter_deferred(
        &self,
        request_key: RequestKey,
        _octets: usize,
        cancellation: &Arc<CancellationSource>,
    ) -> Result<u64, SystemException> {
        let entered = self.callbacks.queue.lock().defer(request_key, cancellation);
        let key = entered.map_err(|limit| {
            self.orb.statistics().refused_deferred();
            too_many_deferred(limit)
        })?;
        // Checked afterwards: a thread that ends the connection first closes it and then cancels the entries.
        if !request_key.is_one_way && self.connection.is_closed() {
            cancellation.cancel(CancelReason::ConnectionLost);
        }
        Ok(key)
    }

    fn leave_deferred(&self, key: u64) {
        let left = self.callbacks.queue.lock().leave(key);
        drop(left);
    }
}
