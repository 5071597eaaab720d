//! Reading while a thread waits.
//!
//! A thread may wait for the reply to a request over the connection itself, or let a reactor run further
//! requests while its servant waits. In both cases another thread has to read the connection.

use std::time::Duration;

use spandrel_connection::ReaderWord;
use spandrel_giop::SystemException;
use spandrel_orb::{Task, internal::AdoptedReader};
use spandrel_sync::Arc;

use super::ServerConnection;
use crate::{
    monitor::{LongUpcall, MonitoredConnection},
    nesting::{self, PolledConnection},
};

impl AdoptedReader for ServerConnection {
    fn ensure_reading(&self) -> Result<(), SystemException> {
        let word = self.reader_role.word();
        if self.service.queue().is_some() {
            // The queue's workers run its requests.
            return Ok(());
        }
        let is_read = !word.is_in_upcall() || word.is_registered() && self.resources.pool.is_fixed();
        if is_read {
            // Or it will be: threads of a fixed pool release the reader role before they wait.
            return Ok(());
        }
        let running = self.reader_role.handed_over() + 1;
        if running >= self.resources.settings.max_in_flight && self.reader_role.word() == word {
            return Err(nesting::too_many(running));
        }
        let lasting = LongUpcall { word, age: Duration::MAX, keeps_reading: false, has_input: true };
        self.overdue(&lasting);
        Ok(())
    }

    fn cut(&self) {
        Self::cut(self);
    }

    fn written(&self) {
        self.after_deferred();
    }

    fn run_in_other_thread(&self, notify: Task) -> Result<(), SystemException> {
        self.orb.client_reactor().run(notify)
    }
}

impl PolledConnection for ServerConnection {
    fn release_reading(self: Arc<Self>, upcall: ReaderWord) -> Result<(), SystemException> {
        if self.reader_role.word() != upcall {
            return Ok(());
        }
        let running = self.reader_role.handed_over() + 1;
        if running >= self.resources.settings.max_in_flight {
            // A thread that has taken over meanwhile was counted.
            if self.reader_role.word() != upcall {
                return Ok(());
            }
            return Err(nesting::too_many(running));
        }
        self.release_to_reactor(upcall);
        Ok(())
    }
}
