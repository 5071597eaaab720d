//! Live samples: snapshots of a running server at equal distances.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::idl::orchestra::Snapshot;

/// The most snapshots that are kept.
const MAX_SNAPSHOTS: usize = 4096;
/// The most snapshots of one answer.
const MAX_ANSWER: usize = 256;

#[derive(Debug, Default)]
struct State {
    /// The number of the recording; a thread of an earlier one ends.
    recording: u64,
    is_on: bool,
    /// The number of the first snapshot that is kept.
    first: u32,
    snapshots: VecDeque<Snapshot>,
}

/// The recording of an agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<(Mutex<State>, Condvar)>);

impl Recorder {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the recording; the snapshots remain.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.is_on = false;
        state.recording += 1;
        self.0.1.notify_all();
    }

    /// Begins a recording, which forgets the one before. It ends when there is no snapshot any more.
    pub(crate) fn start(
        &self,
        interval: Duration,
        mut take: impl FnMut() -> Option<Snapshot> + Send + 'static,
    ) -> std::io::Result<()> {
        self.stop();
        let recording = {
            let mut state = self.state();
            (state.is_on, state.first) = (true, 0);
            state.snapshots.clear();
            state.recording
        };
        let recorder = self.clone();
        let record = move || {
            loop {
                // The state is not locked meanwhile.
                let snapshot = take();
                let mut state = recorder.state();
                if state.recording != recording {
                    return;
                }
                let Some(snapshot) = snapshot else {
                    state.is_on = false;
                    return;
                };
                if state.snapshots.len() == MAX_SNAPSHOTS {
                    state.snapshots.pop_front();
                    state.first = state.first.saturating_add(1);
                }
                state.snapshots.push_back(snapshot);
                let waited = recorder.0.1.wait_timeout_while(state, interval, |state| state.recording == recording);
                if waited.unwrap_or_else(PoisonError::into_inner).0.recording != recording {
                    return;
                }
            }
        };
        thread::Builder::new().name("recorder".to_owned()).spawn(record).map(drop)
    }

    /// Snapshots from this number on, as many as one answer has.
    pub(crate) fn from(&self, first: u32) -> Vec<Snapshot> {
        let state = self.state();
        let skipped = first.saturating_sub(state.first) as usize;
        state.snapshots.iter().skip(skipped).take(MAX_ANSWER).cloned().collect()
    }
}
