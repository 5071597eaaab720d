//! An accepted connection as an origin of requests.

use spandrel_cdr::{Decoder, Encoder, GiopVersion, Wire};
use spandrel_giop::{Message, SystemException};
use spandrel_orb::{
    Orb,
    internal::{ConnectionMetrics, WeakOrb, cancellation::CancellationSource},
};
use spandrel_sync::{Arc, time::Instant};
use spandrel_transport::{Address, ReactorTransport, ReceiveBudget};

use super::ServerConnection;
use crate::upcall::{
    origin::{AnswerKind, RequestKey, RequestOrigin, UpcallNumber, UpcallServices},
    prediction::Prediction,
};

impl RequestOrigin for ServerConnection {
    fn orb(&self) -> &Orb {
        Self::orb(self)
    }

    fn services(&self) -> &dyn UpcallServices {
        &*self.resources
    }

    fn name(&self) -> &str {
        self.link().peer()
    }

    fn peer_address(&self) -> Option<&Arc<Address>> {
        Some(self.link().from())
    }

    fn transport(&self) -> Option<&Arc<dyn ReactorTransport>> {
        Some(self.link().shared_transport())
    }

    fn wire(&self, version: GiopVersion) -> Wire {
        self.link().wire(version)
    }

    fn decoder<'m>(&'m self, message: &'m Message) -> Decoder<'m> {
        let code_sets = self.link().code_sets();
        Self::decoder(self, message).with_code_sets(code_sets.char_set, code_sets.wchar_set)
    }

    fn account(&self) -> Option<&Arc<ReceiveBudget>> {
        Some(&self.intake)
    }

    #[inline]
    fn prediction(&self) -> Option<&Prediction> {
        Self::prediction(self)
    }

    fn metrics(&self) -> Option<&ConnectionMetrics> {
        Some(Self::metrics(self))
    }

    fn send(&self, answer: &Encoder<'_>, kind: AnswerKind) -> Result<(), SystemException> {
        self.exit_forked_copy();
        Self::send(self, answer, kind)
    }

    fn shared(&self) -> Arc<dyn RequestOrigin> {
        Self::shared(self)
    }

    fn cancellation_source(&self, request_key: RequestKey, deadline: Option<Instant>) -> Arc<CancellationSource> {
        self.renew_cancellation_source(None, request_key, deadline)
    }

    fn renew_cancellation_source(
        &self,
        unused: Option<Arc<CancellationSource>>,
        request_key: RequestKey,
        deadline: Option<Instant>,
    ) -> Arc<CancellationSource> {
        let create = || {
            let (peer, transport) = (self.link.from(), self.link.shared_transport());
            CancellationSource::renew_of_peer(unused, peer, Some(transport), WeakOrb::of(&self.orb), deadline)
        };
        let (cancellation, is_first) = self.pending.register_cancellation(request_key, create);
        if is_first && !request_key.is_one_way {
            self.resources.upcall_monitor.look_early();
            // Checked afterwards: a thread that ends the reading first changes the phase and then cancels the
            // entries.
            if self.close_state.is_reading_finished() {
                cancellation.cancel(self.close_state.end_reason());
            }
        }
        cancellation
    }

    #[inline]
    fn mark_replying(&self, upcall: UpcallNumber) {
        self.pending.mark_replying(upcall);
    }

    fn enter_deferred(
        &self,
        request_key: RequestKey,
        octets: usize,
        cancellation: &Arc<CancellationSource>,
    ) -> Result<u64, SystemException> {
        let key = self.pending.enter_deferred(request_key, octets, cancellation, self.orb.statistics())?;
        // Checked afterwards: a thread that ends the reading first changes the phase and then cancels the
        // entries.
        if !request_key.is_one_way && self.close_state.is_reading_finished() {
            cancellation.cancel(self.close_state.end_reason());
        }
        Ok(key)
    }

    fn uncharge_deferred(&self, key: u64) -> bool {
        self.pending.uncharge_deferred(key)
    }

    fn leave_deferred(&self, key: u64) {
        self.pending.leave_deferred(key);
        // A closing may have waited for it.
        self.after_deferred();
    }

    fn record_spawn(&self) {
        Self::record_spawn(self);
    }
}
