//! Detection of peers that have died: end points watch the control of their stream, controls the end points of the parties.
//!
//! Each peer is asked by `_non_existent`, all of them at the same time, so that those that do not answer delay nothing.

use std::collections::BTreeMap;
use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use spandrel::messaging::AsyncReply;
use spandrel::net::sync::{Arc, Condition, Mutex, Weak, time::Deadline};
use spandrel::{ObjectRef, SystemException, SystemExceptionKind};

/// The longest time between two questions to a peer.
const MAX_INTERVAL: Duration = Duration::from_secs(10);
/// The shortest time between two questions to a peer.
const MIN_INTERVAL: Duration = Duration::from_millis(20);

/// An object whose peers are watched.
pub(crate) trait Watcher: Send + Sync + 'static {
    /// Takes the reason why a peer counts as dead, such as `does not exist`. It may call other objects.
    fn lose_peer(&self, peer: &ObjectRef, reason: &str);
}

/// The peers that the objects of a service watch, and the thread that asks them.
pub(crate) struct PeerWatch {
    /// The time for which a peer may not answer.
    limit: Duration,
    state: Mutex<State>,
    changed: Condition,
}

#[derive(Default)]
struct State {
    /// The watches by their numbers.
    watches: BTreeMap<u64, Watch>,
    next_number: u64,
    is_running: bool,
    is_stopped: bool,
}

struct Watch {
    peer: ObjectRef,
    watcher: Weak<dyn Watcher>,
    /// The beginning of the time without an answer, with the last exception.
    silence: Option<(Instant, String)>,
}

/// The answer of a peer to one question.
enum Answer {
    Alive,
    NotExistent,
    Silent(String),
}

impl PeerWatch {
    /// A watch without peers. A limit of [`Duration::MAX`] turns it off.
    pub(crate) fn new(limit: Duration) -> Arc<Self> {
        Arc::new(Self { limit, state: Mutex::default(), changed: Condition::default() })
    }

    /// Watches a peer until the result is dropped, or the peer was lost.
    pub(crate) fn add(self: &Arc<Self>, peer: &ObjectRef, watcher: &Arc<dyn Watcher>) -> WatchGuard {
        let mut state = self.state.lock();
        let number = state.next_number;
        let guard = WatchGuard { watch: Arc::clone(self), number };
        if self.limit == Duration::MAX {
            return guard;
        }
        state.next_number += 1;
        let peer = peer.with_timeout(Some(self.interval()));
        state.watches.insert(number, Watch { peer, watcher: Arc::downgrade(watcher), silence: None });
        if !state.is_running && !state.is_stopped {
            let watch = Arc::clone(self);
            let spawned = std::thread::Builder::new().name("spandrel-av-watch".to_owned()).spawn(move || watch.run());
            match spawned {
                Ok(_) => state.is_running = true,
                Err(error) => tracing::warn!(%error, "peers of streams are not watched: no thread could be started"),
            }
        }
        guard
    }

    /// The number of peers that are watched.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().watches.len()
    }

    /// Ends the thread that asks the peers.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// The time between two questions, within which a peer has to answer.
    fn interval(&self) -> Duration {
        (self.limit / 4).clamp(MIN_INTERVAL, MAX_INTERVAL)
    }

    fn run(&self) {
        loop {
            let deadline = Deadline::after(self.interval());
            let mut state = self.state.lock();
            if state.is_stopped || state.watches.is_empty() {
                state.is_running = false;
                return;
            }
            let peers: Vec<(u64, ObjectRef)> =
                state.watches.iter().map(|(number, watch)| (*number, watch.peer.clone())).collect();
            drop(state);
            let questions: Vec<_> = peers.iter().map(|(number, peer)| (*number, Question::ask(peer))).collect();
            let mut state = self.state.lock();
            while !state.is_stopped && !self.changed.wait_until(&mut state, deadline).timed_out() {}
            let mut lost = Vec::new();
            for (number, question) in questions {
                // Streams may have ended in the meantime.
                let reason = state.watches.get_mut(&number).and_then(|watch| watch.take(question.answer(), self.limit));
                if let Some(reason) = reason
                    && let Some(watch) = state.watches.remove(&number)
                {
                    lost.push((watch.watcher, watch.peer, reason));
                }
            }
            drop(state);
            lost.into_iter().for_each(report);
        }
    }
}

/// A peer that is watched until this is dropped.
pub(crate) struct WatchGuard {
    watch: Arc<PeerWatch>,
    number: u64,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.watch.state.lock().watches.remove(&self.number);
    }
}

/// Whether an exception means that the object, or its server, does not answer any more.
pub(crate) fn is_gone(exception: &SystemException) -> bool {
    matches!(
        exception.kind(),
        SystemExceptionKind::ObjectNotExist
            | SystemExceptionKind::Transient
            | SystemExceptionKind::CommFailure
            | SystemExceptionKind::NoResponse
            | SystemExceptionKind::Timeout
    )
}

/// Tells a watcher in a thread of its own, since its calls may take their whole time.
fn report((watcher, peer, reason): (Weak<dyn Watcher>, ObjectRef, String)) {
    let Some(watcher) = watcher.upgrade() else { return };
    let spawned = std::thread::Builder::new().name("spandrel-av-loss".to_owned()).spawn({
        let (watcher, peer, reason) = (Arc::clone(&watcher), peer.clone(), reason.clone());
        move || watcher.lose_peer(&peer, &reason)
    });
    if spawned.is_err() {
        watcher.lose_peer(&peer, &reason);
    }
}

impl Watch {
    /// Takes an answer. Returns the reason if the peer counts as dead.
    fn take(&mut self, answer: Answer, limit: Duration) -> Option<String> {
        match answer {
            Answer::Alive => {
                self.silence = None;
                None
            }
            Answer::NotExistent => Some("does not exist any more".to_owned()),
            Answer::Silent(error) => {
                let (since, error) = self.silence.get_or_insert_with(|| (Instant::now(), error));
                (since.elapsed() >= limit / 2).then(|| format!("does not answer: {error}"))
            }
        }
    }
}

/// A question that was sent.
struct Question(AsyncReply<bool, SystemException>);

impl Question {
    fn ask(peer: &ObjectRef) -> Self {
        Self(peer.invoke_async("_non_existent", |_| Ok(()), |input| input.bool()))
    }

    fn answer(self) -> Answer {
        match pin!(self.0).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(true)) => Answer::NotExistent,
            Poll::Ready(Ok(false)) => Answer::Alive,
            Poll::Ready(Err(error)) => match error.kind() {
                SystemExceptionKind::ObjectNotExist => Answer::NotExistent,
                _ if is_gone(&error) => Answer::Silent(error.to_string()),
                // A server that does not know the operation, or does not permit it, answers all the same.
                _ => Answer::Alive,
            },
            Poll::Pending => Answer::Silent("no reply within the interval of questions".to_owned()),
        }
    }
}
