//! Streams: modules between an application and a device or another stream.

use std::fmt;
use std::time::Duration;

use spandrel_message::MessageBlock;
use spandrel_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, Condition, Mutex, RwLock, ThreadManager};

use crate::control::{Answer, ControlError, Query, Request};
use crate::ends::End;
use crate::excess::Excess;
use crate::flow::TaskThreads;
use crate::module::{Ended, HEAD, ModuleCore, TAIL};
use crate::strategy::Operations;
use crate::stream_core::{Beyond, MakeThreadBody, StreamCore, linking};
use crate::task::Sender;
use crate::thread_body;
use crate::topology::Topology;
use crate::wait::WaitEnd;
use crate::{
    DequeueError, Flush, Message, MessageKind, Module, ModuleStatus, OpenContext, PutError, PutFailure, QueueStrategy,
    Side, StreamStatus, TaskError, TaskQueue, Wait,
};

/// The greatest number of modules between head and tail.
pub const MAX_MODULES: usize = 256;

/// The reason for which a stream was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// There is no module of the name.
    #[error("the stream `{stream}` has no module `{module}`; it has {present}")]
    NoModule {
        /// The name of the stream.
        stream: String,
        /// The name that was looked up.
        module: String,
        /// The names of its modules.
        present: String,
    },
    /// There is a module of the name already.
    #[error("the stream `{stream}` has a module `{module}` already")]
    Duplicate {
        /// The name of the stream.
        stream: String,
        /// The name that both modules have.
        module: String,
    },
    /// It has as many modules as it may have.
    #[error("the stream `{0}` has {MAX_MODULES} modules already")]
    TooManyModules(String),
    /// A task refuses to open.
    #[error("module `{module}` of the stream `{stream}`: {reason}")]
    Open {
        /// The name of the stream.
        stream: String,
        /// The name of the module.
        module: String,
        /// The reason that the task gave.
        reason: String,
    },
    /// The stream of this name is closed.
    #[error("the stream `{0}` is closed")]
    Closed(String),
    /// Its tail or that of the other stream is linked already.
    #[error("the stream `{0}` is linked already")]
    Linked(String),
    /// Messages would come back to the stream from which they started.
    #[error("the link from `{0}` to `{1}` would close a circle")]
    Circle(String, String),
    /// Threads of modules have not ended in time.
    #[error("threads of the stream `{stream}` have not ended after {timeout:?}, in: {modules}")]
    StillRunning {
        /// The name of the stream.
        stream: String,
        /// The time limit that has passed.
        timeout: Duration,
        /// The names of the modules.
        modules: String,
    },
}

/// A module that was taken out of a stream. Its threads may still process what it has queued.
#[derive(Clone)]
pub struct Removal(Arc<Ended>);

impl Removal {
    /// Waits until its threads have ended and its tasks are closed; returns whether they are.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        self.0.wait(Deadline::after(timeout))
    }
}

impl fmt::Debug for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Removal").field("has_ended", &self.0.wait(Deadline::after(Duration::ZERO))).finish()
    }
}

/// A series of modules, from a head, with which the application exchanges messages, to a tail (`ACE_Stream`; paper 002,
/// 2.3).
///
/// Modules are inserted and removed while messages flow. A message passes the modules that were there when it entered
/// the stream or was taken from a queue, except those that were removed since then; one that was replaced is passed by
/// its replacement. Dropping the stream closes it.
pub struct Stream<L: QueueStrategy = Mutex> {
    core: Arc<StreamCore<L>>,
}

impl<L: QueueStrategy> Stream<L>
where
    L::Queue: Send + Sync,
{
    /// A stream without modules between the usual head and tail.
    ///
    /// The head queues messages for [`get`](Self::get), unless a [`Multiplexor`](crate::Multiplexor) is above. The tail
    /// passes messages to a linked stream or to a multiplexor below; without these it refuses them.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self::with(name.into(), Some(thread_body::make))
    }
}

impl<L: QueueStrategy> Stream<L> {
    /// As [`new`](Stream::new), with a locking strategy that may be for one thread alone, such as
    /// [`NullMutex`](spandrel_sync::NullMutex). Its modules have no threads.
    #[must_use]
    pub fn for_one_thread(name: impl Into<String>) -> Self {
        Self::with(name.into(), None)
    }

    fn with(name: String, make_thread_body: Option<MakeThreadBody<L>>) -> Self {
        let head = Module::new(HEAD, End(Side::Reader), End(Side::Reader));
        let tail = Module::new(TAIL, End(Side::Writer), End(Side::Writer));
        let excess = Arc::<Excess>::default();
        let modules = [head, tail].into_iter().zip(0..);
        let modules = modules.map(|(module, slot)| Arc::new(ModuleCore::new(module, slot, &excess))).collect();
        Self {
            core: Arc::new(StreamCore {
                name,
                topology: RwLock::new(Arc::new(Topology { modules })),
                change: Mutex::new(()),
                next_slot: AtomicU64::new(2),
                excess,
                threads: ThreadManager::new(),
                make_thread_body,
                is_closed: AtomicBool::new(false),
                is_suspended: Mutex::new(false),
                resumed: Condition::new(),
                above: RwLock::new(None),
                below: RwLock::new(None),
            }),
        }
    }

    /// The name that the stream was made with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    pub(crate) fn core(&self) -> &Arc<StreamCore<L>> {
        &self.core
    }

    /// The names of the modules, from the head to the tail.
    #[must_use]
    pub fn modules(&self) -> Vec<String> {
        self.core.topology().modules.iter().map(|module| module.name.clone()).collect()
    }

    /// Inserts a module below the head.
    ///
    /// # Errors
    /// [`StreamError`]; the stream is unchanged then.
    pub fn push(&self, module: Module<L>) -> Result<(), StreamError> {
        self.insert(HEAD, module)
    }

    /// Inserts a module below another one; `above` is its name.
    ///
    /// # Errors
    /// [`StreamError`]; the stream is unchanged then.
    pub fn insert(&self, above: &str, module: Module<L>) -> Result<(), StreamError> {
        let _change = self.core.change.lock();
        let topology = self.core.topology();
        let position = self.position(&topology, above)?;
        if above == TAIL {
            return Err(self.no_module(&topology, "a module above the tail"));
        }
        if topology.modules.len() - 2 >= MAX_MODULES {
            return Err(StreamError::TooManyModules(self.core.name.clone()));
        }
        self.check_name(&topology, &module.name)?;
        let slot = self.core.next_slot.fetch_add(1, Ordering::Relaxed);
        let module = self.open(module, slot)?;
        let mut modules = topology.modules.clone();
        modules.insert(position + 1, Arc::clone(&module));
        self.publish(modules);
        module.release();
        Ok(())
    }

    /// Takes the module below the head out.
    ///
    /// # Errors
    /// [`StreamError::NoModule`] if there is none; [`StreamError::Closed`].
    pub fn pop(&self) -> Result<Removal, StreamError> {
        let _change = self.core.change.lock();
        let topology = self.core.topology();
        match &topology.modules[..] {
            [] => Err(self.closed_error()),
            [_, module, _, ..] => Ok(self.take_out(&topology, Arc::clone(module))),
            _ => Err(self.no_module(&topology, "below the head")),
        }
    }

    /// Takes a module out. What it has queued is still processed and passed on, if the module has threads.
    ///
    /// # Errors
    /// [`StreamError::NoModule`], also for the head and the tail; [`StreamError::Closed`].
    pub fn remove(&self, name: &str) -> Result<Removal, StreamError> {
        let _change = self.core.change.lock();
        let topology = self.core.topology();
        let position = self.position_between(&topology, name)?;
        Ok(self.take_out(&topology, Arc::clone(&topology.modules[position])))
    }

    /// Puts a module in the place of another one, in one step.
    ///
    /// # Errors
    /// [`StreamError`]; the stream is unchanged then.
    pub fn replace(&self, name: &str, module: Module<L>) -> Result<Removal, StreamError> {
        let _change = self.core.change.lock();
        let topology = self.core.topology();
        let position = self.position_between(&topology, name)?;
        if module.name != name {
            self.check_name(&topology, &module.name)?;
        }
        let old = Arc::clone(&topology.modules[position]);
        let module = self.open(module, old.slot_id())?;
        old.until_threads_began();
        let mut modules = topology.modules.clone();
        modules[position] = Arc::clone(&module);
        self.publish(modules);
        module.release();
        Ok(end(&old))
    }

    /// The state of its modules, queues and threads at this moment.
    #[must_use]
    pub fn status(&self) -> StreamStatus {
        let modules = self.core.topology().modules.iter().map(|module| ModuleStatus::from_module(module)).collect();
        StreamStatus { name: self.core.name.clone(), is_suspended: *self.core.is_suspended.lock(), modules }
    }

    /// Whether there is a module of the name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.core.topology().position_of_name(name).is_some()
    }

    /// Calls a function with the tasks of a module: reader, then writer; `None` if there is no such module.
    pub fn find<R>(&self, name: &str, act: impl FnOnce(&dyn crate::Task<L>, &dyn crate::Task<L>) -> R) -> Option<R> {
        let topology = self.core.topology();
        let module = &topology.modules[topology.position_of_name(name)?];
        Some(act(&*module.slot(Side::Reader).task, &*module.slot(Side::Writer).task))
    }

    /// Sends a message down from the application.
    ///
    /// `wait` bounds the wait for a suspended stream, and that for each queue.
    ///
    /// # Errors
    /// [`PutError`] with the message.
    pub fn put(&self, message: impl Into<Message>, wait: Wait) -> Result<(), PutError> {
        let message = message.into();
        if !self.until_resumed(wait) {
            return Err(PutError { reason: PutFailure::Full, message });
        }
        self.core.put_down(message, Sender::outside(wait))
    }

    /// Takes a message that has come up to the head.
    ///
    /// # Errors
    /// [`DequeueError::Empty`] if none came in time; [`DequeueError::Closed`].
    pub fn get(&self, wait: Wait) -> Result<Message, DequeueError> {
        let head = self.core.topology().modules.first().cloned().ok_or(DequeueError::Closed)?;
        let queue = &head.slot(Side::Reader).queue;
        let (mut pulses, end) = (queue.pulse_count(), wait.end());
        loop {
            match queue.take(&mut pulses, end) {
                Err(DequeueError::Pulsed) => {} // the stream has changed
                taken => return taken,
            }
        }
    }

    /// Sends a query down through the modules, and waits for the answer of the module of that name, or of the first that
    /// knows it. `data` is the data of a [`Query::Custom`].
    ///
    /// # Errors
    /// [`ControlError`].
    pub fn control(
        &self,
        module: Option<&str>,
        query: Query,
        data: Option<MessageBlock>,
        timeout: Duration,
    ) -> Result<Answer, ControlError> {
        let (request, reply) = Request::new(module, query);
        let mut message = Message::new(MessageKind::Request(request));
        if let Some(data) = data {
            message.set_block(data);
        }
        match self.core.put_down(message, Sender::outside(Wait::For(timeout))) {
            Err(PutError { reason: PutFailure::Closed, .. }) => return Err(ControlError::Closed),
            Err(refused) => drop(refused), // with the request, which then counts as unanswered
            Ok(()) => {}
        }
        reply.wait(timeout)
    }

    /// Discards what is queued in the modules.
    ///
    /// # Errors
    /// [`PutError`] of a task that refuses the control message.
    pub fn flush(&self, flush: Flush) -> Result<(), PutError> {
        self.core.put_down(Message::new(MessageKind::Flush(flush)), Sender::outside(Wait::Never))
    }

    /// Suspends the stream: calls of [`put`](Self::put) wait, and so do the threads of all modules when they take their
    /// next message.
    pub fn suspend(&self) {
        self.set_suspended(true);
    }

    /// Ends a suspension of the whole stream.
    pub fn resume(&self) {
        self.set_suspended(false);
    }

    fn set_suspended(&self, is_suspended: bool) {
        *self.core.is_suspended.lock() = is_suspended;
        self.core.resumed.notify_all();
        for module in &self.core.topology().modules {
            self.core.apply_pauses(module);
        }
    }

    fn until_resumed(&self, wait: Wait) -> bool {
        let mut is_suspended = self.core.is_suspended.lock();
        let end = if *is_suspended { wait.end() } else { WaitEnd::Now };
        while *is_suspended && !self.core.is_closed() {
            match end {
                WaitEnd::Now => return false,
                WaitEnd::At(deadline) => {
                    if self.core.resumed.wait_until(&mut is_suspended, deadline).timed_out() {
                        return !*is_suspended;
                    }
                }
            }
        }
        true
    }

    /// Links the tails of two streams: what comes down in one goes up in the other.
    ///
    /// # Errors
    /// [`StreamError::Linked`]; [`StreamError::Circle`] for a stream with itself; [`StreamError::Closed`].
    pub fn link(&self, other: &Self) -> Result<(), StreamError> {
        let _linking = linking();
        if Arc::ptr_eq(&self.core, &other.core) {
            return Err(StreamError::Circle(self.core.name.clone(), other.core.name.clone()));
        }
        for core in [&self.core, &other.core] {
            if core.is_closed() {
                return Err(StreamError::Closed(core.name.clone()));
            }
            if core.below.read().as_ref().is_some_and(Beyond::is_alive) {
                return Err(StreamError::Linked(core.name.clone()));
            }
        }
        *self.core.below.write() = Some(Beyond::Stream(Arc::downgrade(&other.core)));
        *other.core.below.write() = Some(Beyond::Stream(Arc::downgrade(&self.core)));
        Ok(())
    }

    /// Ends the link of the tail, for both streams, or its attachment to a multiplexor; returns whether there was one.
    pub fn unlink(&self) -> bool {
        let _linking = linking();
        self.core.unlink_below()
    }

    /// Closes the stream: refuses messages, discards what is queued, ends the threads of its modules and closes their
    /// tasks. It may be called again.
    ///
    /// # Errors
    /// [`StreamError::StillRunning`] if threads have not ended in time; they are not stopped.
    pub fn close(&self, timeout: Duration) -> Result<(), StreamError> {
        let _change = self.core.change.lock();
        let topology = self.core.topology();
        let linking = linking();
        self.core.is_closed.store(true, Ordering::Release);
        self.core.unlink_below();
        self.core.unlink_above();
        drop(linking);
        *self.core.topology.write() = Arc::new(Topology { modules: Vec::new() });
        self.set_suspended(false);
        let mut ends = Vec::new();
        for module in &topology.modules {
            let threads = [Side::Reader, Side::Writer].map(|side| Arc::clone(&module.slot(side).threads));
            ends.push((module.name.clone(), module.ended(), threads));
            for side in [Side::Reader, Side::Writer] {
                module.slot(side).queue.flush();
            }
            _ = end(module);
        }
        drop(topology);
        let deadline = Deadline::after(timeout);
        ends.retain(|(_, ended, _)| !ended.wait(deadline));
        if ends.is_empty() {
            return Ok(());
        }
        // A thread keeps the modules around its own.
        let is_running = |threads: &[Arc<TaskThreads>; 2]| threads.iter().any(|threads| threads.running() > 0);
        let running: Vec<_> =
            ends.into_iter().filter(|(_, _, threads)| is_running(threads)).map(|(name, ..)| name).collect();
        Err(StreamError::StillRunning { stream: self.core.name.clone(), timeout, modules: running.join(", ") })
    }

    /// Opens the tasks of a module that is not in the stream yet.
    fn open(&self, module: Module<L>, slot: u64) -> Result<Arc<ModuleCore<L>>, StreamError> {
        let module = Arc::new(ModuleCore::new(module, slot, &self.core.excess));
        for side in [Side::Writer, Side::Reader] {
            let start = |threads| self.start(&module, side, threads);
            let context = OpenContext { module: &module.name, side, start: &start };
            if let Err(TaskError(reason)) = module.slot(side).task.open(&context) {
                module.cancel();
                return Err(StreamError::Open { stream: self.core.name.clone(), module: module.name.clone(), reason });
            }
            module.opened(side);
        }
        self.core.apply_pauses(&module);
        Ok(module)
    }

    /// Starts threads of a task, which begin when the module is released.
    fn start(&self, module: &Arc<ModuleCore<L>>, side: Side, threads: usize) -> Result<(), TaskError> {
        let Some(make) = self.core.make_thread_body else {
            return Err(TaskError("the stream is for one thread alone".to_owned()));
        };
        let running = &module.slot(side).threads;
        running.started(threads);
        let name = format!("{}-{}", self.core.name, module.name);
        let group = module.group(&self.core.threads);
        match group.spawn_n(threads, name.as_str(), make(&self.core, module, side)) {
            Ok(_) => module.threads_started(threads),
            Err(error) => {
                (0..threads).for_each(|_| _ = running.ended());
                return Err(TaskError(error.to_string()));
            }
        }
        Ok(())
    }

    /// Makes a list of modules the present one, for messages that enter the stream or are taken from a queue from now on.
    fn publish(&self, modules: Vec<Arc<ModuleCore<L>>>) {
        let old = std::mem::replace(&mut *self.core.topology.write(), Arc::new(Topology { modules }));
        // Threads that wait for messages give up the old list.
        for module in &old.modules {
            for side in [Side::Reader, Side::Writer] {
                module.slot(side).queue.pulse_all();
            }
        }
    }

    fn take_out(&self, topology: &Topology<L>, module: Arc<ModuleCore<L>>) -> Removal {
        module.until_threads_began();
        let modules = topology.modules.iter().filter(|other| !Arc::ptr_eq(other, &module)).cloned().collect();
        self.publish(modules);
        end(&module)
    }

    fn closed_error(&self) -> StreamError {
        StreamError::Closed(self.core.name.clone())
    }

    fn check_name(&self, topology: &Topology<L>, name: &str) -> Result<(), StreamError> {
        match topology.position_of_name(name) {
            Some(_) => Err(StreamError::Duplicate { stream: self.core.name.clone(), module: name.to_owned() }),
            None => Ok(()),
        }
    }

    fn position(&self, topology: &Topology<L>, name: &str) -> Result<usize, StreamError> {
        if topology.modules.is_empty() {
            return Err(self.closed_error());
        }
        topology.position_of_name(name).ok_or_else(|| self.no_module(topology, name))
    }

    fn position_between(&self, topology: &Topology<L>, name: &str) -> Result<usize, StreamError> {
        match self.position(topology, name)? {
            position if position == 0 || position + 1 == topology.modules.len() => Err(self.no_module(topology, name)),
            position => Ok(position),
        }
    }

    fn no_module(&self, topology: &Topology<L>, name: &str) -> StreamError {
        let present: Vec<_> = topology.modules.iter().map(|module| format!("`{}`", module.name)).collect();
        StreamError::NoModule { stream: self.core.name.clone(), module: name.to_owned(), present: present.join(", ") }
    }
}

/// Ends a module that is in no topology any more: producers go past it, consumers take what is left.
fn end<L: QueueStrategy>(module: &Arc<ModuleCore<L>>) -> Removal {
    module.set_removed();
    for side in [Side::Reader, Side::Writer] {
        module.slot(side).queue.end();
    }
    module.release(); // threads that have not begun see that it is removed
    Removal(module.ended())
}

impl<L: QueueStrategy> Drop for Stream<L> {
    fn drop(&mut self) {
        // Threads that do not end keep what they use.
        _ = self.close(Duration::ZERO);
    }
}

impl<L: QueueStrategy> fmt::Debug for Stream<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("name", &self.core.name)
            .field("modules", &self.modules())
            .finish_non_exhaustive()
    }
}
