//! The table of all that is counted: its names in code, and what Prometheus is told of it.

use super::Statistics;

/// Series of one name, told apart by labels.
pub(super) struct Family<K: 'static> {
    pub(super) name: &'static str,
    /// One line.
    pub(super) help: &'static str,
    /// Labels as they are written between braces, and what the series is of.
    pub(super) series: &'static [(&'static str, K)],
}

/// Makes an enum of numbers, the methods that count them, and the families that they are rendered in.
macro_rules! events {
    ($($family:literal $help:literal { $($variant:ident $method:ident $labels:literal $doc:literal;)* })*) => {
        /// What is counted, each by the method of [`Statistics`] that has its name.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[non_exhaustive]
        pub enum Event {
            $($(#[doc = $doc] $variant,)*)*
        }

        impl Event {
            /// All of them.
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

/// The same for what comes and goes.
macro_rules! levels {
    ($($family:literal $help:literal { $($variant:ident $labels:literal $doc:literal;)* })*) => {
        /// What there is more or less of from time to time; [`Statistics::change`] says so.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[non_exhaustive]
        pub enum Level {
            $($(#[doc = $doc] $variant,)*)*
        }

        impl Level {
            /// All of them.
            pub const ALL: &[Self] = &[$($(Self::$variant,)*)*];
            pub(super) const COUNT: usize = Self::ALL.len();
        }

        pub(super) const LEVELS: &[Family<Level>] =
            &[$(Family { name: $family, help: $help, series: &[$(($labels, Level::$variant),)*] },)*];
    };
}

events! {
    "spandrel_connections_opened_total" "Connections that were established, by which side of them this is." {
        ConnectionOpened connection_opened r#"side="client""# "A connection to a server was opened.";
        ConnectionAccepted connection_accepted r#"side="server""# "A client's connection was accepted.";
    }
    "spandrel_connections_failed_total" "Connections that could not be opened: the name, the address, or its time-out." {
        ConnectionFailed connection_failed "" "A connection to a server could not be opened.";
    }
    "spandrel_connections_refused_total" "Clients' connections that were turned away, by why." {
        RefusedForLimit refused_for_limit r#"reason="limit""# "A client was turned away: there are as many as there may be.";
        RefusedForAddress refused_for_address r#"reason="address""# "A client was turned away: not from that address.";
        RefusedForResources refused_for_resources r#"reason="resources""# "A client was turned away: no thread, no descriptor.";
        RefusedForSecurity refused_for_security r#"reason="security""# "A client was turned away: no handshake, no certificate.";
        RefusedForShutdown refused_for_shutdown r#"reason="shutdown""# "A client was turned away: the ORB is shutting down.";
    }
    "spandrel_connections_closed_total" "Connections that have ended, by which side of them this is and by why." {
        ClientClosedByPeer client_closed_by_peer r#"side="client",reason="peer""# "The server has closed a connection in an orderly way.";
        ClientClosedForFault client_closed_for_fault r#"side="client",reason="fault""# "A connection to a server has failed, or what it sent was no GIOP.";
        ClientClosedForTimeout client_closed_for_timeout r#"side="client",reason="timeout""# "A connection to a server ends because a reply may still come that nobody waits for.";
        ClientClosedIdle client_closed_idle r#"side="client",reason="idle""# "A connection to a server was closed because nobody used it.";
        ClientClosedForLimit client_closed_for_limit r#"side="client",reason="limit""# "A connection to a server was closed to make room for another.";
        ServerClosedByPeer server_closed_by_peer r#"side="server",reason="peer""# "A client has closed its connection.";
        ServerClosedForFault server_closed_for_fault r#"side="server",reason="fault""# "A client's connection has failed, or what it sent was no GIOP.";
        ServerClosedForTimeout server_closed_for_timeout r#"side="server",reason="timeout""# "A client was cut off that took nothing of what it was sent, or never finished what it sent.";
        ServerClosedIdle server_closed_idle r#"side="server",reason="idle""# "A client's connection was closed because it asked for nothing.";
        ServerClosedForLimit server_closed_for_limit r#"side="server",reason="limit""# "A client's connection was closed to make room for another.";
        ServerClosedForShutdown server_closed_for_shutdown r#"side="server",reason="shutdown""# "A client's connection was closed because the ORB ends.";
    }
    "spandrel_protocol_errors_total" "Messages that broke the protocol, by which side has read them." {
        ClientProtocolError client_protocol_error r#"side="client""# "A server sent what is no answer.";
        ServerProtocolError server_protocol_error r#"side="server""# "A client sent what is no request.";
    }
    "spandrel_requests_retried_total" "Requests that were sent once more because the first had certainly not been carried out." {
        Retried retried "" "A request was sent again on another connection.";
    }
    "spandrel_requests_forwarded_total" "Requests that were sent on to where a reply said that the object is." {
        Forwarded forwarded "" "A request was sent on to where its reply said.";
    }
    "spandrel_reconnections_total" "Connections that were opened again to a server whose connections had all ended." {
        Reconnected reconnected "" "A connection was opened again to a server whose connections had ended.";
    }
    "spandrel_rebinds_total" "References that were led back to where they were first because what they were forwarded to is gone." {
        Rebound rebound "" "A forwarding was forgotten because its object is gone.";
    }
    "spandrel_requests_timed_out_total" "Calls whose time was up, by what they waited for." {
        TimedOutConnecting timed_out_connecting r#"phase="connect""# "A call's time was up before there was a connection for it.";
        TimedOutSending timed_out_sending r#"phase="send""# "A call's time was up before its request was written.";
        TimedOutWaiting timed_out_waiting r#"phase="reply""# "A call's time was up before its reply had come.";
    }
    "spandrel_requests_cancelled_total" "Requests whose servants were told that nobody waits for the answer, by why." {
        CancelledByClient cancelled_by_client r#"reason="client""# "The client has cancelled a request that ran.";
        CancelledByDeadline cancelled_by_deadline r#"reason="deadline""# "The deadline of a request that ran has passed.";
        CancelledByLoss cancelled_by_loss r#"reason="connection_lost""# "The connection of a request that ran is lost.";
        CancelledByShutdown cancelled_by_shutdown r#"reason="shutdown""# "The ORB ends while a request ran.";
    }
    "spandrel_requests_refused_total" "Requests that were refused for a limit, by which." {
        RefusedQueueFull refused_queue_full r#"limit="queue""# "A request was refused: the queue in front of the servants is full.";
        RefusedPending refused_pending r#"limit="pending""# "A request was refused: so many wait on its connection already.";
        RefusedNesting refused_nesting r#"limit="nesting""# "A request was refused: so many are nested in its thread already.";
        RefusedMemory refused_memory r#"limit="memory""# "A request was refused: those that wait take so much memory already.";
        RefusedTooLong refused_too_long r#"limit="message""# "A request was refused: it is longer than messages may be.";
        RefusedDeferred refused_deferred r#"limit="deferred""# "A request was refused: so many of its connection are deferred already.";
        RefusedExpired refused_expired r#"limit="deadline""# "A request was refused: its deadline had passed when it came.";
    }
    "spandrel_oneways_batched_total" "One-way requests that waited to be written together with others." {
        OneWayBatched one_way_batched "" "A one-way request waits to be written with others.";
    }
    "spandrel_oneways_dropped_total" "One-way requests that were dropped after their caller was told that they are sent." {
        OneWayDropped one_way_dropped "" "A one-way request was dropped after its caller went on.";
    }
    "spandrel_batches_written_total" "Groups of one-way requests that were written together." {
        BatchWritten batch_written "" "One-way requests were written together.";
    }
    "spandrel_datagrams_total" "Datagrams with requests, by what became of them." {
        DatagramSent datagram_sent r#"outcome="sent""# "A request was sent by datagram.";
        DatagramReceived datagram_received r#"outcome="received""# "A datagram brought a request.";
        DatagramRefused datagram_refused r#"outcome="refused""# "A datagram brought something else.";
        DatagramLost datagram_lost r#"outcome="lost""# "A request by datagram was dropped: so many run already.";
    }
    "spandrel_servant_panics_total" "Upcalls that ended in a panic." {
        ServantPanicked servant_panicked "" "A servant panicked.";
    }
}

levels! {
    "spandrel_connections_open" "Connections that are open, by which side of them this is." {
        ClientConnections r#"side="client""# "Connections to servers.";
        ServerConnections r#"side="server""# "Clients' connections.";
    }
    "spandrel_threads" "Threads that serve, by how." {
        ThreadsOfConnections r#"kind="connection""# "Threads that read a connection of their own.";
        ThreadsOfPool r#"kind="pool""# "Threads that serve connections, or requests, together.";
    }
    "spandrel_queue_length" "What waits, by what it waits for." {
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
