//! A simulated demultiplexer over simulated handles, each of which holds a number of octets.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use spandrel_ipc::{Handle, Interest, Pollable};
use spandrel_sync::{Arc, Condition, Mutex};

use crate::demux::{Demultiplexer, ReadyHandle};
use crate::sys::{self, RawHandle};
use crate::{Backend, Trigger};

/// The state of the simulated system.
#[derive(Clone, Debug, Default)]
pub(super) struct System(Arc<(Mutex<State>, Condition)>);

#[derive(Debug, Default)]
struct State {
    octets: BTreeMap<RawHandle, usize>,
    armed: BTreeMap<RawHandle, (u64, Interest)>,
    is_rung: bool,
    is_waited_for: bool,
}

impl System {
    pub(super) fn send(&self, number: usize, octets: usize) {
        *self.0.0.lock().octets.entry(handle_of(number)).or_default() += octets;
        self.signal_change();
    }

    /// Signals a change that other threads may wait for.
    pub(super) fn signal_change(&self) {
        // Under the lock; otherwise a thread that has checked and does not wait yet would miss it.
        let _state = self.0.0.lock();
        self.0.1.notify_all();
    }

    pub(super) fn wait_until(&self, done: impl Fn() -> bool) {
        let mut state = self.0.0.lock();
        while !done() {
            self.0.1.wait(&mut state);
        }
    }
}

/// An endpoint with a simulated handle, of which only the number counts.
pub(super) struct Endpoint {
    number: usize,
    system: System,
}

impl Endpoint {
    pub(super) fn new(number: usize, system: &System) -> Self {
        Self { number, system: system.clone() }
    }

    /// Receives an octet, if there is one.
    pub(super) fn take(&self) -> bool {
        let mut state = self.system.0.0.lock();
        let octets = state.octets.entry(handle_of(self.number)).or_default();
        let had = *octets > 0;
        *octets = octets.saturating_sub(1);
        had
    }

    pub(super) fn signal_change(&self) {
        self.system.signal_change();
    }
}

impl Pollable for Endpoint {
    fn handle(&self) -> Handle<'_> {
        lend(self.number)
    }
}

fn lend(number: usize) -> Handle<'static> {
    static STREAMS: std::sync::OnceLock<(std::io::Stdin, std::io::Stdout)> = std::sync::OnceLock::new();
    let (first, second) = STREAMS.get_or_init(|| (std::io::stdin(), std::io::stdout()));
    if number == 0 { first.as_fd() } else { second.as_fd() }
}

fn handle_of(number: usize) -> RawHandle {
    sys::number(lend(number))
}

#[derive(Debug)]
pub(super) struct SimulatedDemultiplexer(System);

impl SimulatedDemultiplexer {
    pub(super) fn new(system: &System) -> Self {
        Self(system.clone())
    }
}

impl State {
    fn show(&self, ready_handles: &mut Vec<ReadyHandle>, max_events: usize) {
        let ready = |handle: &RawHandle| self.octets.get(handle).is_some_and(|octets| *octets > 0);
        for (handle, (key, interest)) in &self.armed {
            if ready(handle) && interest.contains(Interest::INPUT) && ready_handles.len() < max_events {
                ready_handles.push(ReadyHandle { key: *key, ready: Interest::INPUT });
            }
        }
    }
}

impl Demultiplexer for SimulatedDemultiplexer {
    fn backend(&self) -> Backend {
        Backend::Auto
    }

    fn add(&self, handle: RawHandle, key: u64, interest: Interest, _trigger: Trigger) -> io::Result<()> {
        let before = self.0.0.0.lock().armed.insert(handle, (key, interest));
        assert!(before.is_none(), "added twice");
        self.0.signal_change();
        Ok(())
    }

    fn modify(&self, handle: RawHandle, key: u64, interest: Interest, _trigger: Trigger) -> io::Result<()> {
        let before = self.0.0.0.lock().armed.insert(handle, (key, interest));
        assert!(before.is_some(), "modified before it was added");
        self.0.signal_change();
        Ok(())
    }

    fn remove(&self, handle: RawHandle) -> io::Result<()> {
        let before = self.0.0.0.lock().armed.remove(&handle);
        assert!(before.is_some(), "removed before it was added");
        Ok(())
    }

    fn wait(
        &self,
        ready_handles: &mut Vec<ReadyHandle>,
        max_events: usize,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let System(shared) = &self.0;
        let mut state = shared.0.lock();
        assert!(!state.is_waited_for, "two threads lead");
        state.is_waited_for = true;
        loop {
            state.show(ready_handles, max_events);
            if !ready_handles.is_empty() || state.is_rung {
                break;
            }
            match timeout {
                None => shared.1.wait(&mut state),
                Some(Duration::ZERO) => break,
                Some(timeout) if shared.1.wait_for(&mut state, timeout).timed_out() => break,
                Some(_) => {}
            }
        }
        state.is_rung = false;
        state.is_waited_for = false;
        Ok(())
    }

    fn wake(&self) -> io::Result<()> {
        self.0.0.0.lock().is_rung = true;
        self.0.signal_change();
        Ok(())
    }
}
