//! Values of options that several options have alike.

use std::time::Duration;

/// An address and a port; the port alone, also after a colon, is one of the loopback address.
#[cfg(feature = "asynchronous")]
pub(super) fn socket_addr(text: &str) -> Option<std::net::SocketAddr> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    port.map(|port| (std::net::Ipv4Addr::LOCALHOST, port).into()).ok().or_else(|| text.parse().ok())
}

pub(super) fn yes_or_no(text: &str) -> Option<bool> {
    match text {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// A number, or none.
#[cfg(feature = "server")]
pub(super) fn number_or_off(text: &str) -> Option<Option<usize>> {
    if text == "off" { Some(None) } else { text.parse().ok().map(Some) }
}

/// A time-out, or none.
pub(super) fn or_off(text: &str) -> Option<Option<Duration>> {
    if text == "off" { Some(None) } else { milliseconds(text).map(Some) }
}

/// A time-out in milliseconds; zero would refuse every call and is no time-out.
pub(super) fn milliseconds(text: &str) -> Option<Duration> {
    text.parse().ok().filter(|count| *count > 0).map(Duration::from_millis)
}
