//! The wait of a thread for its one connection and for the work that senders post to it.
//!
//! A thread whose service has no sender waits in its transfers instead.

use std::io;
use std::time::Duration;

use spandrel_ipc::{Interest, Pollable, Prepared};

use crate::demux::{self, Demultiplexer};
use crate::wakeup::Wakeup;
use crate::{Backend, Trigger, sys};

/// Waits for one endpoint, or a wake-up by another thread.
#[derive(Debug)]
pub(crate) struct ThreadWait {
    demux: Box<dyn Demultiplexer>,
    wakeup: Wakeup,
}

impl ThreadWait {
    pub(crate) fn new() -> io::Result<Self> {
        demux::open(Backend::Auto).map(Self::over)
    }

    /// Over a given demultiplexer.
    pub(crate) fn over(demux: Box<dyn Demultiplexer>) -> Self {
        Self { demux, wakeup: Wakeup::new() }
    }

    /// Ends the wait of the thread, which finds the work that the caller has added before.
    pub(crate) fn wake(&self) {
        if self.wakeup.nudge()
            && let Err(error) = self.demux.wake()
        {
            tracing::error!(%error, "a thread that serves a connection cannot be woken");
        }
    }

    /// Waits until `endpoint` is ready for some of `wanted`, there is work, or the timeout passes, and
    /// returns the ready events. To be called by the serving thread only, always with the same endpoint;
    /// `armed` is its interest in the demultiplexer, [`Interest::NONE`] at first.
    pub(crate) fn wait(
        &self,
        endpoint: &dyn Pollable,
        armed: &mut Interest,
        wanted: Interest,
        timeout: Option<Duration>,
        has_work: impl FnOnce() -> bool,
    ) -> io::Result<Interest> {
        let mut wait_for = wanted;
        if !endpoint.is_plain() {
            let Prepared { wait_for: prepared, mut ready } = endpoint.prepare(wanted);
            if endpoint.pending() {
                ready |= Interest::INPUT;
            }
            if ready.intersects(wanted) {
                return Ok(ready & wanted);
            }
            wait_for = prepared;
        }
        self.arm(endpoint, armed, wait_for)?;
        let mut ready_handles = Vec::with_capacity(1);
        // In this order: a thread that adds work while we check finds us asleep.
        let sleeps = self.wakeup.fall_asleep();
        let timeout = if sleeps && !has_work() { timeout } else { Some(Duration::ZERO) };
        let waited = self.demux.wait(&mut ready_handles, 1, timeout);
        self.wakeup.woke();
        waited?;
        let events = ready_handles.first().map_or(Interest::NONE, |handle| handle.ready & wait_for);
        Ok(if endpoint.is_plain() { events } else { endpoint.interpret(events, wanted) & wanted })
    }

    fn arm(&self, endpoint: &dyn Pollable, armed: &mut Interest, wait_for: Interest) -> io::Result<()> {
        const KEY: u64 = 1;
        let handle = sys::number(endpoint.handle());
        match (armed.is_none(), wait_for.is_none()) {
            _ if *armed == wait_for => {}
            (true, _) => self.demux.add(handle, KEY, wait_for, Trigger::Level)?,
            (false, true) => self.demux.remove(handle)?,
            (false, false) => self.demux.modify(handle, KEY, wait_for, Trigger::Level)?,
        }
        *armed = wait_for;
        Ok(())
    }
}
