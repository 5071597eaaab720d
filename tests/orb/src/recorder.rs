//! Interceptors that record their interception points and act as planned.

use std::{
    collections::HashMap,
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

use spandrel::{
    ObjectRef, Orb, OrbBuilder, SystemException,
    interception::{
        ClientRequestInfo, ClientRequestInterceptor, Interceptor, Interruption, RaisedException, ReplyStatus,
        ServerRequestInfo, ServerRequestInterceptor,
    },
};

use crate::support::TEST_TIMEOUT;

/// An action at an interception point beside recording it.
#[derive(Clone)]
pub enum PlannedAction {
    Raise(SystemException),
    Forward(ObjectRef),
    Panic,
}

/// The record of several interceptors, and their planned actions.
#[derive(Clone, Default)]
pub struct Log(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    entries: Vec<String>,
    plans: HashMap<String, PlannedAction>,
}

impl Log {
    /// Returns and removes the entries recorded so far.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.state().entries)
    }

    /// Waits until there are `count` entries, then takes them: other threads may still be recording.
    ///
    /// # Panics
    /// If there are fewer after [`TEST_TIMEOUT`].
    #[track_caller]
    pub fn take_all(&self, count: usize) -> Vec<String> {
        let (state, changed) = &*self.0;
        let state = state.lock().unwrap();
        let (mut state, waited) =
            changed.wait_timeout_while(state, TEST_TIMEOUT, |state| state.entries.len() < count).unwrap();
        assert!(!waited.timed_out(), "of {count} entries there are {:?}", state.entries);
        std::mem::take(&mut state.entries)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap()
    }

    /// Plans an action for the next time that an interception point (`A.send_request`) is reached.
    pub fn plan(&self, point: &str, action: PlannedAction) {
        self.state().plans.insert(point.to_owned(), action);
    }

    pub fn record(&self, entry: String) {
        self.state().entries.push(entry);
        self.0.1.notify_all();
    }

    /// Records a point, and does what was planned for it.
    ///
    /// # Errors
    /// The planned exception or forwarding.
    ///
    /// # Panics
    /// If that was planned.
    pub fn record_and_act(&self, point: String, with: &str) -> Result<(), Interruption> {
        let mut state = self.state();
        state.entries.push(format!("{point}{with}"));
        let action = state.plans.remove(&point);
        drop(state);
        self.0.1.notify_all();
        match action {
            None => Ok(()),
            Some(PlannedAction::Raise(exception)) => Err(exception.into()),
            Some(PlannedAction::Forward(target)) => Err(Interruption::ForwardRequest(target)),
            Some(PlannedAction::Panic) => panic!("as planned"),
        }
    }
}

/// An interceptor that records into a log.
pub struct Recorder {
    pub name: &'static str,
    pub log: Log,
}

impl Recorder {
    fn record_and_act(&self, point: &str, with: &str) -> Result<(), Interruption> {
        self.log.record_and_act(format!("{}.{point}", self.name), with)
    }

    fn raise(&self, point: &str, with: &str) -> Result<(), SystemException> {
        match self.record_and_act(point, with) {
            Err(Interruption::System(exception)) => Err(exception),
            Err(Interruption::ForwardRequest(_)) => panic!("`{point}` forwards nothing"),
            Ok(()) => Ok(()),
        }
    }
}

/// The suffix that records a reply status.
fn status_suffix(status: ReplyStatus) -> String {
    format!(" {status:?}")
}

fn exception_suffix(exception: &RaisedException) -> String {
    match exception.system() {
        Some(system) => format!(" {} {}", system.kind().name(), system.completed()),
        None => format!(" {}", exception.repository_id()),
    }
}

impl Interceptor for Recorder {
    fn name(&self) -> &str {
        self.name
    }

    fn destroy(&self) {
        self.log.record(format!("{}.destroy", self.name));
    }
}

impl ClientRequestInterceptor for Recorder {
    fn send_request(&self, _: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.record_and_act("send_request", "")
    }

    fn send_poll(&self, _: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        self.raise("send_poll", "")
    }

    fn receive_reply(&self, _: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        self.raise("receive_reply", "")
    }

    fn receive_exception(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.record_and_act("receive_exception", &exception_suffix(info.received_exception()?))
    }

    fn receive_other(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.record_and_act("receive_other", &status_suffix(info.reply_status()?))
    }
}

impl ServerRequestInterceptor for Recorder {
    fn receive_request_service_contexts(&self, _: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.record_and_act("receive_request_service_contexts", "")
    }

    fn receive_request(&self, _: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.record_and_act("receive_request", "")
    }

    fn send_reply(&self, _: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        self.raise("send_reply", "")
    }

    fn send_exception(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.record_and_act("send_exception", &exception_suffix(info.sending_exception()?))
    }

    fn send_other(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.record_and_act("send_other", &status_suffix(info.reply_status()?))
    }
}

/// Adds three server interceptors that record into one log: `A`, `B` and `C`.
pub fn server_recording(mut builder: OrbBuilder, log: &Log) -> OrbBuilder {
    for name in ["A", "B", "C"] {
        builder = builder.server_request_interceptor(Recorder { name, log: log.clone() }).unwrap();
    }
    builder
}

/// Builds an ORB with three client interceptors that record into one log: `A`, `B` and `C`.
pub fn client_recording(builder: OrbBuilder, log: &Log) -> Orb {
    let mut builder = builder;
    for name in ["A", "B", "C"] {
        builder = builder.client_request_interceptor(Recorder { name, log: log.clone() }).unwrap();
    }
    builder.build().unwrap()
}
