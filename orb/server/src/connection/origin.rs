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
    origin::{AnswerKind, RequestKey, RequestOrigin, UnusedSource, UpcallNumber, UpcallServices},
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
        let create = || self.new_cancellation_source(UnusedSource { deadline, memory: None });
        let (cancellation, is_first) = self.pending.register_cancellation(request_key, create);
        if is_first {
            self.after_registration(request_key, &cancellation);
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
        unused: UnusedSource,
    ) -> Result<(u64, Arc<CancellationSource>), SystemException> {
        let create = || self.new_cancellation_source(unused);
        let (key, cancellation) = self.pending.enter_deferred(request_key, octets, create, self.orb.statistics())?;
        self.after_registration(request_key, &cancellation);
        Ok((key, cancellation))
    }

    fn admits_late_entry(&self, octets: usize) -> Result<bool, SystemException> {
        self.pending.check_deferred(octets, self.orb.statistics()).map(|()| true)
    }

    fn enter_admitted(
        &self,
        request_key: RequestKey,
        octets: usize,
        unused: UnusedSource,
    ) -> (u64, Arc<CancellationSource>) {
        let (key, cancellation) =
            self.pending.enter_admitted(request_key, octets, || self.new_cancellation_source(unused));
        self.after_registration(request_key, &cancellation);
        (key, cancellation)
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

impl ServerConnection {
    fn new_cancellation_source(&self, unused: UnusedSource) -> Arc<CancellationSource> {
        let (peer, transport) = (self.link.from(), self.link.shared_transport());
        CancellationSource::renew_of_peer(
            unused.memory,
            peer,
            Some(transport),
            || WeakOrb::of(&self.orb),
            unused.deadline,
        )
    }

    /// Has CancelRequests read while the request runs that has this new entry. If the reading has ended, the request is
    /// cancelled.
    fn after_registration(&self, request_key: RequestKey, cancellation: &CancellationSource) {
        if request_key.is_one_way {
            return;
        }
        self.resources.upcall_monitor.look_early();
        // Checked afterwards: a thread that ends the reading first changes the phase and then cancels the
        // entries.
        if self.close_state.is_reading_finished() {
            cancellation.cancel(self.close_state.end_reason());
        }
    }
}
