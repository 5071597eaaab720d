//! Servers of services that end, for the services that replace them.
//!
//! A changed directive ends a service before its successor begins. The listening socket stays open in between, so that
//! no connection is lost.

use std::time::Duration;

use spandrel::net::ipc::inet::Addr;
use spandrel::net::sync::time::Deadline;
use spandrel::net::sync::{Arc, Condition, Mutex, ThreadManager};
use spandrel_architectures::{Server as _, SwitchingServer};

/// The time in which a successor takes a server over. Afterwards its socket is closed.
const WAIT: Duration = Duration::from_secs(2);
/// The time that connections have when the process ends.
const END: Duration = Duration::from_secs(2);
/// The greatest number of servers that wait, or still serve connections after it.
const MOST: usize = 64;

/// The servers that wait for a successor.
pub(crate) struct Handover {
    waiting: Arc<Waiting>,
    /// A thread for each server.
    threads: ThreadManager,
}

#[derive(Default)]
struct Waiting {
    /// With the addresses of their directives.
    servers: Mutex<Vec<(Addr, Arc<SwitchingServer>)>>,
    changed: Condition,
}

impl Default for Handover {
    fn default() -> Self {
        Self { waiting: Arc::default(), threads: ThreadManager::with_limit(MOST) }
    }
}

impl Handover {
    /// Leaves a server to a successor with the same address.
    pub(crate) fn leave(&self, address: Addr, server: Arc<SwitchingServer>) {
        self.waiting.servers.lock().push((address, Arc::clone(&server)));
        let waiting = Arc::clone(&self.waiting);
        let weak = Arc::downgrade(&server);
        drop(server);
        let wait = move |_: &spandrel::net::sync::ThreadContext| {
            let is_here = |servers: &[(Addr, Arc<SwitchingServer>)]| {
                servers.iter().position(|(_, server)| std::ptr::eq(Arc::as_ptr(server), weak.as_ptr()))
            };
            let deadline = Deadline::after(WAIT);
            let mut servers = waiting.servers.lock();
            loop {
                if deadline.is_over() || is_here(&servers).is_none() {
                    break;
                }
                waiting.changed.wait_until(&mut servers, deadline);
            }
            let left = is_here(&servers).map(|at| servers.swap_remove(at));
            drop(servers);
            if let Some((_, server)) = left {
                // Its former servers have their own limit of time.
                while server.former() > 0 && !server.wait_closed(WAIT) {}
                let _ = server.stop(Duration::ZERO);
            }
        };
        if let Err(error) = self.threads.spawn("handover", wait) {
            tracing::warn!(%error, "a service ends without its connections");
            let _ = self.take(address).map(|server| server.stop(Duration::ZERO));
        }
    }

    /// Takes over the server that a predecessor left at this address.
    pub(crate) fn take(&self, address: Addr) -> Option<Arc<SwitchingServer>> {
        let mut servers = self.waiting.servers.lock();
        let at = servers.iter().position(|(other, _)| *other == address)?;
        let (_, server) = servers.swap_remove(at);
        self.waiting.changed.notify_all();
        Some(server)
    }
}

impl Drop for Handover {
    /// Ends the servers that still wait: the process ends.
    fn drop(&mut self) {
        let left = std::mem::take(&mut *self.waiting.servers.lock());
        self.waiting.changed.notify_all();
        for (_, server) in left {
            let _ = server.wait_closed(END);
            let _ = server.stop(Duration::ZERO);
        }
    }
}
