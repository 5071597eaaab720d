//! A connection as what requests come from and answers go to.

use spandrel_cdr::{Decoder, Encoder, GiopVersion, Wire};
use spandrel_giop::{Message, SystemException};
use spandrel_sync::Arc;

use super::ServerConnection;
use crate::{
    Orb,
    server::{cancellation::Cancellation, origin::Origin, prediction::Prediction},
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

    fn send(&self, answer: &Encoder<'_>) {
        self.stay_original();
        self.link().send(answer);
    }

    fn shared(&self) -> Arc<dyn Origin> {
        Self::shared(self)
    }

    fn enter_deferred(
        &self,
        request_id: u32,
        is_one_way: bool,
        octets: usize,
        cancellation: &Arc<Cancellation>,
    ) -> Result<u64, SystemException> {
        Self::enter_deferred(self, request_id, is_one_way, octets, cancellation)
    }

    fn leave_deferred(&self, key: u64) {
        Self::leave_deferred(self, key);
    }
}
