//! Counters of flows: frames, losses, refusals and times.

use std::time::Duration;

use spandrel::net::sync::atomic::{AtomicU64, Ordering};

/// The counts of one flow, or of all flows of a service.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FlowStatistics {
    /// The frames that were sent, or given to the sink.
    pub frames: u64,
    /// The payload octets of the counted frames.
    pub octets: u64,
    /// The packets that were sent or admitted.
    pub packets: u64,
    /// The packets that never came, by gaps in their numbers; of a sender, those that its receiver reports.
    pub lost: u64,
    /// The packets that came after their place was given up.
    pub late: u64,
    /// The packets that came before an earlier one, and were put in order.
    pub reordered: u64,
    /// The packets that came twice.
    pub duplicates: u64,
    /// The frames that were dropped because of a lost part.
    pub incomplete: u64,
    /// The packets and connections of other parties: a wrong token, another address, another source.
    pub refused: u64,
    /// The packets of the admitted party that are none of the protocol.
    pub malformed: u64,
    /// The variation of the time between packets (RFC 3550, 6.4.1), in microseconds.
    pub jitter_micros: u64,
    /// The greatest lateness of a frame, in microseconds.
    pub max_lateness_micros: u64,
    /// The class of service of a sender's packets (DSCP), as the system has it for the socket.
    pub dscp: u64,
}

macro_rules! counters {
    ($($name:ident),*) => {
        /// The counts of a flow that runs.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Counters {
            pub(crate) fn snapshot(&self) -> FlowStatistics {
                FlowStatistics { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters!(
    frames,
    octets,
    packets,
    lost,
    late,
    reordered,
    duplicates,
    incomplete,
    refused,
    malformed,
    jitter_micros,
    max_lateness_micros,
    dscp
);

impl Counters {
    pub(crate) fn count_frame(&self, octets: usize) {
        add(&self.frames, 1);
        add(&self.octets, octets as u64);
    }

    pub(crate) fn record_lateness(&self, lateness: Duration) {
        let micros = u64::try_from(lateness.as_micros()).unwrap_or(u64::MAX);
        self.max_lateness_micros.fetch_max(micros, Ordering::Relaxed);
    }
}

/// Adds to a count.
pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}
