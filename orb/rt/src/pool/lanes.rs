//! The lanes of a thread pool as a state machine: which thread runs which request next. No thread, lock or clock.
//!
//! Each thread of the pool has a slot, for as long as it lives. A request for an idle thread is put into that thread's
//! slot; requests that find no thread wait in the queue of their lane. So a thread waits only if no request that it may
//! run does.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use spandrel_sync::time::Instant;

use super::clients::WaitingClients;
use super::settings::{LaneStatistics, PoolSettings};
use super::work::{RefusalReason, WatchedRequest, Work};
use crate::Priority;

/// A request that waits, with its place in the order of its lane: the highest priority first, within a priority the
/// earliest deadline (requests without one last), then the clients in turn, and then the order of arrival.
pub(super) struct Entry<J> {
    pub(super) work: Work<J>,
    arrival: u64,
    /// Its turn among the requests of its priority: those of one client have different ones.
    turn: u64,
    /// The lane of the request, which may be above that of the thread that runs it.
    pub(super) lane: usize,
}

impl<J> Entry<J> {
    /// `None` counts as later than any deadline.
    fn compare_deadlines(&self, other: &Self) -> Ordering {
        match (self.work.deadline, other.work.deadline) {
            (Some(mine), Some(theirs)) => theirs.cmp(&mine),
            (mine, theirs) => mine.is_some().cmp(&theirs.is_some()),
        }
    }
}

impl<J> Ord for Entry<J> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.work
            .priority
            .cmp(&other.work.priority)
            .then_with(|| self.compare_deadlines(other))
            .then_with(|| other.turn.cmp(&self.turn))
            .then_with(|| other.arrival.cmp(&self.arrival))
    }
}

impl<J> PartialOrd for Entry<J> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<J> PartialEq for Entry<J> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<J> Eq for Entry<J> {}

struct Lane<J> {
    priority: Priority,
    static_threads: usize,
    max_threads: usize,
    threads: usize,
    /// Slots of threads that wait; the last one waits for the shortest time and is used first.
    idle: Vec<usize>,
    queue: BinaryHeap<Entry<J>>,
    queued_octets: usize,
    clients: WaitingClients,
    /// Threads that read the lane's endpoint and wait until it has room.
    waiting_readers: usize,
    /// Counts since the creation.
    begun: u64,
    borrowed: u64,
    late: u64,
    refused: u64,
    overruns: u64,
}

impl<J> Lane<J> {
    /// Puts a request into the queue, which has room.
    fn push(&mut self, entry: Entry<J>) {
        let Work { priority, client, octets, .. } = entry.work;
        let turn = self.clients.enter(priority, client, octets);
        self.queued_octets += octets;
        self.queue.push(Entry { turn, ..entry });
    }

    /// Takes the next request out of the queue.
    fn pop(&mut self) -> Option<Entry<J>> {
        let entry = self.queue.pop()?;
        let Work { priority, client, octets, .. } = entry.work;
        self.clients.leave(priority, client, octets, entry.turn);
        self.queued_octets -= octets;
        Some(entry)
    }

    /// Whether a client that has requests in the buffer has as much of it as is free, or would have more octets with this
    /// one.
    fn exceeds_share(&self, work: &Work<J>, max_requests: usize, max_octets: usize) -> bool {
        self.clients.share(work.client).is_some_and(|share| {
            share.requests >= max_requests.saturating_sub(self.queue.len())
                || share.octets.saturating_add(work.octets) > max_octets.saturating_sub(self.queued_octets)
        })
    }
}

struct Slot<J> {
    lane: usize,
    assigned: Option<Entry<J>>,
    /// Whether the thread counted as idle before its request had ended.
    is_released: bool,
    /// The request that its thread runs, if that has a limit of time.
    watched: Option<WatchedRequest>,
}

/// The effect of an accepted request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Admission {
    /// The idle thread of this slot has it.
    Assigned(usize),
    /// It is the first request of a new thread, which is to be started for this slot.
    Spawn(usize),
    /// It waits in the queue of its lane.
    Buffered,
}

pub(super) struct Lanes<J> {
    /// In rising order of their priorities.
    lanes: Vec<Lane<J>>,
    slots: Vec<Option<Slot<J>>>,
    free_slots: Vec<usize>,
    allows_borrowing: bool,
    /// Requests and octets that may wait in each lane; zero without request buffering.
    max_requests: usize,
    max_octets: usize,
    shares_buffers: bool,
    arrivals: u64,
    is_closed: bool,
    /// The time until which the watching thread sleeps; `None` without a limit.
    watch_until: Option<Instant>,
}

impl<J> Lanes<J> {
    /// Lanes without threads. `settings` have been checked.
    pub(super) fn new(settings: &PoolSettings) -> Self {
        let (max_requests, max_octets) = settings.buffering.unwrap_or((0, 0));
        let mut lanes: Vec<_> = settings
            .lanes
            .iter()
            .map(|lane| {
                let max_threads = lane.static_threads + lane.dynamic_threads;
                Lane {
                    priority: lane.priority,
                    static_threads: lane.static_threads,
                    max_threads,
                    threads: 0,
                    idle: Vec::with_capacity(max_threads),
                    queue: BinaryHeap::with_capacity(max_requests),
                    queued_octets: 0,
                    clients: WaitingClients::with_capacity(max_requests),
                    waiting_readers: 0,
                    begun: 0,
                    borrowed: 0,
                    late: 0,
                    refused: 0,
                    overruns: 0,
                }
            })
            .collect();
        lanes.sort_by_key(|lane| lane.priority);
        let threads = lanes.iter().map(|lane| lane.max_threads).sum();
        Self {
            lanes,
            slots: (0..threads).map(|_| None).collect(),
            free_slots: (0..threads).rev().collect(),
            allows_borrowing: settings.allows_borrowing,
            max_requests,
            max_octets,
            shares_buffers: settings.shares_buffers,
            arrivals: 0,
            is_closed: false,
            watch_until: None,
        }
    }

    /// The greatest number of requests that run or wait at the same time.
    pub(super) fn max_requests(&self) -> usize {
        self.lanes.iter().map(|lane| lane.max_threads + self.max_requests).sum()
    }

    pub(super) fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    pub(super) fn lane_priority(&self, lane: usize) -> Priority {
        self.lanes[lane].priority
    }

    pub(super) fn static_threads(&self, lane: usize) -> usize {
        self.lanes[lane].static_threads
    }

    pub(super) fn lane_of_slot(&mut self, slot: usize) -> usize {
        self.slot(slot).lane
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether a lane has exactly this priority.
    pub(super) fn has_lane(&self, priority: Priority) -> bool {
        self.lanes.iter().any(|lane| lane.priority == priority)
    }

    /// The lane for requests of this priority: the most urgent one that is not above it.
    pub(super) fn lane_of(&self, priority: Priority) -> Option<usize> {
        self.lanes.partition_point(|lane| lane.priority <= priority).checked_sub(1)
    }

    /// Takes a slot for a new thread of a lane, which is not above its limit.
    fn take_slot(&mut self, lane: usize, assigned: Option<Entry<J>>) -> usize {
        let slot = self.free_slots.pop().expect("there are as many slots as threads may exist");
        self.lanes[lane].threads += 1;
        self.slots[slot] = Some(Slot { lane, assigned, is_released: false, watched: None });
        slot
    }

    fn slot(&mut self, slot: usize) -> &mut Slot<J> {
        self.slots[slot].as_mut().expect("the thread of the slot exists")
    }

    pub(super) fn thread_count(&self) -> usize {
        self.lanes.iter().map(|lane| lane.threads).sum()
    }

    /// Takes the slot of a static thread, which counts as idle before it has started.
    pub(super) fn begin_static_thread(&mut self, lane: usize) -> usize {
        let slot = self.take_slot(lane, None);
        self.lanes[lane].idle.push(slot);
        slot
    }

    /// Gives back the slot of a thread that ends, or could not be started. Returns the request that it would have run.
    pub(super) fn end_thread(&mut self, slot: usize) -> Option<Entry<J>> {
        let slot_state = self.slots[slot].take()?;
        self.lanes[slot_state.lane].threads -= 1;
        self.free_slots.push(slot);
        slot_state.assigned
    }

    /// Accepts a request, or says why not and gives it back.
    ///
    /// The order: an idle thread of the lane; a new dynamic thread; an idle thread of the next lower lane that has one;
    /// the buffer.
    pub(super) fn admit(&mut self, work: Work<J>) -> Result<Admission, (Work<J>, RefusalReason)> {
        if self.is_closed {
            return Err((work, RefusalReason::PoolDestroyed));
        }
        let Some(lane) = self.lane_of(work.priority) else {
            return Err((work, RefusalReason::NoLane));
        };
        self.arrivals += 1;
        self.admit_entry(Entry { work, arrival: self.arrivals, turn: 0, lane }, true)
    }

    /// Places a request again whose new thread could not be started: no other is started for it.
    pub(super) fn readmit(&mut self, entry: Entry<J>) -> Result<Admission, (Work<J>, RefusalReason)> {
        if self.is_closed {
            return Err((entry.work, RefusalReason::PoolDestroyed));
        }
        self.admit_entry(entry, false)
    }

    fn admit_entry(&mut self, entry: Entry<J>, may_spawn: bool) -> Result<Admission, (Work<J>, RefusalReason)> {
        let lane = entry.lane;
        if let Some(slot) = self.lanes[lane].idle.pop() {
            self.slot(slot).assigned = Some(entry);
            return Ok(Admission::Assigned(slot));
        }
        if may_spawn && self.lanes[lane].threads < self.lanes[lane].max_threads {
            return Ok(Admission::Spawn(self.take_slot(lane, Some(entry))));
        }
        if self.allows_borrowing
            && let Some(slot) = self.lanes[..lane].iter_mut().rev().find_map(|lower| lower.idle.pop())
        {
            self.slot(slot).assigned = Some(entry);
            return Ok(Admission::Assigned(slot));
        }
        let reason = self.overflow(&entry.work, lane);
        let own = &mut self.lanes[lane];
        match reason {
            None => {
                own.push(entry);
                Ok(Admission::Buffered)
            }
            Some(reason) => {
                own.refused += 1;
                Err((entry.work, reason))
            }
        }
    }

    /// The reason why the buffer of a lane has no room for a request.
    fn overflow(&self, work: &Work<J>, lane: usize) -> Option<RefusalReason> {
        let (max_requests, max_octets) = (self.max_requests, self.max_octets);
        let own = &self.lanes[lane];
        if max_requests == 0 {
            Some(RefusalReason::NoThread)
        } else if own.queue.len() >= max_requests {
            Some(RefusalReason::TooManyRequests)
        } else if work.octets > max_octets.saturating_sub(own.queued_octets) {
            Some(RefusalReason::TooManyOctets)
        } else if self.shares_buffers && own.exceeds_share(work, max_requests, max_octets) {
            Some(RefusalReason::TooManyOfClient)
        } else {
            None
        }
    }

    /// Whether a request would be refused now, and accepted once others have ended: neither a thread of its lane nor the
    /// buffer has room for it.
    pub(super) fn is_full_for(&self, work: &Work<J>) -> bool {
        let Some(lane) = self.lane_of(work.priority).filter(|_| !self.is_closed) else { return false };
        let own = &self.lanes[lane];
        let lower = if self.allows_borrowing { &self.lanes[..lane] } else { &[] };
        let has_thread = own.threads < own.max_threads || lower.iter().chain([own]).any(|lane| !lane.idle.is_empty());
        !has_thread
            && match self.overflow(work, lane) {
                Some(RefusalReason::TooManyOctets) => work.octets <= self.max_octets,
                Some(RefusalReason::NoThread | RefusalReason::TooManyRequests) => true,
                _ => false,
            }
    }

    /// Changes the number of threads that wait until the lane of a priority has room.
    pub(super) fn count_waiting_readers(&mut self, priority: Priority, change: isize) {
        if let Some(lane) = self.lane_of(priority) {
            let waiting = &mut self.lanes[lane].waiting_readers;
            *waiting = waiting.saturating_add_signed(change);
        }
    }

    /// Whether a thread waits until a lane has room.
    pub(super) fn is_room_awaited(&self) -> bool {
        self.lanes.iter().any(|lane| lane.waiting_readers > 0)
    }

    /// The next request for the thread of this slot, which has none. `None` makes it idle.
    pub(super) fn next(&mut self, slot: usize) -> Option<Entry<J>> {
        let own = self.slot(slot).lane;
        let Some(lane) = self.waiting_lane(own) else {
            self.lanes[own].idle.push(slot);
            return None;
        };
        self.lanes[lane].pop()
    }

    /// Lets a thread count as idle whose request is about to end, unless another request waits that it may run. Then it
    /// takes that at its end.
    pub(super) fn release(&mut self, slot: usize) {
        let Slot { lane, is_released, .. } = *self.slot(slot);
        if is_released || self.is_closed || self.waiting_lane(lane).is_some() {
            return;
        }
        self.slot(slot).is_released = true;
        self.lanes[lane].idle.push(slot);
    }

    /// Ends the request of a thread. Whether the thread was released before.
    pub(super) fn end_release(&mut self, slot: usize) -> bool {
        std::mem::take(&mut self.slot(slot).is_released)
    }

    /// The most urgent lane with a request that a thread of this lane may run.
    fn waiting_lane(&self, lane: usize) -> Option<usize> {
        let from = if self.allows_borrowing { lane..self.lanes.len() } else { lane..lane + 1 };
        from.rev().find(|lane| !self.lanes[*lane].queue.is_empty())
    }

    /// The request that was put into the slot of an idle or new thread.
    pub(super) fn take_assigned(&mut self, slot: usize) -> Option<Entry<J>> {
        self.slot(slot).assigned.take()
    }

    /// Ends the wait of an idle thread, if its lane has more threads than the static ones. False if a request has been
    /// put into its slot meanwhile.
    pub(super) fn retire(&mut self, slot: usize) -> bool {
        let lane = self.slot(slot).lane;
        let lane = &mut self.lanes[lane];
        if lane.threads <= lane.static_threads {
            return false;
        }
        match lane.idle.iter().position(|idle| *idle == slot) {
            Some(at) => {
                lane.idle.remove(at);
                true
            }
            None => false,
        }
    }

    /// Counts a request that the thread of this slot takes, and returns it with whether its deadline has passed.
    pub(super) fn begin(&mut self, entry: Entry<J>, slot: usize, now: impl FnOnce() -> Instant) -> (Entry<J>, bool) {
        let own = self.slot(slot).lane;
        let lane = &mut self.lanes[entry.lane];
        let is_late = entry.work.deadline.is_some_and(|deadline| now() >= deadline);
        if is_late {
            lane.late += 1;
        } else {
            lane.begun += 1;
            lane.borrowed += u64::from(own != entry.lane);
        }
        (entry, is_late)
    }

    /// Begins the time of a request, which the thread of this slot runs. Whether the watching thread sleeps too long.
    pub(super) fn begin_watch(&mut self, slot: usize, watched: WatchedRequest) -> bool {
        let is_earlier = match (watched.end, self.watch_until) {
            (Some(end), Some(until)) => end < until,
            (end, None) => end.is_some(),
            (None, Some(_)) => false,
        };
        if is_earlier {
            self.watch_until = watched.end;
        }
        self.slot(slot).watched = Some(watched);
        is_earlier
    }

    /// Ends the time of the request of this slot, if it has one.
    pub(super) fn end_watch(&mut self, slot: usize) -> Option<WatchedRequest> {
        self.slot(slot).watched.take()
    }

    /// A request that has exceeded its time, which was not noticed before.
    pub(super) fn next_overrun(&mut self, now: Instant) -> Option<&mut WatchedRequest> {
        let has_exceeded = |watched: &WatchedRequest| watched.end.is_some_and(|end| end <= now);
        let mut all = self.slots.iter_mut().flatten().filter_map(|slot| slot.watched.as_mut());
        let watched = all.find(|watched| has_exceeded(watched))?;
        watched.end = None;
        self.lanes[watched.lane].overruns += 1;
        Some(watched)
    }

    /// The time at which the next request exceeds its time. The watching thread sleeps until then.
    pub(super) fn earliest_end(&mut self) -> Option<Instant> {
        let ends = self.slots.iter().flatten().filter_map(|slot| slot.watched.as_ref()?.end);
        self.watch_until = ends.min();
        self.watch_until
    }

    /// Accepts no more requests, and gives back those that wait.
    pub(super) fn close(&mut self) -> Vec<Work<J>> {
        self.is_closed = true;
        let mut waiting = Vec::new();
        for lane in &mut self.lanes {
            lane.queued_octets = 0;
            lane.clients.clear();
            waiting.extend(lane.queue.drain().map(|entry| entry.work));
        }
        waiting
    }

    pub(super) fn statistics(&self) -> Vec<LaneStatistics> {
        let one = |lane: &Lane<J>| LaneStatistics {
            priority: lane.priority,
            threads: lane.threads,
            idle: lane.idle.len(),
            buffered_requests: lane.queue.len(),
            buffered_octets: lane.queued_octets,
            buffered_clients: lane.clients.len(),
            waiting_readers: lane.waiting_readers,
            begun: lane.begun,
            borrowed: lane.borrowed,
            late: lane.late,
            refused: lane.refused,
            overruns: lane.overruns,
        };
        self.lanes.iter().map(one).collect()
    }
}
