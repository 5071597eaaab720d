//! Synchronous calls whose threads do not read their replies themselves: the wait strategies *on reactor* and *on waker*.
//!
//! Their replies are read as those of asynchronous calls are, and their threads wait for that: asleep, or serving others.

use std::{cell::Cell, time::Duration};

use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{CompletionStatus, SystemException};
#[cfg(feature = "server")]
use spandrel_reactor::Registry;
use spandrel_sync::{Arc, Condition, Mutex, thread_local};

#[cfg(feature = "server")]
use crate::server::Nested;
use crate::{
    Orb, WaitStrategy,
    client::{Awaiting, CallFailure, ClientConnection, Ending, Kind, Limited, Reply},
    reader::Deadline,
};

thread_local! {
    /// This thread is the one that brings the ends of asynchronous calls: it cannot wait for one.
    static IS_STATION: Cell<bool> = const { Cell::new(false) };
}

/// Says that this thread brings the ends of asynchronous calls.
pub(crate) fn note_station_thread() {
    IS_STATION.with(|is_station| is_station.set(true));
}

/// Whether this thread is not to read the reply to a call of this ORB itself.
#[inline]
pub(crate) fn is_due(orb: &Orb) -> bool {
    #[cfg(feature = "server")]
    if Nested::is_due() {
        return true;
    }
    orb.settings().wait == WaitStrategy::OnWaker && !IS_STATION.with(Cell::get)
}

/// What a thread waits for.
#[derive(Debug)]
pub(crate) struct Awaited {
    state: Mutex<State>,
    changed: Condition,
    /// In which it may be serving others.
    #[cfg(feature = "server")]
    registry: Option<Registry>,
}

#[derive(Debug)]
enum State {
    Pending,
    Come(Result<Reply, CallFailure>),
    /// It is over, whatever comes.
    Over(Ending),
}

impl Awaited {
    /// `registry`: of the reactor in which the thread will serve others.
    pub(crate) fn new(#[cfg(feature = "server")] registry: Option<Registry>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::Pending),
            changed: Condition::new(),
            #[cfg(feature = "server")]
            registry,
        })
    }

    /// Waits for what comes of a request; gives it up if the time is up, or all is over.
    pub(crate) fn outcome(
        &self,
        connection: &ClientConnection,
        request_id: u32,
        wire: Wire,
        deadline: Option<&Deadline>,
    ) -> Result<Reply, CallFailure> {
        match self.wait(deadline) {
            State::Come(outcome) => outcome,
            State::Over(why) => {
                let may_have_arrived = connection.abandon(request_id, Some(wire), true);
                Err(CallFailure::new(why.exception(may_have_arrived)))
            }
            State::Pending => Err(CallFailure::new(SystemException::internal(0, CompletionStatus::Maybe))),
        }
    }

    /// Only what comes first counts.
    fn settle(&self, state: State) {
        let mut now = self.state.lock();
        if !matches!(*now, State::Pending) {
            return;
        }
        *now = state;
        drop(now);
        self.changed.notify_one();
        #[cfg(feature = "server")]
        if let Some(registry) = &self.registry {
            registry.wake();
        }
    }

    #[cfg(feature = "server")]
    fn is_settled(&self) -> bool {
        !matches!(*self.state.lock(), State::Pending)
    }

    /// Waits until something has come or the time is up.
    fn wait(&self, deadline: Option<&Deadline>) -> State {
        let mut state = self.state.lock();
        loop {
            if !matches!(*state, State::Pending) {
                return std::mem::replace(&mut *state, State::Pending);
            }
            match deadline.map(Deadline::remaining) {
                None => self.changed.wait(&mut state),
                Some(Duration::ZERO) => return State::Over(Ending::TimeUp),
                Some(remaining) => drop(self.changed.wait_for(&mut state, remaining)),
            }
        }
    }
}

impl Awaiting for Awaited {
    fn done(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
        let no_reply = || CallFailure::new(SystemException::internal(0, CompletionStatus::Maybe));
        self.settle(State::Come(outcome.and_then(|reply| reply.ok_or_else(no_reply))));
    }

    /// It has its connection.
    fn opened(self: Arc<Self>, _outcome: Result<(), CallFailure>) {}
}

impl Limited for Awaited {
    fn end(self: Arc<Self>, why: Ending) {
        self.settle(State::Over(why));
    }
}

/// As [`ClientConnection::two_way`], but the reply is read by others; at most `limit` requests wait for theirs at once.
#[cold]
#[inline(never)]
pub(crate) fn two_way(
    orb: &Orb,
    connection: &Arc<ClientConnection>,
    request_id: u32,
    request: &Encoder<'_>,
    deadline: Option<&Deadline>,
    limit: usize,
) -> Result<Reply, CallFailure> {
    // Before anything is sent.
    #[cfg(feature = "server")]
    let nested = Nested::begin().map_err(CallFailure::new)?;
    let awaited = Awaited::new(
        #[cfg(feature = "server")]
        nested.as_ref().map(|nested| nested.registry().clone()),
    );
    let station = orb.station();
    station.seat(connection).map_err(CallFailure::new)?;
    let limited: Arc<dyn Limited> = Arc::clone(&awaited) as _;
    let ticket = station.enter(Arc::downgrade(&limited), None).map_err(CallFailure::new)?;
    let sent = connection.send_soon(request_id, request, Kind::TwoWay, Arc::clone(&awaited) as _, limit);
    let outcome = sent.and_then(|()| {
        #[cfg(feature = "server")]
        if let Some(nested) = nested {
            nested.serve_until(deadline.map(Deadline::remaining), || awaited.is_settled());
        }
        awaited.outcome(connection, request_id, request.wire(), deadline)
    });
    station.leave(ticket);
    outcome
}
