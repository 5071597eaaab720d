//! Synchronous calls whose threads do not read their replies themselves: the wait strategies *on reactor* and *on waker*.
//!
//! Their replies are read as those of asynchronous calls are, and their threads wait for that: asleep, or serving others.

#[cfg(feature = "server")]
use std::task::{Wake, Waker};
use std::time::Duration;

use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::{Arc, Condition, Mutex};
use spandrel_transport::Deadline;

use crate::{
    Orb, WaitStrategy,
    client::{Awaiting, Bounds, CallFailure, ClientConnection, Ending, Kind, Limited, Reply, is_station_here},
};
#[cfg(feature = "server")]
use crate::{
    cancellation::Trip,
    client::cancelled,
    server::{Meanwhile, Nested, served_request},
    upcalls::is_in_upcall,
};

/// Whether this thread is not to read the reply to a call of this ORB itself.
#[inline]
pub(crate) fn is_due(orb: &Orb) -> bool {
    #[cfg(feature = "server")]
    if Nested::is_due() {
        return true;
    }
    orb.settings().leaves_reading && leaves_reading(orb)
}

/// Whether it is by its strategy, or because it must be able to give up before its reply comes.
#[cold]
fn leaves_reading(orb: &Orb) -> bool {
    let is_wanted = orb.settings().wait == WaitStrategy::OnWaker;
    #[cfg(feature = "server")]
    let is_wanted = is_wanted || is_in_upcall();
    is_wanted && !is_station_here()
}

/// The time in which a call ends if the request is cancelled that it is made for.
#[cfg(feature = "server")]
struct Cancelling {
    trip: Arc<Trip>,
    key: u64,
}

#[cfg(feature = "server")]
impl Cancelling {
    /// # Errors
    /// TRANSIENT if it is cancelled already; nothing was sent.
    fn begin(orb: &Orb, awaited: &Arc<Awaited>) -> Result<Option<Self>, SystemException> {
        if !orb.settings().serving.cancels_nested {
            return Ok(None);
        }
        let Some(trip) = served_request() else { return Ok(None) };
        let key = trip.key();
        match trip.poll(key, &Waker::from(Arc::clone(awaited))) {
            None => Ok(Some(Self { trip, key })),
            Some(_) => Err(cancelled(CompletionStatus::No)),
        }
    }
}

#[cfg(feature = "server")]
impl Drop for Cancelling {
    fn drop(&mut self) {
        self.trip.forget(self.key);
    }
}

/// Nobody waits any more for what the call is made for.
#[cfg(feature = "server")]
impl Wake for Awaited {
    fn wake(self: Arc<Self>) {
        self.settle(State::Over(Ending::Cancelled));
    }
}

/// What a thread waits for.
#[derive(Debug)]
pub(crate) struct Awaited {
    state: Mutex<State>,
    changed: Condition,
    /// Who has work for it meanwhile.
    #[cfg(feature = "server")]
    others: Option<Arc<dyn Meanwhile>>,
}

#[derive(Debug)]
enum State {
    Pending,
    Come(Result<Reply, CallFailure>),
    /// It is over, whatever comes.
    Over(Ending),
}

impl Awaited {
    /// `others`: whom the thread will serve.
    pub(crate) fn new(#[cfg(feature = "server")] others: Option<Arc<dyn Meanwhile>>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::Pending),
            changed: Condition::new(),
            #[cfg(feature = "server")]
            others,
        })
    }

    /// Waits for what comes of a request, which was written so if the server is to be told when it is given up; gives it up if the time is up, or all is over.
    pub(crate) fn outcome(
        &self,
        connection: &ClientConnection,
        request_id: u32,
        wire: Option<Wire>,
        deadline: Option<&Deadline>,
    ) -> Result<Reply, CallFailure> {
        match self.wait(deadline) {
            State::Come(outcome) => outcome,
            State::Over(why) => {
                let may_have_arrived = connection.abandon(request_id, wire, why.retires_connection());
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
        if let Some(others) = &self.others {
            others.wake();
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

/// As [`ClientConnection::two_way`], but the reply is read by others.
#[cold]
#[inline(never)]
pub(crate) fn two_way(
    orb: &Orb,
    connection: &Arc<ClientConnection>,
    request_id: u32,
    request: &Encoder<'_>,
    deadline: Option<&Deadline>,
    bounds: Bounds,
) -> Result<Reply, CallFailure> {
    // Before anything is sent.
    #[cfg(feature = "server")]
    let nested = Nested::begin().map_err(|too_deep| {
        orb.statistics().refused_nesting();
        CallFailure::new(too_deep)
    })?;
    let awaited = Awaited::new(
        #[cfg(feature = "server")]
        nested.as_ref().map(Nested::others),
    );
    #[cfg(feature = "server")]
    let _cancelling = Cancelling::begin(orb, &awaited).map_err(CallFailure::new)?;
    let station = orb.station();
    station.seat(connection).map_err(CallFailure::new)?;
    let limited: Arc<dyn Limited> = Arc::clone(&awaited) as _;
    let ticket = station.enter(Arc::downgrade(&limited), None).map_err(CallFailure::new)?;
    let sent = connection.send_soon(request_id, request, Kind::TwoWay, Arc::clone(&awaited) as _, bounds);
    let outcome = sent.and_then(|()| {
        #[cfg(feature = "server")]
        if let Some(nested) = nested {
            nested.serve_until(deadline.map(Deadline::remaining), || awaited.is_settled());
        }
        // Whoever has sent it tells the server, if that is to be told.
        awaited.outcome(connection, request_id, None, deadline)
    });
    station.leave(ticket);
    outcome
}
