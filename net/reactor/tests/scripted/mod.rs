//! Handlers and waits used by several tests.
#![allow(dead_code, reason = "no test uses all of it")]

use std::io;

use spandrel_ipc::{Interest, Pollable, inet};
use spandrel_reactor::{Backend, CloseReason, Context, EventHandler, Expired, Options, Reactor};
use spandrel_sync::{Arc, Mutex};
use spandrel_test_support::TEST_TIMEOUT;

/// The calls of handlers, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    pub(crate) fn has(&self, line: &str) -> bool {
        self.0.lock().iter().any(|there| there == line)
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.0.lock().iter().filter(|there| *there == line).count()
    }
}

type OnInput = Box<dyn FnMut(&Context<'_>, &inet::Stream) -> io::Result<()> + Send>;
type Callback<A> = Box<dyn FnMut(&Context<'_>, A) -> io::Result<()> + Send>;

/// A handler made of closures. Calls without a closure are logged and succeed.
pub(crate) struct Scripted {
    pub(crate) name: &'static str,
    pub(crate) log: Log,
    pub(crate) stream: Option<inet::Stream>,
    pub(crate) on_open: Option<Callback<()>>,
    pub(crate) on_input: Option<OnInput>,
    pub(crate) on_output: Option<Callback<()>>,
    pub(crate) on_timeout: Option<Callback<Expired>>,
    pub(crate) on_notice: Option<Callback<u64>>,
}

impl Scripted {
    pub(crate) fn new(name: &'static str, log: &Log) -> Self {
        Self {
            name,
            log: log.clone(),
            stream: None,
            on_open: None,
            on_input: None,
            on_output: None,
            on_timeout: None,
            on_notice: None,
        }
    }

    pub(crate) fn over(mut self, stream: inet::Stream) -> Self {
        self.stream = Some(stream);
        self
    }

    pub(crate) fn open(mut self, callback: impl FnMut(&Context<'_>, ()) -> io::Result<()> + Send + 'static) -> Self {
        self.on_open = Some(Box::new(callback));
        self
    }

    pub(crate) fn input(
        mut self,
        callback: impl FnMut(&Context<'_>, &inet::Stream) -> io::Result<()> + Send + 'static,
    ) -> Self {
        self.on_input = Some(Box::new(callback));
        self
    }

    pub(crate) fn output(mut self, callback: impl FnMut(&Context<'_>, ()) -> io::Result<()> + Send + 'static) -> Self {
        self.on_output = Some(Box::new(callback));
        self
    }

    pub(crate) fn timeout(
        mut self,
        callback: impl FnMut(&Context<'_>, Expired) -> io::Result<()> + Send + 'static,
    ) -> Self {
        self.on_timeout = Some(Box::new(callback));
        self
    }

    pub(crate) fn notice(mut self, callback: impl FnMut(&Context<'_>, u64) -> io::Result<()> + Send + 'static) -> Self {
        self.on_notice = Some(Box::new(callback));
        self
    }

    fn note(&self, what: &str) {
        self.log.note(format!("{} {what}", self.name));
    }
}

impl EventHandler for Scripted {
    fn pollable(&self) -> Option<&dyn Pollable> {
        self.stream.as_ref().map(|stream| stream as &dyn Pollable)
    }

    fn handle_open(&mut self, cx: &Context<'_>) -> io::Result<()> {
        self.note("open");
        self.on_open.as_mut().map_or(Ok(()), |callback| callback(cx, ()))
    }

    fn handle_input(&mut self, cx: &Context<'_>) -> io::Result<()> {
        self.note("input");
        let stream = self.stream.as_ref().expect("input comes from a stream");
        match self.on_input.as_mut() {
            Some(callback) => callback(cx, stream),
            None => echo(stream),
        }
    }

    fn handle_output(&mut self, cx: &Context<'_>) -> io::Result<()> {
        self.note("output");
        self.on_output.as_mut().map_or(Ok(()), |callback| callback(cx, ()))
    }

    fn handle_timeout(&mut self, cx: &Context<'_>, timer: Expired) -> io::Result<()> {
        self.note(&format!("timeout {}", timer.argument));
        self.on_timeout.as_mut().map_or(Ok(()), |callback| callback(cx, timer))
    }

    fn handle_notice(&mut self, cx: &Context<'_>, notice: u64) -> io::Result<()> {
        self.note(&format!("notice {notice}"));
        self.on_notice.as_mut().map_or(Ok(()), |callback| callback(cx, notice))
    }

    fn handle_close(&mut self, _cx: &Context<'_>, reason: CloseReason) {
        self.note(&format!("close: {reason}"));
    }
}

/// Echoes the available octets; the end of the stream is an error.
pub(crate) fn echo(stream: &inet::Stream) -> io::Result<()> {
    let mut octets = [0; 256];
    let count = stream.try_recv(&mut octets)?;
    if count == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(stream.send_n(&octets[..count])?)
}

/// Two ends of a TCP connection on this host.
pub(crate) fn pair() -> (inet::Stream, inet::Stream) {
    let acceptor = inet::Acceptor::open(&inet::Addr::loopback(0)).expect("a port");
    let near = inet::Connector::connect(&acceptor.local_addr().expect("an address")).expect("a connection");
    let (far, _) = acceptor.accept().expect("a connection");
    far.set_nonblocking(true).expect("non-blocking");
    near.set_recv_timeout(Some(TEST_TIMEOUT)).expect("a timeout");
    (near, far)
}

pub(crate) fn reactor(backend: Backend) -> Reactor {
    Reactor::with(&Options::default().backend(backend)).expect("an available back end")
}

/// Runs until `done`.
///
/// # Panics
/// If that takes long.
#[track_caller]
pub(crate) fn run_until(reactor: &Reactor, done: impl FnMut() -> bool) {
    assert!(reactor.run_until(Some(TEST_TIMEOUT), done).expect("it runs"), "it takes too long");
}

/// Sends and receives the same again.
#[track_caller]
pub(crate) fn ping(stream: &inet::Stream, octets: &[u8]) {
    stream.send_n(octets).expect("sent");
    let mut back = vec![0; octets.len()];
    stream.recv_n(&mut back).expect("echoed");
    assert_eq!(back, octets);
}

/// The empty interest, for handlers without a handle.
pub(crate) const NONE: Interest = Interest::NONE;
