//! Limits and times of an activator.

use std::path::PathBuf;
use std::time::Duration;

use spandrel::net::sync::Arc;

/// The times that starts and stops of servers may take, and the numbers of servers and waiting requests.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest time from the start of a process to its registration, and for a request to wait for it,
    /// unless the server has a time of its own (default 30 seconds).
    pub start_timeout: Duration,
    /// The failures in sequence after which a server is not started again, for servers without a number of their own
    /// (default 5).
    pub start_limit: u32,
    /// The delay after the first failure; it doubles with each further one (default 100 milliseconds).
    pub first_backoff: Duration,
    /// The longest delay (default one minute).
    pub longest_backoff: Duration,
    /// The time after which a running server's failures no longer count (default one minute).
    pub stable_after: Duration,
    /// The time after which a running server is pinged before clients are forwarded to it (default one second).
    pub verify_interval: Duration,
    /// The time limit of a ping (default 2 seconds).
    pub ping_timeout: Duration,
    /// The time in which a drained server has to end its requests before SIGTERM (default one minute).
    pub drain_limit: Duration,
    /// The time between SIGTERM and SIGKILL (default 10 seconds).
    pub kill_grace: Duration,
    /// The requests that may wait for one server (default 1,000).
    pub max_waiting_per_server: usize,
    /// The requests that may wait for all servers (default 10,000).
    pub max_waiting: usize,
    /// The registered servers (default 1,000).
    pub max_servers: usize,
    /// The processes at a time (default 256).
    pub max_processes: usize,
    /// The size from which the output of a server is moved to an older file, in octets (default 10 MiB).
    pub max_log: u64,
    /// A request to read the commands again, such as one by a signal; none by default.
    pub reload: Option<Arc<std::sync::atomic::AtomicBool>>,
    /// The file that is read again upon `reload`.
    pub commands_file: Option<PathBuf>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(30),
            start_limit: 5,
            first_backoff: Duration::from_millis(100),
            longest_backoff: Duration::from_secs(60),
            stable_after: Duration::from_secs(60),
            verify_interval: Duration::from_secs(1),
            ping_timeout: Duration::from_secs(2),
            drain_limit: Duration::from_secs(60),
            kill_grace: Duration::from_secs(10),
            max_waiting_per_server: 1_000,
            max_waiting: 10_000,
            max_servers: 1_000,
            max_processes: 256,
            max_log: 10 << 20,
            reload: None,
            commands_file: None,
        }
    }
}

impl Limits {
    /// The longest time limit of a start.
    pub const MAX_START_TIMEOUT: Duration = Duration::from_secs(3_600);

    /// The delay after this many failures in sequence.
    pub(crate) fn backoff(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first_backoff.saturating_mul(1 << doublings).min(self.longest_backoff)
    }

    pub(crate) fn reload_requested(&self) -> bool {
        self.reload.as_ref().is_some_and(|reload| reload.swap(false, std::sync::atomic::Ordering::AcqRel))
    }
}
