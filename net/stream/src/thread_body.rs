//! The threads of tasks.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use spandrel_sync::{Arc, ThreadContext, thread};

use crate::flow::TaskThreads;
use crate::module::ModuleCore;
use crate::strategy::Operations;
use crate::stream_core::{StreamCore, StreamRoute, ThreadBody};
use crate::task::{Place, Route, TaskThread};
use crate::wait::WaitEnd;
use crate::{DequeueError, Message, QueueStrategy, ServiceContext, Side};

/// The time between two looks of a thread without a queue at a suspended stream.
const SUSPENSION_CHECK: Duration = Duration::from_millis(10);

/// The function of the threads of a task.
pub(crate) fn make<L: QueueStrategy>(stream: &Arc<StreamCore<L>>, module: &Arc<ModuleCore<L>>, side: Side) -> ThreadBody
where
    L::Queue: Send + Sync,
{
    let (stream, module) = (Arc::clone(stream), Arc::clone(module));
    Box::new(move |thread| run(&stream, &module, side, thread))
}

/// Runs the task's `svc` in this thread.
fn run<L: QueueStrategy>(stream: &Arc<StreamCore<L>>, module: &Arc<ModuleCore<L>>, side: Side, thread: &ThreadContext) {
    let slot = module.slot(side);
    let pulses = slot.queue.pulse_count();
    let topology = stream.topology();
    let position = topology.position_of(module);
    module.thread_began();
    let Some(position) = position else {
        slot.thread_ended(false); // the stream was closed at once
        return;
    };
    let route = StreamRoute { stream: Arc::clone(stream), topology };
    let mut running = Running { module, route, place: Place { module: position, side }, pulses };
    let done = panic::catch_unwind(AssertUnwindSafe(|| {
        slot.task.svc(&mut ServiceContext { running: &mut running, thread });
    }));
    if let Err(payload) = done {
        let (stream, module, reason) = (&stream.name, &module.name, panic_text(&*payload));
        tracing::error!(stream, module, ?side, reason, "a thread of a task has panicked");
        slot.thread_ended(true);
    } else {
        slot.thread_ended(false);
    }
}

/// The message of a panic.
fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// A thread of a task in its stream.
struct Running<'s, L: QueueStrategy> {
    module: &'s Arc<ModuleCore<L>>,
    /// The stream, with a list of modules in which this one is.
    route: StreamRoute<L>,
    place: Place,
    /// The changes of the stream that are known, as pulses of the queue.
    pulses: u64,
}

impl<L: QueueStrategy> Running<'_, L> {
    /// Continues with the stream's present modules. A removed module keeps its last neighbours.
    fn refresh(&mut self) {
        if self.route.stream.is_present(&self.route.topology) {
            return;
        }
        let topology = self.route.stream.topology();
        if let Some(module) = topology.position_of(self.module) {
            self.route.topology = topology;
            self.place.module = module;
        }
    }
}

impl<L: QueueStrategy> TaskThread<L> for Running<'_, L> {
    fn take(&mut self, end: WaitEnd) -> Result<Message, DequeueError> {
        loop {
            let message = self.module.slot(self.place.side).queue.take(&mut self.pulses, end);
            self.refresh();
            match message {
                Err(DequeueError::Pulsed) => {} // the stream has changed
                message => return message,
            }
        }
    }

    fn wait_until_running(&mut self) -> bool {
        loop {
            if self.module.slot(self.place.side).queue.has_ended() {
                return false;
            }
            if !self.module.is_stopped() && !*self.route.stream.is_suspended.lock() {
                self.refresh();
                return true;
            }
            thread::park_timeout(SUSPENSION_CHECK);
        }
    }

    fn route(&self) -> &dyn Route<L> {
        &self.route
    }

    fn place(&self) -> Place {
        self.place
    }

    fn threads(&self) -> &Arc<TaskThreads> {
        &self.module.slot(self.place.side).threads
    }
}
