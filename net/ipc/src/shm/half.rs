//! One direction of a connection, as one side has it: a ring's producer or consumer, who may use it in this process, and how to wait
//! for the other side.
//!
//! Works on any [`Host`], so that the model checker runs the same code as the connection.

use std::io::{self, IoSlice, IoSliceMut};
use std::time::Duration;

use spandrel_sync::Mutex;
use spandrel_sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::patience::Patience;
use super::ring::{self, Call, Consumer, Corrupt, Ground, POLLING, Producer, QUIT, Step, WAITING, Word};
use crate::deadline::Deadline;

/// What a half needs of the system.
pub(crate) trait Host {
    /// What the ring lies on.
    type Ground: Ground;

    /// Sleeps while `word` is `expected`, for at most `time`; may also return earlier.
    fn sleep(&self, word: &<Self::Ground as Ground>::Word, expected: u32, time: Duration);

    /// Wakes who sleeps on `word`.
    fn wake(&self, word: &<Self::Ground as Ground>::Word);

    /// Rings the doorbell of the peer.
    fn ring(&self);

    /// Whether the peer's process or its end of the connection is gone.
    fn is_peer_gone(&self) -> bool;

    /// Whether it was found before that the peer is gone; costs nothing.
    fn is_peer_known_gone(&self) -> bool;

    /// Whether the peer seems to run on the processor on which this thread runs.
    fn is_peer_near(&self) -> bool;
}

/// How long the peer's death may remain unnoticed by somebody who waits for it.
const SLICE: Duration = Duration::from_millis(200);

/// Whether and how long to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// Not at all.
    No,
    /// So long from the moment on at which there is nothing to do but wait; for ever if there is no time.
    For(Option<Duration>),
    /// Until then.
    Until(Deadline),
}

impl Wait {
    fn deadline(&mut self) -> Option<Deadline> {
        if let Self::For(time) = *self {
            *self = Self::Until(Deadline::after(time)); // the clock is read by those alone who wait
        }
        match *self {
            Self::Until(deadline) => Some(deadline),
            _ => None,
        }
    }
}

/// Why octets could not be transferred.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It would have to wait.
    WouldBlock,
    /// The time ran out.
    TimedOut,
    /// This side has ended this direction, or the peer has in an orderly way.
    Ended,
    /// The peer is gone without a word.
    Gone,
    /// The peer's words cannot be.
    Corrupt,
}

impl From<Corrupt> for Stop {
    fn from(_: Corrupt) -> Self {
        Self::Corrupt
    }
}

/// The producer's or the consumer's half of a ring.
#[derive(Debug)]
pub(crate) struct Half<E> {
    /// Held while transferring, and while waiting to.
    end: Mutex<(E, Patience)>,
    /// The position of `end`, for those who want to know without transferring.
    position: AtomicU32,
    /// This side wants no more of it.
    is_shut: AtomicBool,
}

/// An end of a ring, for what is the same on both sides.
pub(crate) trait End {
    /// The word that tells that something can be transferred again.
    fn signal<G: Ground>(ground: &G) -> &G::Word;
    /// The word that this side publishes.
    fn published<G: Ground>(ground: &G) -> &G::Word;
    fn position(&self) -> u32;
    /// Whether an end at `position` has something to do, or may have.
    fn is_ready<G: Ground>(ground: &G, position: u32) -> bool;
    fn finish<G: Ground>(&mut self, ground: &G) -> Call;
}

impl End for Producer {
    fn signal<G: Ground>(ground: &G) -> &G::Word {
        ground.head()
    }
    fn published<G: Ground>(ground: &G) -> &G::Word {
        ground.tail()
    }
    fn position(&self) -> u32 {
        Producer::position(self)
    }
    fn is_ready<G: Ground>(ground: &G, position: u32) -> bool {
        ring::is_writable(ground.head().value(), position, ground.capacity()) || ground.tail().value() & QUIT != 0
    }
    fn finish<G: Ground>(&mut self, ground: &G) -> Call {
        self.end(ground)
    }
}

impl End for Consumer {
    fn signal<G: Ground>(ground: &G) -> &G::Word {
        ground.tail()
    }
    fn published<G: Ground>(ground: &G) -> &G::Word {
        ground.head()
    }
    fn position(&self) -> u32 {
        Consumer::position(self)
    }
    fn is_ready<G: Ground>(ground: &G, position: u32) -> bool {
        ring::is_readable(ground.tail().value(), position)
    }
    fn finish<G: Ground>(&mut self, ground: &G) -> Call {
        self.end(ground)
    }
}

impl<E: End + Default> Half<E> {
    /// At the beginning; waits spin as `patience` says.
    pub(crate) fn new(patience: Patience) -> Self {
        Self { end: Mutex::new((E::default(), patience)), position: AtomicU32::new(0), is_shut: AtomicBool::new(false) }
    }

    /// Whether this side has ended it.
    pub(crate) fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::Acquire)
    }

    /// Where this side was after its last transfer; another thread may be ahead already.
    pub(crate) fn position(&self) -> u32 {
        self.position.load(Ordering::Acquire)
    }

    /// Whether a transfer would not have to wait, as far as can be seen without one.
    pub(crate) fn is_ready<G: Ground>(&self, ground: &G) -> bool {
        E::is_ready(ground, self.position()) || self.is_shut()
    }

    /// Asks the peer to ring once this may be ready; tells whether it is already, and then does not ask.
    pub(crate) fn announce<G: Ground>(&self, ground: &G) -> bool {
        let signal = E::signal(ground);
        signal.set(POLLING);
        let is_ready = self.is_ready(ground);
        if is_ready {
            signal.clear(POLLING);
        }
        is_ready
    }

    /// Ends it, also for those who wait in other threads.
    pub(crate) fn shut<H: Host>(&self, host: &H, ground: &H::Ground) {
        self.is_shut.store(true, Ordering::SeqCst);
        // Whoever looked before the store sleeps on a word with the flag, or is about to: that fails without it.
        let signal = E::signal(ground);
        if signal.clear(WAITING) & WAITING != 0 {
            host.wake(signal);
        }
        let call = self.end.lock().0.finish(ground);
        self.notify(host, ground, call);
    }

    /// Transfers by `step`, which is tried until it can; waits in between as `wait` says.
    #[inline]
    fn transfer<H: Host>(
        &self,
        host: &H,
        ground: &H::Ground,
        mut wait: Wait,
        mut step: impl FnMut(&mut E) -> Result<Step, Corrupt>,
    ) -> Result<usize, Stop> {
        let mut guard = match self.end.try_lock() {
            Some(guard) => guard,
            None => match wait.deadline().ok_or(Stop::WouldBlock)?.left() {
                None => self.end.lock(),
                Some(left) => self.end.try_lock_for(left).ok_or(Stop::TimedOut)?,
            },
        };
        let (end, patience) = &mut *guard;
        let mut is_gone = false;
        loop {
            match step(end)? {
                Step::Done(octets, call) => {
                    self.position.store(end.position(), Ordering::Release);
                    drop(guard);
                    self.notify(host, ground, call);
                    return Ok(octets);
                }
                Step::Ended => return Err(Stop::Ended),
                Step::Blocked(_) if self.is_shut() => return Err(Stop::Ended),
                Step::Blocked(_) if is_gone => return Err(Stop::Gone),
                Step::Blocked(seen) => match wait.deadline() {
                    Some(deadline) => {
                        is_gone = self.await_change(host, E::signal(ground), seen, patience, deadline)?;
                    }
                    // What the peer did before it went is to be seen, so once more.
                    None if host.is_peer_known_gone() => is_gone = true,
                    None if patience.is_time_to_check() && host.is_peer_gone() => is_gone = true,
                    None => return Err(Stop::WouldBlock),
                },
            }
        }
    }

    /// Waits until `signal` no longer says what was seen, or there is another reason to look again; tells whether the peer is gone.
    fn await_change<H: Host>(
        &self,
        host: &H,
        signal: &<H::Ground as Ground>::Word,
        seen: u32,
        patience: &mut Patience,
        deadline: Deadline,
    ) -> Result<bool, Stop> {
        let left = deadline.left();
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Stop::TimedOut);
        }
        if host.is_peer_known_gone() {
            return Ok(true);
        }
        let is_changed = || !ring::is_same(signal.value(), seen) || self.is_shut();
        if patience.watch(|| host.is_peer_near(), is_changed) {
            return Ok(false);
        }
        let announced = signal.set(WAITING) | WAITING;
        let mut is_gone = false;
        if ring::is_same(announced, seen) && !self.is_shut() {
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            patience.sleep(|| host.sleep(signal, announced, slice));
            is_gone = ring::is_same(signal.value(), seen) && host.is_peer_gone();
        }
        if signal.value() & WAITING != 0 {
            signal.clear(WAITING); // whom nobody woke need not be woken later
        }
        Ok(is_gone)
    }

    #[inline]
    fn notify<H: Host>(&self, host: &H, ground: &H::Ground, call: Call) {
        if call.wake {
            host.wake(E::published(ground));
        }
        if call.ring {
            host.ring();
        }
    }
}

impl Half<Producer> {
    /// Sends some of `slices`, which are not all empty.
    #[inline]
    pub(crate) fn send<H: Host>(
        &self,
        host: &H,
        ground: &H::Ground,
        slices: &[IoSlice<'_>],
        wait: Wait,
    ) -> Result<usize, Stop> {
        if self.is_shut() {
            return Err(Stop::Ended);
        }
        self.transfer(host, ground, wait, |producer| producer.push(ground, slices))
    }
}

impl Half<Consumer> {
    /// Receives some octets into `slices`, which are not all empty.
    #[inline]
    pub(crate) fn recv<H: Host>(
        &self,
        host: &H,
        ground: &H::Ground,
        slices: &mut [IoSliceMut<'_>],
        wait: Wait,
    ) -> Result<usize, Stop> {
        self.transfer(host, ground, wait, |consumer| consumer.pop(ground, slices))
    }
}

impl Stop {
    /// As an error of a stream; the end itself is the caller's to name.
    pub(crate) fn into_error(self) -> io::Error {
        match self {
            Self::WouldBlock => io::ErrorKind::WouldBlock.into(),
            Self::TimedOut => io::ErrorKind::TimedOut.into(),
            Self::Ended => io::ErrorKind::BrokenPipe.into(),
            Self::Gone => io::ErrorKind::ConnectionReset.into(),
            Self::Corrupt => io::Error::new(
                io::ErrorKind::InvalidData,
                "the peer published a position that cannot be in the ring of this shared memory connection",
            ),
        }
    }
}
