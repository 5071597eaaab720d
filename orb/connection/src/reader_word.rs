//! The word that decides which thread reads an accepted connection.

/// No further request is accepted.
const CLOSING: u64 = 1 << 63;
/// A reactor's threads read, and not a thread that took over from them.
const REGISTERED: u64 = 1 << 62;
const COUNT: u64 = !(CLOSING | REGISTERED);

/// The reader role of an accepted connection, in one word: the number of the last step, whether a reactor has
/// the reading, and whether further requests are accepted.
///
/// The number is odd while the thread that has read a request runs its upcall. The change from odd to even
/// decides which thread reads next: the thread itself ([`end_upcall`](Self::end_upcall)), or another that
/// takes over from a long upcall ([`take_over`](Self::take_over)). All functions
/// are pure. The owner applies them to an atomic by compare-and-swap, so that one operation decides the
/// upcall, its reading and the registration together; `None` says that another thread came first.
///
/// | transition | even (a thread reads) | odd (an upcall runs) |
/// | --- | --- | --- |
/// | [`begin_upcall`](Self::begin_upcall) | odd; refused at once if closing | does not occur: only the reader begins |
/// | [`end_upcall`](Self::end_upcall) | lost: another reads | even, if it is the same upcall |
/// | [`take_over`](Self::take_over) | lost: the upcall has ended | even, not registered, if it is the same upcall |
/// | [`register`](Self::register) | registered | registered |
/// | [`unregister`](Self::unregister) | not registered | not registered |
/// | [`close`](Self::close) | closing | closing; the upcall is answered |
/// | [`close_unused`](Self::close_unused) | closing, if nothing was begun since | lost: it is in use |
///
/// A connection whose requests are run by other threads than the one that reads counts with the same word:
/// odd while a one-way runs that nothing may overtake ([`begin_beside`](Self::begin_beside) for requests that
/// run beside others, [`end_upcall`](Self::end_upcall) for a one-way that has ended or lasts).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReaderWord(u64);

impl ReaderWord {
    /// The step of [`begin_upcall`](Self::begin_upcall), as an addition to the atomic. It cannot fail.
    pub const STEP: u64 = 1;

    /// The word of a connection that a thread of its own is about to read.
    #[must_use]
    pub const fn of_own_thread() -> Self {
        Self(0)
    }

    /// The word of a connection that a reactor's threads are about to read.
    #[must_use]
    pub const fn of_reactor() -> Self {
        Self(REGISTERED)
    }

    /// Takes the word from the value of an atomic.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The value that an atomic holds for the word.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The number of the last begin or end of an upcall.
    #[inline]
    #[must_use]
    pub const fn number(self) -> UpcallNumber {
        UpcallNumber(self.0 & COUNT)
    }

    /// Whether an upcall keeps the reading, or a one-way the requests behind it.
    #[inline]
    #[must_use]
    pub const fn is_in_upcall(self) -> bool {
        self.0 % 2 == 1
    }

    /// Whether no further request is accepted.
    #[inline]
    #[must_use]
    pub const fn is_closing(self) -> bool {
        self.0 & CLOSING != 0
    }

    /// Whether a reactor's threads read.
    #[inline]
    #[must_use]
    pub const fn is_registered(self) -> bool {
        self.0 & REGISTERED != 0
    }

    /// The word without the mark of closing: equal for the same upcall or the same pause.
    #[inline]
    #[must_use]
    pub const fn without_closing(self) -> Self {
        Self(self.0 & !CLOSING)
    }

    /// The reading thread begins an upcall. If the result [is closing](Self::is_closing), the request is not
    /// acted on, and the step is ended by a second one.
    #[inline]
    #[must_use]
    pub const fn begin_upcall(self) -> Self {
        Self(self.0 + Self::STEP)
    }

    /// A request begins that runs beside others. The number shows that the connection is in use.
    #[inline]
    #[must_use]
    pub const fn begin_beside(self) -> Self {
        Self(self.0 + 2 * Self::STEP)
    }

    /// The thread of `upcall` reads on, unless another thread does. The connection may have begun to close
    /// meanwhile.
    #[inline]
    #[must_use]
    pub const fn end_upcall(self, upcall: Self) -> Option<Self> {
        if self.0 & !CLOSING == upcall.0 & !CLOSING { Some(Self(self.0 + Self::STEP)) } else { None }
    }

    /// The reading is taken from `upcall`: by a thread that serves no other connection, or for the reactor's other
    /// threads, which read once the connection is [registered](Self::register) anew.
    #[must_use]
    pub const fn take_over(self, upcall: Self) -> Option<Self> {
        if self.0 == upcall.0 { Some(Self((self.0 + Self::STEP) & !REGISTERED)) } else { None }
    }

    /// The reading thread, or one that took the reading from an upcall, leaves the reading to the reactor.
    #[must_use]
    pub const fn register(self) -> Self {
        Self(self.0 | REGISTERED)
    }

    /// The reading thread keeps the reading: the reactor has ended.
    #[must_use]
    pub const fn unregister(self) -> Self {
        Self(self.0 & !REGISTERED)
    }

    /// The word after a close: no further request is accepted.
    #[must_use]
    pub const fn close(self) -> Self {
        Self(self.0 | CLOSING)
    }

    /// The word after a close, unless a request has begun since the word was `unused`: `None` then.
    #[must_use]
    pub const fn close_unused(self, unused: Self) -> Option<Self> {
        if self.0 == unused.0 && !self.is_in_upcall() { Some(self.close()) } else { None }
    }
}

/// The number of the last step of a [`ReaderWord`], without its marks. It identifies an upcall among those of its
/// connection, and grows with each.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct UpcallNumber(pub(crate) u64);

impl UpcallNumber {
    /// The number before the first step.
    pub const NONE: Self = Self(0);

    /// The smallest number of a later step.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number of requests that have begun since the step `earlier`. Each request has two steps.
    #[must_use]
    pub const fn requests_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0).div_ceil(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word for each combination of closing, registration and parity.
    fn words() -> impl Iterator<Item = ReaderWord> {
        (0..8).map(|bits| {
            let mut word = ReaderWord(6 + bits % 2);
            word = if bits & 2 != 0 { word.register() } else { word };
            if bits & 4 != 0 { word.close() } else { word }
        })
    }

    #[test]
    fn an_upcall_begins_and_ends_with_the_reading() {
        for reading in words().filter(|word| !word.is_in_upcall()) {
            let upcall = reading.begin_upcall();
            assert!(upcall.is_in_upcall());
            let ended = upcall.end_upcall(upcall).expect("nothing came between");
            assert!(!ended.is_in_upcall());
            assert_eq!(ended.number(), reading.number().next().next());
            assert_eq!((ended.is_closing(), ended.is_registered()), (reading.is_closing(), reading.is_registered()));
        }
    }

    #[test]
    fn closing_does_not_take_the_reading_from_an_upcall() {
        for upcall in words().filter(|word| word.is_in_upcall()) {
            let closing = upcall.close();
            let ended = closing.end_upcall(upcall).expect("it is the same upcall");
            assert!(ended.is_closing() && !ended.is_in_upcall());
        }
    }

    #[test]
    fn only_one_thread_takes_the_reading_of_an_upcall() {
        for upcall in words().filter(|word| word.is_in_upcall()) {
            for taken in [upcall.take_over(upcall), upcall.end_upcall(upcall)] {
                let taken = taken.expect("the first one takes it");
                assert!(!taken.is_in_upcall());
                assert_eq!(taken.end_upcall(upcall), None);
                assert_eq!(taken.take_over(upcall), None);
                // Nor while a reactor reads in its stead, nor during the next upcall of the thread that took it.
                for next in [taken.register(), taken.begin_upcall(), taken.register().begin_upcall()] {
                    assert_eq!(next.end_upcall(upcall), None);
                    assert_eq!(next.take_over(upcall), None);
                }
            }
        }
    }

    #[test]
    fn taking_over_ends_the_registration_until_the_next_one() {
        for upcall in words().filter(|word| word.is_in_upcall()) {
            let taken = upcall.take_over(upcall).expect("it is the upcall");
            assert!(!taken.is_registered());
            assert!(taken.register().is_registered());
            assert_eq!(taken.register().number(), taken.number());
        }
    }

    #[test]
    fn an_upcall_that_was_seen_before_closing_is_not_taken_over_after_it() {
        for upcall in words().filter(|word| word.is_in_upcall() && !word.is_closing()) {
            assert_eq!(upcall.close().take_over(upcall), None);
        }
    }

    #[test]
    fn the_registration_changes_neither_the_upcall_nor_closing() {
        for word in words() {
            let (registered, unregistered) = (word.register(), word.unregister());
            assert!(registered.is_registered() && !unregistered.is_registered());
            for changed in [registered, unregistered] {
                assert_eq!((changed.number(), changed.is_closing()), (word.number(), word.is_closing()));
            }
        }
    }

    #[test]
    fn a_connection_in_use_is_not_closed_as_unused() {
        for word in words() {
            let closed = word.close_unused(word);
            assert_eq!(closed, (!word.is_in_upcall()).then(|| word.close()));
            assert_eq!(word.begin_upcall().close_unused(word), None);
            assert_eq!(word.begin_beside().close_unused(word), None);
        }
    }

    #[test]
    fn a_new_word_is_read_by_its_thread_or_by_the_reactor() {
        let (own, reactor) = (ReaderWord::of_own_thread(), ReaderWord::of_reactor());
        for word in [own, reactor] {
            assert!(!word.is_in_upcall() && !word.is_closing());
            assert_eq!((word.number(), ReaderWord::from_bits(word.bits())), (UpcallNumber::NONE, word));
        }
        assert!(!own.is_registered() && reactor.is_registered());
        assert_eq!((own.register(), reactor.unregister()), (reactor, own));
    }

    #[test]
    fn the_step_of_an_upcall_is_an_addition_to_the_atomic() {
        for word in words() {
            assert_eq!(word.begin_upcall().bits(), word.bits() + ReaderWord::STEP);
            assert_eq!(word.begin_beside().number(), word.number().next().next());
            let plain = word.without_closing();
            assert_eq!((plain.is_closing(), plain.close().is_closing()), (false, true));
            assert_eq!((plain.number(), plain.is_registered()), (word.number(), word.is_registered()));
        }
    }

    #[test]
    fn a_request_that_has_begun_counts_as_one_that_has_ended() {
        let none = ReaderWord::of_own_thread();
        let first = none.begin_upcall();
        let second = first.end_upcall(first).expect("it is the upcall").begin_upcall();
        let requests = |word: ReaderWord, earlier: ReaderWord| word.number().requests_since(earlier.number());
        assert_eq!([none, first, second, second.begin_beside()].map(|word| requests(word, none)), [0, 1, 2, 3]);
        assert_eq!((requests(second, first), requests(first, second)), (1, 0));
        assert!(second.close().number() > first.number() && second.register().number() == second.number());
    }

    #[test]
    fn a_request_beside_others_keeps_the_parity() {
        for word in words() {
            assert_eq!(word.begin_beside().is_in_upcall(), word.is_in_upcall());
            assert_ne!(word.begin_beside().number(), word.number());
        }
    }
}
