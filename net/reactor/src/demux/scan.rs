//! The common part of `poll(2)` and `select(2)`: each wait scans the whole set of handles.
//!
//! The set is copied for each wait, so that it can change meanwhile; a change rings the doorbell of a pending
//! wait, which then starts again with the new set. Where more handles are ready than requested, the next wait
//! begins behind the last one returned.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::fmt::Debug;
use std::io;
use std::time::Duration;

use spandrel_ipc::Interest;
use spandrel_sync::Mutex;

#[cfg(unix)]
use super::backend::no_edges;
use super::demultiplexer::{Demultiplexer, ReadyHandle};
use super::doorbell::Doorbell;
use crate::sys::RawHandle;
use crate::{Backend, Trigger};

/// One system call over a set of handles.
pub(crate) trait Scan: Debug + Send + Sync {
    const BACKEND: Backend;

    /// Checks that a set can hold this handle.
    fn check(handle: RawHandle) -> io::Result<()>;

    /// Waits, and sets `ready` of each handle. After a signal no handle is ready.
    fn scan(&mut self, watched: &mut [WatchedHandle], timeout: Option<Duration>) -> io::Result<()>;
}

/// A handle in a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchedHandle {
    pub(crate) handle: RawHandle,
    pub(crate) interest: Interest,
    pub(crate) ready: Interest,
    /// Its index in the set when that was copied.
    index: usize,
}

#[derive(Debug)]
pub(crate) struct Scanner<S> {
    doorbell: Doorbell,
    set: Mutex<Set>,
    waiter: Mutex<Waiter<S>>,
}

#[derive(Debug, Default)]
struct Set {
    entries: Vec<Entry>,
    indexes: BTreeMap<RawHandle, usize>,
    is_waited_for: bool,
    is_rung: bool,
}

#[derive(Debug)]
struct Entry {
    handle: RawHandle,
    key: u64,
    interest: Interest,
    is_one_shot: bool,
    /// Its one shot has fired.
    is_spent: bool,
}

#[derive(Debug)]
struct Waiter<S> {
    scan: S,
    /// The doorbell, then the set.
    watched: Vec<WatchedHandle>,
    /// The index at which the next scan begins.
    next: usize,
}

impl<S: Scan> Scanner<S> {
    pub(crate) fn new(scan: S) -> io::Result<Self> {
        let doorbell = Doorbell::new()?;
        S::check(doorbell.handle())?;
        let waiter = Waiter { scan, watched: Vec::new(), next: 0 };
        Ok(Self { doorbell, set: Mutex::default(), waiter: Mutex::new(waiter) })
    }

    fn change(&self, change: impl FnOnce(&mut Set) -> io::Result<()>) -> io::Result<()> {
        let mut set = self.set.lock();
        change(&mut set)?;
        if set.is_waited_for && !set.is_rung {
            set.is_rung = true;
            self.doorbell.ring()?;
        }
        Ok(())
    }

    /// The number of handles.
    #[cfg(windows)]
    pub(crate) fn len(&self) -> usize {
        self.set.lock().entries.len()
    }

    /// Calls `call` for each handle, as it would be added.
    #[cfg(windows)]
    pub(crate) fn each(
        &self,
        mut call: impl FnMut(RawHandle, u64, Interest, Trigger) -> io::Result<()>,
    ) -> io::Result<()> {
        self.set.lock().entries.iter().try_for_each(|entry| {
            let trigger = if entry.is_one_shot { Trigger::OneShot } else { Trigger::Level };
            let interest = if entry.is_spent { Interest::NONE } else { entry.interest };
            call(entry.handle, entry.key, interest, trigger)
        })
    }

    /// Removes all handles from the set.
    #[cfg(windows)]
    pub(crate) fn clear(&self) -> io::Result<()> {
        self.change(|set| {
            set.entries.clear();
            set.indexes.clear();
            Ok(())
        })
    }

    /// Copies the set for a wait.
    fn copy(&self, watched: &mut Vec<WatchedHandle>) {
        let mut set = self.set.lock();
        set.is_waited_for = true;
        watched.clear();
        let watch = |handle, interest, index| WatchedHandle { handle, interest, ready: Interest::NONE, index };
        watched.push(watch(self.doorbell.handle(), Interest::INPUT, usize::MAX));
        let armed = set.entries.iter().enumerate().filter(|(_, entry)| !entry.is_spent);
        watched.extend(armed.map(|(index, entry)| watch(entry.handle, entry.interest, index)));
    }
}

impl Set {
    fn entry(&mut self, handle: RawHandle) -> Option<&mut Entry> {
        let index = *self.indexes.get(&handle)?;
        Some(&mut self.entries[index])
    }

    /// The event of a ready handle, if it is still in the set.
    fn show(&mut self, seen: &WatchedHandle) -> Option<ReadyHandle> {
        // Handles may have been removed since then.
        let is_there = self.entries.get(seen.index).is_some_and(|entry| entry.handle == seen.handle);
        let entry = if is_there { &mut self.entries[seen.index] } else { self.entry(seen.handle)? };
        if entry.is_spent {
            return None;
        }
        entry.is_spent = entry.is_one_shot;
        Some(ReadyHandle { key: entry.key, ready: seen.ready })
    }
}

impl<S: Scan> Demultiplexer for Scanner<S> {
    fn backend(&self) -> Backend {
        S::BACKEND
    }

    fn add(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()> {
        S::check(handle)?;
        let is_one_shot = is_one_shot(trigger, S::BACKEND)?;
        self.change(|set| {
            match set.indexes.entry(handle) {
                btree_map::Entry::Occupied(_) => return Err(io::ErrorKind::AlreadyExists.into()),
                btree_map::Entry::Vacant(place) => place.insert(set.entries.len()),
            };
            set.entries.push(Entry { handle, key, interest, is_one_shot, is_spent: false });
            Ok(())
        })
    }

    fn modify(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()> {
        let is_one_shot = is_one_shot(trigger, S::BACKEND)?;
        self.change(|set| {
            let entry = set.entry(handle).ok_or(io::ErrorKind::NotFound)?;
            *entry = Entry { handle, key, interest, is_one_shot, is_spent: false };
            Ok(())
        })
    }

    fn remove(&self, handle: RawHandle) -> io::Result<()> {
        self.change(|set| {
            let index = set.indexes.remove(&handle).ok_or(io::ErrorKind::NotFound)?;
            set.entries.swap_remove(index);
            if let Some(moved) = set.entries.get(index) {
                set.indexes.insert(moved.handle, index);
            }
            Ok(())
        })
    }

    fn wait(
        &self,
        ready_handles: &mut Vec<ReadyHandle>,
        max_events: usize,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let Waiter { scan, watched, next } = &mut *self.waiter.lock();
        self.copy(watched);
        let result = scan.scan(watched, timeout);
        let mut set = self.set.lock();
        set.is_waited_for = false;
        result?;
        if !watched[0].ready.is_none() {
            self.doorbell.drain();
            set.is_rung = false;
        }
        let handles = &watched[1..];
        let begin = if *next < handles.len() { *next } else { 0 };
        *next = 0;
        for index in (begin..handles.len()).chain(0..begin) {
            if handles[index].ready.is_none() {
                continue;
            }
            if ready_handles.len() == max_events {
                *next = index;
                break;
            }
            ready_handles.extend(set.show(&handles[index]));
        }
        Ok(())
    }

    fn wake(&self) -> io::Result<()> {
        let mut set = self.set.lock();
        if set.is_rung {
            return Ok(());
        }
        set.is_rung = true;
        self.doorbell.ring()
    }
}

#[cfg_attr(windows, expect(unused_variables, clippy::unnecessary_wraps))]
fn is_one_shot(trigger: Trigger, backend: Backend) -> io::Result<bool> {
    match trigger {
        Trigger::Level => Ok(false),
        Trigger::OneShot => Ok(true),
        #[cfg(unix)]
        Trigger::Edge => Err(no_edges(backend)),
    }
}
