//! The requests of threads that share a connection, so that those which arrive during a write leave together.

use std::{cmp::Reverse, mem, ops::Range};

use crate::MOST_APPENDED;

/// The requests that threads have appended to a write, and the writer roles.
///
/// Two threads at a time have a writer role: one writes, and the other one waits for the write lock, which it gets without
/// a notification. The requests of threads that begin meanwhile are appended; their threads wait for their replies at once.
/// A thread with a role writes what is appended together with its own request, which comes last: so it waits for no octets
/// behind its own. When both roles are free, the thread of the [next](Self::next) appended request takes one, or any thread
/// that begins.
///
/// Each request has an [`Urgency`]. The most urgent one that is appended is written first, and those of equal urgency in
/// their order. A thread leaves the appended requests that are less urgent than its own to the next writer. A request that
/// is being written is not overtaken.
///
/// A thread reads for others only once its own request is [written](Self::is_written). Otherwise the thread that writes
/// could depend on a reply that the same thread would have to read.
///
/// | event | a role is free | both roles are taken |
/// | --- | --- | --- |
/// | [`begin`](Self::begin) | a role is taken | appended; alone if there is no room |
/// | [`turn`](Self::turn) of an appended request | a role is taken if both are free | waits |
/// | [`take`](Self::take), under the write lock | the appended requests are being written | so |
/// | [`settle`](Self::settle) | those that were written are done, those that were not begun are appended again | so |
/// | [`end`](Self::end) | the role is free; a request that its thread has written in part is lost | so |
/// | [`remove`](Self::remove) | an appended request is taken back; one that is being written is in doubt | so |
#[derive(Debug, Default)]
pub struct AppendedRequests {
    /// The requests of the threads that have a writer role.
    writers: [Option<u32>; 2],
    /// The octets of the appended requests.
    octets: Vec<u8>,
    /// The most urgent one first.
    appended: Vec<Extent>,
    /// The requests that are being written, by the thread of this one.
    in_write: Vec<Extent>,
    write_owner: Option<u32>,
    /// Requests that were written in part and never will be written to their end.
    lost: Vec<u32>,
}

/// The urgency of a request on its connection: a greater one is written first. Zero is that of ordinary calls.
pub type Urgency = u16;

/// A request, and the end of its octets in those of all.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// The id; `None` once the thread has left, while the request was being written.
    request_id: Option<u32>,
    urgency: Urgency,
    end: usize,
}

/// The answer to a thread that wants to send a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WriteStart {
    /// This thread has a writer role: it writes once it has the write lock.
    Write,
    /// The request is appended.
    Append,
    /// There is no room: this thread writes its request by itself, without a role.
    Alone,
}

/// The next step for the request of a thread that waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WriteTurn {
    /// It is written: the thread may read.
    Written,
    /// The thread now has a writer role, and writes.
    Write,
    /// Another thread writes, and will not write this request before its next turn.
    Wait,
    /// Another thread writes this request.
    BeingWritten,
    /// It will not be written to its end. No further step follows.
    Lost,
}

impl AppendedRequests {
    /// Begins to write a request of `len` octets. `copy` appends them.
    pub fn begin(
        &mut self,
        request_id: u32,
        urgency: Urgency,
        len: usize,
        copy: impl FnOnce(&mut Vec<u8>),
    ) -> WriteStart {
        if let Some(free) = self.writers.iter_mut().find(|writer| writer.is_none()) {
            *free = Some(request_id);
            return WriteStart::Write;
        }
        let end = self.octets.len().saturating_add(len);
        if end > MOST_APPENDED {
            return WriteStart::Alone;
        }
        copy(&mut self.octets);
        debug_assert_eq!(self.octets.len(), end, "it has as many octets as it says");
        self.appended.push(Extent { request_id: Some(request_id), urgency, end });
        self.order();
        WriteStart::Append
    }

    /// The next step of the thread that has appended a request and looks whether it was written.
    #[inline]
    pub fn turn(&mut self, request_id: u32) -> WriteTurn {
        if self.appended.is_empty() && self.in_write.is_empty() && self.lost.is_empty() {
            return WriteTurn::Written;
        }
        self.turn_with_others(request_id)
    }

    fn turn_with_others(&mut self, request_id: u32) -> WriteTurn {
        if let Some(at) = self.lost.iter().position(|lost| *lost == request_id) {
            self.lost.swap_remove(at);
            return WriteTurn::Lost;
        }
        if has(&self.in_write, request_id) {
            return WriteTurn::BeingWritten;
        }
        if !has(&self.appended, request_id) {
            return WriteTurn::Written;
        }
        if self.has_writer() {
            return WriteTurn::Wait;
        }
        // The other role may be taken now by a thread that gets the write lock first.
        self.remove_appended(request_id);
        self.writers[0] = Some(request_id);
        WriteTurn::Write
    }

    /// Whether a request is written: its thread may read for others.
    #[must_use]
    pub fn is_written(&self, request_id: u32) -> bool {
        !self.writers.contains(&Some(request_id))
            && !has(&self.appended, request_id)
            && !has(&self.in_write, request_id)
            && !self.lost.contains(&request_id)
    }

    /// Takes the appended requests to be written by a thread that has a writer role and the write lock, without its own:
    /// those that are at least as urgent as its own.
    pub fn take(&mut self, request_id: u32, urgency: Urgency) -> Vec<u8> {
        debug_assert!(self.writers.contains(&Some(request_id)), "it has a writer role");
        debug_assert!(self.in_write.is_empty(), "nothing is written after a write that has failed");
        self.write_owner = Some(request_id);
        let count = self.appended.partition_point(|extent| extent.urgency >= urgency);
        if count == self.appended.len() {
            self.in_write = mem::take(&mut self.appended);
            return mem::take(&mut self.octets);
        }
        let later = self.appended.split_off(count);
        self.in_write = mem::replace(&mut self.appended, later);
        let end = self.in_write.last().map_or(0, |last| last.end);
        self.appended.iter_mut().for_each(|later| later.end -= end);
        let later_octets = self.octets.split_off(end);
        mem::replace(&mut self.octets, later_octets)
    }

    /// Puts the appended requests in the order of their urgency, which is theirs already if all are equal.
    fn order(&mut self) {
        if self.appended.is_sorted_by(|one, next| one.urgency >= next.urgency) {
            return;
        }
        let mut begin = 0;
        let mut extents: Vec<_> =
            self.appended.drain(..).map(|extent| (mem::replace(&mut begin, extent.end)..extent.end, extent)).collect();
        extents.sort_by_key(|(_, extent)| Reverse(extent.urgency));
        let mut octets = Vec::with_capacity(self.octets.len());
        for (range, extent) in extents {
            octets.extend_from_slice(&self.octets[range]);
            self.appended.push(Extent { end: octets.len(), ..extent });
        }
        self.octets = octets;
    }

    /// Records that the transport has accepted so many of the octets that were taken. Requests of which it has accepted
    /// none are appended again, before later ones of their urgency. Returns the rest of a request that it has accepted in part: it is to
    /// be written before any other message, and settled then.
    pub fn settle(&mut self, octets: &[u8], written: usize) -> Option<Range<usize>> {
        let (mut rest, mut again, mut again_octets) = (None, Vec::new(), Vec::new());
        let mut begin = 0;
        for extent in mem::take(&mut self.in_write) {
            let range = mem::replace(&mut begin, extent.end)..extent.end;
            if range.end <= written {
                continue;
            }
            if range.start < written {
                rest = Some(written..range.end);
                self.in_write.push(extent);
            } else if extent.request_id.is_some() {
                again_octets.extend_from_slice(&octets[range]);
                again.push(Extent { end: again_octets.len(), ..extent });
            }
        }
        if !again.is_empty() {
            self.appended.iter_mut().for_each(|later| later.end += again_octets.len());
            self.appended.splice(..0, again);
            self.octets.splice(..0, again_octets);
            self.order();
        }
        rest
    }

    /// Keeps the memory of written octets for later requests.
    pub fn recycle(&mut self, mut octets: Vec<u8>) {
        if self.octets.capacity() == 0 {
            octets.clear();
            self.octets = octets;
        }
    }

    /// Ends the write of a thread, if it has a writer role, whether it has succeeded or not. Returns whether other threads
    /// may have to be notified: those of [lost](Self::lost) requests, and of the [next](Self::next) one.
    #[inline]
    pub fn end(&mut self, request_id: u32) -> bool {
        let Some(writer) = self.writers.iter_mut().find(|writer| **writer == Some(request_id)) else { return false };
        *writer = None;
        if self.appended.is_empty() && self.in_write.is_empty() && self.lost.is_empty() {
            return false;
        }
        if self.write_owner == Some(request_id) {
            self.lost.extend(self.in_write.drain(..).filter_map(|extent| extent.request_id));
        }
        true
    }

    /// Removes a request whose thread stops waiting. Returns whether it never will be written to its end; otherwise it was
    /// written, or may have been.
    pub fn remove(&mut self, request_id: u32) -> bool {
        // The octets of one that is being written remain.
        let abandoned = self.in_write.iter_mut().find(|extent| extent.request_id == Some(request_id));
        abandoned.into_iter().for_each(|extent| extent.request_id = None);
        let others = self.lost.len();
        self.lost.retain(|lost| *lost != request_id);
        self.lost.len() < others || self.remove_appended(request_id)
    }

    /// The requests that were written in part, whose threads do not know yet.
    pub fn lost(&self) -> impl Iterator<Item = u32> {
        self.lost.iter().copied()
    }

    /// The ids of the appended requests that no thread writes yet, in order.
    pub fn appended(&self) -> impl Iterator<Item = u32> {
        self.appended.iter().filter_map(|extent| extent.request_id)
    }

    /// The ids of the requests that a thread is writing at present.
    pub fn in_write(&self) -> impl Iterator<Item = u32> {
        self.in_write.iter().filter_map(|extent| extent.request_id)
    }

    /// The request whose thread is to take a writer role, if no other thread will write it.
    #[must_use]
    pub fn next(&self) -> Option<u32> {
        if self.has_writer() { None } else { self.appended().next() }
    }

    fn has_writer(&self) -> bool {
        self.writers != [None, None]
    }

    fn remove_appended(&mut self, request_id: u32) -> bool {
        let Some(at) = self.appended.iter().position(|extent| extent.request_id == Some(request_id)) else {
            return false;
        };
        let begin = at.checked_sub(1).map_or(0, |before| self.appended[before].end);
        let Extent { end, .. } = self.appended.remove(at);
        self.octets.drain(begin..end);
        self.appended[at..].iter_mut().for_each(|later| later.end -= end - begin);
        true
    }
}

fn has(extents: &[Extent], request_id: u32) -> bool {
    extents.iter().any(|extent| extent.request_id == Some(request_id))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// The octets of a message: its length, then its id so often.
    fn message(request_id: u32, len: usize) -> Vec<u8> {
        let mut octets = vec![request_id as u8; len];
        octets[0] = len as u8;
        octets
    }

    /// The ids of whole messages, in order.
    fn ids(mut stream: &[u8]) -> Vec<u32> {
        let mut ids = Vec::new();
        while let Some(len) = stream.first().map(|len| usize::from(*len)).filter(|len| *len <= stream.len()) {
            let (message, rest) = stream.split_at(len);
            assert!(message[1..].iter().all(|octet| *octet == message[1]), "octets of two messages: {message:?}");
            ids.push(message[1].into());
            stream = rest;
        }
        ids
    }

    fn begin(requests: &mut AppendedRequests, request_id: u32, len: usize) -> WriteStart {
        begin_urgent(requests, request_id, 0, len)
    }

    fn begin_urgent(requests: &mut AppendedRequests, request_id: u32, urgency: Urgency, len: usize) -> WriteStart {
        requests.begin(request_id, urgency, len, |octets| octets.extend(message(request_id, len)))
    }

    #[test]
    fn the_most_urgent_request_is_written_first() {
        let mut requests = AppendedRequests::default();
        for (id, urgency) in [(0, 0), (1, 5), (2, 0), (3, 9), (4, 5), (5, 9), (6, 4)] {
            begin_urgent(&mut requests, id, urgency, 4);
        }
        assert_eq!(requests.appended().collect::<Vec<_>>(), [3, 5, 4, 6, 2]);
        assert!(requests.end(0));
        let octets = requests.take(1, 5);
        assert_eq!(ids(&octets), [3, 5, 4], "less urgent ones follow its own");
        // The transport has accepted the first one, and a part of the next; another one begins meanwhile.
        assert_eq!(begin_urgent(&mut requests, 7, 5, 4), WriteStart::Write);
        assert_eq!(begin_urgent(&mut requests, 8, 5, 4), WriteStart::Append);
        assert_eq!(requests.settle(&octets, 6), Some(6..8));
        assert_eq!(requests.appended().collect::<Vec<_>>(), [4, 8, 6, 2], "it was before those of its urgency");
        assert_eq!(requests.settle(&octets, 8), None);
        assert!(requests.end(1));
        assert_eq!((requests.turn(2), requests.next()), (WriteTurn::Wait, None));
        assert_eq!(ids(&requests.take(7, 5)), [4, 8]);
        requests.settle(&[], 8);
        assert!(requests.end(7));
        assert_eq!((requests.next(), requests.turn(2)), (Some(6), WriteTurn::Write));
        assert_eq!(ids(&requests.take(2, 0)), [6], "another thread may be the first to look");
        requests.settle(&[], 4);
        assert!(!requests.end(2) && requests.next().is_none());
    }

    #[test]
    fn requests_that_begin_during_a_write_leave_with_the_next_one() {
        let mut requests = AppendedRequests::default();
        assert_eq!([begin(&mut requests, 0, 4), begin(&mut requests, 1, 4)], [WriteStart::Write; 2]);
        for id in 2..5 {
            assert_eq!(begin(&mut requests, id, 4), WriteStart::Append);
            assert_eq!((requests.turn(id), requests.is_written(id)), (WriteTurn::Wait, false));
        }
        assert_eq!((requests.next(), requests.is_written(0), requests.is_written(1)), (None, false, false));
        assert!(requests.end(0) && requests.is_written(0));
        assert_eq!((requests.next(), requests.turn(2)), (None, WriteTurn::Wait), "the other one takes it along");
        assert!(requests.end(1) && requests.is_written(1));
        assert_eq!((requests.next(), requests.turn(1)), (Some(2), WriteTurn::Written));
        assert_eq!(begin(&mut requests, 5, 4), WriteStart::Write, "any thread may take the role");
        assert_eq!(requests.turn(2), WriteTurn::Wait);
        let octets = requests.take(5, 0);
        assert_eq!(ids(&octets), [2, 3, 4], "its own request comes last");
        assert_eq!((requests.turn(3), requests.is_written(3)), (WriteTurn::BeingWritten, false));
        assert_eq!(requests.settle(&octets, octets.len()), None);
        assert!((2..5).all(|id| requests.is_written(id) && requests.turn(id) == WriteTurn::Written));
        assert!(!requests.end(5) && requests.next().is_none());
    }

    #[test]
    fn one_request_at_a_time_leaves_nothing() {
        let mut requests = AppendedRequests::default();
        for id in 0..3 {
            assert_eq!(begin(&mut requests, id, 4), WriteStart::Write);
            assert!(!requests.end(id) && !requests.end(id), "no thread is notified");
            assert_eq!((requests.turn(id), requests.octets.capacity()), (WriteTurn::Written, 0));
        }
    }

    #[test]
    fn a_request_without_room_is_written_alone() {
        let mut requests = AppendedRequests::default();
        let mut begin = |id, len| requests.begin(id, 0, len, |octets| octets.resize(octets.len() + len, 0));
        assert_eq!([begin(0, usize::MAX), begin(1, usize::MAX)], [WriteStart::Write; 2]);
        assert_eq!(begin(2, MOST_APPENDED - 10), WriteStart::Append);
        assert_eq!([begin(3, 11), begin(4, usize::MAX), begin(5, 10), begin(6, 1)], {
            use WriteStart::{Alone, Append};
            [Alone, Alone, Append, Alone]
        });
        assert!(requests.is_written(3), "it has no part in this");
    }

    #[test]
    fn a_request_that_was_written_in_part_is_lost_with_its_writer() {
        let mut requests = AppendedRequests::default();
        for id in 0..5 {
            begin(&mut requests, id, 4);
        }
        assert!(requests.end(0) && requests.end(1));
        assert_eq!(requests.turn(2), WriteTurn::Write);
        let octets = requests.take(2, 0);
        assert_eq!(ids(&octets), [3, 4]);
        assert_eq!(requests.settle(&octets, 2), Some(2..4));
        assert_eq!(requests.appended().collect::<Vec<_>>(), [4], "not begun");
        assert!(requests.end(2));
        assert_eq!((requests.lost().collect::<Vec<_>>(), requests.next()), (vec![3], Some(4)));
        assert!(!requests.is_written(3));
        assert_eq!([requests.turn(3), requests.turn(3), requests.turn(4)], {
            use WriteTurn::{Lost, Write, Written};
            [Lost, Written, Write]
        });
    }

    #[test]
    fn a_request_behind_the_last_octet_that_was_accepted_is_not_begun() {
        let mut requests = AppendedRequests::default();
        for id in 0..4 {
            begin(&mut requests, id, 4);
        }
        let octets = requests.take(0, 0);
        assert_eq!(requests.settle(&octets, 4), None, "the transport has accepted the first one whole");
        assert!(requests.is_written(2));
        assert_eq!(requests.appended().collect::<Vec<_>>(), [3]);
        assert_eq!(ids(&requests.take(0, 0)), [3]);
    }

    #[test]
    fn the_memory_of_written_octets_is_used_again_but_not_for_waiting_ones() {
        let mut requests = AppendedRequests::default();
        for id in 0..3 {
            begin(&mut requests, id, 4);
        }
        let octets = requests.take(0, 0);
        requests.settle(&octets, 4);
        let memory = octets.as_ptr();
        requests.recycle(octets);
        assert_eq!(begin(&mut requests, 3, 4), WriteStart::Append);
        assert_eq!((requests.octets.as_ptr(), ids(&requests.octets)), (memory, vec![3]));
        requests.recycle(message(9, 4));
        assert_eq!(ids(&requests.octets), [3], "it waits");
    }

    #[test]
    fn a_thread_that_stops_waiting_takes_its_request_back_unless_it_is_being_written() {
        let mut requests = AppendedRequests::default();
        for id in 0..6 {
            begin(&mut requests, id, 4);
        }
        assert!(requests.remove(3) && !requests.remove(3));
        let octets = requests.take(1, 0);
        assert_eq!(ids(&octets), [2, 4, 5]);
        assert!(requests.end(0) && requests.lost().next().is_none(), "another thread writes them");
        assert!(!requests.remove(2) && !requests.remove(4));
        assert_eq!(requests.settle(&octets, 2), Some(2..4), "the peer would take any octet for the rest");
        assert_eq!(requests.appended().collect::<Vec<_>>(), [5], "no thread would write the other one");
        requests.recycle(octets);
        assert_eq!(ids(&requests.octets), [5]);
        assert!(requests.end(1) && requests.lost().next().is_none());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Begin {
            len: usize,
            urgency: Urgency,
        },
        Turn {
            nth: usize,
        },
        Remove {
            nth: usize,
        },
        /// The thread with the write lock goes on; the transport accepts at most so many octets.
        Write {
            room: usize,
            fails: bool,
        },
        /// The thread that waits for the write lock gives up.
        GiveUp,
        /// It gets the lock before the one that has begun earlier.
        Overtake,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            5 => (2usize..9, 0..3 as Urgency).prop_map(|(len, urgency)| Step::Begin { len, urgency }),
            3 => (0usize..9).prop_map(|nth| Step::Turn { nth }),
            1 => (0usize..9).prop_map(|nth| Step::Remove { nth }),
            1 => Just(Step::GiveUp),
            2 => Just(Step::Overtake),
            6 => (0usize..40, 0u8..40).prop_map(|(room, fails)| Step::Write { room, fails: fails == 0 }),
        ];
        vec(step, 1..80)
    }

    /// The progress of the thread that has the write lock.
    enum Progress {
        Begun,
        Taken(Vec<u8>),
        Rest(Vec<u8>, Range<usize>),
        Own { from: usize },
    }

    /// Threads with their outcomes, and the octets that a transport has accepted.
    #[derive(Default)]
    struct Bed {
        requests: AppendedRequests,
        lens: BTreeMap<u32, usize>,
        urgencies: BTreeMap<u32, Urgency>,
        waiting: BTreeSet<u32>,
        written: BTreeSet<u32>,
        unwritten: BTreeSet<u32>,
        in_doubt: BTreeSet<u32>,
        writer: Option<(u32, Progress)>,
        /// The thread that waits for the write lock.
        second: Option<u32>,
        stream: Vec<u8>,
        is_cut: bool,
    }

    impl Bed {
        fn begin(&mut self, len: usize, urgency: Urgency) {
            let id = self.lens.len() as u32 + 1;
            self.lens.insert(id, len);
            self.urgencies.insert(id, urgency);
            match begin_urgent(&mut self.requests, id, urgency, len) {
                WriteStart::Write if self.writer.is_some() => assert_eq!(self.second.replace(id), None),
                WriteStart::Write => self.writer = Some((id, Progress::Begun)),
                WriteStart::Append => assert!(self.second.is_some() && self.waiting.insert(id)),
                WriteStart::Alone => panic!("there is room"),
            }
        }

        fn nth(&self, nth: usize) -> Option<u32> {
            self.waiting.iter().copied().nth(nth)
        }

        fn turn(&mut self, id: u32) {
            let is_written = self.requests.is_written(id);
            match self.requests.turn(id) {
                WriteTurn::Written => assert!(is_written && self.waiting.remove(&id) && self.written.insert(id)),
                WriteTurn::Write => {
                    assert!(self.writer.replace((id, Progress::Begun)).is_none() && self.waiting.remove(&id));
                }
                WriteTurn::Wait | WriteTurn::BeingWritten => assert!(self.writer.is_some() && !is_written),
                WriteTurn::Lost => assert!(self.is_cut && self.waiting.remove(&id) && self.unwritten.insert(id)),
            }
        }

        fn remove(&mut self, id: u32) {
            self.waiting.remove(&id);
            let unwritten = self.requests.remove(id);
            (if unwritten { &mut self.unwritten } else { &mut self.in_doubt }).insert(id);
        }

        fn end(&mut self, id: u32, is_written: bool) {
            (if is_written { &mut self.written } else { &mut self.unwritten }).insert(id);
            let notifies = self.requests.end(id);
            if self.writer.is_none() {
                self.writer = self.second.take().map(|id| (id, Progress::Begun));
            }
            assert!(notifies || self.requests.next().is_none(), "the next thread learns of its turn");
        }

        /// The thread with the write lock goes on as far as the transport accepts octets.
        fn write(&mut self, room: usize, fails: bool) {
            let Some((id, progress)) = self.writer.take() else { return };
            let own = message(id, self.lens[&id]);
            let next = match progress {
                Progress::Begun if fails || self.is_cut => return self.end(id, false),
                Progress::Begun => {
                    let octets = self.requests.take(id, self.urgencies[&id]);
                    self.check_order(id, &ids(&octets));
                    Progress::Taken(octets)
                }
                Progress::Taken(octets) => {
                    let all = [&octets[..], &own].concat();
                    let sent = room.min(all.len());
                    self.stream.extend(&all[..sent]);
                    match self.requests.settle(&octets, sent.min(octets.len())) {
                        Some(rest) => {
                            assert_eq!(rest.start, sent);
                            Progress::Rest(octets, rest)
                        }
                        None => Progress::Own { from: sent.saturating_sub(octets.len()) },
                    }
                }
                Progress::Rest(..) if fails => {
                    self.is_cut = true;
                    return self.end(id, false);
                }
                Progress::Rest(octets, rest) => {
                    self.stream.extend(&octets[rest.clone()]);
                    assert_eq!(self.requests.settle(&octets, rest.end), None);
                    self.requests.recycle(octets);
                    Progress::Own { from: 0 }
                }
                Progress::Own { from } if fails && from < own.len() => {
                    self.is_cut = from > 0;
                    return self.end(id, false);
                }
                Progress::Own { from } => {
                    self.stream.extend(&own[from..]);
                    return self.end(id, true);
                }
            };
            self.writer = Some((id, next));
        }

        /// Checks that a thread is about to write the most urgent requests first, and leaves only less urgent ones. Ids
        /// rise in the order in which requests begin.
        fn check_order(&self, writer: u32, written: &[u32]) {
            let order = |id: &u32| (Reverse(self.urgencies[id]), *id);
            assert!(written.is_sorted_by_key(order), "{written:?} of {:?}", self.urgencies);
            let is_before = |id: &u32| self.urgencies[id] >= self.urgencies[&writer];
            assert!(written.iter().all(is_before), "{written:?} before {writer} of {:?}", self.urgencies);
            let later: Vec<u32> = self.requests.appended().collect();
            assert!(later.is_sorted_by_key(order) && !later.iter().any(is_before), "{later:?} after {writer}");
        }

        fn step(&mut self, step: &Step) {
            match *step {
                Step::Begin { len, urgency } => self.begin(len, urgency),
                Step::Turn { nth } => self.nth(nth).into_iter().for_each(|id| self.turn(id)),
                Step::Remove { nth } => self.nth(nth).into_iter().for_each(|id| self.remove(id)),
                Step::Write { room, fails } => self.write(room, fails),
                Step::GiveUp => {
                    let second = self.second.take();
                    second.into_iter().for_each(|id| self.end(id, false));
                }
                Step::Overtake => {
                    if let (Some((id, Progress::Begun)), Some(second)) = (&mut self.writer, &mut self.second) {
                        std::mem::swap(id, second);
                    }
                }
            }
            if self.writer.is_none() {
                let next = self.requests.next();
                assert_eq!(next.is_some(), self.requests.appended().next().is_some());
                assert!(next.is_none_or(|id| self.waiting.contains(&id)), "a thread waits for the role");
            }
        }

        /// Lets all threads go on to their end.
        fn finish(&mut self) {
            while self.writer.is_some() || !self.waiting.is_empty() {
                while self.writer.is_some() {
                    self.step(&Step::Write { room: usize::MAX, fails: false });
                }
                for id in self.waiting.clone() {
                    self.turn(id);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn each_request_is_written_once_and_whole_or_its_thread_knows_better(steps in steps()) {
            let mut bed = Bed::default();
            steps.iter().for_each(|step| bed.step(step));
            bed.finish();
            let stream = ids(&bed.stream);
            let sent: BTreeSet<u32> = stream.iter().copied().collect();
            prop_assert_eq!(stream.len(), sent.len(), "each once");
            prop_assert!(bed.written.is_subset(&sent) && bed.unwritten.is_disjoint(&sent), "{:?}", sent);
            prop_assert!(sent.iter().all(|id| bed.written.contains(id) || bed.in_doubt.contains(id)));
            let whole: usize = stream.iter().map(|id| bed.lens[id]).sum();
            prop_assert!(bed.is_cut || whole == bed.stream.len(), "no message is cut");
            prop_assert_eq!(bed.written.len() + bed.unwritten.len() + bed.in_doubt.len(), bed.lens.len());
            prop_assert!(bed.requests.octets.is_empty() && bed.requests.lost.is_empty());
        }
    }
}
