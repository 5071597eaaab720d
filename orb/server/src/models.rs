//! Models of a connection's threads: reading, replying and closing in many interleavings.
//!
//! [`own_thread`] has the models of connections with a thread of their own, [`pooled`] those of connections
//! that a reactor serves, and [`stage`] and [`reactor`] the fixtures of all models.

mod cancelled;
mod deferred;
mod idle;
mod nested;
pub(crate) mod one_servant;
mod own_thread;
mod pooled;
mod queued;
mod reactor;
mod stage;

use std::{io, time::Duration};

use spandrel_orb::{
    Orb,
    models::{
        check,
        messages::{self, FakeRequest},
        one_in,
        pipe::PipeEnd,
    },
};
use spandrel_sync::{Arc, Mutex, thread, time::Deadline};
use spandrel_transport::{Transport, send_octets};

use crate::{
    ServerConnection,
    connection::{ClosePhase, ServiceStrategy},
    monitor::MonitoredConnection,
    threads::ServerThreads,
};
use stage::*;
