//! A link between two stacks of this process.

use std::collections::VecDeque;
use std::time::Duration;

use spandrel_message::MessageBlock;
use spandrel_sync::{Arc, Condition, Mutex};

use crate::device::{Device, Received};

/// The time for which a receiver waits for a frame before it looks at timers.
const TICK: Duration = Duration::from_millis(1);

/// One direction of a link.
struct Wire {
    state: Mutex<State>,
    changed: Condition,
    capacity: usize,
}

#[derive(Default)]
struct State {
    frames: VecDeque<Vec<u8>>,
    is_stopped: bool,
    lost: u64,
}

/// An end of a link in both directions. A frame is copied when it is sent and when it is received; those beyond the
/// capacity are lost, as in the queue of an interface.
pub struct LinkEnd {
    incoming: Arc<Wire>,
    outgoing: Arc<Wire>,
}

impl LinkEnd {
    /// Both ends of a link that holds so many frames in each direction.
    #[must_use]
    pub fn pair(capacity: usize) -> [Self; 2] {
        let wire = || Arc::new(Wire { state: Mutex::default(), changed: Condition::new(), capacity });
        let (one, other) = (wire(), wire());
        let second = Self { incoming: Arc::clone(&other), outgoing: Arc::clone(&one) };
        [Self { incoming: one, outgoing: other }, second]
    }

    /// Makes this end give no more frames.
    pub fn stop(&self) {
        self.incoming.state.lock().is_stopped = true;
        self.incoming.changed.notify_all();
    }

    /// Frames for this end that were lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.incoming.state.lock().lost
    }
}

impl Device for LinkEnd {
    fn receive(&self) -> Received {
        let mut state = self.incoming.state.lock();
        if state.frames.is_empty() && !state.is_stopped {
            self.incoming.changed.wait_for(&mut state, TICK);
        }
        if state.is_stopped {
            return Received::End;
        }
        let frame = state.frames.pop_front();
        drop(state);
        frame.map_or(Received::Nothing, |frame| Received::Frame(MessageBlock::from(&frame[..])))
    }

    fn send(&self, frame: &MessageBlock) {
        let octets: Vec<u8> = frame.links().fold(Vec::with_capacity(frame.total_len()), |mut octets, link| {
            octets.extend_from_slice(link);
            octets
        });
        let mut state = self.outgoing.state.lock();
        if state.frames.len() < self.outgoing.capacity {
            state.frames.push_back(octets);
        } else {
            state.lost += 1;
        }
        drop(state);
        self.outgoing.changed.notify_one();
    }
}

impl std::fmt::Debug for LinkEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinkEnd").field("lost", &self.lost()).finish_non_exhaustive()
    }
}
