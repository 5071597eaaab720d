//! How far the closing of a connection has come.

use spandrel_connection::{ReadSide, ServerPhase, WriteSide};
use spandrel_orb::{CancelReason, statistics::Event};
use spandrel_sync::{
    Condition, Mutex,
    atomic::{AtomicU8, Ordering},
    time::Deadline,
};

/// The progress of a connection's end, for threads that wait for it.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum ClosePhase {
    /// Requests are served.
    #[default]
    Open,
    /// CloseConnection is or was sent after the last reply, or the write side is shut.
    CloseSent,
    /// The connection is gone.
    Ended,
}

/// The phase of a connection, and the reason for its end.
#[derive(Debug)]
pub(super) struct CloseState {
    /// The bits of the [`ServerPhase`].
    phase: AtomicU8,
    progress: Mutex<CloseProgress>,
    /// Notified when the close phase advances.
    advanced: Condition,
}

#[derive(Debug, Default)]
struct CloseProgress {
    close_phase: ClosePhase,
    /// Whether the shutdown of the ORB has cut the connection before its last request ended.
    is_cut_off: bool,
    /// The event for the statistics, if this side has chosen one for the end.
    ended_for: Option<Event>,
}

impl Default for CloseState {
    fn default() -> Self {
        let phase = AtomicU8::new(ServerPhase::Open.bits());
        Self { phase, progress: Mutex::default(), advanced: Condition::new() }
    }
}

impl CloseState {
    fn phase(&self) -> ServerPhase {
        ServerPhase::from_bits(self.phase.load(Ordering::SeqCst))
    }

    /// Whether the reading has ended.
    pub(super) fn is_reading_finished(&self) -> bool {
        self.phase().read_side() != ReadSide::Open
    }

    /// Whether no reply is due any more, and the stream is closed in that direction.
    pub(super) fn is_write_side_shut(&self) -> bool {
        self.phase().write_side() == WriteSide::Shut
    }

    /// Whether the connection is finished, and the reading of late octets has ended as well.
    pub(super) fn is_closed(&self) -> bool {
        self.phase().read_side() == ReadSide::Closed
    }

    /// Changes the phase. Returns false if the present phase has no such transition.
    pub(super) fn advance(&self, transition: fn(ServerPhase) -> Option<ServerPhase>) -> bool {
        let change = |now| transition(ServerPhase::from_bits(now)).map(ServerPhase::bits);
        self.phase.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change).is_ok()
    }

    /// Raises the close phase, and wakes the threads that wait for it.
    pub(super) fn advance_to(&self, close_phase: ClosePhase) {
        let mut progress = self.progress.lock();
        progress.close_phase = close_phase.max(progress.close_phase);
        self.advanced.notify_all();
    }

    /// Whether CloseConnection was sent, or the connection is gone.
    pub(super) fn is_close_sent(&self) -> bool {
        self.progress.lock().close_phase >= ClosePhase::CloseSent
    }

    /// Waits until the closing has come to this phase. Returns false if it has not within the time; the
    /// connection then counts as cut off.
    pub(super) fn await_close_phase(&self, close_phase: ClosePhase, deadline: Deadline) -> bool {
        let mut progress = self.progress.lock();
        while progress.close_phase < close_phase {
            if deadline.is_over() {
                progress.is_cut_off = true;
                return false;
            }
            self.advanced.wait_until(&mut progress, deadline);
        }
        true
    }

    /// The reason for cancelling requests after the end of reading.
    pub(super) fn end_reason(&self) -> CancelReason {
        match self.progress.lock().is_cut_off {
            true => CancelReason::ShuttingDown,
            false => CancelReason::ConnectionLost,
        }
    }

    /// Sets the event for the statistics, unless there is one.
    pub(super) fn set_ended_for(&self, why: Event) {
        self.progress.lock().ended_for.get_or_insert(why);
    }

    /// The event for the statistics, if this side has chosen one.
    pub(super) fn ended_for(&self) -> Option<Event> {
        self.progress.lock().ended_for
    }
}
