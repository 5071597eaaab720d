//! Static files over HTTP/1.1 (RFC 9110, RFC 9112).
//!
//! GET and HEAD of the regular files of a folder, with persistent connections, pipelining, conditional requests and
//! single ranges. Requests, responses and files are in modules of their own; this one has the order of a connection.
//!
//! A response that ends a connection may come before the end of its request. The rest of the request is then discarded,
//! up to [`MAX_DISCARDED`] octets and for the time of a request, so that the connection is not reset before the client has
//! the response (RFC 9112, 9.6).

mod chunked;
mod conditions;
mod files;
mod request;
mod response;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use std::sync::Arc; // of the standard library, as handlers of signals require it
use std::sync::atomic::{AtomicBool, Ordering};

use crate::session::{MAX_PIECE, Phase, Protocol, Session};

use chunked::ChunkedBody;
pub use conditions::{Conditions, Date, Tags};
use files::Files;
pub use request::{BadRequest, BodyLen, MAX_BODY, MAX_HEAD, MAX_TARGET, Method, Range, Request, parse};
use response::{Response, Status};

/// The protocol: the files of one folder.
///
/// A clone serves the same files, for another server.
#[derive(Debug)]
pub struct Http {
    files: Arc<Files>,
    is_draining: Arc<AtomicBool>,
}

impl Http {
    /// Serves the files of a folder, and of those below.
    ///
    /// # Errors
    /// The error of opening the folder, with its name.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let files = Files::open(folder).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot open the folder {}: {error}", folder.display()))
        })?;
        Ok(Self { files: Arc::new(files), is_draining: Arc::default() })
    }

    /// The folder, without symbolic links.
    #[must_use]
    pub fn folder(&self) -> &PathBuf {
        self.files.folder()
    }

    /// The flag that the server sets when it drains.
    #[cfg(target_os = "linux")]
    pub(crate) fn drain_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_draining)
    }

    /// The handle of the folder.
    #[cfg(target_os = "linux")]
    pub(crate) fn handle(&self) -> spandrel_ipc::Handle<'_> {
        self.files.handle()
    }
}

impl Clone for Http {
    fn clone(&self) -> Self {
        Self { files: Arc::clone(&self.files), is_draining: Arc::default() }
    }
}

impl Protocol for Http {
    type Session = HttpSession;

    fn open(&self) -> HttpSession {
        HttpSession {
            files: Arc::clone(&self.files),
            is_draining: Arc::clone(&self.is_draining),
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            body: None,
            unread: RequestBody::None,
            end: End::Open,
            has_discarded: false,
        }
    }

    fn begin_drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }
}

/// The state machine of one HTTP connection.
#[derive(Debug)]
pub struct HttpSession {
    files: Arc<Files>,
    is_draining: Arc<AtomicBool>,
    /// Received octets that belong to no request yet: less than [`MAX_HEAD`] and one receive.
    input: Vec<u8>,
    /// The present piece of output, of which `sent` octets are sent.
    output: Vec<u8>,
    sent: usize,
    /// The rest of the present response.
    body: Option<Body>,
    /// The rest of a request's body, which is still to be discarded.
    unread: RequestBody,
    end: End,
    /// Whether octets of the client have arrived after the last response was made.
    has_discarded: bool,
}

/// How far the end of a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Requests are read and answered.
    Open,
    /// The last response is made. The rest of its request is discarded: so many octets at most.
    Discarding(u64),
    /// The connection is closed after its output.
    Closing,
}

/// The rest of a request's body. Bodies are discarded.
#[derive(Debug, PartialEq, Eq)]
enum RequestBody {
    None,
    /// So many octets, at least one.
    Octets(u64),
    Chunked(ChunkedBody),
}

impl RequestBody {
    /// Takes its octets from the beginning of `input`.
    ///
    /// # Errors
    /// Its end cannot be found.
    fn discard(&mut self, input: &mut Vec<u8>) -> Result<(), BadRequest> {
        let (taken, has_ended) = match self {
            Self::None => return Ok(()),
            Self::Octets(left) => {
                let discarded = (*left).min(input.len() as u64);
                *left -= discarded;
                (usize::try_from(discarded).expect("a length of memory"), *left == 0)
            }
            Self::Chunked(body) => body.take(input)?,
        };
        input.drain(..taken);
        if has_ended {
            *self = Self::None;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Body {
    file: File,
    left: u64,
}

/// The greatest number of octets that are discarded after the last response: 16 MiB.
pub const MAX_DISCARDED: u64 = 16 << 20;
/// The capacity of the buffers that an idle connection keeps, in octets.
const KEPT: usize = 4 << 10;

impl HttpSession {
    /// Answers the next request, if it is complete and the last response is sent.
    fn advance(&mut self) {
        if self.end != End::Open {
            return;
        }
        if self.unread.discard(&mut self.input).is_err() {
            // Its request is answered already; where the next one begins is unknown.
            self.end = End::Discarding(MAX_DISCARDED);
        } else if self.unread == RequestBody::None {
            self.answer_next();
        }
        if self.end != End::Open {
            let rest = std::mem::take(&mut self.input);
            self.discard_input(rest.len() as u64);
        }
        if self.input.is_empty() {
            self.input.shrink_to(KEPT);
        }
    }

    fn answer_next(&mut self) {
        match parse(&self.input) {
            Ok(None) => {}
            Ok(Some((request, len))) => {
                self.respond(&request);
                self.input.drain(..len);
            }
            Err(reason) => self.refuse(reason),
        }
    }

    /// Queues the response to a request, and notes whether the connection ends.
    fn respond(&mut self, request: &Request) {
        let is_draining = self.is_draining.load(Ordering::Relaxed);
        let is_too_large = matches!(request.body, BodyLen::Octets(len) if len > MAX_BODY);
        let keeps_open = request.keeps_open && !is_draining && !is_too_large;
        let response = match request.method {
            _ if is_too_large => Response::of(Status::ContentTooLarge),
            Method::Get | Method::Head => self.files.respond(request),
            Method::Other => Response::of(Status::MethodNotAllowed),
        };
        match request.body {
            BodyLen::Octets(0) if !keeps_open => self.end = End::Closing,
            BodyLen::Octets(0) => {}
            BodyLen::Octets(len) if keeps_open => self.unread = RequestBody::Octets(len),
            BodyLen::Octets(len) => self.end = End::Discarding(len.min(MAX_DISCARDED)),
            BodyLen::Chunked if keeps_open => self.unread = RequestBody::Chunked(ChunkedBody::begin()),
            BodyLen::Chunked => self.end = End::Discarding(MAX_DISCARDED),
        }
        self.send(response, request.method == Method::Head, keeps_open, request.is_old);
    }

    /// Answers octets that are no request; the connection is closed then. The length of the rest is unknown.
    fn refuse(&mut self, reason: BadRequest) {
        self.end = End::Discarding(MAX_DISCARDED);
        self.send(Response::of(reason.into()), false, false, false);
    }

    fn send(&mut self, response: Response, is_head: bool, keeps_open: bool, is_old: bool) {
        response.write(&mut self.output, is_head, keeps_open, is_old);
        self.body = response.file.filter(|_| !is_head).map(|(file, left)| Body { file, left });
        self.fill();
    }

    /// Fills the piece of output from the body.
    fn fill(&mut self) {
        let Some(Body { file, left }) = &mut self.body else { return };
        let room = (MAX_PIECE - self.output.len()) as u64;
        let piece_len = room.min(*left);
        let read = file.take(piece_len).read_to_end(&mut self.output);
        if read.is_ok_and(|count| count as u64 == piece_len) {
            *left -= piece_len;
            if *left == 0 {
                self.body = None;
            }
        } else {
            // The file has become shorter than its announced length: only the end of the connection tells the client.
            self.body = None;
            self.end = End::Closing;
        }
    }

    /// Takes octets behind the last request that is answered.
    fn discard_input(&mut self, octets: u64) {
        if let End::Discarding(left) = self.end {
            self.has_discarded = true;
            self.end = if octets < left { End::Discarding(left - octets) } else { End::Closing };
        }
    }
}

impl Session for HttpSession {
    fn receive(&mut self, octets: &[u8]) {
        if self.end == End::Open {
            self.input.extend_from_slice(octets);
            self.advance();
        } else {
            self.discard_input(octets.len() as u64);
        }
    }

    fn end_input(&mut self) {
        self.end = End::Closing;
    }

    fn time_out(&mut self) {
        if self.end == End::Open && !self.input.is_empty() {
            self.refuse(BadRequest::Timeout);
        } else {
            self.end = End::Closing;
        }
    }

    fn output(&mut self) -> &[u8] {
        &self.output[self.sent..]
    }

    fn sent(&mut self, octets: usize) {
        self.sent += octets;
        if self.sent < self.output.len() {
            return;
        }
        self.output.clear();
        self.sent = 0;
        self.fill();
        if self.output.is_empty() {
            self.output.shrink_to(KEPT);
            self.advance();
        }
    }

    fn phase(&self) -> Phase {
        match self.end {
            End::Closing => Phase::Closing,
            End::Open if self.input.is_empty() && self.unread == RequestBody::None => Phase::Idle,
            End::Open | End::Discarding(_) => Phase::InRequest,
        }
    }

    fn has_ended_output(&self) -> bool {
        matches!(self.end, End::Discarding(_))
    }

    fn may_be_reset(&self) -> bool {
        self.has_discarded && self.is_draining.load(Ordering::Relaxed)
    }
}
