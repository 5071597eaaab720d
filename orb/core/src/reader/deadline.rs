//! Until when something may take: reading an answer, sending what it answers, connecting to who sends it.

use std::time::Duration;

use spandrel_sync::time::Instant;

/// As good as for ever, and small enough for every clock.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// How much of the span may have passed before waiting for what is left is worth a system call.
const NEGLIGIBLE: Duration = Duration::from_millis(1);

/// Until when to wait, and the whole span, so that a constant time-out needs no system call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) span: Duration,
    /// Until when the request must be sent, and the span from the beginning to that, if that is limited for itself.
    sending: Option<(Instant, Duration)>,
    /// How long a connection may take, if that is limited for itself.
    connecting: Option<Duration>,
}

impl Deadline {
    pub(crate) fn after(span: Duration) -> Self {
        let span = span.min(LONGEST);
        Self { at: Instant::now() + span, span, sending: None, connecting: None }
    }

    /// The same, with another limit on sending.
    #[cfg(feature = "policies")]
    pub(crate) fn with_sending(self, span: Duration) -> Self {
        let Self { at, span, .. } = Self::after(span);
        Self { sending: Some((at, span)), ..self }
    }

    /// The same, where getting a connection may take no longer than that.
    #[cfg(feature = "policies")]
    pub(crate) fn with_connecting(self, connecting: Option<Duration>) -> Self {
        Self { connecting, ..self }
    }

    /// Until then at the latest; `own` as well, which may be later.
    #[cfg(feature = "server")]
    pub(crate) fn until(at: Instant, own: Option<Self>) -> Self {
        let span = at.saturating_duration_since(Instant::now());
        let (sending, connecting) = own.map_or((None, None), |own| (own.sending, own.connecting));
        Self { at, span, sending, connecting }
    }

    /// Whether the answer is waited for until then, and not for ever.
    #[cfg(any(feature = "policies", feature = "server"))]
    pub(crate) fn is_for_answer(&self) -> bool {
        self.span < LONGEST
    }

    /// Whether it limits what servers are to know.
    #[cfg(feature = "policies")]
    pub(crate) fn is_worth_saying(&self, is_awaited: bool) -> bool {
        is_awaited && self.is_for_answer() || self.sending.is_some()
    }

    /// How long there is still for the answer, if that is limited.
    #[cfg(feature = "policies")]
    pub(crate) fn to_answer(self) -> Option<Duration> {
        self.is_for_answer().then(|| self.remaining())
    }

    /// How long there is still until the request must have been delivered, if that is limited for itself.
    #[cfg(feature = "policies")]
    pub(crate) fn to_deliver(self) -> Option<Duration> {
        self.sending.map(|(at, _)| at.saturating_duration_since(Instant::now()))
    }

    /// How long there is still for sending. Calls without a deadline do not have it in their way.
    #[cold]
    pub(crate) fn left_to_send(&self) -> Duration {
        self.to_send().remaining()
    }

    /// How long a connection may take: one of `places` that may have to be tried.
    #[cold]
    pub(crate) fn left_to_connect(&self, places: u32) -> Duration {
        let share = self.left_to_send() / places.max(1);
        self.connecting.filter(|_| cfg!(feature = "policies")).map_or(share, |limit| limit.min(share))
    }

    /// The limit on sending.
    #[inline]
    pub(crate) fn to_send(self) -> Self {
        match self.sending.filter(|_| cfg!(feature = "policies")) {
            Some((at, span)) if at < self.at => Self { at, span, sending: None, ..self },
            _ => self,
        }
    }

    /// True if it is for sending that time is short.
    pub(crate) fn limits_sending(&self) -> bool {
        cfg!(feature = "policies") && self.sending.is_some_and(|(at, _)| at < self.at)
    }

    /// How long a transport may wait now, `None` if the time is up: the same span from call to call while all of it is
    /// ahead, so that a constant time-out costs no system call.
    #[inline]
    pub(crate) fn wait(&self) -> Option<Duration> {
        let remaining = self.remaining();
        if remaining.is_zero() {
            None
        } else if self.span - remaining < NEGLIGIBLE {
            Some(self.span)
        } else {
            Some(remaining)
        }
    }

    /// What is left; nothing once it has passed.
    pub(crate) fn remaining(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }
}
