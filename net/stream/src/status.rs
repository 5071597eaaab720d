//! The state of a stream, for people who watch it.

use std::fmt::Write as _;

use spandrel_metrics::{Kind, escape_label, write_header, write_sample};

use crate::module::{ModuleCore, TaskSlot};
use crate::{LockWaits, QueueStrategy, Side, TaskQueue, WaterMarks};

/// The state of a stream ([`Stream::status`](crate::Stream::status)). Each of its numbers was right at a moment of the
/// call, but not all at the same one.
#[derive(Clone, Debug)]
pub struct StreamStatus {
    /// The name that the stream was made with.
    pub name: String,
    /// Whether the whole stream is suspended.
    pub is_suspended: bool,
    /// Its modules, from the head to the tail.
    pub modules: Vec<ModuleStatus>,
}

/// The tasks of a module at one moment.
#[derive(Clone, Debug)]
pub struct ModuleStatus {
    /// The name by which the stream knows the module.
    pub name: String,
    /// Whether a control message has stopped it.
    pub is_stopped: bool,
    /// Its task for messages on their way up.
    pub reader: TaskStatus,
    /// Its task for messages on their way down.
    pub writer: TaskStatus,
}

/// The counts and the queue of a task at one moment.
#[derive(Clone, Debug)]
pub struct TaskStatus {
    /// The messages that it has received since it was made.
    pub received: u64,
    /// The threads that run its `svc`; none where messages are processed in the threads of others.
    pub threads: usize,
    /// Whether all its threads have panicked.
    pub has_failed: bool,
    /// The messages in its queue, not yet taken by a thread.
    pub messages: usize,
    /// The octets of those messages.
    pub octets: usize,
    /// The octets and items at which the queue's flow control begins and ends.
    pub marks: WaterMarks,
    /// Whether producers wait for room in the queue.
    pub is_flow_controlled: bool,
    /// The waits for the queue's lock.
    pub lock_waits: LockWaits,
}

impl ModuleStatus {
    pub(crate) fn from_module<L: QueueStrategy>(module: &ModuleCore<L>) -> Self {
        Self {
            name: module.name.clone(),
            is_stopped: module.is_stopped(),
            reader: TaskStatus::from_slot(module.slot(Side::Reader)),
            writer: TaskStatus::from_slot(module.slot(Side::Writer)),
        }
    }
}

impl TaskStatus {
    fn from_slot<L: QueueStrategy>(task: &TaskSlot<L>) -> Self {
        let queue = &task.queue;
        Self {
            received: task.received.total(),
            threads: task.threads.running(),
            has_failed: task.has_failed(),
            messages: queue.len(),
            octets: queue.octets(),
            marks: queue.water_marks(),
            is_flow_controlled: queue.is_full(),
            lock_waits: queue.lock_waits(),
        }
    }
}

/// A family of metrics with a series for each task: its name, help, type, and the number.
type TaskFamily = (&'static str, &'static str, Kind, fn(&TaskStatus) -> f64);

/// The families of tasks.
const TASK_FAMILIES: [TaskFamily; 8] = [
    ("spandrel_stream_messages_total", "Messages that the task has received.", Kind::Counter, |task| {
        task.received as f64
    }),
    ("spandrel_stream_queue_messages", "Messages in the task's queue.", Kind::Gauge, |task| task.messages as f64),
    ("spandrel_stream_queue_octets", "Octets of the messages in the task's queue.", Kind::Gauge, |task| {
        task.octets as f64
    }),
    ("spandrel_stream_queue_high_octets", "High water mark of the task's queue.", Kind::Gauge, |task| {
        task.marks.high as f64
    }),
    ("spandrel_stream_flow_controlled", "Whether producers wait for room in the queue.", Kind::Gauge, |task| {
        f64::from(u8::from(task.is_flow_controlled))
    }),
    ("spandrel_stream_threads", "Threads of the task that have not ended.", Kind::Gauge, |task| task.threads as f64),
    (
        "spandrel_stream_lock_waits_total",
        "Times that a thread waited for the lock of the task's queue.",
        Kind::Counter,
        |task| task.lock_waits.count as f64,
    ),
    ("spandrel_stream_lock_wait_seconds_total", "Time of these waits.", Kind::Counter, |task| {
        task.lock_waits.time.as_secs_f64()
    }),
];

impl StreamStatus {
    /// Renders the numbers in Prometheus' text exposition format 0.0.4: a series for each task with the labels `module` and
    /// `side` (`reader` or `writer`). `position` counts modules from the head.
    #[must_use]
    pub fn render_metrics(&self) -> String {
        let mut text = String::new();
        let stopped = "spandrel_stream_module_stopped";
        write_header(&mut text, stopped, "Whether the module, or the whole stream, waits.", Kind::Gauge);
        for (position, module) in self.modules.iter().enumerate() {
            let labels = format!("module=\"{}\",position=\"{position}\"", escape_label(&module.name));
            write_sample(&mut text, stopped, &labels, u8::from(module.is_stopped || self.is_suspended));
        }
        for (name, help, kind, number) in TASK_FAMILIES {
            write_header(&mut text, name, help, kind);
            for module in &self.modules {
                for (side, task) in [("reader", &module.reader), ("writer", &module.writer)] {
                    let mut labels = String::new();
                    _ = write!(labels, "module=\"{}\",side=\"{side}\"", escape_label(&module.name));
                    write_sample(&mut text, name, &labels, number(task));
                }
            }
        }
        text
    }
}
