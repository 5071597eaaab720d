//! The counters, and the table of all events and levels: their names in code, and their series for Prometheus.

use std::fmt;

use spandrel_sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

/// The statistics of one ORB. Cheap to clone: all clones are the same numbers.
///
/// Each number is right by itself; several numbers may be read at different moments.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod diagnostics { pub use spandrel_orb::statistics; } }
/// use spandrel::Orb;
/// use spandrel::diagnostics::statistics::{Event, Level};
///
/// let orb = Orb::builder().build()?;
/// let statistics = orb.statistics();
/// assert_eq!(statistics.count(Event::ConnectionOpened), 0);
/// assert_eq!(statistics.level(Level::ClientConnections), 0);
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Statistics {
    shared: Arc<Counters>,
}

struct Counters {
    events: [AtomicU64; Event::COUNT],
    levels: [AtomicI64; Level::COUNT],
}

impl Default for Counters {
    fn default() -> Self {
        Self { events: std::array::from_fn(|_| AtomicU64::new(0)), levels: std::array::from_fn(|_| AtomicI64::new(0)) }
    }
}

impl Statistics {
    /// Adds one to the count of the event.
    #[inline]
    pub fn note(&self, event: Event) {
        self.shared.events[event as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds `by` to the level; a negative number lowers it.
    #[inline]
    pub fn change(&self, level: Level, by: i64) {
        self.shared.levels[level as usize].fetch_add(by, Ordering::Relaxed);
    }

    /// Sets a level to a number that was measured.
    pub(crate) fn set(&self, level: Level, to: i64) {
        self.shared.levels[level as usize].store(to, Ordering::Relaxed);
    }

    /// The number of times that the event has happened.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.shared.events[event as usize].load(Ordering::Relaxed)
    }

    /// The level at present, which other threads may change at any time.
    #[must_use]
    pub fn level(&self, level: Level) -> i64 {
        self.shared.levels[level as usize].load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Statistics");
        for (name, count) in Event::ALL.iter().map(|event| (format!("{event:?}"), self.count(*event))) {
            if count > 0 {
                fields.field(&name, &count);
            }
        }
        fields.finish_non_exhaustive()
    }
}

/// A family of series with one name and different labels.
pub(super) struct Family<K: 'static> {
    pub(super) name: &'static str,
    /// The description after `# HELP`, a single line.
    pub(super) help: &'static str,
    /// The labels of each series as text between braces, and its event or level.
    pub(super) series: &'static [(&'static str, K)],
}

/// Declares the enum of events, the methods that count them, and their families.
macro_rules! events {
    ($($family:literal $help:literal { $($variant:ident $method:ident $labels:literal $doc:literal;)* })*) => {
        /// A counted event. Each has a method of [`Statistics`] with its name.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[non_exhaustive]
        pub enum Event {
            $($(#[doc = $doc] $variant,)*)*
        }

        impl Event {
            /// All events, in the order of their numbers.
            pub const ALL: &[Self] = &[$($(Self::$variant,)*)*];
            pub(super) const COUNT: usize = Self::ALL.len();
        }

        impl Statistics {
            $($(
                #[doc = $doc]
                #[inline]
                pub fn $method(&self) {
                    self.note(Event::$variant);
                }
            )*)*
        }

        pub(super) const FAMILIES: &[Family<Event>] =
            &[$(Family { name: $family, help: $help, series: &[$(($labels, Event::$variant),)*] },)*];
    };
}

/// Declares the levels and their families.
macro_rules! levels {
    ($($family:literal $help:literal { $($variant:ident $labels:literal $doc:literal;)* })*) => {
        /// A quantity that grows and shrinks; [`Statistics::change`] changes it.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[non_exhaustive]
        pub enum Level {
            $($(#[doc = $doc] $variant,)*)*
        }

        impl Level {
            /// All levels, in the order of their numbers.
            pub const ALL: &[Self] = &[$($(Self::$variant,)*)*];
            pub(super) const COUNT: usize = Self::ALL.len();
        }

        pub(super) const LEVELS: &[Family<Level>] =
            &[$(Family { name: $family, help: $help, series: &[$(($labels, Level::$variant),)*] },)*];
    };
}

events! {
    "spandrel_connections_opened_total" "Connections that were established, by this ORB's side of them." {
        ConnectionOpened connection_opened r#"side="client""# "A connection to a server was opened.";
        ConnectionAccepted connection_accepted r#"side="server""# "A client's connection was accepted.";
    }
    "spandrel_connections_failed_total" "Connections that could not be opened: the name, the address, or its time-out." {
        ConnectionFailed connection_failed "" "A connection to a server could not be opened.";
    }
    "spandrel_connections_refused_total" "Clients' connections that were refused, by reason." {
        RefusedForLimit refused_for_limit r#"reason="limit""# "A client was refused: the limit on connections is reached.";
        RefusedForAddress refused_for_address r#"reason="address""# "A client was refused: its address is not allowed.";
        RefusedForResources refused_for_resources r#"reason="resources""# "A client was refused: no thread or descriptor was available.";
        RefusedForSecurity refused_for_security r#"reason="security""# "A client was refused: the handshake failed, or the certificate was not accepted.";
        RefusedForShutdown refused_for_shutdown r#"reason="shutdown""# "A client was refused: the ORB is shutting down.";
    }
    "spandrel_connections_closed_total" "Connections that have ended, by this ORB's side of them and by reason." {
        ClientClosedByPeer client_closed_by_peer r#"side="client",reason="peer""# "The server has closed a connection in an orderly way.";
        ClientClosedForFault client_closed_for_fault r#"side="client",reason="fault""# "A connection to a server has failed, or sent data that was no GIOP.";
        ClientClosedForTimeout client_closed_for_timeout r#"side="client",reason="timeout""# "A connection to a server is closed after a time-out, because a late reply may still come.";
        ClientClosedIdle client_closed_idle r#"side="client",reason="idle""# "A connection to a server was closed because no call used it.";
        ClientClosedForLimit client_closed_for_limit r#"side="client",reason="limit""# "A connection to a server was closed to make room for another.";
        ServerClosedByPeer server_closed_by_peer r#"side="server",reason="peer""# "A client has closed its connection.";
        ServerClosedForFault server_closed_for_fault r#"side="server",reason="fault""# "A client's connection has failed, or sent data that was no GIOP.";
        ServerClosedForTimeout server_closed_for_timeout r#"side="server",reason="timeout""# "A client's connection was closed because it did not read its replies, or did not finish a message.";
        ServerClosedIdle server_closed_idle r#"side="server",reason="idle""# "A client's connection was closed because it sent no requests.";
        ServerClosedForLimit server_closed_for_limit r#"side="server",reason="limit""# "A client's connection was closed to make room for another.";
        ServerClosedForShutdown server_closed_for_shutdown r#"side="server",reason="shutdown""# "A client's connection was closed because the ORB ends.";
    }
    "spandrel_protocol_errors_total" "Messages that broke the protocol, by the side that read them." {
        ClientProtocolError client_protocol_error r#"side="client""# "A server sent a message that is no reply.";
        ServerProtocolError server_protocol_error r#"side="server""# "A client sent a message that is no request.";
    }
    "spandrel_requests_retried_total" "Requests that were sent once more because the first was known not to have been executed." {
        Retried retried "" "A request was sent again on another connection.";
    }
    "spandrel_requests_forwarded_total" "Requests that were sent on to another object, as their reply said." {
        Forwarded forwarded "" "A request was sent on to another object, as its reply said.";
    }
    "spandrel_reconnections_total" "Connections that were opened again to a server whose connections had all ended." {
        Reconnected reconnected "" "A connection was opened again to a server whose connections had ended.";
    }
    "spandrel_rebinds_total" "References that returned to their first address because the object that they were forwarded to does not exist." {
        Rebound rebound "" "A forwarding was undone because its object does not exist.";
    }
    "spandrel_requests_timed_out_total" "Calls whose deadline passed, by the phase that they were in." {
        TimedOutConnecting timed_out_connecting r#"phase="connect""# "A call's deadline passed before there was a connection for it.";
        TimedOutSending timed_out_sending r#"phase="send""# "A call's deadline passed before its request was written.";
        TimedOutWaiting timed_out_waiting r#"phase="reply""# "A call's deadline passed before its reply had come.";
    }
    "spandrel_requests_cancelled_total" "Requests that were cancelled while their servants ran, by reason." {
        CancelledByClient cancelled_by_client r#"reason="client""# "The client has cancelled a request that ran.";
        CancelledByDeadline cancelled_by_deadline r#"reason="deadline""# "The deadline of a request that ran has passed.";
        CancelledByLoss cancelled_by_loss r#"reason="connection_lost""# "The connection of a request that ran is lost.";
        CancelledByShutdown cancelled_by_shutdown r#"reason="shutdown""# "The ORB ends while a request ran.";
        CancelledByExecutor cancelled_by_executor r#"reason="time_exceeded""# "A servant has exceeded the time that its adapter's executor allows.";
    }
    "spandrel_requests_refused_total" "Requests that were refused, by the limit." {
        RefusedQueueFull refused_queue_full r#"limit="queue""# "A request was refused: the queue in front of the servants is full.";
        RefusedPending refused_pending r#"limit="pending""# "A request was refused: too many wait on its connection.";
        RefusedNesting refused_nesting r#"limit="nesting""# "A request was refused: too many are nested in its thread.";
        RefusedMemory refused_memory r#"limit="memory""# "A request was refused: waiting requests take too much memory.";
        RefusedTooLong refused_too_long r#"limit="message""# "A request was refused: it is longer than the limit on messages.";
        RefusedDeferred refused_deferred r#"limit="deferred""# "A request was refused: too many of its connection are deferred.";
        RefusedExpired refused_expired r#"limit="deadline""# "A request was refused: its deadline had passed.";
    }
    "spandrel_oneways_batched_total" "One-way requests that waited to be written together with others." {
        OneWayBatched one_way_batched "" "A one-way request waits to be written with others.";
    }
    "spandrel_oneways_dropped_total" "One-way requests that were dropped after their calls had returned." {
        OneWayDropped one_way_dropped "" "A one-way request was dropped after its call had returned.";
    }
    "spandrel_batches_written_total" "Groups of one-way requests that were written together." {
        BatchWritten batch_written "" "One-way requests were written together.";
    }
    "spandrel_datagrams_total" "Datagrams with requests, by outcome." {
        DatagramSent datagram_sent r#"outcome="sent""# "A request was sent by datagram.";
        DatagramReceived datagram_received r#"outcome="received""# "A datagram brought a request.";
        DatagramRefused datagram_refused r#"outcome="refused""# "A datagram was no request.";
        DatagramLost datagram_lost r#"outcome="lost""# "A request by datagram was dropped: too many are running.";
    }
    "spandrel_servant_panics_total" "Upcalls that ended in a panic." {
        ServantPanicked servant_panicked "" "A servant panicked.";
    }
}

levels! {
    "spandrel_connections_open" "Connections that are open, by this ORB's side of them." {
        ClientConnections r#"side="client""# "Connections to servers.";
        ServerConnections r#"side="server""# "Clients' connections.";
    }
    "spandrel_threads" "Threads that serve requests, by kind." {
        ThreadsOfConnections r#"kind="connection""# "Threads that read a connection of their own.";
        ThreadsOfPool r#"kind="pool""# "Threads that serve connections, or requests, together.";
    }
    "spandrel_queue_length" "Waiting requests, jobs and calls, by queue." {
        RequestsQueued r#"queue="pool""# "Requests that were read, and wait for a thread.";
        RequestsHeld r#"queue="adapter""# "Requests that an object adapter holds.";
        RequestsDeferred r#"queue="deferred""# "Requests whose upcalls have ended, and that will be answered later.";
        JobsOfMain r#"queue="main""# "Jobs that wait for the main thread.";
        CallsParked r#"queue="connect""# "Asynchronous calls that wait for a connection.";
        OneWaysUnsent r#"queue="batch""# "One-way requests that wait to be written with others.";
    }
    "spandrel_request_memory_octets" "Memory that requests take which are being read, wait, or are answered later." {
        OctetsReceived "" "Memory of requests that are being read, wait, or are answered later.";
    }
}
