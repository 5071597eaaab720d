//! Bidirectional use of an accepted connection: this side sends requests over it, because its client has
//! announced listen points.
//!
//! The connection is read as before. Replies go to the adopted [`ClientConnection`], on which this side's
//! calls wait.

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

use super::{NextRead, ServerConnection};
use crate::{
    monitor::{LongUpcall, MonitoredConnection},
    nesting,
};

/// How many announcements of listen points are processed on one connection.
const MAX_LISTEN_POINT_CONTEXTS: u32 = 256;

impl ServerConnection {
    /// Whether this side may send requests over the connection. Such a connection is not idle when its client
    /// sends none.
    pub(crate) fn is_bidirectional(&self) -> bool {
        self.link.adopted().is_some()
    }

    /// Records the listen points that a request announces, if it does and if they may be used.
    #[cold]
    pub(super) fn note_listen_points(&self, request: &RequestHeader<'_>, version: GiopVersion) {
        // A client of an older version takes no requests (9.8).
        let Some(data) = request.service_contexts.find(CONTEXT_BI_DIR_IIOP) else { return };
        if version < GiopVersion::V1_2 || !self.orb.is_bidirectional() || self.is_reading_finished() {
            return;
        }
        // Clients may announce listen points repeatedly (9.8.1), but not without limit.
        if self.listen_point_contexts.fetch_add(1, Ordering::Relaxed) >= MAX_LISTEN_POINT_CONTEXTS {
            return;
        }
        match ListenPoint::from_context(data) {
            Ok(points) => {
                let (own, trusts_all) = (self.orb.published_already(), self.resources.settings.trusts_listen_points);
                let adopt = || Arc::clone(self.adopt());
                self.resources.announced.record(&points, self.link.from(), own.as_ref(), trusts_all, adopt);
            }
            Err(error) => {
                log_limited!(warn, self.resources, "listen points", peer = %self.link.peer(), %error, "could not decode a client's listen points");
            }
        }
        // Checked afterwards: a thread that ends the reading first changes the phase and then removes the
        // entries.
        if self.is_reading_finished() {
            self.end_adopted(false);
        }
    }

    fn adopt(&self) -> &Arc<ClientConnection> {
        self.link.adopt(|transport| {
            let adopted_reader: Weak<dyn AdoptedReader> = self.me.clone();
            let (peer, statistics) = (self.link.from().clone(), self.orb.statistics().clone());
            let adopted = ClientConnection::adopted(Arc::new(peer), Arc::clone(transport), adopted_reader, statistics);
            Arc::new(adopted.with_fragments_of(Some((self.resources.settings.fragment_size, send_fragmented))))
        })
    }

    /// Passes a reply to the adopted connection. Without one, the reply is a protocol error.
    pub(super) fn reply(&self, message: &Message) -> Result<NextRead, ReadError> {
        match self.link.adopted() {
            Some(adopted) => adopted.receive(message.clone()).map_err(ReadError::from).map(|()| NextRead::Continue),
            None => Err(ReadError::Unexpected(message.header.message_type)),
        }
    }

    /// Ends the adopted connection, which gets no further reply. `is_orderly`: the client has sent
    /// CloseConnection.
    pub(super) fn end_adopted(&self, is_orderly: bool) {
        if let Some(adopted) = self.link.adopted() {
            self.resources.announced.remove(adopted);
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
        let is_read = !word.is_in_upcall() || word.is_registered() && self.resources.pool.is_fixed();
        if is_read {
            // Or it will be: threads of a fixed pool release the reader role before they wait.
            return Ok(());
        }
        let running = self.handed_over.load(Ordering::SeqCst) + 1;
        if running >= self.resources.settings.max_in_flight && self.turn() == turn {
            return Err(nesting::too_many(running));
        }
        let lasting = LongUpcall { turn, age: Duration::MAX, keeps_reading: false, has_input: true };
        self.overdue(&lasting);
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
