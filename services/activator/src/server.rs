//! One registered server: the phases of its process, and the requests that wait for it.
//!
//! Decisions only: starting, signalling and answering belong to `control`.

use std::time::{Duration, Instant};

use spandrel::server::DeferredCall;
use spandrel::services::implementation_repository::ServerState;
use spandrel::types::Ior;

use crate::limits::Limits;
use crate::process::ServerProcess;
use crate::store::{Mode, Registration};

/// A request that waits for its server. It holds no thread.
pub(crate) struct Waiter {
    pub(crate) call: DeferredCall,
    /// The key of the object in the server.
    pub(crate) key: Vec<u8>,
    pub(crate) deadline: Instant,
}

/// The phase of a server's process.
pub(crate) enum Phase {
    Stopped,
    /// The server has failed, and is started again at this time.
    Backoff {
        until: Instant,
    },
    Starting {
        process: ServerProcess,
        deadline: Instant,
        token: String,
    },
    Running(Running),
    Stopping(Stopping),
    Failed,
}

/// A server that has registered.
pub(crate) struct Running {
    /// `None` if the activator has not started it.
    pub(crate) process: Option<ServerProcess>,
    /// The reference of its server object, with the addresses of the process.
    pub(crate) reference: Ior,
    pub(crate) token: String,
    pub(crate) since: Instant,
    /// When it was last known to answer.
    pub(crate) verified: Option<Instant>,
    pub(crate) is_pinged: bool,
    /// The pings in sequence that could not be sent.
    pub(crate) missed_pings: u32,
    /// When it may be pinged again.
    pub(crate) ping_at: Instant,
}

/// A server that ends.
pub(crate) struct Stopping {
    pub(crate) process: Option<ServerProcess>,
    pub(crate) token: String,
    /// When SIGTERM is sent; `None` if it was.
    pub(crate) term_at: Option<Instant>,
    pub(crate) kill_at: Instant,
    /// The failure for which it is ended, if it is one.
    pub(crate) failure: Option<String>,
}

/// The treatment of a request.
pub(crate) enum Admission {
    Forward(Ior),
    Wait,
    /// TRANSIENT, with this explanation.
    Refuse(String),
}

/// A registered server and its process.
pub(crate) struct Server {
    pub(crate) registration: Registration,
    pub(crate) phase: Phase,
    pub(crate) waiters: Vec<Waiter>,
    /// Whether it is started although no client waits.
    pub(crate) is_wanted: bool,
    pub(crate) starts: u32,
    /// The failures in sequence.
    pub(crate) failures: u32,
    pub(crate) last_failure: String,
}

impl Server {
    pub(crate) fn new(registration: Registration) -> Self {
        Self {
            registration,
            phase: Phase::Stopped,
            waiters: Vec::new(),
            is_wanted: false,
            starts: 0,
            failures: 0,
            last_failure: String::new(),
        }
    }

    /// Decides about a request that arrives now.
    pub(crate) fn admit(&self, now: Instant, limits: &Limits) -> Admission {
        if !self.registration.is_enabled {
            return Admission::Refuse("it is disabled".to_owned());
        }
        match &self.phase {
            Phase::Running(running) => {
                if running.process.as_ref().is_some_and(|process| process.end().is_some()) {
                    return self.admit_without_process();
                }
                let is_fresh = |verified| now.saturating_duration_since(verified) < limits.verify_interval;
                if running.verified.is_some_and(is_fresh) {
                    Admission::Forward(running.reference.clone())
                } else {
                    Admission::Wait
                }
            }
            Phase::Starting { .. } => Admission::Wait,
            Phase::Failed => Admission::Refuse(format!(
                "it has failed ({}; failures in sequence: {}); `spandrel-activator start` tries again",
                self.last_failure, self.failures
            )),
            Phase::Stopped | Phase::Backoff { .. } | Phase::Stopping(_) => self.admit_without_process(),
        }
    }

    fn admit_without_process(&self) -> Admission {
        match self.registration.activation {
            Mode::Manual if !self.is_wanted => {
                Admission::Refuse("it does not run, and its activation mode is manual".to_owned())
            }
            _ => Admission::Wait,
        }
    }

    /// The time from a start to the registration, and of a request that waits.
    pub(crate) fn start_timeout(&self, limits: &Limits) -> Duration {
        match self.registration.start_timeout {
            0 => limits.start_timeout,
            milliseconds => Duration::from_millis(milliseconds.into()).min(Limits::MAX_START_TIMEOUT),
        }
    }

    /// Whether a process has to be started as soon as that is possible.
    pub(crate) fn needs_process(&self) -> bool {
        let is_on_demand = self.registration.activation != Mode::Manual;
        self.registration.is_enabled && (self.is_wanted || is_on_demand && !self.waiters.is_empty())
    }

    pub(crate) fn process(&self) -> Option<&ServerProcess> {
        match &self.phase {
            Phase::Starting { process, .. } => Some(process),
            Phase::Running(Running { process, .. }) | Phase::Stopping(Stopping { process, .. }) => process.as_ref(),
            Phase::Stopped | Phase::Backoff { .. } | Phase::Failed => None,
        }
    }

    /// The token of its process.
    pub(crate) fn token(&self) -> Option<&str> {
        match &self.phase {
            Phase::Starting { token, .. }
            | Phase::Running(Running { token, .. })
            | Phase::Stopping(Stopping { token, .. }) => Some(token),
            Phase::Stopped | Phase::Backoff { .. } | Phase::Failed => None,
        }
    }

    /// Records a failure: the server is started again, unless its limit is reached or its mode is manual.
    pub(crate) fn fail(&mut self, reason: String, now: Instant, limits: &Limits) {
        self.failures = self.failures.saturating_add(1);
        self.last_failure = reason;
        let limit = match self.registration.start_limit {
            0 => limits.start_limit,
            limit => limit,
        };
        self.phase = if self.failures >= limit {
            self.is_wanted = false;
            Phase::Failed
        } else if self.registration.activation == Mode::Manual {
            self.is_wanted = false;
            Phase::Stopped
        } else {
            self.is_wanted = true;
            Phase::Backoff { until: now + limits.backoff(self.failures) }
        };
    }

    /// Records a failure that another start would not mend.
    pub(crate) fn fail_finally(&mut self, reason: String) {
        self.failures = self.failures.saturating_add(1);
        self.last_failure = reason;
        self.is_wanted = false;
        self.phase = Phase::Failed;
    }

    pub(crate) fn state(&self) -> ServerState {
        match self.phase {
            // Its process is due: whoever waits for it can tell this from a server that was stopped.
            Phase::Stopped if self.is_wanted && self.registration.is_enabled => ServerState::Starting,
            Phase::Stopped => ServerState::Stopped,
            Phase::Backoff { .. } => ServerState::Backoff,
            Phase::Starting { .. } => ServerState::Starting,
            Phase::Running(_) => ServerState::Running,
            Phase::Stopping(_) => ServerState::Stopping,
            Phase::Failed => ServerState::Failed,
        }
    }
}
