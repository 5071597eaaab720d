//! The options of asynchronous calls.

use super::values::{InitError, InvalidValue, Parsed, yes_or_no};
use crate::{OrbBuilder, WaitStrategy};

/// Applies an option of asynchronous calls.
pub(super) fn option(
    builder: OrbBuilder,
    option: &str,
    value: &str,
    bad: InvalidValue<'_>,
) -> Result<Parsed, InitError> {
    let builder = match option {
        "-ORBPendingRequests" => builder.pending_requests(value.parse().map_err(|_| bad("a number"))?),
        "-ORBBufferLimit" => builder.buffer_limit(value.parse().map_err(|_| bad("a number of octets"))?),
        "-ORBWaitStrategy" => builder.wait_strategy(match value {
            "on-read" => WaitStrategy::OnRead,
            "on-waker" => WaitStrategy::OnWaker,
            "on-reactor" => WaitStrategy::OnReactor,
            _ => return Err(bad("on-read, on-reactor or on-waker")),
        }),
        "-ORBCancelNested" => builder.cancel_nested(yes_or_no(value).ok_or_else(|| bad("yes or no"))?),
        "-ORBMetricsEndpoint" => builder.metrics_endpoint(socket_addr(value).ok_or_else(|| bad("address:port"))?),
        _ => return Ok(Parsed::Unknown(Box::new(builder))),
    };
    Ok(Parsed::Known(Box::new(builder)))
}

/// Parses an address and a port; a port alone, also after a colon, means the loopback address.
fn socket_addr(text: &str) -> Option<std::net::SocketAddr> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    port.map(|port| (std::net::Ipv4Addr::LOCALHOST, port).into()).ok().or_else(|| text.parse().ok())
}
