//! Requests of threads that share a connection: those that arrive while another thread writes leave in one write.
//!
//! A thread that finds the write lock taken appends its request, and waits for the lock as before. The first of them to
//! get it writes all appended requests; the others find theirs written. So no thread writes later than it would by
//! itself, each request has a thread that will write it, and a thread that finds the lock free has no part in this.
//!
//! A write that fails has its status for each request by itself (design decision 9): one whose last octet was taken was
//! sent; all others were not, and their threads learn of it as of a write side that has ended.

use std::{io, mem};

use spandrel_cdr::{Encoder, Wire};
use spandrel_connection::MOST_APPENDED;
use spandrel_sync::MutexGuard;
use spandrel_transport::Deadline;

use super::{
    ClientConnection,
    writing::{Writer, update_timeout},
};

/// The requests that wait for the thread which gets the write lock next.
#[derive(Debug, Default)]
pub(super) struct AppendedRequests {
    octets: Vec<u8>,
    /// The ids of the requests, and the ends of their octets.
    requests: Vec<(u32, usize)>,
    /// The ids of requests that another thread could not write.
    lost: Vec<u32>,
}

impl AppendedRequests {
    /// Appends a request, if there is room.
    fn append(&mut self, request_id: u32, request: &Encoder<'_>) -> bool {
        if self.octets.len().saturating_add(request.position()) > MOST_APPENDED {
            return false;
        }
        request.parts().iter().for_each(|part| self.octets.extend_from_slice(part));
        self.requests.push((request_id, self.octets.len()));
        true
    }

    /// Removes a request that no thread has begun to write. Returns whether there is one.
    fn remove(&mut self, request_id: u32) -> bool {
        let Some(index) = self.requests.iter().position(|(id, _)| *id == request_id) else { return false };
        let begin = index.checked_sub(1).map_or(0, |before| self.requests[before].1);
        let (_, end) = self.requests.remove(index);
        self.octets.drain(begin..end);
        self.requests[index..].iter_mut().for_each(|(_, later)| *later -= end - begin);
        true
    }

    /// The number of requests that wait.
    #[cfg(all(test, not(shuttle)))]
    pub(super) fn requests(&self) -> usize {
        self.requests.len()
    }

    /// The outcome of a request that another thread has taken.
    fn taken(&mut self, request_id: u32) -> io::Result<()> {
        match self.lost.iter().position(|id| *id == request_id) {
            None => Ok(()),
            Some(index) => {
                self.lost.swap_remove(index);
                Err(io::ErrorKind::NotConnected.into())
            }
        }
    }
}

impl ClientConnection {
    /// Sends the request of a thread that is about to wait for its reply, with those of other such threads.
    pub(super) fn send_shared(
        &self,
        request_id: u32,
        request: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> io::Result<()> {
        if let Some(writer) = self.writer.try_lock() {
            return Writer::send_locked(writer, self, request, deadline);
        }
        if request.position() > self.fragment_size || !self.appended.lock().append(request_id, request) {
            return Writer::lock_and_send(self, request, deadline);
        }
        match Writer::lock(self, deadline) {
            Ok(writer) => self.write_appended(writer, request_id, deadline),
            Err(error) => {
                let mut appended = self.appended.lock();
                if appended.remove(request_id) { Err(error) } else { appended.taken(request_id) }
            }
        }
    }

    /// Writes the appended requests, unless another thread has taken this one.
    fn write_appended(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        request_id: u32,
        deadline: Option<&Deadline>,
    ) -> io::Result<()> {
        let (mut octets, mut requests) = {
            let mut appended = self.appended.lock();
            if !appended.requests.iter().any(|(id, _)| *id == request_id) {
                return appended.taken(request_id);
            }
            let timeout = update_timeout(self, &mut writer.timeout, deadline, Deadline::wait_to_send);
            if timeout.is_err() {
                // The others have time left, perhaps.
                appended.remove(request_id);
                return timeout;
            }
            (mem::take(&mut appended.octets), mem::take(&mut appended.requests))
        };
        let mut written = 0;
        let sent = match self.is_retired() {
            true => Err(io::ErrorKind::NotConnected.into()),
            false => writer.send_octets(self, &octets, &mut written, deadline),
        };
        let is_sent = |(id, end): &(u32, usize)| *id == request_id && *end <= written;
        let outcome = if requests.iter().any(is_sent) { Ok(()) } else { sent };
        let mut appended = self.appended.lock();
        // Before the lock is free: the threads of these requests look for them then.
        let lost = requests.iter().filter(|(id, end)| *end > written && *id != request_id);
        appended.lost.extend(lost.map(|(id, _)| *id));
        if appended.requests.is_empty() {
            // The blocks are used again.
            octets.clear();
            requests.clear();
            (appended.octets, appended.requests) = (octets, requests);
        }
        outcome
    }
}

impl Writer {
    /// Sends whole messages after those that come first and those that are queued. Counts the octets of them that the
    /// transport has taken.
    fn send_octets(
        &mut self,
        connection: &ClientConnection,
        octets: &[u8],
        written: &mut usize,
        deadline: Option<&Deadline>,
    ) -> io::Result<()> {
        if self.has_unsent() || connection.has_queued() {
            // Writes only these.
            self.send(connection, &Encoder::new(Wire::default()), deadline)?;
        }
        if !self.half.may_write() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        while *written < octets.len() {
            let sent = self.send_some(connection, &octets[*written..], deadline);
            *written += sent.inspect_err(|_| self.half.cut())?;
        }
        Ok(())
    }

    fn send_some(
        &mut self,
        connection: &ClientConnection,
        octets: &[u8],
        deadline: Option<&Deadline>,
    ) -> io::Result<usize> {
        update_timeout(connection, &mut self.timeout, deadline, Deadline::wait_to_send)?;
        match connection.transport.send(octets)? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            sent => Ok(sent),
        }
    }
}
