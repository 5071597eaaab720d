//! One thread at a time: SINGLE_THREAD_MODEL (CORBA 3.3 Part 1, 15.2.8 and 15.3.8.1).
//!
//! Who has the turn may come again, from inside of its upcall. Requests of others are deferred in the order of their coming; a turn is
//! promised to the first of them before it is free for anybody else, so that none is overtaken for ever.

use std::{
    collections::VecDeque,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

use spandrel_sync::{
    Arc, Mutex,
    thread::{self, ThreadId},
};

use crate::signal::{Signal, Ticket};

/// Requests that wait for one adapter, at most.
const MAX_WAITING: usize = 1024;

/// The right to call the servants and servant managers of an adapter.
#[derive(Debug, Default)]
pub(crate) struct Turn(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    holder: Holder,
    queue: VecDeque<Arc<Signal>>,
}

#[derive(Debug, Default)]
enum Holder {
    #[default]
    Nobody,
    /// This thread, so many upcalls deep.
    Thread(ThreadId, u32),
    /// Whoever was given this.
    Promised(Arc<Signal>),
}

/// The time in which a thread has the turn. It stays in that thread.
#[derive(Debug)]
pub(crate) struct Held {
    turn: Arc<Turn>,
    _here: PhantomData<*const ()>,
}

/// A place in the queue, and then the promise to have the turn. Passed on when it is dropped.
#[derive(Debug)]
pub(crate) struct Promise {
    turn: Arc<Turn>,
    signal: Arc<Signal>,
    ticket: Ticket,
    is_redeemed: bool,
}

/// What came of asking for the turn.
pub(crate) enum Asked {
    Now(Held),
    Later(Promise),
    /// Too many wait.
    Never,
}

impl Turn {
    pub(crate) fn ask(self: &Arc<Self>) -> Asked {
        let me = thread::current().id();
        let mut state = self.0.lock();
        let is_full = state.queue.len() >= MAX_WAITING;
        match &mut state.holder {
            Holder::Nobody => state.holder = Holder::Thread(me, 1),
            Holder::Thread(holder, depth) if *holder == me => *depth += 1,
            _ if is_full => return Asked::Never,
            _ => {
                let signal = Arc::<Signal>::default();
                let ticket = signal.ticket(1).expect("it is the first");
                state.queue.push_back(Arc::clone(&signal));
                return Asked::Later(Promise { turn: Arc::clone(self), signal, ticket, is_redeemed: false });
            }
        }
        Asked::Now(Held { turn: Arc::clone(self), _here: PhantomData })
    }

    /// Waits for the turn in this thread, however many wait already.
    pub(crate) fn take(self: &Arc<Self>) -> Held {
        loop {
            match self.ask() {
                Asked::Now(held) => return held,
                Asked::Later(promise) => return promise.wait(),
                Asked::Never => thread::yield_now(),
            }
        }
    }

    /// Gives the turn to the next; it belongs to nobody who could still use it.
    fn pass_on(&self) {
        let mut state = self.0.lock();
        let next = state.queue.pop_front();
        state.holder = next.clone().map_or(Holder::Nobody, Holder::Promised);
        drop(state);
        if let Some(next) = next {
            next.give();
        }
    }
}

impl Promise {
    pub(crate) fn is_of(&self, turn: &Arc<Turn>) -> bool {
        Arc::ptr_eq(&self.turn, turn)
    }

    /// Takes the turn, once the promise [has come due](Future::poll).
    pub(crate) fn redeem(mut self) -> Held {
        self.is_redeemed = true;
        self.turn.0.lock().holder = Holder::Thread(thread::current().id(), 1);
        Held { turn: Arc::clone(&self.turn), _here: PhantomData }
    }

    /// Waits in this thread, and takes the turn.
    pub(crate) fn wait(self) -> Held {
        self.signal.wait();
        self.redeem()
    }

    /// Waits for the turn to be promised; itself, to be [redeemed](Self::redeem).
    pub(crate) async fn due(mut self) -> Self {
        Due(&mut self.ticket).await;
        self
    }
}

struct Due<'t>(&'t mut Ticket);

impl Future for Due<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut *self.0).poll(cx)
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if self.is_redeemed {
            return;
        }
        let mut state = self.turn.0.lock();
        state.queue.retain(|waiting| !Arc::ptr_eq(waiting, &self.signal));
        let is_mine = matches!(&state.holder, Holder::Promised(signal) if Arc::ptr_eq(signal, &self.signal));
        drop(state);
        if is_mine {
            self.turn.pass_on();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.turn.0.lock();
        match &mut state.holder {
            Holder::Thread(_, depth) if *depth > 1 => *depth -= 1,
            _ => {
                drop(state);
                self.turn.pass_on();
            }
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_promised_in_order_and_passed_on_by_who_gave_up() {
        let turn = Arc::<Turn>::default();
        let Asked::Now(first) = turn.ask() else { panic!("it is free") };
        let Asked::Now(again) = turn.ask() else { panic!("it is mine") };
        let other = Arc::clone(&turn);
        let [second, third, fourth] = thread::spawn(move || {
            [(); 3].map(|()| match other.ask() {
                Asked::Later(promise) => promise,
                _ => panic!("another has it"),
            })
        })
        .join()
        .unwrap();
        drop(third);
        drop(again);
        assert!(matches!(turn.0.lock().holder, Holder::Thread(_, 1)));
        drop(first);
        second.signal.wait();
        drop(second);
        fourth.signal.wait();
        drop(fourth.redeem());
        assert!(matches!(turn.0.lock().holder, Holder::Nobody));
        assert!(turn.0.lock().queue.is_empty());
    }
}
