//! Interceptors that note where they are called, and raise what they are told to.

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

use crate::support::PATIENCE;

/// What is done at a point besides noting it.
#[derive(Clone)]
pub enum Act {
    Raise(SystemException),
    Forward(ObjectRef),
    Panic,
}

/// What several interceptors have noted, and what they are to do.
#[derive(Clone, Default)]
pub struct Log(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    notes: Vec<String>,
    plans: HashMap<String, Act>,
}

impl Log {
    /// What was noted since the last time.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.state().notes)
    }

    /// The same, once there are so many: other threads may be about to note them.
    ///
    /// # Panics
    /// If there never are.
    #[track_caller]
    pub fn take_all(&self, count: usize) -> Vec<String> {
        let (state, changed) = &*self.0;
        let state = state.lock().unwrap();
        let (mut state, waited) =
            changed.wait_timeout_while(state, PATIENCE, |state| state.notes.len() < count).unwrap();
        assert!(!waited.timed_out(), "of {count} notes there are {:?}", state.notes);
        std::mem::take(&mut state.notes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap()
    }

    /// Does something at a point, the next time that it is reached: `A.send_request`.
    pub fn plan(&self, point: &str, act: Act) {
        self.state().plans.insert(point.to_owned(), act);
    }

    pub fn note(&self, note: String) {
        self.state().notes.push(note);
        self.0.1.notify_all();
    }

    fn pass(&self, point: String, with: &str) -> Result<(), Interruption> {
        let mut state = self.state();
        state.notes.push(format!("{point}{with}"));
        let act = state.plans.remove(&point);
        drop(state);
        self.0.1.notify_all();
        match act {
            None => Ok(()),
            Some(Act::Raise(exception)) => Err(exception.into()),
            Some(Act::Forward(target)) => Err(Interruption::ForwardRequest(target)),
            Some(Act::Panic) => panic!("as planned"),
        }
    }
}

/// One interceptor of a log.
pub struct Recorder {
    pub name: &'static str,
    pub log: Log,
}

impl Recorder {
    fn pass(&self, point: &str, with: &str) -> Result<(), Interruption> {
        self.log.pass(format!("{}.{point}", self.name), with)
    }

    fn raise(&self, point: &str, with: &str) -> Result<(), SystemException> {
        match self.pass(point, with) {
            Err(Interruption::System(exception)) => Err(exception),
            Err(Interruption::ForwardRequest(_)) => panic!("`{point}` forwards nothing"),
            Ok(()) => Ok(()),
        }
    }
}

/// How an ending is noted.
fn noted(status: ReplyStatus) -> String {
    format!(" {status:?}")
}

fn noted_exception(exception: &RaisedException) -> String {
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
        self.log.note(format!("{}.destroy", self.name));
    }
}

impl ClientRequestInterceptor for Recorder {
    fn send_request(&self, _: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.pass("send_request", "")
    }

    fn send_poll(&self, _: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        self.raise("send_poll", "")
    }

    fn receive_reply(&self, _: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        self.raise("receive_reply", "")
    }

    fn receive_exception(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.pass("receive_exception", &noted_exception(info.received_exception()?))
    }

    fn receive_other(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.pass("receive_other", &noted(info.reply_status()?))
    }
}

impl ServerRequestInterceptor for Recorder {
    fn receive_request_service_contexts(&self, _: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.pass("receive_request_service_contexts", "")
    }

    fn receive_request(&self, _: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.pass("receive_request", "")
    }

    fn send_reply(&self, _: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        self.raise("send_reply", "")
    }

    fn send_exception(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.pass("send_exception", &noted_exception(info.sending_exception()?))
    }

    fn send_other(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.pass("send_other", &noted(info.reply_status()?))
    }
}

/// What makes an ORB whose server interceptors are three of a log: `A`, `B` and `C`.
pub fn server_recording(mut builder: OrbBuilder, log: &Log) -> OrbBuilder {
    for name in ["A", "B", "C"] {
        builder = builder.server_request_interceptor(Recorder { name, log: log.clone() }).unwrap();
    }
    builder
}

/// An ORB whose client interceptors are three of a log: `A`, `B` and `C`.
pub fn client_recording(builder: OrbBuilder, log: &Log) -> Orb {
    let mut builder = builder;
    for name in ["A", "B", "C"] {
        builder = builder.client_request_interceptor(Recorder { name, log: log.clone() }).unwrap();
    }
    builder.build().unwrap()
}
