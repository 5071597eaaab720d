//! Withdrawal of offers whose object does not exist any more.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use spandrel::net::sync::Arc;
use spandrel::{SystemException, SystemExceptionKind};

use crate::state::Edit;
use crate::trader::Trader;

/// The offers that are read at once.
const PAGE: usize = 100;

/// The settings of the withdrawal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PurgeOptions {
    /// The time between two rounds.
    pub interval: Duration,
    /// Whether offers of unreachable objects are withdrawn, too (default: no).
    pub removes_unreachable: bool,
    /// The time limit of the call on each object (default 5 seconds).
    pub timeout: Duration,
}

impl PurgeOptions {
    /// The defaults, with this interval.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, removes_unreachable: false, timeout: Duration::from_secs(5) }
    }
}

/// The thread that withdraws offers. It ends when this is dropped, after the call that it waits for.
#[derive(Debug)]
pub(crate) struct Purger {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Purger {
    pub(crate) fn start(trader: Arc<Trader>, options: PurgeOptions) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(options.interval) == Err(mpsc::RecvTimeoutError::Timeout) {
                match purge(&trader, &options, &stopped) {
                    Ok(0) => {}
                    Ok(withdrawn) => tracing::info!(withdrawn, "offers of objects that do not exist were withdrawn"),
                    Err(error) => tracing::warn!(%error, "the withdrawal of offers ended early"),
                }
            }
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Purger {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// Visits all offers. Returns the number of withdrawn ones.
fn purge(trader: &Trader, options: &PurgeOptions, stopped: &mpsc::Receiver<()>) -> Result<usize, SystemException> {
    let (mut withdrawn, mut last) = (0, None);
    loop {
        let page: Vec<_> = trader.shared.read(|state| state.offers.after(last).take(PAGE).cloned().collect());
        let Some(offer) = page.last() else { return Ok(withdrawn) };
        last = Some(offer.number);
        for offer in page {
            if stopped.try_recv() != Err(mpsc::TryRecvError::Empty) {
                return Ok(withdrawn);
            }
            let object = trader.orb.reference(offer.reference.clone()).with_timeout(Some(options.timeout));
            use SystemExceptionKind::{CommFailure, NoResponse, Timeout, Transient};
            let is_gone = object.non_existent().unwrap_or_else(|exception| {
                options.removes_unreachable
                    && matches!(exception.kind(), CommFailure | NoResponse | Timeout | Transient)
            });
            if !is_gone {
                continue;
            }
            trader.shared.change::<SystemException>(|state| {
                // An offer that was modified meanwhile still has the same object.
                let current = state.offers.get(offer.number).cloned();
                let edit = |current| Edit::Offer { number: offer.number, expected: Some(current), new: None };
                Ok(current.map(edit).into_iter().collect())
            })?;
            withdrawn += 1;
        }
    }
}
