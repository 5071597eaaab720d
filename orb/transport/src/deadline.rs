//! The deadlines of a call: for its reply, for sending its request, and for connecting.

use std::time::Duration;

use spandrel_sync::time::Instant;

/// Longer than any call, and within the range of every clock.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The elapsed part of a span below which the socket time-out is not adjusted, to save a system call.
const NEGLIGIBLE: Duration = Duration::from_millis(1);

/// The deadlines of one call.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// The limit for the whole call.
    whole: Limit,
    /// The limit for sending the request, if it is separate.
    sending: Option<Limit>,
    /// The limit for connecting, if it is separate.
    connecting: Option<Duration>,
}

/// The end of a wait, and the whole span, so that a constant time-out needs no system call.
#[derive(Clone, Copy, Debug)]
struct Limit {
    at: Instant,
    /// The time from the beginning to the end.
    span: Duration,
}

impl Deadline {
    /// A deadline `span` from now.
    #[must_use]
    pub fn after(span: Duration) -> Self {
        Self { whole: Limit::after(span), sending: None, connecting: None }
    }

    /// Adds a separate limit on sending.
    #[must_use]
    pub fn with_sending(self, span: Duration) -> Self {
        Self { sending: Some(Limit::after(span)), ..self }
    }

    /// Adds a separate limit on connecting.
    #[must_use]
    pub fn with_connecting(self, connecting: Option<Duration>) -> Self {
        Self { connecting, ..self }
    }

    /// A deadline that ends at `at`, with the other limits of `own`, which may end later.
    #[must_use]
    pub fn until(at: Instant, own: Option<Self>) -> Self {
        let whole = Limit { at, span: at.saturating_duration_since(Instant::now()) };
        let (sending, connecting) = own.map_or((None, None), |own| (own.sending, own.connecting));
        Self { whole, sending, connecting }
    }

    /// The end.
    #[must_use]
    #[inline]
    pub fn end(&self) -> Instant {
        self.whole.at
    }

    /// Whether the wait for the reply is limited.
    #[must_use]
    #[inline]
    pub fn limits_reply(&self) -> bool {
        self.whole.span < LONGEST
    }

    /// Whether it limits the deadline that servers receive.
    #[must_use]
    pub fn limits_server(&self, is_awaited: bool) -> bool {
        is_awaited && self.limits_reply() || self.sending.is_some()
    }

    /// The time left for the reply, if limited.
    #[must_use]
    pub fn left_for_reply(self) -> Option<Duration> {
        self.limits_reply().then(|| self.remaining())
    }

    /// The time left for delivery of the request, if limited separately.
    #[must_use]
    pub fn left_for_delivery(self) -> Option<Duration> {
        self.sending.map(|limit| limit.remaining())
    }

    /// The time left for sending. Cold: calls without a deadline skip it.
    #[must_use]
    #[cold]
    pub fn left_to_send(&self) -> Duration {
        self.send_limit().remaining()
    }

    /// The end of sending.
    #[must_use]
    pub fn send_end(&self) -> Instant {
        self.send_limit().at
    }

    /// The time for a connection attempt to one of several `addresses` that may have to be tried.
    #[must_use]
    #[cold]
    pub fn left_to_connect(&self, addresses: u32) -> Duration {
        let share = self.left_to_send() / addresses.max(1);
        self.connecting.map_or(share, |limit| limit.min(share))
    }

    /// The limit on sending.
    #[inline]
    fn send_limit(&self) -> &Limit {
        match &self.sending {
            Some(limit) if limit.at < self.whole.at => limit,
            _ => &self.whole,
        }
    }

    /// Whether the limit on sending ends before that on the reply.
    #[must_use]
    pub fn limits_sending(&self) -> bool {
        self.sending.is_some_and(|limit| limit.at < self.whole.at)
    }

    /// The time that a transport may wait now, `None` if the deadline has passed. It is the same span from
    /// call to call as long as all of it is ahead, so that a constant time-out costs no system call.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.whole.wait()
    }

    /// The time that a transport may wait to send, as [`wait`](Self::wait).
    #[must_use]
    pub fn wait_to_send(&self) -> Option<Duration> {
        self.send_limit().wait()
    }

    /// The time left; zero after the deadline.
    #[must_use]
    #[inline]
    pub fn remaining(&self) -> Duration {
        self.whole.remaining()
    }
}

impl Limit {
    fn after(span: Duration) -> Self {
        let span = span.min(LONGEST);
        Self { at: Instant::now() + span, span }
    }

    fn remaining(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    fn wait(&self) -> Option<Duration> {
        let remaining = self.remaining();
        if remaining.is_zero() {
            None
        } else if self.span - remaining < NEGLIGIBLE {
            Some(self.span)
        } else {
            Some(remaining)
        }
    }
}
