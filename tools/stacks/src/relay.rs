//! A network link with faults: a relay of frames between two TAP devices, with delay, loss, duplication and another
//! order.
//!
//! It stands in for the kernel's `netem`, which not every kernel has. [`Impairment`] decides on each frame, without a
//! device or a clock; [`run`] moves the frames. The faults are pseudo-random: the same seed and frames have the same
//! outcome.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use serde::Serialize;
use smoltcp::phy::{Device as _, Medium, RxToken as _, TunTapInterface, TxToken as _};

use crate::capture::Capture;
use crate::device::Faults;

/// The token of the end of standard input; those of the devices are 0 and 1.
const END: Token = Token(2);
/// The greatest number of frames in the relay. Further ones are lost, as in the queue of an interface.
const CAPACITY: usize = 10_000;

/// The delay and the faults of a link, the same in both directions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Losses, duplicates and late frames.
    pub faults: Faults,
    /// The time that each frame spends on the link.
    pub delay: Duration,
    /// The additional delay of late frames.
    pub lateness: Duration,
    /// The seed that repeats the same faults.
    pub seed: u64,
}

/// Counts of frames, of both directions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Frames that came from a device.
    pub received: u64,
    /// Frames that were lost by decision.
    pub lost: u64,
    /// Frames that were lost because the relay was full.
    pub overflowed: u64,
    /// Additional copies of frames.
    pub duplicated: u64,
    /// Frames that were sent after a later one of the same direction.
    pub reordered: u64,
    /// Frames that were sent, with additional copies.
    pub sent: u64,
}

/// A frame that waits for the end of its delay.
#[derive(Debug)]
struct Delayed {
    /// The device to which it goes, 0 or 1.
    to: usize,
    frame: Vec<u8>,
}

/// The frames in the relay, and the decisions on them.
#[derive(Debug)]
pub struct Impairment {
    settings: Settings,
    random: fastrand::Rng,
    /// By the time at which they are sent, and a number in the order of arrival.
    queue: BTreeMap<(Duration, u64), Delayed>,
    next_number: u64,
    /// The highest number that was sent to each device.
    highest: [Option<u64>; 2],
    counts: Counts,
}

impl Impairment {
    /// A link with these properties.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let random = fastrand::Rng::with_seed(settings.seed);
        Self { settings, random, queue: BTreeMap::new(), next_number: 0, highest: [None; 2], counts: Counts::default() }
    }

    /// Takes a frame for the device `to` (0 or 1).
    pub fn add(&mut self, to: usize, frame: &[u8], now: Duration) {
        self.counts.received += 1;
        let Faults { loss, duplication, reordering } = self.settings.faults;
        if self.happens(loss) {
            self.counts.lost += 1;
            return;
        }
        let copies = 1 + u64::from(self.happens(duplication));
        for copy in 0..copies {
            let lateness = if self.happens(reordering) { self.settings.lateness } else { Duration::ZERO };
            if self.queue.len() == CAPACITY {
                self.counts.overflowed += 1;
                continue;
            }
            self.counts.duplicated += u64::from(copy > 0);
            let key = (now + self.settings.delay + lateness, self.next_number);
            self.queue.insert(key, Delayed { to, frame: frame.to_vec() });
            self.next_number += 1;
        }
    }

    /// The next frame whose delay is over at this time, with the device to which it goes.
    pub fn take(&mut self, now: Duration) -> Option<(usize, Vec<u8>)> {
        let first = self.queue.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((_, number), Delayed { to, frame }) = first.remove_entry();
        let highest = &mut self.highest[to];
        if highest.is_some_and(|highest| highest > number) {
            self.counts.reordered += 1;
        } else {
            *highest = Some(number);
        }
        self.counts.sent += 1;
        Some((to, frame))
    }

    /// The time at which the next frame is to be sent.
    #[must_use]
    pub fn next_time(&self) -> Option<Duration> {
        self.queue.first_key_value().map(|((time, _), _)| *time)
    }

    /// The numbers of frames so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn happens(&mut self, percent: u8) -> bool {
        self.random.u8(0..100) < percent
    }
}

/// Relays frames between two devices until the end of standard input. Delays are exact to about a millisecond. All
/// frames that come from a device, also those that are lost, are written to `capture`. `ready` is called when the relay
/// has begun.
///
/// # Errors
/// A device that cannot be opened; a capture that cannot be written.
pub fn run(
    names: [&str; 2],
    settings: Settings,
    capture: Option<&Path>,
    ready: impl FnOnce() -> io::Result<()>,
) -> io::Result<Counts> {
    let mut devices = [open(names[0])?, open(names[1])?];
    let mut capture = capture.map(Capture::create).transpose()?;
    let mut poll = Poll::new()?;
    for (number, device) in devices.iter().enumerate() {
        poll.registry().register(&mut SourceFd(&device.as_raw_fd()), Token(number), Interest::READABLE)?;
    }
    let waker = Arc::new(Waker::new(poll.registry(), END)?);
    // The waker has to exist until `poll` has seen its event.
    let waking = Arc::clone(&waker);
    thread::spawn(move || {
        // An error is an end, too.
        _ = io::stdin().lock().read_to_end(&mut Vec::new());
        _ = waking.wake();
    });
    ready()?;
    let (begin, mut link, mut events) = (Instant::now(), Impairment::new(settings), Events::with_capacity(8));
    loop {
        let now = begin.elapsed();
        let at = smoltcp::time::Instant::from_micros(now.as_micros() as i64);
        while let Some((to, frame)) = link.take(now) {
            if let Some(token) = devices[to].transmit(at) {
                token.consume(frame.len(), |octets| octets.copy_from_slice(&frame));
            }
        }
        let timeout = link.next_time().map(|time| time.saturating_sub(begin.elapsed()));
        match poll.poll(&mut events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ if events.iter().any(|event| event.token() == END) => {
                drop(waker);
                return Ok(link.counts());
            }
            _ => {}
        }
        // Readiness is reported once: each device is read until it has no frame.
        for (from, device) in devices.iter_mut().enumerate() {
            while let Some((token, _)) = device.receive(at) {
                token.consume(|frame| {
                    link.add(1 - from, frame, begin.elapsed());
                    capture.as_mut().map_or(Ok(()), |capture| capture.add(frame))
                })?;
            }
        }
    }
}

fn open(name: &str) -> io::Result<TunTapInterface> {
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("cannot open the TAP device {name}: {error}"));
    TunTapInterface::new(name, Medium::Ethernet).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: u64 = 2000;
    const MILLI: Duration = Duration::from_millis(1);

    /// Sends numbered frames to device 1, one each millisecond; returns the numbers in the order of arrival.
    fn relayed(settings: Settings) -> (Vec<u64>, Counts) {
        let (mut link, mut arrived) = (Impairment::new(settings), Vec::new());
        let number = |(to, frame): (usize, Vec<u8>)| {
            assert_eq!(to, 1);
            u64::from_le_bytes(frame.try_into().unwrap())
        };
        for frame in 0..FRAMES {
            let now = MILLI * frame as u32;
            link.add(1, &frame.to_le_bytes(), now);
            arrived.extend(std::iter::from_fn(|| link.take(now)).map(number));
        }
        arrived.extend(std::iter::from_fn(|| link.take(Duration::MAX)).map(number));
        (arrived, link.counts())
    }

    fn settings(loss: u8, duplication: u8, reordering: u8) -> Settings {
        let faults = Faults { loss, duplication, reordering };
        Settings { faults, delay: 5 * MILLI, lateness: 3 * MILLI, seed: 7 }
    }

    #[test]
    fn a_link_without_faults_delays_all_frames_by_the_same_time() {
        let (arrived, counts) = relayed(settings(0, 0, 0));
        assert_eq!(arrived, (0..FRAMES).collect::<Vec<_>>());
        assert_eq!(counts, Counts { received: FRAMES, sent: FRAMES, ..Counts::default() });
        let mut link = Impairment::new(settings(0, 0, 0));
        link.add(0, b"frame", 2 * MILLI);
        assert_eq!(link.next_time(), Some(7 * MILLI));
        assert_eq!(link.take(7 * MILLI - Duration::from_nanos(1)), None);
        assert_eq!(link.take(7 * MILLI), Some((0, b"frame".to_vec())));
        assert_eq!((link.next_time(), link.take(Duration::MAX)), (None, None));
    }

    #[test]
    fn frames_are_lost_duplicated_and_reordered_as_often_as_set() {
        let is_near = |count: u64, percent: u64| count.abs_diff(FRAMES * percent / 100) < FRAMES / 40;
        let (arrived, counts) = relayed(settings(10, 0, 0));
        assert!(is_near(counts.lost, 10) && arrived.len() as u64 == FRAMES - counts.lost, "{counts:?}");
        assert!(arrived.is_sorted() && counts.reordered == 0, "{counts:?}");
        let (arrived, counts) = relayed(settings(0, 10, 0));
        assert!(is_near(counts.duplicated, 10) && arrived.len() as u64 == FRAMES + counts.duplicated, "{counts:?}");
        let (mut arrived, counts) = relayed(settings(0, 0, 10));
        assert!(is_near(counts.reordered, 10) && !arrived.is_sorted(), "{counts:?}");
        arrived.sort_unstable();
        assert_eq!(arrived, (0..FRAMES).collect::<Vec<_>>(), "none is lost");
    }

    #[test]
    fn the_same_seed_has_the_same_faults() {
        let base = settings(5, 5, 5);
        assert_eq!(relayed(base), relayed(base));
        assert_ne!(relayed(base).0, relayed(Settings { seed: 8, ..base }).0);
    }

    #[test]
    fn frames_beyond_the_capacity_are_lost() {
        let mut link = Impairment::new(settings(0, 0, 0));
        (0..CAPACITY + 3).for_each(|_| link.add(1, b"frame", Duration::ZERO));
        assert_eq!(link.counts().overflowed, 3);
        assert_eq!(std::iter::from_fn(|| link.take(Duration::MAX)).count(), CAPACITY);
    }
}
