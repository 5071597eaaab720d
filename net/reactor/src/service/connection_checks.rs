//! The periodic check of the connections of one acceptor.

use std::io;
use std::time::Duration;

use spandrel_ipc::Pollable;
use spandrel_sync::{Arc, Weak};

use super::open_connections::OpenConnections;
use crate::{Context, EventHandler, Expired};

/// Begins a check of all open connections each interval. Ends after the acceptor and its last connection.
pub(crate) struct ConnectionChecks {
    pub(crate) open: Arc<OpenConnections>,
    pub(crate) interval: Duration,
    /// Alive as long as the acceptor.
    pub(crate) acceptor: Weak<()>,
}

impl EventHandler for ConnectionChecks {
    fn pollable(&self) -> Option<&dyn Pollable> {
        None
    }

    fn handle_open(&mut self, context: &Context<'_>) -> io::Result<()> {
        context.schedule(self.interval, Some(self.interval), 0).map(drop)
    }

    fn handle_timeout(&mut self, context: &Context<'_>, _timer: Expired) -> io::Result<()> {
        // In this order: a connection that is accepted between the two is counted.
        let has_acceptor = self.acceptor.strong_count() > 0;
        if !has_acceptor && self.open.is_empty() {
            context.close();
        } else {
            self.open.check();
        }
        Ok(())
    }
}
