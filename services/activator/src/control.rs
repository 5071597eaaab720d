//! The control thread: starts, watches and ends processes, and answers the requests that wait for them.
//!
//! One lock holds the state of all servers. Requests to running servers are forwarded under it, by the thread that
//! has read them. Everything else is left to the control thread. No lock is held while that calls servers or answers
//! requests.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use spandrel::authorization::PathCheck;
use spandrel::net::sync::{Arc, Condition, Mutex, OnDrop, ProcessManager};
use spandrel::server::{DeferredCall, Replied, ServerCall};
use spandrel::services::activation::with_key;
use spandrel::services::implementation_repository::ServerObject;
use spandrel::types::{Ior, ior_to_string};
use spandrel::{CompletionStatus, Orb, SystemException, SystemExceptionKind, minor};

use crate::commands::Commands;
use crate::limits::Limits;
use crate::logs::Logs;
use crate::process::{self, ServerProcess, Start};
use crate::server::{Admission, Phase, Running, Server, Stopping, Waiter};
use crate::store::{Mode, ProcessId, RunningProcess, Store, StoreError};

/// The interval of checks of processes and deadlines.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The interval of checks while no server has a process and no request waits.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The pings in sequence that a running process may miss.
const MAX_MISSED_PINGS: u32 = 3;
/// The time between these.
const PING_PAUSE: Duration = Duration::from_millis(200);

/// The state that all threads of the service share.
pub(crate) struct Shared {
    pub(crate) orb: Orb,
    pub(crate) store: Store,
    pub(crate) limits: Limits,
    pub(crate) path_check: Option<PathCheck>,
    pub(crate) data: PathBuf,
    /// The URL of the repository, for servers.
    pub(crate) url: OnceLock<String>,
    pub(crate) commands: Mutex<Commands>,
    pub(crate) core: Mutex<Core>,
    pub(crate) changed: Condition,
    pub(crate) manager: ProcessManager,
    pub(crate) logs: Logs,
}

/// The registered servers and their state, behind one lock.
#[derive(Default)]
pub(crate) struct Core {
    pub(crate) servers: BTreeMap<String, Server>,
    /// Requests that wait, of all servers.
    pub(crate) waiting: usize,
    /// Whether the state has changed since the last check of the control thread.
    pub(crate) is_changed: bool,
    pub(crate) is_stopping: bool,
}

/// Work that is done without the lock.
enum Action {
    Forward(DeferredCall, Ior),
    Refuse(DeferredCall, SystemException),
    Ping { server: String, token: String, reference: Ior },
    Shutdown { token: String, reference: Ior },
}

type Ping = Pin<Box<dyn Future<Output = Result<(), SystemException>> + Send>>;

/// Wakes the control thread when a ping has been answered.
struct ControlWaker(Arc<Shared>);

impl Wake for ControlWaker {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// The exception for a server that cannot be called now.
pub(crate) fn unavailable(server: &str, reason: &str) -> SystemException {
    let detail = format!("server `{server}` is not available: {reason}");
    SystemException::transient(0, CompletionStatus::No).with_detail(|| detail)
}

pub(crate) fn new_manager(limit: usize) -> ProcessManager {
    ProcessManager::with_limit(limit).on_drop(OnDrop::Detach)
}

impl Shared {
    /// Wakes the control thread.
    pub(crate) fn notify(&self) {
        self.core.lock().is_changed = true;
        self.changed.notify_all();
    }

    /// Forwards a request, or lets it wait without a thread.
    pub(crate) fn serve(&self, name: &str, key: &[u8], call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let now = Instant::now();
        let mut core = self.core.lock();
        let Some(server) = core.servers.get(name) else {
            let detail = format!("no server `{name}` is registered");
            return Err(SystemException::object_not_exist(0, CompletionStatus::No).with_detail(|| detail));
        };
        match server.admit(now, &self.limits) {
            Admission::Forward(reference) => {
                drop(core);
                call.forward(&self.orb.reference(with_key(&reference, "", key)))
            }
            Admission::Refuse(reason) => Err(unavailable(name, &reason)),
            Admission::Wait => {
                if server.waiters.len() >= self.limits.max_waiting_per_server || core.waiting >= self.limits.max_waiting
                {
                    return Err(unavailable(name, "too many requests wait for it"));
                }
                let deadline = now + server.start_timeout(&self.limits);
                let replied = if call.is_response_expected() {
                    let (call, replied) = call.defer()?;
                    let server = core.servers.get_mut(name).expect("it was there, under the same lock");
                    server.waiters.push(Waiter { call, key: key.to_vec(), deadline });
                    core.waiting += 1;
                    replied
                } else {
                    // A one-way has no reply by which it could be forwarded: it only starts the server.
                    tracing::debug!(server = name, "a one-way was dropped: its server does not run");
                    if let Some(server) = core.servers.get_mut(name) {
                        server.is_wanted = true;
                    }
                    call.finish_oneway()
                };
                core.is_changed = true;
                drop(core);
                self.changed.notify_all();
                Ok(replied)
            }
        }
    }

    /// Restores the state of an earlier activator: its servers, and the processes that still run.
    pub(crate) fn restore(&self) -> Result<(), StoreError> {
        let now = Instant::now();
        let mut core = self.core.lock();
        for (name, registration) in self.store.servers()? {
            let is_wanted = registration.activation == Mode::AutoStart && registration.is_enabled;
            let server = Server { is_wanted, ..Server::new(registration) };
            core.servers.insert(name, server);
        }
        for (name, record) in self.store.running()? {
            let found = match record.process {
                Some(id) => Some(id).filter(|id| process::is_running(*id)),
                None if record.is_started_here => process::find_by_token(&record.token),
                None => None,
            };
            let reference = record.reference.as_ref().and_then(|text| self.orb.string_to_object(text).ok());
            // Without start times the first request finds out by a ping whether the server runs.
            let may_run = !record.is_started_here || !cfg!(target_os = "linux") && reference.is_some();
            let Some(server) = core.servers.get_mut(&name).filter(|_| found.is_some() || may_run) else {
                self.store.set_running(&name, None)?;
                continue;
            };
            let process = found.map(ServerProcess::Adopted);
            server.phase = match (reference, process) {
                (Some(reference), process) => Phase::Running(Running {
                    process,
                    reference: reference.ior().clone(),
                    token: record.token,
                    since: now,
                    verified: None, // the first request asks it
                    is_pinged: false,
                    missed_pings: 0,
                    ping_at: now,
                }),
                (None, Some(process)) => {
                    let deadline = now + server.start_timeout(&self.limits);
                    Phase::Starting { process, deadline, token: record.token }
                }
                (None, None) => continue,
            };
            tracing::info!(server = name, pid = found.map(|id| id.pid), "adopted a running server");
        }
        Ok(())
    }

    /// Runs the control thread until the service is stopped.
    pub(crate) fn run(self: &Arc<Self>) {
        let waker = Waker::from(Arc::new(ControlWaker(Arc::clone(self))));
        let mut pings: Vec<(String, String, Ping)> = Vec::new();
        let mut logs_bounded = Instant::now();
        loop {
            let mut actions = Vec::new();
            let now = Instant::now();
            {
                let mut core = self.core.lock();
                core.is_changed = false;
                if core.is_stopping {
                    self.refuse_all(&mut core, &mut actions);
                } else {
                    self.check(&mut core, now, &mut actions);
                }
            }
            let is_over = self.core.lock().is_stopping;
            self.manager.reap();
            for action in actions {
                self.act(action, &mut pings);
            }
            if is_over {
                return;
            }
            let mut is_answered = false;
            pings.retain_mut(|(server, token, ping)| match ping.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => true,
                Poll::Ready(outcome) => {
                    self.record_ping(server, token, outcome);
                    is_answered = true;
                    false
                }
            });
            if self.limits.reload_requested() {
                self.reload();
            }
            if now.duration_since(logs_bounded) >= Duration::from_secs(1) {
                logs_bounded = now;
                self.bound_logs();
            }
            let mut core = self.core.lock();
            if !core.is_changed && !core.is_stopping && !is_answered {
                let is_busy = |server: &Server| {
                    !server.waiters.is_empty() || !matches!(server.phase, Phase::Stopped | Phase::Failed)
                };
                let interval = if core.servers.values().any(is_busy) { CHECK_INTERVAL } else { IDLE_INTERVAL };
                self.changed.wait_for(&mut core, interval);
            }
        }
    }

    /// Reads the commands again. The old ones remain if the file cannot be used.
    fn reload(&self) {
        let Some(file) = &self.limits.commands_file else { return };
        match Commands::read(file) {
            Ok(commands) => *self.commands.lock() = commands,
            Err(error) => tracing::error!(%error, "the commands were not read again"),
        }
    }

    fn bound_logs(&self) {
        let names: Vec<String> = {
            let core = self.core.lock();
            core.servers.iter().filter(|(_, server)| server.process().is_some()).map(|(name, _)| name.clone()).collect()
        };
        for name in names {
            if let Err(error) = self.logs.bound(&name) {
                tracing::warn!(server = name, %error, "the size of its output could not be bounded");
            }
        }
    }

    fn act(&self, action: Action, pings: &mut Vec<(String, String, Ping)>) {
        match action {
            Action::Forward(call, reference) => {
                let target = self.orb.reference(reference);
                let outcome = call.answer(|call| call.forward(&target));
                call.end(outcome);
            }
            Action::Refuse(call, exception) => call.end(Err(exception)),
            Action::Ping { server, token, reference } => {
                let object = self.orb.reference(reference).with_timeout(Some(self.limits.ping_timeout));
                let object: ServerObject = object.unchecked_narrow();
                pings.push((server, token, Box::pin(async move { object.ping_async().await })));
            }
            Action::Shutdown { token, reference } => {
                let object = self.orb.reference(reference).with_timeout(Some(self.limits.ping_timeout));
                let object: ServerObject = object.unchecked_narrow();
                if let Err(exception) = object.shutdown(&token) {
                    tracing::debug!(%exception, "a server could not be told to shut down");
                }
            }
        }
    }

    /// Applies the outcome of a ping.
    fn record_ping(&self, name: &str, token: &str, outcome: Result<(), SystemException>) {
        let mut core = self.core.lock();
        let now = Instant::now();
        let Some(server) = core.servers.get_mut(name) else { return };
        let Phase::Running(running) = &mut server.phase else { return };
        if running.token != token {
            return;
        }
        running.is_pinged = false;
        match outcome {
            // Also a busy server may refuse a connection. Its process is ended only if it does so again and again.
            Err(exception) if is_gone(&exception) => {
                running.missed_pings += 1;
                running.ping_at = now + PING_PAUSE;
                if running.process.is_some() && running.missed_pings < MAX_MISSED_PINGS {
                    return;
                }
                let reason = format!("it does not accept calls ({exception})");
                self.end_failed(name, server, now, reason);
            }
            // A server that is late may be busy: its clients decide how long they wait.
            Ok(()) | Err(_) => {
                running.verified = Some(now);
                running.missed_pings = 0;
            }
        }
        core.is_changed = true;
    }

    /// Ends a running server that cannot be called.
    fn end_failed(&self, name: &str, server: &mut Server, now: Instant, reason: String) {
        tracing::warn!(server = name, reason, "a server has failed");
        let Phase::Running(running) = std::mem::replace(&mut server.phase, Phase::Stopped) else { return };
        match running.process {
            Some(process) => {
                server.phase = Phase::Stopping(Stopping {
                    process: Some(process),
                    token: running.token,
                    term_at: Some(now),
                    kill_at: now + self.limits.kill_grace,
                    failure: Some(reason),
                });
            }
            None => {
                self.forget_process(name);
                server.last_failure = reason;
            }
        }
    }

    /// Records that a server has no process.
    fn forget_process(&self, name: &str) {
        if let Err(error) = self.store.set_running(name, None) {
            // Its process id is found to be unused after a restart.
            tracing::error!(server = name, %error, "the end of a process could not be recorded");
        }
    }

    fn refuse_all(&self, core: &mut Core, actions: &mut Vec<Action>) {
        for (name, server) in &mut core.servers {
            let refused = server
                .waiters
                .drain(..)
                .map(|waiter| Action::Refuse(waiter.call, unavailable(name, "the implementation repository ends")));
            actions.extend(refused);
        }
        core.waiting = 0;
    }

    /// Checks the process, the start and the waiting requests of each server.
    fn check(&self, core: &mut Core, now: Instant, actions: &mut Vec<Action>) {
        let names: Vec<String> = core.servers.keys().cloned().collect();
        for name in names {
            self.check_process(core, &name, now, actions);
            self.check_start(core, &name, now);
            self.answer_waiters(core, &name, now, actions);
        }
    }

    /// Notices the end of a process, and the deadlines of its phase.
    fn check_process(&self, core: &mut Core, name: &str, now: Instant, actions: &mut Vec<Action>) {
        let Some(server) = core.servers.get_mut(name) else { return };
        let end = server.process().and_then(ServerProcess::end);
        if let Some(end) = end {
            let phase = std::mem::replace(&mut server.phase, Phase::Stopped);
            self.forget_process(name);
            match phase {
                Phase::Starting { .. } => {
                    let reason = format!("it ended before it registered: {end} (its output is in logs/{name}.log)");
                    server.fail(reason, now, &self.limits)
                }
                Phase::Running(running) => {
                    if now.duration_since(running.since) >= self.limits.stable_after {
                        server.failures = 0;
                    }
                    if !end.is_success() {
                        server.fail(format!("it ended: {end}"), now, &self.limits);
                    }
                }
                Phase::Stopping(Stopping { failure: Some(reason), .. }) => server.fail(reason, now, &self.limits),
                Phase::Stopping(_) => server.failures = 0,
                other => server.phase = other,
            }
            tracing::info!(server = name, %end, "the process of a server has ended");
            return;
        }
        match &mut server.phase {
            Phase::Starting { deadline, .. } if now >= *deadline => {
                let Phase::Starting { process, token, .. } = std::mem::replace(&mut server.phase, Phase::Stopped)
                else {
                    return;
                };
                let reason = "it did not register in time".to_owned();
                server.last_failure.clone_from(&reason);
                for waiter in server.waiters.drain(..) {
                    core.waiting -= 1;
                    actions.push(Action::Refuse(waiter.call, unavailable(name, &reason)));
                }
                server.phase = Phase::Stopping(Stopping {
                    process: Some(process),
                    token,
                    term_at: Some(now),
                    kill_at: now + self.limits.kill_grace,
                    failure: Some(reason),
                });
            }
            Phase::Running(running) if !running.is_pinged && now >= running.ping_at && !server.waiters.is_empty() => {
                let is_fresh = running
                    .verified
                    .is_some_and(|verified| now.saturating_duration_since(verified) < self.limits.verify_interval);
                if !is_fresh {
                    running.is_pinged = true;
                    let (token, reference) = (running.token.clone(), running.reference.clone());
                    actions.push(Action::Ping { server: name.to_owned(), token, reference });
                }
            }
            Phase::Stopping(stopping) => {
                let Some(process) = &stopping.process else {
                    // A server that was started elsewhere ends by itself.
                    if now >= stopping.kill_at {
                        server.phase = Phase::Stopped;
                        self.forget_process(name);
                    }
                    return;
                };
                if now >= stopping.kill_at {
                    if let Err(error) = process.kill() {
                        tracing::error!(server = name, %error, "its process cannot be killed");
                    }
                    stopping.kill_at = now + Duration::from_secs(1);
                } else if stopping.term_at.is_some_and(|time| now >= time) {
                    stopping.term_at = None;
                    if let Err(error) = process.terminate() {
                        tracing::debug!(server = name, %error, "its process could not be signalled");
                    }
                }
            }
            _ => {}
        }
    }

    /// Starts the process of a server that needs one.
    fn check_start(&self, core: &mut Core, name: &str, now: Instant) {
        let Some(server) = core.servers.get(name) else { return };
        let is_due = match server.phase {
            Phase::Stopped => server.needs_process(),
            Phase::Backoff { until } => {
                if !server.needs_process() {
                    if let Some(server) = core.servers.get_mut(name) {
                        server.phase = Phase::Stopped;
                    }
                    return;
                }
                now >= until
            }
            _ => false,
        };
        if is_due {
            self.start(core, name, now);
        }
    }

    fn start(&self, core: &mut Core, name: &str, now: Instant) {
        let with_process = core.servers.values().filter(|server| server.process().is_some());
        let command_name = core.servers[name].registration.command.clone();
        let of_command = with_process.clone().filter(|server| server.registration.command == command_name).count();
        let in_all = with_process.count();
        let command = self.commands.lock().commands.get(&command_name).cloned();
        let Some(server) = core.servers.get_mut(name) else { return };
        let timeout = server.start_timeout(&self.limits);
        let Some(command) = command else {
            let reason = format!("the command `{command_name}` is not configured");
            tracing::error!(server = name, reason, "a server cannot be started");
            return server.fail_finally(reason);
        };
        if in_all >= self.limits.max_processes || command.limits.instances.is_some_and(|limit| of_command >= limit) {
            // Others have to end first; the requests wait until their deadline.
            server.last_failure =
                format!("the limit of processes of the command `{command_name}`, or of all, is reached");
            server.is_wanted = false;
            return;
        }
        let token = new_token();
        let mut record = RunningProcess { process: None, is_started_here: true, token: token.clone(), reference: None };
        let started = self.store.set_running(name, Some(&record)).map_err(|error| error.to_string()).and_then(|()| {
            let log = self.logs.open(name).map_err(|error| format!("cannot open its log: {error}"))?;
            let start = Start {
                server: name,
                token: &token,
                repository: self.url.get().map_or("", String::as_str),
                data: &self.data,
                log,
            };
            process::start(&self.manager, &command, start)
                .map_err(|error| format!("cannot run `{}`: {error}", command.program.display()))
        });
        server.is_wanted = false;
        match started {
            Ok(process) => {
                server.starts = server.starts.saturating_add(1);
                record.process = Some(process.id());
                if let Err(error) = self.store.set_running(name, Some(&record)) {
                    // It is found by its token.
                    tracing::error!(server = name, %error, "the id of a process could not be recorded");
                }
                tracing::info!(server = name, pid = process.id().pid, "started a server");
                server.phase = Phase::Starting { process, deadline: now + timeout, token };
            }
            Err(reason) => {
                tracing::error!(server = name, reason, "a server could not be started");
                self.forget_process(name);
                server.fail(reason, now, &self.limits);
            }
        }
    }

    /// Answers the requests whose server is ready, and those that have waited for too long.
    fn answer_waiters(&self, core: &mut Core, name: &str, now: Instant, actions: &mut Vec<Action>) {
        let Some(server) = core.servers.get_mut(name).filter(|server| !server.waiters.is_empty()) else { return };
        let admission = server.admit(now, &self.limits);
        for waiter in std::mem::take(&mut server.waiters) {
            let action = match &admission {
                Admission::Forward(reference) => {
                    Some(Action::Forward(waiter.call, with_key(reference, "", &waiter.key)))
                }
                Admission::Refuse(reason) => Some(Action::Refuse(waiter.call, unavailable(name, reason))),
                Admission::Wait if waiter.call.is_cancelled() => None,
                Admission::Wait if now >= waiter.deadline => {
                    let reason = if server.last_failure.is_empty() {
                        "it did not register in time".to_owned()
                    } else {
                        format!("it did not register in time ({})", server.last_failure)
                    };
                    Some(Action::Refuse(waiter.call, unavailable(name, &reason)))
                }
                Admission::Wait => {
                    server.waiters.push(waiter);
                    continue;
                }
            };
            core.waiting -= 1;
            actions.extend(action);
        }
    }

    /// Begins to end a server, which is not started again for an earlier failure.
    pub(crate) fn begin_stop(&self, server: &mut Server, drains: bool) -> Option<(String, Ior)> {
        let now = Instant::now();
        let limits = &self.limits;
        server.is_wanted = false;
        server.failures = 0;
        let (term_at, kill_at) = if drains {
            (now + limits.drain_limit, now + limits.drain_limit + limits.kill_grace)
        } else {
            (now, now + limits.kill_grace)
        };
        let mut shutdown = None;
        server.phase = match std::mem::replace(&mut server.phase, Phase::Stopped) {
            Phase::Starting { process, token, .. } => {
                let (term_at, kill_at) = (Some(now), now + limits.kill_grace);
                Phase::Stopping(Stopping { process: Some(process), token, term_at, kill_at, failure: None })
            }
            Phase::Running(Running { process, reference, token, .. }) => {
                if drains || process.is_none() {
                    shutdown = Some((token.clone(), reference));
                }
                Phase::Stopping(Stopping { process, token, term_at: Some(term_at), kill_at, failure: None })
            }
            Phase::Stopping(stopping) => Phase::Stopping(Stopping {
                term_at: stopping.term_at.map(|time| time.min(term_at)),
                kill_at: stopping.kill_at.min(kill_at),
                failure: None,
                ..stopping
            }),
            Phase::Backoff { .. } | Phase::Failed | Phase::Stopped => Phase::Stopped,
        };
        shutdown
    }

    /// Tells a server to shut down.
    pub(crate) fn send_shutdown(&self, (token, reference): (String, Ior)) {
        self.act(Action::Shutdown { token, reference }, &mut Vec::new());
    }

    /// Makes a server the running one, on disk first.
    pub(crate) fn set_running(
        &self,
        name: &str,
        server: &mut Server,
        token: &str,
        reference: &Ior,
    ) -> Result<(), StoreError> {
        let is_started_here = server.process().is_some();
        let process: Option<ProcessId> = server.process().map(ServerProcess::id);
        let text = Some(ior_to_string(reference));
        let record = RunningProcess { process, is_started_here, token: token.to_owned(), reference: text };
        self.store.set_running(name, Some(&record))?;
        let now = Instant::now();
        let process = match std::mem::replace(&mut server.phase, Phase::Stopped) {
            Phase::Starting { process, .. } => Some(process),
            Phase::Running(Running { process, .. }) | Phase::Stopping(Stopping { process, .. }) => process,
            _ => None,
        };
        server.phase = Phase::Running(Running {
            process,
            reference: reference.clone(),
            token: token.to_owned(),
            since: now,
            verified: Some(now),
            is_pinged: false,
            missed_pings: 0,
            ping_at: now,
        });
        Ok(())
    }
}

/// Whether the exception of a ping shows that the process no longer serves.
pub(crate) fn is_gone(exception: &SystemException) -> bool {
    use SystemExceptionKind::{CommFailure, ObjectNotExist, Transient};
    match exception.kind() {
        CommFailure | ObjectNotExist => true,
        Transient => exception.minor() == minor::NO_USABLE_PROFILE, // others are answers of the process
        _ => false,
    }
}

/// A random token of 16 octets.
pub(crate) fn new_token() -> String {
    let mut octets = [0; 16];
    getrandom::fill(&mut octets).expect("the operating system has random octets");
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
