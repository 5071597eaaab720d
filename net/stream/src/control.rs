//! Requests of an application to the modules of a stream.

use std::fmt;
use std::time::Duration;

use spandrel_message::MessageBlock;
use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, Condition, Mutex};

use crate::WaterMarks;

/// A question or an instruction that a control message carries to a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// The water marks of the module's queues.
    WaterMarks,
    /// Changes the water marks of the module's queues.
    SetWaterMarks(WaterMarks),
    /// Stops the processing of queued messages in the module; queues fill, and flow control stops the modules before.
    Stop,
    /// Lets the module go on.
    Start,
    /// A request of its own kind, which tasks define.
    Custom(u32),
}

/// The answer of a module to a [`Query`].
#[derive(Debug)]
pub enum Answer {
    /// The water marks of both queues.
    WaterMarks {
        /// Those of the reader.
        reader: WaterMarks,
        /// Those of the writer.
        writer: WaterMarks,
    },
    /// The instruction was carried out.
    Done,
    /// The answer to a request of the tasks' own kind.
    Custom(Option<MessageBlock>),
}

/// The reason why a control message got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// No module has the name, or none knows the request.
    #[error("no module of the stream answers the request")]
    Unanswered,
    /// There was no answer in time.
    #[error("no answer came in time")]
    TimedOut,
    /// The stream is closed.
    #[error("the stream is closed")]
    Closed,
}

/// A request on its way through the modules. It passes queues, so that it arrives also where flow control holds data.
pub struct Request {
    module: Option<String>,
    query: Query,
    reply: Arc<Reply>,
}

/// The place of the answer, for the thread that waits for it.
#[derive(Default)]
pub(crate) struct Reply {
    state: Mutex<ReplyState>,
    changed: Condition,
}

#[derive(Default)]
enum ReplyState {
    #[default]
    Waiting,
    Answered(Answer),
    Dropped,
}

impl Request {
    /// A request to the module of that name, or to the first that knows it.
    pub(crate) fn new(module: Option<&str>, query: Query) -> (Self, Arc<Reply>) {
        let reply = Arc::<Reply>::default();
        (Self { module: module.map(str::to_owned), query, reply: Arc::clone(&reply) }, reply)
    }

    /// The question or the instruction that the module is to answer.
    #[must_use]
    pub fn query(&self) -> Query {
        self.query
    }

    /// Whether it is for the module of this name.
    #[must_use]
    pub fn is_for(&self, module: &str) -> bool {
        self.module.as_deref().is_none_or(|name| name == module)
    }

    /// Answers the request, and wakes its sender.
    pub fn answer(self, answer: Answer) {
        *self.reply.state.lock() = ReplyState::Answered(answer);
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let mut state = self.reply.state.lock();
        if matches!(*state, ReplyState::Waiting) {
            *state = ReplyState::Dropped;
        }
        drop(state);
        self.reply.changed.notify_all();
    }
}

impl Reply {
    /// Waits for the answer.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<Answer, ControlError> {
        let deadline = Deadline::after(timeout);
        let mut state = self.state.lock();
        loop {
            match std::mem::take(&mut *state) {
                ReplyState::Answered(answer) => return Ok(answer),
                ReplyState::Dropped => return Err(ControlError::Unanswered),
                ReplyState::Waiting => {}
            }
            if deadline.is_over() {
                return Err(ControlError::TimedOut);
            }
            self.changed.wait_until(&mut state, deadline);
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("module", &self.module).field("query", &self.query).finish_non_exhaustive()
    }
}
