//! The choice of an architecture by the present load (as in JAWS, which paper 004 cites).

use std::io;
use std::time::Duration;

use spandrel_ipc::inet::Addr;
use spandrel_sync::{Arc, Condition, Mutex, ThreadManager};

use crate::{Architecture, Server, Service, Settings, SwitchingServer};

/// The interval in which the load is sampled.
pub const SAMPLE: Duration = Duration::from_millis(100);
/// The successive samples above a threshold that lead to the next architecture.
const RISING: u32 = 3;
/// The successive samples below half of a threshold that lead back.
const FALLING: u32 = 20;
/// The open connections above which threads take turns instead of having one connection each.
const MANY: usize = 64;

/// The rule that chooses an architecture by the number of open connections.
///
/// | open connections | architecture | reason |
/// | --- | --- | --- |
/// | fewer than the workers of a pool | `accept-pool` | no thread is started, and no connection is handed over |
/// | from as many, up to 64 | `thread-per-connection` | further clients need not wait for a worker |
/// | more than 64 | `leader-followers` | an idle connection has no thread |
///
/// Three samples in succession at or above a threshold lead to the next row, and 20 below half of it to the one before:
/// a load that varies around a threshold changes nothing.
#[derive(Clone, Debug)]
pub struct Adaptation {
    thresholds: [usize; 2],
    level: usize,
    rising: u32,
    falling: u32,
}

/// The architectures, from a small load to a great one.
const LEVELS: [Architecture; 3] =
    [Architecture::AcceptPool, Architecture::ThreadPerConnection, Architecture::LeaderFollowers];

impl Adaptation {
    /// The rule for pools of so many workers, at the lowest level of load.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { thresholds: [workers, MANY.max(workers) + 1], level: 0, rising: 0, falling: 0 }
    }

    /// The architecture that fits the present level of load.
    #[must_use]
    pub fn architecture(&self) -> Architecture {
        LEVELS[self.level]
    }

    /// Takes a sample; returns the architecture to change to, if any.
    pub fn sample(&mut self, open: usize) -> Option<Architecture> {
        let is_rising = self.thresholds.get(self.level).is_some_and(|threshold| open >= *threshold);
        let is_falling = self.level > 0 && open < self.thresholds[self.level - 1].div_ceil(2);
        self.rising = if is_rising { self.rising + 1 } else { 0 };
        self.falling = if is_falling { self.falling + 1 } else { 0 };
        if self.rising >= RISING {
            self.level += 1;
        } else if self.falling >= FALLING {
            self.level -= 1;
        } else {
            return None;
        }
        (self.rising, self.falling) = (0, 0);
        Some(self.architecture())
    }
}

/// A server that changes its architecture by the load.
#[derive(Debug)]
pub struct AdaptiveServer {
    server: Arc<SwitchingServer>,
    end: Arc<End>,
    monitor: ThreadManager,
}

/// Ends the thread that samples.
#[derive(Debug, Default)]
struct End {
    has_come: Mutex<bool>,
    changed: Condition,
}

impl AdaptiveServer {
    /// Starts to serve at an address, with the first architecture of [`Adaptation`].
    ///
    /// # Errors
    /// As [`SwitchingServer::start`].
    pub fn start(addr: &Addr, service: &Service, settings: &Settings, drain: Duration) -> io::Result<Self> {
        let rule = Adaptation::new(settings.workers);
        let server = SwitchingServer::start(addr, rule.architecture(), service, settings, drain)?;
        Self::over(Arc::new(server), rule, service, settings)
    }

    /// Changes the architecture of a server that runs from now on.
    ///
    /// # Errors
    /// As [`SwitchingServer::switch`].
    pub fn adopt(server: Arc<SwitchingServer>, service: &Service, settings: &Settings) -> io::Result<Self> {
        let rule = Adaptation::new(settings.workers);
        server.switch(rule.architecture(), service, settings)?;
        Self::over(server, rule, service, settings)
    }

    fn over(
        server: Arc<SwitchingServer>,
        mut rule: Adaptation,
        service: &Service,
        settings: &Settings,
    ) -> io::Result<Self> {
        let this = Self { server, end: Arc::default(), monitor: ThreadManager::with_limit(1) };
        let (server, end, service, settings) =
            (Arc::clone(&this.server), Arc::clone(&this.end), service.clone(), *settings);
        let sample = move |_: &spandrel_sync::ThreadContext| {
            while !end.comes_within(SAMPLE) {
                let Some(architecture) = rule.sample(server.connections()) else { continue };
                match server.switch(architecture, &service, &settings) {
                    Ok(()) => tracing::info!(%architecture, "the architecture changes by the load"),
                    Err(error) => tracing::warn!(%architecture, %error, "the architecture cannot be changed"),
                }
            }
        };
        this.monitor.spawn("adaptive", sample).map_err(io::Error::other)?;
        Ok(this)
    }

    /// The server whose architecture it changes.
    #[must_use]
    pub fn server(&self) -> &Arc<SwitchingServer> {
        &self.server
    }
}

impl End {
    fn comes_within(&self, time: Duration) -> bool {
        let mut has_come = self.has_come.lock();
        if !*has_come {
            self.changed.wait_for(&mut has_come, time);
        }
        *has_come
    }

    fn come(&self) {
        *self.has_come.lock() = true;
        self.changed.notify_all();
    }
}

/// The server goes on in its present architecture, unless this was its last owner.
impl Drop for AdaptiveServer {
    fn drop(&mut self) {
        self.end.come();
        let _ = self.monitor.wait();
    }
}
