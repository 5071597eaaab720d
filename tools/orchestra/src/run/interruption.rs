//! The end of a run by a signal: the sample that is being taken is given up, and its server and loads are ended.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use spandrel::net::reactor::{TerminationHandler, on_termination};

use crate::idl::orchestra::WorkTeam;

/// Whether the user or the system has requested the end of the run (SIGINT, SIGTERM).
#[derive(Debug, Default)]
pub(super) struct Interruption {
    state: Mutex<State>,
    request: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_requested: bool,
    /// The teams whose loads a request cancels.
    teams: Vec<WorkTeam>,
}

impl Interruption {
    /// Handles the first request while the handler exists. The second one ends the process at once.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn handled() -> anyhow::Result<(Arc<Self>, TerminationHandler)> {
        let this = Arc::new(Self::default());
        let handling = Arc::clone(&this);
        let handler = on_termination(move |request| {
            let is_first = handling.request();
            if is_first {
                spandrel_daemon::remark(&format!(
                    "{request}: the present sample is given up, once its server has started or ended if it is \
                     doing so; another signal ends the run at once\n"
                ));
            }
            is_first
        });
        Ok((this, handler.context("cannot handle signals")?))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests the end, and cancels the loads, which ends the calls that wait for them; whether this is the first
    /// request.
    fn request(&self) -> bool {
        let mut state = self.state();
        let is_first = !std::mem::replace(&mut state.is_requested, true);
        let teams = std::mem::take(&mut state.teams);
        drop(state);
        self.request.notify_all();
        for team in teams {
            // An agent that does not answer delays neither the others nor the next signal. If it has failed, the call
            // that waits has, too.
            let cancel = thread::Builder::new().name("cancel".to_owned());
            _ = cancel.spawn(move || _ = team.cancel());
        }
        is_first
    }

    /// Sets the teams whose loads a request cancels.
    pub(super) fn set_teams(&self, teams: Vec<WorkTeam>) {
        self.state().teams = teams;
    }

    pub(super) fn is_requested(&self) -> bool {
        self.state().is_requested
    }

    /// Waits for this time, or until the end is requested.
    pub(super) fn wait(&self, time: Duration) {
        drop(self.request.wait_timeout_while(self.state(), time, |state| !state.is_requested));
    }
}
