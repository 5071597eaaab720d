//! A connection over which requests of this side go, too, because its client has said where it would listen.
//!
//! It is read as before; replies are handed to what this side's calls wait on, the adopted [`ClientConnection`].

use std::time::Duration;

use spandrel_cdr::GiopVersion;
use spandrel_connection::ReaderWord;
use spandrel_giop::{CONTEXT_BI_DIR_IIOP, ListenPoint, Message, RequestHeader, SystemException};
use spandrel_orb::{
    client::{AdoptedReader, ClientConnection, send_fragmented},
    task::Task,
};
use spandrel_sync::{Arc, Weak, atomic::Ordering};
use spandrel_transport::ReadError;

use super::{LongUpcall, NextRead, ServerConnection};
use crate::{ServingOrb, listen_points, nesting};

/// How often a client is listened to that names listen points.
const MAX_INTRODUCTIONS: u32 = 256;

impl ServerConnection {
    /// True if requests of this side may go over it: it is not idle because no others come.
    pub(crate) fn is_bidirectional(&self) -> bool {
        self.link.adopted().is_some()
    }

    /// Notes the listen points of the client, if it names any and is to be listened to.
    #[cold]
    pub(super) fn note_listen_points(&self, request: &RequestHeader<'_>, version: GiopVersion) {
        // Of older versions a client cannot take requests (9.8).
        let Some(data) = request.service_contexts.find(CONTEXT_BI_DIR_IIOP) else { return };
        if version < GiopVersion::V1_2 || !self.orb.is_bidirectional() || self.is_reading_finished() {
            return;
        }
        // Clients may say so again and again (9.8.1), but there is an end to what is listened to.
        if self.introductions.fetch_add(1, Ordering::Relaxed) >= MAX_INTRODUCTIONS {
            return;
        }
        match ListenPoint::from_context(data) {
            Ok(points) => listen_points::record(&self.orb, &points, self.link.from(), || Arc::clone(self.adopt())),
            Err(error) => {
                log_limited!(warn, self.orb, "listen points", peer = %self.link.peer(), %error, "listen points that cannot be read");
            }
        }
        // Looked at afterwards: who reads to the end forgets what it finds there after that.
        if self.is_reading_finished() {
            self.end_adopted(false);
        }
    }

    fn adopt(&self) -> &Arc<ClientConnection> {
        self.link.adopt(|transport| {
            let adopted_reader: Weak<dyn AdoptedReader> = self.me.clone();
            let (peer, statistics) = (self.link.from().clone(), self.orb.statistics().clone());
            let adopted = ClientConnection::adopted(Arc::new(peer), Arc::clone(transport), adopted_reader, statistics);
            Arc::new(adopted.with_fragments_of(Some((self.settings.fragment_size, send_fragmented))))
        })
    }

    /// A reply, if this side has asked for any.
    pub(super) fn reply(&self, message: &Message) -> Result<NextRead, ReadError> {
        match self.link.adopted() {
            Some(adopted) => adopted.receive(message.clone()).map_err(ReadError::from).map(|()| NextRead::Continue),
            None => Err(ReadError::Unexpected(message.header.message_type)),
        }
    }

    /// No reply will come any more. `is_orderly`: the client has said so.
    pub(super) fn end_adopted(&self, is_orderly: bool) {
        if let Some(adopted) = self.link.adopted() {
            self.orb.announced_addresses().remove(adopted);
            adopted.end_of_input(is_orderly);
        }
    }
}

impl AdoptedReader for ServerConnection {
    fn ensure_reading(&self) -> Result<(), SystemException> {
        let turn = self.turn();
        if self.dispatch_queue.is_some() {
            // The queue's workers run its requests.
            return Ok(());
        }
        let word = ReaderWord::from_bits(turn);
        let is_read = !word.is_in_upcall() || word.is_registered() && self.orb.server().pool().is_fixed();
        if is_read {
            // Or will be: threads of a fixed pool see to it themselves before they wait.
            return Ok(());
        }
        let running = self.handed_over.load(Ordering::SeqCst) + 1;
        if running >= self.settings.max_in_flight && self.turn() == turn {
            return Err(nesting::too_many(running));
        }
        let lasting = LongUpcall { turn, age: Duration::MAX, keeps_reading: false, has_input: true };
        self.shared().overdue(&lasting);
        Ok(())
    }

    fn cut(&self) {
        Self::cut(self);
    }

    fn written(&self) {
        self.after_deferred();
    }

    fn run_in_other_thread(&self, notify: Task) -> Result<(), SystemException> {
        self.orb.client_reactor().run(notify)
    }
}
