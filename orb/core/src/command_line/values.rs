//! Values that several options share.

use std::time::Duration;

pub(super) fn yes_or_no(text: &str) -> Option<bool> {
    match text {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// Parses a time-out in milliseconds, or `off` for none.
pub(super) fn or_off(text: &str) -> Option<Option<Duration>> {
    if text == "off" { Some(None) } else { milliseconds(text).map(Some) }
}

/// Parses a time-out in milliseconds. Zero is invalid, since every call would fail.
pub(super) fn milliseconds(text: &str) -> Option<Duration> {
    text.parse().ok().filter(|count| *count > 0).map(Duration::from_millis)
}
