//! Static files over HTTP/1.1 (RFC 9110, RFC 9112).
//!
//! GET and HEAD of the regular files of a folder, with persistent connections, pipelining, conditional requests and
//! single ranges. Requests, responses and files are in modules of their own; this one has the order of a connection.

mod files;
mod request;
mod response;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use spandrel_sync::Arc;
use spandrel_sync::atomic::{AtomicBool, Ordering};

use crate::session::{MAX_PIECE, Phase, Protocol, Session};

use files::Files;
pub use request::{BadRequest, MAX_BODY, MAX_HEAD, MAX_TARGET, Method, Range, Request, parse};
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
            discard: 0,
            is_closing: false,
        }
    }

    fn begin_drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }
}

/// The state of one connection.
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
    /// The octets of a request's body that are still to be discarded.
    discard: u64,
    is_closing: bool,
}

#[derive(Debug)]
struct Body {
    file: File,
    left: u64,
}

/// The capacity of the buffers that an idle connection keeps, in octets.
const KEPT: usize = 4 << 10;

impl HttpSession {
    /// Answers the next request, if it is complete and the last response is sent.
    fn advance(&mut self) {
        let discarded = self.discard.min(self.input.len() as u64);
        self.discard -= discarded;
        // At most the length of the input.
        self.input.drain(..usize::try_from(discarded).expect("a length of memory"));
        if self.is_closing || self.discard > 0 {
            return;
        }
        match parse(&self.input) {
            Ok(None) => {}
            Ok(Some((request, len))) => {
                self.respond(&request);
                self.input.drain(..len);
            }
            Err(reason) => self.refuse(reason),
        }
        if self.input.is_empty() {
            self.input.shrink_to(KEPT);
        }
    }

    /// Answers a request.
    fn respond(&mut self, request: &Request) {
        self.discard = request.body_len;
        let is_draining = self.is_draining.load(Ordering::Relaxed);
        let keeps_open = request.keeps_open && !is_draining && request.body_len <= MAX_BODY;
        let response = match request.method {
            _ if request.body_len > MAX_BODY => Response::of(Status::ContentTooLarge),
            Method::Get | Method::Head => self.files.respond(request),
            Method::Other => Response::of(Status::MethodNotAllowed),
        };
        self.is_closing = !keeps_open;
        self.send(response, request.method == Method::Head, keeps_open, request.is_old);
    }

    /// Answers octets that are no request; the connection is closed then.
    fn refuse(&mut self, reason: BadRequest) {
        self.is_closing = true;
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
        let wanted = room.min(*left);
        let read = file.take(wanted).read_to_end(&mut self.output);
        if read.is_ok_and(|count| count as u64 == wanted) {
            *left -= wanted;
            if *left == 0 {
                self.body = None;
            }
        } else {
            // The file has become shorter than its announced length: only the end of the connection tells the client.
            self.body = None;
            self.is_closing = true;
        }
    }
}

impl Session for HttpSession {
    fn receive(&mut self, octets: &[u8]) {
        self.input.extend_from_slice(octets);
        self.advance();
    }

    fn end_input(&mut self) {
        self.is_closing = true;
    }

    fn time_out(&mut self) {
        if self.phase() == Phase::InRequest {
            self.refuse(BadRequest::Timeout);
        }
        self.is_closing = true;
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
        if self.is_closing {
            Phase::Closing
        } else if self.input.is_empty() && self.discard == 0 {
            Phase::Idle
        } else {
            Phase::InRequest
        }
    }
}
