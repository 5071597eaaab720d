//! What `poll(2)` and `select(2)` have in common: the whole set of handles is looked at by each wait.
//!
//! The set is copied for each wait, so that it can change meanwhile; a change rings the doorbell of a wait that is under way, which
//! then begins anew with the new set. Where more handles are ready than asked for, the next wait begins behind the last one shown.

use std::collections::HashMap;
use std::fmt::Debug;
use std::io;
use std::time::Duration;

use spandrel_ipc::Interest;
use spandrel_sync::Mutex;

use super::doorbell::Doorbell;
use super::{Demultiplexer, Shown};
use crate::sys::RawHandle;
use crate::{Backend, Trigger};

/// One system call over a set of handles.
pub(crate) trait Scan: Debug + Send + Sync {
    const BACKEND: Backend;

    /// Whether a set can hold this handle.
    fn check(handle: RawHandle) -> io::Result<()>;

    /// Waits, and says in `ready` of each handle what it is ready for. After a signal nothing is.
    fn scan(&mut self, watched: &mut [Watched], timeout: Option<Duration>) -> io::Result<()>;
}

/// A handle in a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub(crate) handle: RawHandle,
    pub(crate) interest: Interest,
    pub(crate) ready: Interest,
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
    places: HashMap<RawHandle, usize>,
    is_waited_for: bool,
    is_rung: bool,
}

#[derive(Debug)]
struct Entry {
    handle: RawHandle,
    key: u64,
    interest: Interest,
    is_one_shot: bool,
    /// Its one shot is over.
    is_spent: bool,
}

#[derive(Debug)]
struct Waiter<S> {
    scan: S,
    /// The doorbell, then the set.
    watched: Vec<Watched>,
    /// Where to begin next time.
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

    /// Copies the set for a wait.
    fn copy(&self, watched: &mut Vec<Watched>) {
        let mut set = self.set.lock();
        set.is_waited_for = true;
        watched.clear();
        let bell = Watched { handle: self.doorbell.handle(), interest: Interest::INPUT, ready: Interest::NONE };
        let armed = set.entries.iter().filter(|entry| !entry.is_spent);
        let others =
            armed.map(|entry| Watched { handle: entry.handle, interest: entry.interest, ready: Interest::NONE });
        watched.extend(std::iter::once(bell).chain(others));
    }
}

impl Set {
    fn entry(&mut self, handle: RawHandle) -> Option<&mut Entry> {
        let place = *self.places.get(&handle)?;
        Some(&mut self.entries[place])
    }

    /// What a handle that was seen ready means, if it is still in the set.
    fn show(&mut self, seen: &Watched) -> Option<Shown> {
        let entry = self.entry(seen.handle).filter(|entry| !entry.is_spent)?;
        entry.is_spent = entry.is_one_shot;
        Some(Shown { key: entry.key, ready: seen.ready })
    }
}

impl<S: Scan> Demultiplexer for Scanner<S> {
    fn backend(&self) -> Backend {
        S::BACKEND
    }

    fn add(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()> {
        S::check(handle)?;
        let is_one_shot = one_shot(trigger, S::BACKEND)?;
        self.change(|set| {
            if set.places.contains_key(&handle) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            set.places.insert(handle, set.entries.len());
            set.entries.push(Entry { handle, key, interest, is_one_shot, is_spent: false });
            Ok(())
        })
    }

    fn modify(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()> {
        let is_one_shot = one_shot(trigger, S::BACKEND)?;
        self.change(|set| {
            let entry = set.entry(handle).ok_or(io::ErrorKind::NotFound)?;
            *entry = Entry { handle, key, interest, is_one_shot, is_spent: false };
            Ok(())
        })
    }

    fn remove(&self, handle: RawHandle) -> io::Result<()> {
        self.change(|set| {
            let place = set.places.remove(&handle).ok_or(io::ErrorKind::NotFound)?;
            set.entries.swap_remove(place);
            if let Some(moved) = set.entries.get(place) {
                set.places.insert(moved.handle, place);
            }
            Ok(())
        })
    }

    fn wait(&self, shown: &mut Vec<Shown>, most: usize, timeout: Option<Duration>) -> io::Result<()> {
        let Waiter { scan, watched, next } = &mut *self.waiter.lock();
        self.copy(watched);
        let result = scan.scan(watched, timeout);
        let mut set = self.set.lock();
        set.is_waited_for = false;
        result?;
        if !watched[0].ready.is_none() {
            self.doorbell.hush();
            set.is_rung = false;
        }
        let handles = &watched[1..];
        let begin = if *next < handles.len() { *next } else { 0 };
        *next = 0;
        for (seen, place) in handles.iter().zip(0..).cycle().skip(begin).take(handles.len()) {
            if seen.ready.is_none() {
                continue;
            }
            if shown.len() == most {
                *next = place;
                break;
            }
            shown.extend(set.show(seen));
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

fn one_shot(trigger: Trigger, backend: Backend) -> io::Result<bool> {
    match trigger {
        Trigger::Level => Ok(false),
        Trigger::OneShot => Ok(true),
        Trigger::Edge => Err(super::no_edges(backend)),
    }
}
