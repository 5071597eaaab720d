//! An accepted connection, as the monitor sees it.

use std::time::Duration;

use spandrel_connection::ReaderWord;
use spandrel_ipc::{Interest, Pollable, wait_ready};
use spandrel_orb::{internal::ClientTimeouts, statistics::Event};

use super::ServerConnection;
use crate::monitor::{IdleVerdict, LongUpcall, LongUpcallAction, MonitoredConnection};

impl MonitoredConnection for ServerConnection {
    fn reader_word(&self) -> ReaderWord {
        self.reader_role.word()
    }

    fn holds_for_task(&self) -> bool {
        self.pipeline.is_scheduled()
    }

    fn send_held(&self) {
        self.end_holding();
    }

    fn pollable(&self) -> Option<&dyn Pollable> {
        Self::pollable(self)
    }

    fn handshake_left(&self) -> Option<Duration> {
        self.link.transport().handshake_left()
    }

    fn is_one_way(&self) -> bool {
        self.reader_role.is_one_way()
    }

    fn has_input_in_memory(&self) -> bool {
        self.may_hand_over() && self.reader.try_lock().is_some_and(|reader| !reader.is_drained())
    }

    fn has_unread_input(&self) -> bool {
        if !self.may_hand_over() {
            return false;
        }
        let Some(pollable) = self.pollable() else { return false };
        if !pollable.is_plain() {
            return pollable.pending();
        }
        wait_ready(pollable, Interest::INPUT, Some(Duration::ZERO)).is_ok_and(|ready| !ready.is_none())
    }

    fn awaits_cancellation(&self) -> bool {
        self.pending.awaits_cancellation()
    }

    fn overdue(&self, long_upcall: &LongUpcall) -> LongUpcallAction {
        let LongUpcall { word: upcall, age, keeps_reading, has_input } = *long_upcall;
        if let Some(dispatch_queue) = self.service.queue() {
            if keeps_reading {
                return LongUpcallAction::TooEarly;
            }
            dispatch_queue.overtake(self, upcall);
            return LongUpcallAction::Settled;
        }
        self.end_holding();
        let pool = &self.resources.pool;
        let is_registered = upcall.is_registered();
        if is_registered {
            pool.send_batch(); // the thread would send it after the upcall
        }
        if self.reader_role.lacks_processor(upcall) {
            return LongUpcallAction::LacksProcessor;
        }
        if is_registered && pool.is_fixed() {
            if pool.is_full() {
                return self.listen_in_full_pool(upcall, has_input);
            }
        } else if is_registered {
            self.reader_role.record_blocked(&self.resources.pool, upcall);
        }
        if keeps_reading {
            return LongUpcallAction::TooEarly;
        }
        if !has_input && self.can_await_input() {
            return LongUpcallAction::AwaitsInput;
        }
        if age >= self.hand_over_delay(upcall) && self.hand_over_reading(upcall) {
            LongUpcallAction::HandedOver
        } else {
            LongUpcallAction::TooEarly
        }
    }

    fn read_progress(&self) -> u64 {
        self.intake.progress()
    }

    fn write_progress(&self) -> Option<u64> {
        self.link.progress()
    }

    fn has_no_requests(&self) -> bool {
        !self.is_busy() && !self.is_bidirectional()
    }

    fn is_close_sent(&self) -> bool {
        self.close_state.is_close_sent()
    }

    fn apply(&self, verdict: IdleVerdict, client_timeouts: ClientTimeouts) {
        let peer = self.link.peer();
        match verdict {
            IdleVerdict::Idle(unused) => {
                if self.close_idle(unused, Event::ServerClosedIdle) {
                    tracing::debug!(peer, idle = ?client_timeouts.idle, "closed: idle too long (-ORBServerIdleTimeout)");
                }
            }
            IdleVerdict::Unfinished => {
                log_limited!(
                    warn, self.resources, "unfinished message", peer, limit = ?client_timeouts.message,
                    "cut off inside an unfinished message (-ORBMessageTimeout)"
                );
                self.cut_for(Event::ServerClosedForTimeout);
            }
            IdleVerdict::RepliesNotTaken => {
                log_limited!(
                    warn, self.resources, "replies not taken", peer, limit = ?client_timeouts.reply,
                    "cut off because it does not take its replies (-ORBSendTimeout)"
                );
                self.cut_for(Event::ServerClosedForTimeout);
            }
            IdleVerdict::HandshakeLate => {
                log_limited!(
                    warn,
                    self.resources,
                    "handshake",
                    peer,
                    "a client was rejected in the handshake, which took too long"
                );
                self.cut_for(Event::RefusedForSecurity);
            }
            IdleVerdict::Overstayed => self.cut(),
        }
    }
}
