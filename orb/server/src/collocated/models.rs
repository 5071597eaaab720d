//! Models of collocated calls: replies, waiting callers and the shutdown of the ORB in many interleavings.

use std::time::Duration;

use spandrel_giop::{CompletionStatus, ReplyStatus, SystemExceptionKind};
use spandrel_orb::{
    Orb, SystemException,
    internal::{CallFailure, Reply},
    models::{
        check,
        messages::{FakeRequest, request, wire},
        one_in,
    },
};
use spandrel_sync::{Arc, Condition, Mutex, thread, time};
use spandrel_transport::Deadline;

use super::{CollocatedCalls, deliver};
use crate::{
    DeferredCall, Replied, Servant, ServerCall, models::one_servant::OneServant, request_server::RequestServer,
    resources::ServingOrb,
};

/// A day: longer than each wait of a model.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

/// A servant that defers its requests.
#[derive(Debug, Default)]
struct Desk {
    entries: Mutex<Entries>,
    changed: Condition,
}

#[derive(Debug, Default)]
struct Entries {
    /// The deferred calls that have no reply yet.
    waiting: Vec<DeferredCall>,
    /// The number of calls so far.
    begun: usize,
    /// Whether no more calls will follow.
    is_enough: bool,
}

impl Servant for Desk {
    fn repository_id(&self) -> &str {
        "IDL:Desk:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch(&self, _: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let kept_call = self.keep(call);
        self.entries.lock().begun += 1;
        self.changed.notify_all();
        kept_call
    }
}

impl Desk {
    fn keep(&self, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let (call, replied) = call.defer()?;
        self.entries.lock().waiting.push(call);
        self.changed.notify_all();
        Ok(replied)
    }

    /// Answers or drops calls, at random, until [`stop`](Self::stop) was called and none waits.
    fn serve(&self) {
        loop {
            let mut entries = self.entries.lock();
            self.changed.wait_while(&mut entries, |entries| entries.waiting.is_empty() && !entries.is_enough);
            let Some(call) = entries.waiting.pop() else { return };
            drop(entries);
            match one_in(3) {
                true => drop(call),
                false => {
                    let answered = call.answer(|call| match one_in(3) {
                        // Deferred once more, for the next turn of this loop.
                        true => self.keep(call),
                        false => call.reply(|_| Ok(())),
                    });
                    call.end(answered);
                }
            }
        }
    }

    fn stop(&self) {
        self.entries.lock().is_enough = true;
        self.changed.notify_all();
    }

    /// Waits until this number of calls has begun.
    fn await_begun(&self, calls: usize) {
        let mut entries = self.entries.lock();
        self.changed.wait_while(&mut entries, |entries| entries.begun < calls);
    }
}

fn call(orb: &Orb, deadline: Option<&Deadline>) -> Result<Reply, CallFailure> {
    let first = FakeRequest { id: 1, token: 1, is_two_way: true, is_limited: deadline.is_some() };
    let message = deliver(&request(first, 0))?;
    collocated_calls(orb).call(orb, orb.resources(), &message, wire(), deadline)
}

fn collocated_calls(orb: &Orb) -> &CollocatedCalls {
    &RequestServer::of(orb).expect("the adapter is installed").collocated_calls
}

fn shut_down(orb: &Orb, timeout: Duration) {
    collocated_calls(orb).shut_down(&orb.resources().running_calls, time::Deadline::after(timeout));
}

/// Checks the outcome of a call that the shutdown has not cut short.
fn check_answered(outcome: Result<Reply, CallFailure>) {
    let reply = outcome.expect("it is answered in any case");
    assert!(matches!(reply.status(), Some(ReplyStatus::NoException | ReplyStatus::SystemException)));
}

#[test]
fn each_collocated_call_is_answered_once_before_shutdown_ends() {
    check(4000, || {
        let orb = Orb::builder().build().unwrap();
        let desk = Arc::new(Desk::default());
        let _ = crate::install_adapter(&orb, Arc::new(OneServant(Arc::clone(&desk))));
        let serving = thread::spawn({
            let desk = Arc::clone(&desk);
            move || desk.serve()
        });
        let calling: Vec<_> = (0..2)
            .map(|_| {
                let orb = orb.clone();
                thread::spawn(move || check_answered(call(&orb, None)))
            })
            .collect();
        desk.await_begun(2);
        shut_down(&orb, NEVER);
        calling.into_iter().for_each(|caller| caller.join().expect("it did not panic"));
        desk.stop();
        serving.join().expect("it did not panic");
    });
}

#[test]
fn an_abandoned_collocated_call_learns_its_end_once() {
    check(4000, || {
        let orb = Orb::builder().build().unwrap();
        let desk = Arc::new(Desk::default());
        let _ = crate::install_adapter(&orb, Arc::new(OneServant(Arc::clone(&desk))));
        let calling = thread::spawn({
            let orb = orb.clone();
            move || match call(&orb, None) {
                Ok(reply) => check_answered(Ok(reply)),
                Err(failure) => {
                    let exception = failure.exception;
                    assert_eq!(exception.kind(), SystemExceptionKind::CommFailure);
                    assert_eq!(exception.completed(), CompletionStatus::Maybe);
                }
            }
        });
        desk.await_begun(1);
        desk.stop();
        let serving = thread::spawn({
            let desk = Arc::clone(&desk);
            move || desk.serve()
        });
        shut_down(&orb, Duration::ZERO);
        calling.join().expect("it did not panic");
        serving.join().expect("it did not panic");
    });
}
