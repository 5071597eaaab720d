//! Modules: a reader and a writer task under one name.

use std::fmt;

use spandrel_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, Condition, Mutex, ThreadGroup, ThreadManager};

use crate::counter::Counter;
use crate::excess::Excess;
use crate::flow::TaskThreads;
use crate::strategy::Operations;
use crate::{Context, Message, PutError, QueueStrategy, Side, Task, TaskQueue, WaterMarks};

/// The name of the module at the upper end, with which the application exchanges messages.
pub const HEAD: &str = "head";
/// The name of the module at the lower end.
pub const TAIL: &str = "tail";

/// A layer of a stream: a name, a task for messages on their way up (reader), and one for those on their way down
/// (writer) (`ACE_Module`; paper 002, 2.3.1).
pub struct Module<L: QueueStrategy = Mutex> {
    pub(crate) name: String,
    pub(crate) reader: Box<dyn Task<L>>,
    pub(crate) writer: Box<dyn Task<L>>,
    pub(crate) marks: WaterMarks,
}

impl<L: QueueStrategy> Module<L> {
    /// A module of these tasks, whose queues have the default water marks.
    pub fn new(name: impl Into<String>, reader: impl Task<L>, writer: impl Task<L>) -> Self {
        let (reader, writer) = (Box::new(reader), Box::new(writer));
        Self { name: name.into(), reader, writer, marks: WaterMarks::DEFAULT }
    }

    /// A module that processes messages on their way down only.
    pub fn writer(name: impl Into<String>, writer: impl Task<L>) -> Self {
        Self::new(name, PassThrough, writer)
    }

    /// A module that processes messages on their way up only.
    pub fn reader(name: impl Into<String>, reader: impl Task<L>) -> Self {
        Self::new(name, reader, PassThrough)
    }

    /// Sets the limits of the queues of both tasks.
    #[must_use]
    pub fn water_marks(mut self, marks: WaterMarks) -> Self {
        self.marks = marks;
        self
    }
}

impl<L: QueueStrategy> fmt::Debug for Module<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("name", &self.name).field("marks", &self.marks).finish_non_exhaustive()
    }
}

/// A task that passes every message on.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassThrough;

impl<L: QueueStrategy> Task<L> for PassThrough {
    fn put(&self, context: &Context<'_, L>, message: Message) -> Result<(), PutError> {
        context.put_next(message)
    }
}

/// A task with its queue and its threads.
pub(crate) struct TaskSlot<L: QueueStrategy> {
    pub(crate) task: Box<dyn Task<L>>,
    pub(crate) queue: L::Queue,
    pub(crate) threads: Arc<TaskThreads>,
    /// The messages that the task has received.
    pub(crate) received: Counter,
    /// A thread has panicked.
    has_panicked: AtomicBool,
    /// All threads have ended, and one at least has panicked.
    has_failed: AtomicBool,
}

impl<L: QueueStrategy> TaskSlot<L> {
    fn new(task: Box<dyn Task<L>>, marks: WaterMarks, excess: &Arc<Excess>) -> Self {
        let (queue, threads) = (L::Queue::with_limits(marks, Arc::clone(excess)), Arc::<TaskThreads>::default());
        let (received, has_panicked, has_failed) = (Counter::default(), AtomicBool::new(false), AtomicBool::new(false));
        Self { task, queue, threads, received, has_panicked, has_failed }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Called by each thread at its end. After a panic and the end of the last one, nothing would take what is queued:
    /// producers get an error instead of a wait without an end.
    pub(crate) fn thread_ended(&self, has_panicked: bool) {
        self.has_panicked.fetch_or(has_panicked, Ordering::SeqCst);
        if self.threads.ended() && self.has_panicked.load(Ordering::SeqCst) {
            self.has_failed.store(true, Ordering::Release);
            self.queue.flush();
            self.queue.end();
        }
    }
}

/// A module in a stream. Its tasks are closed when nothing refers to it any more: no topology, no thread.
pub(crate) struct ModuleCore<L: QueueStrategy> {
    pub(crate) name: String,
    /// The place in the stream, which a replacement takes over.
    slot: AtomicU64,
    reader: TaskSlot<L>,
    writer: TaskSlot<L>,
    /// The threads of both tasks, held until the module is part of the stream.
    group: Mutex<Option<ThreadGroup>>,
    is_removed: AtomicBool,
    /// A control message has stopped it.
    is_stopped: AtomicBool,
    is_open: [AtomicBool; 2],
    /// The number of threads that were started, and of those that have found their place in the stream.
    threads: Mutex<(usize, usize)>,
    thread_began: Condition,
    /// The last field: the tasks are dropped before the end is told.
    end: End,
}

/// Tells the end of a module when it is dropped.
#[derive(Default)]
struct End(Arc<Ended>);

impl Drop for End {
    fn drop(&mut self) {
        *self.0.has_ended.lock() = true;
        self.0.changed.notify_all();
    }
}

/// The end of a module.
#[derive(Default)]
pub(crate) struct Ended {
    has_ended: Mutex<bool>,
    changed: Condition,
}

impl Ended {
    /// Waits until the module's tasks are closed and dropped.
    pub(crate) fn wait(&self, deadline: Deadline) -> bool {
        let mut has_ended = self.has_ended.lock();
        while !*has_ended {
            if deadline.is_over() {
                return false;
            }
            self.changed.wait_until(&mut has_ended, deadline);
        }
        true
    }
}

impl<L: QueueStrategy> ModuleCore<L> {
    pub(crate) fn new(module: Module<L>, slot: u64, excess: &Arc<Excess>) -> Self {
        let Module { name, reader, writer, marks } = module;
        Self {
            name,
            slot: AtomicU64::new(slot),
            reader: TaskSlot::new(reader, marks, excess),
            writer: TaskSlot::new(writer, marks, excess),
            group: Mutex::new(None),
            is_removed: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            is_open: [AtomicBool::new(false), AtomicBool::new(false)],
            threads: Mutex::new((0, 0)),
            thread_began: Condition::new(),
            end: End::default(),
        }
    }

    #[inline]
    pub(crate) fn slot(&self, side: Side) -> &TaskSlot<L> {
        match side {
            Side::Reader => &self.reader,
            Side::Writer => &self.writer,
        }
    }

    pub(crate) fn slot_id(&self) -> u64 {
        self.slot.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Acquire)
    }

    /// Marks it as removed, after the stream's topology without it was published.
    pub(crate) fn set_removed(&self) {
        self.is_removed.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    pub(crate) fn set_stopped(&self, is_stopped: bool) {
        self.is_stopped.store(is_stopped, Ordering::SeqCst);
    }

    /// Records that a task was opened, and has to be closed.
    pub(crate) fn opened(&self, side: Side) {
        self.is_open[side as usize].store(true, Ordering::SeqCst);
    }

    pub(crate) fn ended(&self) -> Arc<Ended> {
        Arc::clone(&self.end.0)
    }

    /// The group of the tasks' threads, which begin with [`release`](Self::release).
    pub(crate) fn group(&self, threads: &ThreadManager) -> ThreadGroup {
        self.group.lock().get_or_insert_with(|| threads.held_group(&self.name)).clone()
    }

    pub(crate) fn threads_started(&self, threads: usize) {
        self.threads.lock().0 += threads;
    }

    pub(crate) fn thread_began(&self) {
        self.threads.lock().1 += 1;
        self.thread_began.notify_all();
    }

    /// Waits until all threads have found their place in the stream. They need it for what is queued when the module is
    /// taken out.
    pub(crate) fn until_threads_began(&self) {
        let mut threads = self.threads.lock();
        while threads.1 < threads.0 {
            self.thread_began.wait(&mut threads);
        }
    }

    /// Lets the threads begin.
    pub(crate) fn release(&self) {
        self.group.lock().as_ref().inspect(|group| group.release());
    }

    /// Discards threads that have not begun.
    pub(crate) fn cancel(&self) {
        self.group.lock().as_ref().inspect(|group| group.cancel());
    }
}

impl<L: QueueStrategy> Drop for ModuleCore<L> {
    fn drop(&mut self) {
        for side in [Side::Reader, Side::Writer] {
            if self.is_open[side as usize].load(Ordering::SeqCst) {
                self.slot(side).task.close();
            }
        }
    }
}
