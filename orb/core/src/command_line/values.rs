//! Values of options that several options have alike.

use std::time::Duration;

pub(super) fn yes_or_no(text: &str) -> Option<bool> {
    match text {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// A time-out, or none.
pub(super) fn or_off(text: &str) -> Option<Option<Duration>> {
    if text == "off" { Some(None) } else { milliseconds(text).map(Some) }
}

/// A time-out in milliseconds; zero would refuse every call and is no time-out.
pub(super) fn milliseconds(text: &str) -> Option<Duration> {
    text.parse().ok().filter(|count| *count > 0).map(Duration::from_millis)
}
