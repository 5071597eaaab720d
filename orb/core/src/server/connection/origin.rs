//! A connection as what requests come from and answers go to.

use spandrel_cdr::{Decoder, Encoder, GiopVersion, Wire};
use spandrel_giop::{Message, SystemException};
use spandrel_sync::{Arc, time::Instant};

use super::ServerConnection;
#[cfg(feature = "diagnostics")]
use crate::diagnostics::ConnectionMetrics;
use crate::{
    Orb,
    cancellation::Trip,
    server::{
        origin::{AnswerKind, Origin, Which},
        prediction::Prediction,
    },
};

impl Origin for ServerConnection {
    fn orb(&self) -> &Orb {
        Self::orb(self)
    }

    fn name(&self) -> &str {
        self.link().peer()
    }

    fn wire(&self, version: GiopVersion) -> Wire {
        self.link().wire(version)
    }

    fn decoder<'m>(&'m self, message: &'m Message) -> Decoder<'m> {
        let code_sets = self.link().code_sets();
        Self::decoder(self, message).with_code_sets(code_sets.char_set, code_sets.wchar_set)
    }

    #[inline]
    fn prediction(&self) -> Option<&Prediction> {
        Self::prediction(self)
    }

    #[cfg(feature = "diagnostics")]
    fn metrics(&self) -> Option<&ConnectionMetrics> {
        Some(Self::metrics(self))
    }

    fn send(&self, answer: &Encoder<'_>, kind: AnswerKind) -> Result<(), SystemException> {
        self.stay_original();
        Self::send(self, answer, kind)
    }

    fn shared(&self) -> Arc<dyn Origin> {
        Self::shared(self)
    }

    fn trip(&self, which: Which, deadline: Option<Instant>) -> Arc<Trip> {
        Self::trip(self, which, deadline)
    }

    fn enter_deferred(&self, which: Which, octets: usize, trip: &Arc<Trip>) -> Result<u64, SystemException> {
        Self::enter_deferred(self, which, octets, trip)
    }

    fn uncharge_deferred(&self, key: u64) {
        Self::uncharge_deferred(self, key);
    }

    fn leave_deferred(&self, key: u64) {
        Self::leave_deferred(self, key);
    }
}
