//! The processes of a server: started, told to end, and replaced when they end by themselves.
//!
//! Each process is this program again, with the listening socket passed over a socket that is its standard input. The
//! same socket carries orders; its end tells the process that its server is gone.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use spandrel_ipc::unix;
use spandrel_sync::atomic::{AtomicBool, Ordering};
use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, Condition, Mutex, Process, ProcessManager, ThreadManager, thread};

use crate::process_protocol::{ProcessStart, READY, is_started_process, order, receive_answer, send_order};
use crate::{Port, Server, Service, Settings};

/// The time for a process to start.
const START: Duration = Duration::from_secs(10);
/// The time for a process to answer or to end, beyond the time that its connections have.
const END: Duration = Duration::from_secs(2);
/// The pause before a process that ended is replaced, and between two questions for connections.
const PAUSE: Duration = Duration::from_millis(100);

/// A server that consists of processes.
pub(crate) struct ProcessServer {
    group: Arc<ProcessGroup>,
    /// One thread, which replaces processes.
    supervisor: ThreadManager,
}

struct ProcessGroup {
    start: ProcessStart,
    port: Port,
    service: Service,
    /// The number of processes.
    count: usize,
    manager: ProcessManager,
    workers: Mutex<Vec<Worker>>,
    is_retired: AtomicBool,
    retired: Condition,
}

struct Worker {
    process: Process,
    control: Arc<unix::Stream>,
    /// It serves. Until then it treats no orders.
    is_ready: bool,
    /// The number of the last order.
    last_order: u8,
}

impl Worker {
    /// Sends an order, and returns the number of its answer; none if the process takes no orders.
    fn order(&mut self, kind: u8, time: Duration) -> Option<u8> {
        self.last_order = self.last_order.checked_add(1).unwrap_or(READY + 1);
        send_order(&self.control, kind, self.last_order, time, END).ok()?;
        self.is_ready.then_some(self.last_order)
    }

    /// The value that the process answers; none if it does not.
    fn answer(&self, number: u8, timeout: Duration) -> Option<usize> {
        receive_answer(&self.control, number, timeout)
    }
}

impl fmt::Debug for ProcessServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessServer").field("processes", &self.group.manager.running()).finish_non_exhaustive()
    }
}

impl ProcessServer {
    /// Starts `count` processes, and waits until they serve.
    pub(crate) fn start(
        port: &Port,
        service: &Service,
        settings: &Settings,
        role: &'static str,
        count: usize,
    ) -> io::Result<Self> {
        settings.check()?;
        if is_started_process() {
            // Without this check, each process would start others.
            let text = "`main` must call spandrel_architectures::serve_as_process before anything else";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let group = Arc::new(ProcessGroup {
            start: ProcessStart { role, settings: *settings, is_shared: port.is_shared() },
            port: port.clone(),
            service: service.clone(),
            count,
            // A process that has ended may be replaced before its end is noticed.
            manager: ProcessManager::with_limit(count.saturating_mul(2)),
            workers: Mutex::default(),
            is_retired: AtomicBool::new(false),
            retired: Condition::new(),
        });
        let this = Self { group, supervisor: ThreadManager::with_limit(1) };
        for _ in 0..count {
            this.group.add_worker()?;
        }
        let group = Arc::clone(&this.group);
        this.supervisor.spawn("supervisor", move |_| group.supervise()).map_err(io::Error::other)?;
        Ok(this)
    }
}

impl ProcessGroup {
    /// Starts a process, and waits until it serves.
    fn add_worker(&self) -> io::Result<()> {
        let (control, remote) = UnixStream::pair()?;
        let mut command = Command::new(program()?);
        self.start.write(&self.service, &mut command);
        command.stdin(Stdio::from(OwnedFd::from(remote))).stdout(Stdio::null());
        let process = self.manager.spawn_group(&mut command).map_err(io::Error::other)?;
        // Those that it forks end with it, also if it is killed.
        process.kill_group_at_end();
        drop(command); // and with it this process's handle of the other end
        let control = Arc::new(unix::Stream::try_from(OwnedFd::from(control))?);
        let is_sent = control.send_handle(&**self.port.acceptor()).is_ok();
        let id = process.id();
        let mut workers = self.workers.lock();
        if self.is_retired() {
            return process.kill();
        }
        // Orders that come in the meantime wait until it serves.
        let worker = Worker { process, control: Arc::clone(&control), is_ready: false, last_order: READY };
        workers.push(worker);
        drop(workers);
        let is_ready = is_sent && receive_answer(&control, READY, START).is_some();
        let mut workers = self.workers.lock();
        let Some(at) = workers.iter().position(|worker| worker.process.id() == id) else { return Ok(()) };
        if is_ready {
            workers[at].is_ready = true;
            return Ok(());
        }
        workers.remove(at).process.kill()?;
        Err(io::Error::other("a process of the server has not started: see its message"))
    }

    /// Replaces processes that end, until the server is retired.
    fn supervise(&self) {
        loop {
            let is_complete = self.workers.lock().len() >= self.count;
            // After a failure, the next attempt.
            let timeout = if is_complete || self.is_retired() { Duration::MAX } else { PAUSE };
            match self.manager.wait_any(timeout) {
                Ok(Some(ended)) => {
                    if !self.is_retired() {
                        tracing::warn!("a process of the server has ended, and is replaced");
                    }
                    self.workers.lock().retain(|worker| worker.process.id() != ended.id());
                }
                Ok(None) if self.is_retired() && self.manager.running() == 0 => return,
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(%error, "processes of the server are no longer replaced");
                    return;
                }
            }
            let mut workers = self.workers.lock();
            if !self.is_retired() {
                self.retired.wait_for(&mut workers, PAUSE);
            }
            let is_complete = workers.len() >= self.count;
            drop(workers);
            if !is_complete
                && !self.is_retired()
                && let Err(error) = self.add_worker()
            {
                tracing::error!(%error, "a process of the server cannot be replaced");
            }
        }
    }

    fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::SeqCst)
    }

    fn retire(&self) {
        let mut workers = self.workers.lock();
        if !self.is_retired.swap(true, Ordering::SeqCst) {
            self.retired.notify_all();
            for worker in &mut *workers {
                worker.order(order::RETIRE, Duration::ZERO);
            }
            self.port.shut_if_exclusive();
        }
    }
}

/// This program. While it runs, its file may be replaced by that of another version: then it is the one that runs.
fn program() -> io::Result<PathBuf> {
    let file = std::env::current_exe()?;
    Ok(if file.exists() { file } else { PathBuf::from("/proc/self/exe") })
}

impl Server for ProcessServer {
    fn connections(&self) -> usize {
        let mut workers = self.group.workers.lock();
        let count = |worker: &mut Worker| {
            let number = worker.order(order::COUNT, Duration::ZERO)?;
            worker.answer(number, END)
        };
        workers.iter_mut().filter_map(count).sum()
    }

    fn retire(&self) {
        self.group.retire();
    }

    fn wait_closed(&self, timeout: Duration) -> bool {
        let deadline = Deadline::after(timeout);
        while self.connections() > 0 {
            if deadline.is_over() {
                return false;
            }
            // Processes do not report the ends of connections.
            thread::park_timeout(deadline.remaining().map_or(PAUSE, |left| left.min(PAUSE)));
        }
        true
    }

    fn stop(&self, timeout: Duration) -> usize {
        self.retire();
        let deadline = Deadline::after(timeout.saturating_add(END));
        let left = || deadline.remaining().unwrap_or(Duration::MAX);
        let mut workers = std::mem::take(&mut *self.group.workers.lock());
        let numbers: Vec<Option<u8>> = workers.iter_mut().map(|worker| worker.order(order::DRAIN, timeout)).collect();
        let answers = workers.iter().zip(numbers).filter_map(|(worker, number)| worker.answer(number?, left()));
        let cut = answers.sum();
        if !self.group.manager.wait_for(left()).unwrap_or(false) {
            tracing::warn!("processes of a server are killed");
        }
        if let Err(error) = self.group.manager.kill_all() {
            tracing::warn!(%error, "processes of a server cannot be killed");
        }
        let _ = self.supervisor.wait_for(END);
        cut
    }
}

impl Drop for ProcessServer {
    fn drop(&mut self) {
        let _ = self.stop(Duration::ZERO);
    }
}
