//! The options of asynchronous calls, and of what else needs a reactor.

use super::{
    table::option_table,
    values::{number, octets, yes_or_no},
};
use crate::WaitStrategy;

option_table! {
    /// The `-ORB…` options of asynchronous calls, and of what else needs a reactor.
    pub(super) static ASYNCHRONOUS_OPTIONS;

    ["-ORBPendingRequests"] {
        value: "a number",
        default: "1,024",
        help: "the most asynchronous calls of one connection that wait for a reply",
        page: "[connections](connections.md)",
        apply: |builder, value| Ok(builder.pending_requests(number(value)?)),
    }

    ["-ORBBufferLimit"] {
        value: "octets",
        default: "16 MiB",
        help: "the most octets that wait to be written to a server that does not read",
        page: "[connections](connections.md)",
        apply: |builder, value| Ok(builder.buffer_limit(octets(value)?)),
    }

    ["-ORBWaitStrategy"] {
        value: "`on-read`, `on-reactor` or `on-waker`",
        default: "`on-read`",
        help: "how a thread waits for a reply",
        page: "[concurrency](concurrency.md#wait-strategies)",
        apply: |builder, value| Ok(builder.wait_strategy(match value {
            "on-read" => WaitStrategy::OnRead,
            "on-waker" => WaitStrategy::OnWaker,
            "on-reactor" => WaitStrategy::OnReactor,
            _ => return Err("on-read, on-reactor or on-waker".into()),
        })),
    }

    ["-ORBCancelNested"] {
        value: "`yes` or `no`",
        default: "`no`",
        help: "whether the cancellation of a request cancels the calls of its servant",
        page: "[deadlines](deadlines.md)",
        apply: |builder, value| Ok(builder.cancel_nested(yes_or_no(value)?)),
    }

    ["-ORBMetricsEndpoint"] {
        value: "`address:port`, or the port alone for a loopback address",
        default: "none",
        help: "the address at which the metrics are served to Prometheus",
        page: "[diagnostics](diagnostics.md)",
        apply: |builder, value| Ok(builder.metrics_endpoint(socket_addr(value)?)),
    }
}

/// Parses an address and a port; a port alone, also after a colon, means the loopback address.
fn socket_addr(text: &str) -> Result<std::net::SocketAddr, &'static str> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    let loopback = port.map(|port| (std::net::Ipv4Addr::LOCALHOST, port).into());
    loopback.or_else(|_| text.parse().map_err(|_| "address:port"))
}
