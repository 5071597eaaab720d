//! One direction of a connection on one side: a ring's producer or consumer, its lock, and the waits for the
//! other side.
//!
//! Works on any [`Host`], so that the model checker runs the same code as the connection.

use std::io::{self, IoSlice, IoSliceMut};
use std::time::Duration;

use spandrel_sync::Mutex;
use spandrel_sync::atomic::{AtomicBool, AtomicU32, Ordering};
use spandrel_sync::time::Deadline;

use super::adaptive_wait::AdaptiveWait;
use super::ring::{self, Consumer, Corrupt, POLLING, Producer, QUIT, RingMemory, Step, WAITING, Wakeups, Word};

/// The services of the system that a half needs.
pub(crate) trait Host {
    /// The memory of the ring.
    type RingMemory: RingMemory;

    /// Sleeps while `word` is `expected`, for at most `time`; may also return earlier.
    fn sleep(&self, word: &<Self::RingMemory as RingMemory>::Word, expected: u32, time: Duration);

    /// Wakes the sleepers on `word`.
    fn wake(&self, word: &<Self::RingMemory as RingMemory>::Word);

    /// Rings the peer's doorbell.
    fn ring(&self);

    /// Whether the peer's process has ended or its end of the connection is closed.
    fn is_peer_gone(&self) -> bool;

    /// Whether the peer was found closed before; costs nothing.
    fn is_peer_known_gone(&self) -> bool;

    /// Whether the peer seems to run on this thread's processor.
    fn is_peer_on_same_cpu(&self) -> bool;
}

/// The longest time for which a waiting thread misses the peer's death.
const SLICE: Duration = Duration::from_millis(200);

/// The time limit of a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// Returns `WouldBlock` in place of a wait.
    No,
    /// Up to that long, starting when the wait begins; without a limit for `None`.
    For(Option<Duration>),
    /// Waits until the deadline at most.
    Until(Deadline),
}

impl Wait {
    fn deadline(&mut self) -> Option<Deadline> {
        if let Self::For(time) = *self {
            *self = Self::Until(Deadline::after(time)); // the clock is read only when a wait begins
        }
        match *self {
            Self::Until(deadline) => Some(deadline),
            _ => None,
        }
    }
}

/// The reason why octets could not be transferred.
#[derive(Debug)]
pub(crate) enum StopReason {
    /// It would have to wait.
    WouldBlock,
    /// The time ran out.
    TimedOut,
    /// This side has ended this direction, or the peer has in an orderly way.
    Ended,
    /// The peer ended without closing.
    Gone,
    /// The peer published an impossible position.
    Corrupt,
}

impl From<Corrupt> for StopReason {
    fn from(_: Corrupt) -> Self {
        Self::Corrupt
    }
}

/// The producer's or the consumer's half of a ring.
#[derive(Debug)]
pub(crate) struct Half<E> {
    /// Held while transferring, and while waiting to.
    end: Mutex<(E, AdaptiveWait)>,
    /// The position of `end`, readable without the lock.
    position: AtomicU32,
    /// This side has shut this direction down.
    is_shut: AtomicBool,
}

/// The operations of a ring's end that are the same on both sides.
pub(crate) trait End {
    /// The word whose change makes a transfer possible again.
    fn signal<G: RingMemory>(memory: &G) -> &G::Word;
    /// The word that this side publishes.
    fn published<G: RingMemory>(memory: &G) -> &G::Word;
    fn position(&self) -> u32;
    /// Whether a transfer at `position` may be possible.
    fn is_ready<G: RingMemory>(memory: &G, position: u32) -> bool;
    fn finish<G: RingMemory>(&mut self, memory: &G) -> Wakeups;
}

impl End for Producer {
    fn signal<G: RingMemory>(memory: &G) -> &G::Word {
        memory.head()
    }
    fn published<G: RingMemory>(memory: &G) -> &G::Word {
        memory.tail()
    }
    fn position(&self) -> u32 {
        Producer::position(self)
    }
    fn is_ready<G: RingMemory>(memory: &G, position: u32) -> bool {
        ring::is_writable(memory.head().value(), position, memory.capacity()) || memory.tail().value() & QUIT != 0
    }
    fn finish<G: RingMemory>(&mut self, memory: &G) -> Wakeups {
        self.end(memory)
    }
}

impl End for Consumer {
    fn signal<G: RingMemory>(memory: &G) -> &G::Word {
        memory.tail()
    }
    fn published<G: RingMemory>(memory: &G) -> &G::Word {
        memory.head()
    }
    fn position(&self) -> u32 {
        Consumer::position(self)
    }
    fn is_ready<G: RingMemory>(memory: &G, position: u32) -> bool {
        ring::is_readable(memory.tail().value(), position)
    }
    fn finish<G: RingMemory>(&mut self, memory: &G) -> Wakeups {
        self.end(memory)
    }
}

impl<E: End + Default> Half<E> {
    /// An unused half; `adaptive_wait` controls its spinning.
    pub(crate) fn new(adaptive_wait: AdaptiveWait) -> Self {
        Self {
            end: Mutex::new((E::default(), adaptive_wait)),
            position: AtomicU32::new(0),
            is_shut: AtomicBool::new(false),
        }
    }

    /// Whether this side has shut this direction down.
    pub(crate) fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::Acquire)
    }

    /// The position after the last transfer; another thread may have advanced it since.
    pub(crate) fn position(&self) -> u32 {
        self.position.load(Ordering::Acquire)
    }

    /// Whether a transfer would not have to wait, as far as the shared words show.
    pub(crate) fn is_ready<G: RingMemory>(&self, memory: &G) -> bool {
        E::is_ready(memory, self.position()) || self.is_shut()
    }

    /// Asks the peer to ring once this half may be ready. If it is ready already, returns true and asks
    /// nothing.
    pub(crate) fn announce<G: RingMemory>(&self, memory: &G) -> bool {
        let signal = E::signal(memory);
        signal.set(POLLING);
        let is_ready = self.is_ready(memory);
        if is_ready {
            signal.clear(POLLING);
        }
        is_ready
    }

    /// Shuts this direction down, also for threads that wait in it.
    pub(crate) fn shut<H: Host>(&self, host: &H, memory: &H::RingMemory) {
        self.is_shut.store(true, Ordering::SeqCst);
        // A thread that checked before the store sleeps on a word with the flag, or is about to: that sleep
        // fails once the flag is gone.
        let signal = E::signal(memory);
        if signal.clear(WAITING) & WAITING != 0 {
            host.wake(signal);
        }
        let wakeups = self.end.lock().0.finish(memory);
        self.notify(host, memory, wakeups);
    }

    /// Transfers with `step`, retried until it succeeds; waits in between as `wait` allows.
    #[inline]
    fn transfer<H: Host>(
        &self,
        host: &H,
        memory: &H::RingMemory,
        mut wait: Wait,
        mut step: impl FnMut(&mut E) -> Result<Step, Corrupt>,
    ) -> Result<usize, StopReason> {
        let mut guard = match self.end.try_lock() {
            Some(guard) => guard,
            None => match wait.deadline().ok_or(StopReason::WouldBlock)?.remaining() {
                None => self.end.lock(),
                Some(left) => self.end.try_lock_for(left).ok_or(StopReason::TimedOut)?,
            },
        };
        let (end, adaptive_wait) = &mut *guard;
        let mut is_peer_closed = false;
        loop {
            match step(end)? {
                Step::Done(octets, wakeups) => {
                    self.position.store(end.position(), Ordering::Release);
                    drop(guard);
                    self.notify(host, memory, wakeups);
                    return Ok(octets);
                }
                Step::Ended => return Err(StopReason::Ended),
                Step::Blocked(_) if self.is_shut() => return Err(StopReason::Ended),
                Step::Blocked(_) if is_peer_closed => return Err(StopReason::Gone),
                Step::Blocked(seen) => match wait.deadline() {
                    Some(deadline) => {
                        is_peer_closed = self.await_change(host, E::signal(memory), seen, adaptive_wait, deadline)?;
                    }
                    // The peer may have published something before it ended, so once more.
                    None if host.is_peer_known_gone() => is_peer_closed = true,
                    None if adaptive_wait.is_time_to_check() && host.is_peer_gone() => is_peer_closed = true,
                    None => return Err(StopReason::WouldBlock),
                },
            }
        }
    }

    /// Waits until `signal` differs from the value seen, or there is another reason to check again; returns
    /// whether the peer has ended.
    fn await_change<H: Host>(
        &self,
        host: &H,
        signal: &<H::RingMemory as RingMemory>::Word,
        seen: u32,
        adaptive_wait: &mut AdaptiveWait,
        deadline: Deadline,
    ) -> Result<bool, StopReason> {
        let left = deadline.remaining();
        if left.is_some_and(|left| left.is_zero()) {
            return Err(StopReason::TimedOut);
        }
        if host.is_peer_known_gone() {
            return Ok(true);
        }
        let is_changed = || !ring::is_unchanged(signal.value(), seen) || self.is_shut();
        if adaptive_wait.spin_or_yield(|| host.is_peer_on_same_cpu(), is_changed) {
            return Ok(false);
        }
        let announced = signal.set(WAITING) | WAITING;
        let mut is_peer_closed = false;
        if ring::is_unchanged(announced, seen) && !self.is_shut() {
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            adaptive_wait.sleep(|| host.sleep(signal, announced, slice));
            is_peer_closed = ring::is_unchanged(signal.value(), seen) && host.is_peer_gone();
        }
        if signal.value() & WAITING != 0 {
            signal.clear(WAITING); // not woken: no wake-up is needed any more
        }
        Ok(is_peer_closed)
    }

    #[inline]
    fn notify<H: Host>(&self, host: &H, memory: &H::RingMemory, wakeups: Wakeups) {
        if wakeups.wake {
            host.wake(E::published(memory));
        }
        if wakeups.ring {
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
        memory: &H::RingMemory,
        slices: &[IoSlice<'_>],
        wait: Wait,
    ) -> Result<usize, StopReason> {
        if self.is_shut() {
            return Err(StopReason::Ended);
        }
        self.transfer(host, memory, wait, |producer| producer.push(memory, slices))
    }
}

impl Half<Consumer> {
    /// Receives some octets into `slices`, which are not all empty.
    #[inline]
    pub(crate) fn recv<H: Host>(
        &self,
        host: &H,
        memory: &H::RingMemory,
        slices: &mut [IoSliceMut<'_>],
        wait: Wait,
    ) -> Result<usize, StopReason> {
        self.transfer(host, memory, wait, |consumer| consumer.pop(memory, slices))
    }
}

impl StopReason {
    /// Converts it to an error of a stream; the caller handles the orderly end.
    pub(crate) fn into_error(self) -> io::Error {
        match self {
            Self::WouldBlock => io::ErrorKind::WouldBlock.into(),
            Self::TimedOut => io::ErrorKind::TimedOut.into(),
            Self::Ended => io::ErrorKind::BrokenPipe.into(),
            Self::Gone => io::ErrorKind::ConnectionReset.into(),
            Self::Corrupt => io::Error::new(
                io::ErrorKind::InvalidData,
                "the peer published an impossible position in the ring of this shared memory connection",
            ),
        }
    }
}
