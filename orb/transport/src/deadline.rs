//! The deadlines of a call: for its reply, for sending its request, and for connecting.

use std::time::Duration;

use spandrel_sync::time::{self, Instant};

/// Longer than any call, and within the range of every clock: a longer limit is none.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The elapsed part of a span below which the socket time-out is not adjusted, to save a system call.
const NEGLIGIBLE: Duration = Duration::from_millis(1);

/// The limits of one call, each of them a [`time::Deadline`].
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// The limit for the whole call.
    whole: time::Deadline,
    /// The limit for sending the request, if it is separate.
    sending: Option<time::Deadline>,
    /// The limit for connecting, if it is separate.
    connecting: Option<Duration>,
}

impl Deadline {
    /// A deadline `span` from now.
    #[must_use]
    pub fn after(span: Duration) -> Self {
        Self { whole: limit(span), sending: None, connecting: None }
    }

    /// Adds a separate limit on sending.
    #[must_use]
    pub fn with_sending(self, span: Duration) -> Self {
        Self { sending: Some(limit(span)), ..self }
    }

    /// Adds a separate limit on connecting.
    #[must_use]
    pub fn with_connecting(self, connecting: Option<Duration>) -> Self {
        Self { connecting, ..self }
    }

    /// A deadline that ends at `at`, with the limits on sending and connecting of `own`.
    #[must_use]
    pub fn until(at: Instant, own: Option<Self>) -> Self {
        let now = Instant::now();
        let whole = time::Deadline::from_begin(now, at.saturating_duration_since(now));
        let (sending, connecting) = own.map_or((None, None), |own| (own.sending, own.connecting));
        Self { whole, sending, connecting }
    }

    /// The end of the wait for the reply, if limited.
    #[must_use]
    #[inline]
    pub fn end(&self) -> Option<Instant> {
        self.whole.end()
    }

    /// Whether the wait for the reply is limited.
    #[must_use]
    #[inline]
    pub fn limits_reply(&self) -> bool {
        self.whole.limit().is_some()
    }

    /// Whether it limits the deadline that servers receive.
    #[must_use]
    pub fn limits_server(&self, is_awaited: bool) -> bool {
        is_awaited && self.limits_reply() || self.sending.is_some()
    }

    /// The time left for the reply, if limited.
    #[must_use]
    pub fn left_for_reply(self) -> Option<Duration> {
        self.whole.remaining()
    }

    /// The time left for delivery of the request, if limited separately.
    #[must_use]
    pub fn left_for_delivery(self) -> Option<Duration> {
        self.sending.map(remaining)
    }

    /// The time left for sending. Cold: calls without a deadline skip it.
    #[must_use]
    #[cold]
    pub fn left_to_send(&self) -> Duration {
        remaining(self.send_limit())
    }

    /// The time by which the request has to be written; `None` without a limit.
    #[must_use]
    pub fn send_end(&self) -> Option<Instant> {
        self.send_limit().end()
    }

    /// The time for a connection attempt to one of several `addresses` that may have to be tried.
    #[must_use]
    #[cold]
    pub fn left_to_connect(&self, addresses: u32) -> Duration {
        let share = self.left_to_send() / addresses.max(1);
        self.connecting.map_or(share, |limit| limit.min(share))
    }

    /// The earlier one of the deadline of the whole call and that of its request.
    #[inline]
    fn send_limit(&self) -> time::Deadline {
        self.sending.map_or(self.whole, |sending| self.whole.earlier(sending))
    }

    /// Whether the limit on sending ends before that on the reply.
    #[must_use]
    pub fn limits_sending(&self) -> bool {
        self.sending.is_some_and(|sending| self.whole.earlier(sending) != self.whole)
    }

    /// The time that a transport may wait now, `None` if the deadline has passed. It is the same span from
    /// call to call as long as all of it is ahead, so that a constant time-out costs no system call.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        wait(self.whole)
    }

    /// The time that a transport may wait to send, as [`wait`](Self::wait).
    #[must_use]
    pub fn wait_to_send(&self) -> Option<Duration> {
        wait(self.send_limit())
    }

    /// The time left: zero after the deadline, a hundred years without a limit.
    #[must_use]
    #[inline]
    pub fn remaining(&self) -> Duration {
        remaining(self.whole)
    }
}

/// The deadline `span` from now.
fn limit(span: Duration) -> time::Deadline {
    time::Deadline::after(Some(span).filter(|span| *span < LONGEST))
}

fn remaining(limit: time::Deadline) -> Duration {
    limit.remaining().unwrap_or(LONGEST)
}

/// The time that a transport may wait: the whole span as long as hardly any of it has passed.
fn wait(limit: time::Deadline) -> Option<Duration> {
    let (span, remaining) = (limit.limit().unwrap_or(LONGEST), remaining(limit));
    if remaining.is_zero() {
        None
    } else if span - remaining < NEGLIGIBLE {
        Some(span)
    } else {
        Some(remaining)
    }
}
