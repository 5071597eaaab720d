//! Limits of streams and their flows.

use std::time::Duration;

/// The most that a service holds, and the times within which peers must act.
#[derive(Clone, Copy, Debug)]
pub struct AvLimits {
    /// The streams' end points, controls and flow end points at a time (default 1,024). End points that have neither a control
    /// nor a connection for [`absence`](Self::absence) make room for others of their device. More is IMP_LIMIT.
    pub objects: usize,
    /// The flows with a connection at a time (default 512). Those that receive, or send by TCP, TLS or with credit, have a
    /// thread each.
    pub flows: usize,
    /// The receivers of one flow (default 64).
    pub receivers: usize,
    /// The octets of one frame (default 4 MiB). A received frame with more is refused.
    pub frame: usize,
    /// The octets of one datagram (default 1,400). Larger frames go in parts by RTP and SFP.
    pub datagram: usize,
    /// The packets that wait for earlier ones (default 64).
    pub reordered: usize,
    /// The time for which they wait (default 60 ms).
    pub reorder_time: Duration,
    /// The time for the connection of a flow and its token (default 10 s).
    pub connect: Duration,
    /// The time for one call of another party's object (default 30 s).
    pub call: Duration,
    /// The longest time without progress: a receiver that takes nothing, or a started sender that is silent
    /// (default 10 s).
    pub idle: Duration,
    /// The time after which a stream ends if its control does not answer its parties, or a party its control
    /// (default 30 s). [`Duration::MAX`] for controls and parties that cannot be called.
    pub absence: Duration,
    /// The time between two reports of RTCP (default 5 s).
    pub report_interval: Duration,
    /// The connections to the address of a TCP flow that have not shown the token (default 16).
    pub unknown_connections: usize,
}

impl Default for AvLimits {
    fn default() -> Self {
        Self {
            objects: 1_024,
            flows: 512,
            receivers: 64,
            frame: 4 << 20,
            datagram: 1_400,
            reordered: 64,
            reorder_time: Duration::from_millis(60),
            connect: Duration::from_secs(10),
            call: Duration::from_secs(30),
            idle: Duration::from_secs(10),
            absence: Duration::from_secs(30),
            report_interval: Duration::from_secs(5),
            unknown_connections: 16,
        }
    }
}
