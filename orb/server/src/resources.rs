//! The resources that the connections and the upcalls of one ORB share: its settings, threads, memory budget
//! and object adapter.
//!
//! This module knows neither the connections nor the listeners. They get the resources of their ORB when they
//! are created, or [find](ServingOrb) them by the ORB.
//!
//! The memory limits themselves are in `budget` of `spandrel-transport`.

use std::io;

use spandrel_connection::HandOverTimes;
use spandrel_orb::{Spawn, internal::ServerSettings};
use spandrel_reactor::LogLimit;
use spandrel_sync::{Arc, atomic::AtomicBool};
use spandrel_transport::MemoryBudget;

use crate::{
    ObjectAdapter,
    announced_addresses::AnnouncedAddresses,
    long_wait::{Executor, UnbegunRequests},
    monitor::UpcallMonitor,
    queue::WorkerQueue,
    quick_operations::QuickOperations,
    reactor_pool::Pool,
    running_calls::RunningCalls,
    threads::ServerThreads,
    upcall::origin::UpcallServices,
};

/// The shared resources of the server side of one ORB.
#[derive(Debug)]
pub(crate) struct ServerResources {
    pub(crate) settings: Arc<ServerSettings>,
    pub(crate) adapter: Arc<dyn ObjectAdapter>,
    /// The reactor and its threads.
    pub(crate) pool: Arc<Pool>,
    /// The threads of the server.
    pub(crate) threads: Arc<ServerThreads>,
    pub(crate) upcall_monitor: Arc<UpcallMonitor>,
    /// The ages at which another thread takes over from a long upcall.
    pub(crate) hand_over: HandOverTimes,
    log_limit: Arc<LogLimit>,
    /// The operations during which replies to requests before theirs may wait.
    pub(crate) quick_operations: QuickOperations,
    /// The memory budget of all connections.
    pub(crate) budget: Arc<MemoryBudget>,
    /// The addresses that clients have announced.
    pub(crate) announced: AnnouncedAddresses,
    /// The calls that run outside of accepted connections.
    pub(crate) running_calls: RunningCalls,
    /// The requests that wait for the main thread.
    for_main_thread: Arc<UnbegunRequests>,
    /// The requests that wait for an executor of the application.
    for_spawner: Arc<UnbegunRequests>,
    /// Whether the executor has polled the last future of a request first in its upcall.
    polls_in_upcalls: AtomicBool,
}

impl ServerResources {
    /// Creates the resources of a server with these settings. `queue`: the queue of the pool's workers, if
    /// they run the requests that its reactor reads.
    pub(crate) fn new(
        settings: ServerSettings,
        adapter: Arc<dyn ObjectAdapter>,
        threads: Arc<ServerThreads>,
        log_limit: Arc<LogLimit>,
        queue: Option<Arc<dyn WorkerQueue>>,
    ) -> Self {
        Self {
            adapter,
            pool: Arc::new(Pool::new(&settings, queue, &threads, &log_limit)),
            threads,
            upcall_monitor: Arc::default(),
            hand_over: HandOverTimes::default(),
            log_limit,
            quick_operations: QuickOperations::default(),
            budget: Arc::new(MemoryBudget::new(settings.max_server_memory)),
            announced: AnnouncedAddresses::default(),
            running_calls: RunningCalls::default(),
            polls_in_upcalls: AtomicBool::new(false),
            for_main_thread: UnbegunRequests::new(Executor::MainThread, settings.long_wait_warning),
            for_spawner: UnbegunRequests::new(Executor::Spawner(settings.spawner.clone()), settings.long_wait_warning),
            settings: Arc::new(settings),
        }
    }

    /// Limits the log lines that clients can cause.
    pub(crate) fn log_limit(&self) -> &LogLimit {
        &self.log_limit
    }
}

impl UpcallServices for ServerResources {
    fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    fn log_limit(&self) -> &LogLimit {
        &self.log_limit
    }

    fn for_main_thread(&self) -> &Arc<UnbegunRequests> {
        &self.for_main_thread
    }

    fn for_spawner(&self) -> Option<&Arc<UnbegunRequests>> {
        self.settings.spawner.as_ref().map(|_| &self.for_spawner)
    }

    fn polls_in_upcalls(&self) -> &AtomicBool {
        &self.polls_in_upcalls
    }

    fn with_spawner(&self, then: &mut dyn FnMut(&dyn Spawn)) -> io::Result<()> {
        match &self.settings.spawner {
            Some(spawner) => then(&*spawner.0),
            None => then(&self.pool.workers()?),
        }
        Ok(())
    }
}

/// An ORB with a server side. Its requests and connections exist only with it.
pub(crate) trait ServingOrb {
    /// The resources of the server side.
    fn resources(&self) -> &Arc<ServerResources>;
}
