//! The origin of a request, which takes its answer: a connection, a sender of datagrams, or a caller in this
//! ORB.

use std::{fmt, io};

use spandrel_cdr::{Decoder, Encoder, GiopVersion, Wire};
pub(crate) use spandrel_connection::{RequestKey, UpcallNumber};
use spandrel_giop::{Message, SystemException};
use spandrel_orb::{
    Orb, Spawn,
    internal::{ConnectionMetrics, ServerSettings, cancellation::CancellationSource},
};
use spandrel_reactor::LogLimit;
use spandrel_sync::{Arc, atomic::AtomicBool, time::Instant};
use spandrel_transport::{Address, ReactorTransport, ReceiveBudget};

use super::prediction::Prediction;
use crate::long_wait::UnbegunRequests;

/// The memory that an answer is charged for while it waits to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnswerKind {
    /// The answer, and its request where that is kept until the answer has been written.
    ///
    /// `may_wait`: whether it may wait for the answers of other deferred requests of the origin, which have not begun.
    Reply { request_octets: usize, may_wait: bool },
    /// The answer alone: a short one that gives the reason for a rejection.
    Refusal,
}

/// The services of an ORB's server side for its upcalls.
pub(crate) trait UpcallServices: Send + Sync + fmt::Debug {
    /// The server options of the ORB.
    fn settings(&self) -> &ServerSettings;

    /// Limits the log lines that clients can cause.
    fn log_limit(&self) -> &LogLimit;

    /// The requests that wait for the main thread.
    fn for_main_thread(&self) -> &Arc<UnbegunRequests>;

    /// The requests that wait for the executor of the application, if there is one.
    fn for_spawner(&self) -> Option<&Arc<UnbegunRequests>>;

    /// Whether the executor has polled the last future of a request first in its upcall.
    fn polls_in_upcalls(&self) -> &AtomicBool;

    /// Calls `then` with the executor of the futures that answer requests.
    ///
    /// # Errors
    /// Errors of the system, if the executor has no threads and none can be started. `then` is not called.
    fn with_spawner(&self, then: &mut dyn FnMut(&dyn Spawn)) -> io::Result<()>;
}

/// The upcall's view of a request's origin.
pub(crate) trait RequestOrigin: Send + Sync + fmt::Debug {
    /// The ORB that serves the request.
    fn orb(&self) -> &Orb;

    /// The services of that ORB's server side.
    fn services(&self) -> &dyn UpcallServices;

    /// The name of the origin, for messages.
    fn name(&self) -> &str;

    /// The address of the peer that has sent the request; `None` for a caller in this ORB.
    fn peer_address(&self) -> Option<&Arc<Address>>;

    /// The transport over which the request came, unless that is shared with other peers.
    fn transport(&self) -> Option<&Arc<dyn ReactorTransport>> {
        None
    }

    /// The encoding of an answer to a message of this version.
    fn wire(&self, version: GiopVersion) -> Wire;

    /// A decoder of a message of this origin, from the end of its header on.
    fn decoder<'m>(&'m self, message: &'m Message) -> Decoder<'m>;

    /// The account of decoded values; `None` if they have no limit but that of their message.
    fn account(&self) -> Option<&Arc<ReceiveBudget>> {
        None
    }

    /// The prediction from the origin's last request; `None` if the origin has no predictions.
    fn prediction(&self) -> Option<&Prediction> {
        None
    }

    /// The metrics of the connection; `None` if the origin is no connection.
    fn metrics(&self) -> Option<&ConnectionMetrics> {
        None
    }

    /// Takes an answer. An answer that cannot be delivered is no error.
    ///
    /// # Errors
    /// There is no memory to keep it until the client takes it; nothing was sent. Never for a
    /// [refusal](AnswerKind::Refusal).
    fn send(&self, answer: &Encoder<'_>, kind: AnswerKind) -> Result<(), SystemException>;

    /// A shared reference to this origin, for use after an upcall.
    fn shared(&self) -> Arc<dyn RequestOrigin>;

    /// The cancellation source of a running request.
    fn cancellation_source(&self, request_key: RequestKey, deadline: Option<Instant>) -> Arc<CancellationSource>;

    /// The reply to the request of this running upcall is about to be sent: the end of the connection cancels it no
    /// longer.
    fn mark_replying(&self, _upcall: UpcallNumber) {}

    /// Adds a deferred request. Returns the key for [its end](Self::leave_deferred), and the source that can cancel it: that
    /// of the running request, or a new one.
    ///
    /// # Errors
    /// TRANSIENT if there are too many.
    fn enter_deferred(
        &self,
        request_key: RequestKey,
        octets: usize,
        unused: UnusedSource,
    ) -> Result<(u64, Arc<CancellationSource>), SystemException>;

    /// Whether a request of that many octets may be deferred, and entered later in its upcall. False if it is to be
    /// [entered](Self::enter_deferred) at once.
    ///
    /// # Errors
    /// Those of [`enter_deferred`](Self::enter_deferred).
    fn admits_late_entry(&self, _octets: usize) -> Result<bool, SystemException> {
        Ok(false)
    }

    /// Adds a deferred request that was [admitted](Self::admits_late_entry). Requests that were admitted at the same time
    /// may exceed the limits.
    fn enter_admitted(
        &self,
        request_key: RequestKey,
        octets: usize,
        unused: UnusedSource,
    ) -> (u64, Arc<CancellationSource>) {
        _ = (request_key, octets, unused);
        unreachable!("the origin admits no late entries")
    }

    /// Ends the charge for a deferred request that is being answered: from now on its answer is charged. Returns whether
    /// the answer may wait for those of others.
    fn uncharge_deferred(&self, _key: u64) -> bool {
        false
    }

    /// Removes a deferred request that has ended.
    fn leave_deferred(&self, key: u64);

    /// Called before this thread gives the future of a deferred request to the executor.
    fn record_spawn(&self) {}
}

/// A cancellation source that is not made yet.
pub(crate) struct UnusedSource {
    /// The time from which the reply is not needed.
    pub(crate) deadline: Option<Instant>,
    /// The memory of the source of a request that has ended.
    pub(crate) memory: Option<Arc<CancellationSource>>,
}

/// The origin of a request that a thread of an executor runs: the thread learns that the reply is about to be sent.
pub(crate) struct NotifyingOrigin<'a> {
    pub(crate) origin: &'a dyn RequestOrigin,
    pub(crate) before_reply: &'a (dyn Fn() + Sync),
}

impl fmt::Debug for NotifyingOrigin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.origin.fmt(f)
    }
}

impl RequestOrigin for NotifyingOrigin<'_> {
    fn orb(&self) -> &Orb {
        self.origin.orb()
    }

    fn services(&self) -> &dyn UpcallServices {
        self.origin.services()
    }

    fn name(&self) -> &str {
        self.origin.name()
    }

    fn peer_address(&self) -> Option<&Arc<Address>> {
        self.origin.peer_address()
    }

    fn transport(&self) -> Option<&Arc<dyn ReactorTransport>> {
        self.origin.transport()
    }

    fn wire(&self, version: GiopVersion) -> Wire {
        self.origin.wire(version)
    }

    fn decoder<'m>(&'m self, message: &'m Message) -> Decoder<'m> {
        self.origin.decoder(message)
    }

    fn account(&self) -> Option<&Arc<ReceiveBudget>> {
        self.origin.account()
    }

    fn prediction(&self) -> Option<&Prediction> {
        self.origin.prediction()
    }

    fn metrics(&self) -> Option<&ConnectionMetrics> {
        self.origin.metrics()
    }

    fn send(&self, answer: &Encoder<'_>, kind: AnswerKind) -> Result<(), SystemException> {
        (self.before_reply)();
        self.origin.send(answer, kind)
    }

    /// The origin itself: a reply that is deferred again comes from another thread.
    fn shared(&self) -> Arc<dyn RequestOrigin> {
        self.origin.shared()
    }

    fn cancellation_source(&self, request_key: RequestKey, deadline: Option<Instant>) -> Arc<CancellationSource> {
        self.origin.cancellation_source(request_key, deadline)
    }

    fn mark_replying(&self, upcall: UpcallNumber) {
        self.origin.mark_replying(upcall);
    }

    fn enter_deferred(
        &self,
        request_key: RequestKey,
        octets: usize,
        unused: UnusedSource,
    ) -> Result<(u64, Arc<CancellationSource>), SystemException> {
        self.origin.enter_deferred(request_key, octets, unused)
    }

    /// The replies of an executor leave at once: a thread of lower urgency might have to write them otherwise.
    fn uncharge_deferred(&self, key: u64) -> bool {
        self.origin.uncharge_deferred(key);
        false
    }

    fn leave_deferred(&self, key: u64) {
        self.origin.leave_deferred(key);
    }
}
