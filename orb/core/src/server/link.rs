//! The wire of an accepted connection: whole messages are written to it, one at a time, and it is ended in an orderly way.
//!
//! What is read from it, and who reads, belongs to the connection.

use std::{io, sync::OnceLock, time::Duration};

use spandrel_cdr::{Encoder, GiopVersion, Wire};
use spandrel_giop::{
    CONTEXT_CODE_SETS, CompletionStatus, MessageType, ServiceContexts, SystemException, TransmissionCodeSets,
    bare_message, minor,
};
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicU8, AtomicUsize, Ordering},
};

use crate::{
    client::ClientConnection,
    reader::Deadline,
    transport::{Place, Portions, Transport, send_message, send_octets},
};

/// How long what a peer still sends is read and dropped when its connection ends.
pub(super) const LINGER: Duration = Duration::from_millis(500);
/// How much of it.
const LINGER_OCTETS: usize = 1 << 20;
/// Reads of it in one visit of a thread that has others to serve.
const LINGER_READS: usize = 16;

/// A client's transport, and how it is written to.
#[derive(Debug)]
pub(super) struct Link {
    from: Place,
    /// The same, for messages about it.
    peer: String,
    transport: Arc<dyn Transport>,
    /// Order and limits; the version is that of each message, the code sets are the client's choice.
    wire: Wire,
    writer: Mutex<()>,
    /// How long the client may take nothing of an answer.
    patience: Option<Duration>,
    /// Octets from which on messages are sent in fragments.
    fragment_size: usize,
    /// Minor version of the last message read: what the peer speaks.
    spoken: AtomicU8,
    /// What the client said of text, once it has.
    code_sets: OnceLock<TransmissionCodeSets>,
    /// Octets that were read and dropped.
    dropped: AtomicUsize,
    /// What this side's requests go by, once the client has said that it takes some.
    adopted: OnceLock<Arc<ClientConnection>>,
}

impl Link {
    /// `patience`: how long the client may take nothing of what it is sent, before it is given up.
    pub(super) fn new(from: Place, transport: Arc<dyn Transport>, wire: Wire, patience: Option<Duration>) -> Self {
        let peer = from.to_string();
        if let Err(error) = transport.set_send_timeout(patience) {
            tracing::warn!(%peer, %error, "a client that reads nothing will be waited for");
        }
        let spoken = AtomicU8::new(GiopVersion::V1_0.minor);
        let code_sets = OnceLock::new();
        Self {
            from,
            peer,
            transport,
            wire,
            writer: Mutex::new(()),
            patience,
            fragment_size: usize::MAX,
            spoken,
            code_sets,
            dropped: AtomicUsize::new(0),
            adopted: OnceLock::new(),
        }
    }

    /// The same, for messages that are sent in fragments of so many octets at most.
    pub(super) fn with_fragments_of(mut self, octets: usize) -> Self {
        self.fragment_size = octets;
        self
    }

    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    /// Where the client is.
    pub(super) fn from(&self) -> &Place {
        &self.from
    }

    pub(super) fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    pub(super) fn shared_transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// How an answer to a message of this version is written.
    pub(super) fn wire(&self, version: GiopVersion) -> Wire {
        self.code_sets().on(Wire { version, ..self.wire })
    }

    /// How text on this connection is coded.
    #[inline]
    pub(super) fn code_sets(&self) -> TransmissionCodeSets {
        self.code_sets.get().copied().unwrap_or(TransmissionCodeSets::UNSAID)
    }

    /// Remembers what the client says of text, if it does.
    ///
    /// # Errors
    /// CODESET_INCOMPATIBLE for what is not known here; MARSHAL if it said something else before.
    pub(super) fn note_code_sets(&self, contexts: &ServiceContexts<'_>) -> Result<(), SystemException> {
        note_code_sets(&self.code_sets, contexts)
    }

    /// Remembers what the peer speaks, for messages that answer none.
    pub(super) fn note_version(&self, version: GiopVersion) {
        self.spoken.store(version.minor, Ordering::Relaxed);
    }

    /// Writes a message. A peer that is gone is noticed by whoever reads; one that does not read what it is sent is cut off.
    pub(super) fn send(&self, message: &Encoder<'_>) {
        let sent = self.write(message);
        if let Err(error) = sent {
            tracing::debug!(peer = %self.peer, %error, "a reply could not be written");
            // Cut inside a message, nothing further would be understood.
            self.transport.close();
        }
    }

    fn write(&self, message: &Encoder<'_>) -> io::Result<()> {
        let _writer = self.writer.lock();
        if let Some(adopted) = self.adopted.get() {
            // Its lock is the one, from the time on when both sides send requests.
            return adopted.answer(message, self.patience);
        }
        let mut portions = Portions::new(self.patience);
        send_message(&*self.transport, message, self.fragment_size, || portions.go_on())
    }

    /// Both sides send requests from now on: this side's go by `connection`, and answers past its lock.
    pub(super) fn adopt(
        &self,
        connection: impl FnOnce(&Arc<dyn Transport>) -> Arc<ClientConnection>,
    ) -> &Arc<ClientConnection> {
        // Nobody is to be inside of a message.
        let _writer = self.writer.lock();
        self.adopted.get_or_init(|| connection(&self.transport))
    }

    /// Where requests of this side are sent, if they are.
    #[inline]
    pub(super) fn adopted(&self) -> Option<&Arc<ClientConnection>> {
        self.adopted.get()
    }

    /// Writes a message that is only a header, and that tells of the connection's end: a peer that reads nothing is waited for so
    /// long, and then for no other message either.
    pub(super) fn send_bare(&self, message_type: MessageType, courtesy: Duration) {
        let version = GiopVersion { major: 1, minor: self.spoken.load(Ordering::Relaxed) };
        let message = bare_message(version, self.wire.order, message_type);
        let Some(_writer) = self.writer.try_lock_for(courtesy) else { return };
        if let Some(adopted) = self.adopted.get() {
            return adopted.say_last(&message, courtesy);
        }
        let _ = self.transport.set_send_timeout(Some(courtesy));
        let _ = send_octets(&*self.transport, &message);
    }

    /// Tells the peer that nothing more will be written.
    pub(super) fn close_writer(&self) {
        self.transport.close_writer();
    }

    /// Cuts it; whoever reads sees the end.
    pub(super) fn cut(&self) {
        self.transport.close();
    }

    /// Reads what is still on its way, so that closing does not destroy what was just written; a bounded time.
    pub(super) fn drain(&self) {
        let deadline = Deadline::after(LINGER);
        let mut room = [0; 4096];
        loop {
            let remaining = deadline.remaining();
            if remaining.is_zero() || self.transport.set_recv_timeout(Some(remaining)).is_err() {
                return;
            }
            match self.transport.recv(&mut room) {
                Ok(count) if count > 0 && !self.drops_too_much(count) => {}
                _ => return,
            }
        }
    }

    /// The same without waiting: reads what is there. True if nothing more will come, or too much has.
    pub(super) fn drop_ready(&self) -> bool {
        let mut room = [0; 4096];
        for _ in 0..LINGER_READS {
            match self.transport.try_recv(&mut room) {
                Ok(count) if count > 0 && !self.drops_too_much(count) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                _ => return true,
            }
        }
        false
    }

    fn drops_too_much(&self, count: usize) -> bool {
        self.dropped.fetch_add(count, Ordering::Relaxed) + count >= LINGER_OCTETS
    }
}

/// Remembers what a client says of text, if it does.
///
/// # Errors
/// CODESET_INCOMPATIBLE for what is not known here; MARSHAL if it said something else before.
pub(super) fn note_code_sets(
    known: &OnceLock<TransmissionCodeSets>,
    contexts: &ServiceContexts<'_>,
) -> Result<(), SystemException> {
    let Some(data) = contexts.find(CONTEXT_CODE_SETS) else { return Ok(()) };
    let said = TransmissionCodeSets::from_context(data)?;
    if *known.get_or_init(|| said) == said {
        return Ok(());
    }
    Err(SystemException::marshal(minor::CODE_SETS_CHANGED, CompletionStatus::No)
        .with_detail("the client said earlier on this connection that text is coded otherwise"))
}
