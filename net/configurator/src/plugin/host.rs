//! The process, as a service of a shared library sees it.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use spandrel_reactor::timer::TimerId;
use spandrel_reactor::{
    CloseReason, Context, EventHandler, Expired, HandlerId, Interest, LogLimit, Pollable, Reactor, Registry, Unlogged,
};
use spandrel_sync::atomic::{AtomicU64, Ordering};
use spandrel_sync::{Arc, Mutex, Weak, thread, time};

use super::abi::{RawHandler, RawHost, Run, VERSION};
use super::object::ForeignObject;
use super::own_reactor::{self, MAX_HANDLERS, OwnReactor};
use crate::ServiceResult;

/// The time that the threads of a service may take to end after its `fini`.
const THREADS_END: Duration = Duration::from_secs(2);
/// The interval between two looks at them.
const THREADS_LOOK: Duration = Duration::from_millis(1);
/// The maximum length of a text that a service logs, in octets.
const MAX_TEXT: usize = 8 * 1024;
/// The maximum number of threads of a service.
const MAX_THREADS: usize = 1_024;

/// The process for one service. Its handlers and threads refer to it, and it to the library: so that is mapped as long as
/// anything of it runs.
pub(crate) struct Host {
    raw: RawHost,
    name: CString,
    reactor: OwnReactor,
    object: Arc<ForeignObject>,
    next: AtomicU64,
    handlers: Mutex<BTreeMap<u64, Option<HandlerId>>>,
    timers: Mutex<BTreeMap<u64, ForeignTimer>>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
    failure: Mutex<Option<String>>,
    log_limit: LogLimit,
}

/// A timer of a library. The reactor knows it by its number.
struct ForeignTimer {
    handler: u64,
    timer: TimerId,
    argument: u64,
    repeats: bool,
}

// SAFETY: the pointers in `raw` are to this structure, whose parts are `Sync`.
unsafe impl Send for Host {}
// SAFETY: the same.
unsafe impl Sync for Host {}

impl Host {
    pub(super) fn new(name: CString, object: Arc<ForeignObject>) -> Arc<Self> {
        Arc::new_cyclic(|host: &Weak<Self>| {
            let raw = RawHost {
                size: size_of::<RawHost>() as u32,
                version: VERSION,
                context: host.as_ptr().cast_mut().cast::<c_void>(),
                name: name.as_ptr(),
                log,
                fail,
                register_handler,
                set_interest,
                remove_handler,
                schedule,
                cancel,
                notify,
                spawn,
            };
            Self {
                raw,
                name,
                reactor: OwnReactor::default(),
                object,
                next: AtomicU64::new(1),
                handlers: Mutex::default(),
                timers: Mutex::default(),
                threads: Mutex::default(),
                failure: Mutex::default(),
                log_limit: LogLimit::default(),
            }
        })
    }

    pub(super) fn raw(&self) -> *const RawHost {
        &raw const self.raw
    }

    fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    /// The failure of a method.
    pub(super) fn result(&self, method: &str, code: c_int) -> ServiceResult {
        let reason = self.failure.lock().take();
        Err(reason.unwrap_or_else(|| format!("`{method}` has returned {code}")).into())
    }

    /// The handlers of the service, and the thread that calls them.
    pub(super) fn reactor(&self) -> &OwnReactor {
        &self.reactor
    }

    /// The reactor of the handlers, which begins with the first call.
    fn registry(self: &Arc<Self>) -> io::Result<&Registry> {
        self.reactor.registry(|reactor: Reactor| {
            let name = self.name().to_owned();
            self.spawn(move || own_reactor::run(&reactor, &name))
        })
    }

    /// Runs a function in a thread, which counts as a use of the library until it returns.
    fn spawn(self: &Arc<Self>, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        if threads.len() >= MAX_THREADS {
            return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
        }
        let held = Arc::clone(self);
        let body = move || {
            run();
            drop(held);
        };
        threads.push(thread::Builder::new().name(self.name().to_owned()).spawn(body)?);
        Ok(())
    }

    /// Closes the handlers, and waits for the threads.
    pub(super) fn end(&self) -> ServiceResult {
        self.reactor.close();
        let deadline = time::Instant::now() + THREADS_END;
        loop {
            let mut threads = self.threads.lock();
            let (ended, running): (Vec<_>, Vec<_>) =
                std::mem::take(&mut *threads).into_iter().partition(thread::JoinHandle::is_finished);
            *threads = running;
            let running = threads.len();
            drop(threads);
            for thread in ended {
                _ = thread.join();
            }
            if running == 0 {
                return Ok(());
            }
            if time::Instant::now() >= deadline {
                let file = self.object.library().usage().file().display().to_string();
                return Err(format!("{running} of its threads have not ended: {file} stays mapped").into());
            }
            thread::park_timeout(THREADS_LOOK);
        }
    }
}

/// The host of a call, which is counted as a use of it.
///
/// # Safety
/// `context` is that of a [`RawHost`] whose service has not ended.
unsafe fn host(context: *mut c_void) -> Arc<Host> {
    let host = context.cast_const().cast::<Host>();
    // SAFETY: the pointer is that of an `Arc`, which the running part of the service holds.
    unsafe {
        Arc::increment_strong_count(host);
        Arc::from_raw(host)
    }
}

/// Runs a function of the host; a panic becomes a failure.
///
/// # Safety
/// As [`host`].
unsafe fn with(context: *mut c_void, act: impl FnOnce(&Arc<Host>) -> io::Result<()>) -> c_int {
    // SAFETY: as the contract says.
    let host = unsafe { host(context) };
    match catch_unwind(AssertUnwindSafe(|| act(&host))) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            if let Some(Unlogged(unlogged)) = host.log_limit.admit("host") {
                tracing::warn!(service = host.name(), %error, unlogged, "the process cannot carry out a request of a library's service");
            }
            -1
        }
        Err(_) => -1,
    }
}

/// # Safety
/// `text` points to that many octets, or is null.
unsafe fn text(text: *const c_char, length: usize) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as the contract says.
    let octets = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length.min(MAX_TEXT)) };
    String::from_utf8_lossy(octets).trim_end().to_owned()
}

unsafe extern "C" fn log(context: *mut c_void, level: u32, octets: *const c_char, length: usize) {
    // SAFETY: the contracts of the header.
    let message = unsafe { text(octets, length) };
    let act = |host: &Arc<Host>| {
        let service = host.name();
        match level {
            0 | 1 => tracing::error!(service, "{message}"),
            2 => tracing::warn!(service, "{message}"),
            3 => tracing::info!(service, "{message}"),
            4 => tracing::debug!(service, "{message}"),
            _ => tracing::trace!(service, "{message}"),
        }
        Ok(())
    };
    // SAFETY: the contract of the header.
    unsafe { with(context, act) };
}

unsafe extern "C" fn fail(context: *mut c_void, octets: *const c_char, length: usize) {
    // SAFETY: the contracts of the header.
    let message = unsafe { text(octets, length) };
    let act = |host: &Arc<Host>| {
        *host.failure.lock() = Some(message);
        Ok(())
    };
    // SAFETY: the contract of the header.
    unsafe { with(context, act) };
}

unsafe extern "C" fn register_handler(
    context: *mut c_void,
    handle: isize,
    interest: u32,
    callbacks: *const RawHandler,
    object: *mut c_void,
    number: *mut u64,
) -> c_int {
    let act = |host: &Arc<Host>| {
        // SAFETY: the callbacks are those of the header's structure, or null.
        let Some(callbacks) = (unsafe { callbacks.as_ref() }).copied() else { return Err(invalid("no callbacks")) };
        if callbacks.size as usize != size_of::<RawHandler>() || number.is_null() {
            return Err(invalid("a structure of another size"));
        }
        let id = host.next.fetch_add(1, Ordering::Relaxed);
        {
            let mut handlers = host.handlers.lock();
            if handlers.len() >= MAX_HANDLERS {
                return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
            }
            handlers.insert(id, None);
        }
        // SAFETY: `number` is a place for the result, as the header says.
        unsafe { number.write(id) };
        let endpoint = (handle != -1).then_some(RawEndpoint(handle));
        let handler = ForeignHandler { host: Arc::clone(host), callbacks, object, id, endpoint };
        let interest = Interest::from_bits((interest & 7) as u8);
        match host.registry().and_then(|registry| registry.register(handler, interest)) {
            Ok(registered) => {
                if let Some(place) = host.handlers.lock().get_mut(&id) {
                    *place = Some(registered);
                }
                Ok(())
            }
            Err(error) => {
                host.handlers.lock().remove(&id);
                Err(error)
            }
        }
    };
    // SAFETY: the contract of the header.
    unsafe { with(context, act) }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

fn absent() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "there is no such handler or timer")
}

impl Host {
    fn handler(&self, id: u64) -> io::Result<HandlerId> {
        self.handlers.lock().get(&id).copied().flatten().ok_or_else(absent)
    }
}

unsafe extern "C" fn set_interest(context: *mut c_void, id: u64, interest: u32) -> c_int {
    let interest = Interest::from_bits((interest & 7) as u8);
    // SAFETY: the contract of the header.
    unsafe { with(context, |host| host.registry()?.set_interest(host.handler(id)?, interest)) }
}

unsafe extern "C" fn remove_handler(context: *mut c_void, id: u64) -> c_int {
    let act = |host: &Arc<Host>| {
        if host.registry()?.remove(host.handler(id)?) { Ok(()) } else { Err(absent()) }
    };
    // SAFETY: the contract of the header.
    unsafe { with(context, act) }
}

unsafe extern "C" fn schedule(
    context: *mut c_void,
    id: u64,
    delay: u64,
    interval: u64,
    argument: u64,
    number: *mut u64,
) -> c_int {
    let act = |host: &Arc<Host>| {
        let interval = (interval > 0).then(|| Duration::from_micros(interval));
        let handler = host.handler(id)?;
        // Locked, so that its expiry finds it.
        let mut timers = host.timers.lock();
        if timers.len() >= MAX_HANDLERS {
            return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
        }
        let timer_number = host.next.fetch_add(1, Ordering::Relaxed);
        let timer = host.registry()?.schedule(handler, Duration::from_micros(delay), interval, timer_number)?;
        timers.insert(timer_number, ForeignTimer { handler: id, timer, argument, repeats: interval.is_some() });
        drop(timers);
        if !number.is_null() {
            // SAFETY: `number` is a place for the result, as the header says.
            unsafe { number.write(timer_number) };
        }
        Ok(())
    };
    // SAFETY: the contract of the header.
    unsafe { with(context, act) }
}

unsafe extern "C" fn cancel(context: *mut c_void, timer: u64) -> c_int {
    let act = |host: &Arc<Host>| {
        let entry = host.timers.lock().remove(&timer);
        if host.registry()?.cancel(entry.ok_or_else(absent)?.timer) { Ok(()) } else { Err(absent()) }
    };
    // SAFETY: the contract of the header.
    unsafe { with(context, act) }
}

unsafe extern "C" fn notify(context: *mut c_void, id: u64, notice: u64) -> c_int {
    // SAFETY: the contract of the header.
    unsafe { with(context, |host| host.registry()?.notify(host.handler(id)?, notice)) }
}

struct Argument(*mut c_void);

// SAFETY: the header says that the argument goes to the thread.
unsafe impl Send for Argument {}

unsafe extern "C" fn spawn(context: *mut c_void, run: Option<Run>, argument: *mut c_void) -> c_int {
    let argument = Argument(argument);
    let act = |host: &Arc<Host>| {
        let run = run.ok_or_else(|| invalid("no function"))?;
        host.spawn(move || {
            let argument = argument;
            // SAFETY: the function and its argument belong together; the library is mapped until it returns.
            unsafe { run(argument.0) };
        })
    };
    // SAFETY: the contract of the header.
    unsafe { with(context, act) }
}

/// A handler of a library.
struct ForeignHandler {
    host: Arc<Host>,
    callbacks: RawHandler,
    object: *mut c_void,
    id: u64,
    endpoint: Option<RawEndpoint>,
}

// SAFETY: the callbacks of a handler may be called from any thread, one at a time, as the header says.
unsafe impl Send for ForeignHandler {}

/// The number of a handle.
#[derive(Debug)]
struct RawEndpoint(isize);

impl Pollable for RawEndpoint {
    #[cfg(unix)]
    fn handle(&self) -> spandrel_ipc::Handle<'_> {
        // SAFETY: the library keeps the handle open while its handler is registered, as the header says.
        unsafe { std::os::fd::BorrowedFd::borrow_raw(self.0 as std::os::fd::RawFd) }
    }

    #[cfg(windows)]
    fn handle(&self) -> spandrel_ipc::Handle<'_> {
        // SAFETY: as on Unix.
        unsafe { std::os::windows::io::BorrowedSocket::borrow_raw(self.0 as std::os::windows::io::RawSocket) }
    }
}

fn outcome(code: Option<c_int>) -> io::Result<()> {
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::other(format!("a callback of the library has returned {code}"))),
        None => Err(io::Error::new(io::ErrorKind::Unsupported, "the library has no callback for the event")),
    }
}

impl EventHandler for ForeignHandler {
    fn pollable(&self) -> Option<&dyn Pollable> {
        self.endpoint.as_ref().map(|endpoint| endpoint as _)
    }

    fn handle_input(&mut self, _: &Context<'_>) -> io::Result<()> {
        // SAFETY: the object belongs to the callbacks. The same holds for the other methods.
        outcome(self.callbacks.input.map(|input| unsafe { input(self.object, self.id) }))
    }

    fn handle_output(&mut self, _: &Context<'_>) -> io::Result<()> {
        // SAFETY: see `handle_input`.
        outcome(self.callbacks.output.map(|output| unsafe { output(self.object, self.id) }))
    }

    fn handle_exception(&mut self, _: &Context<'_>) -> io::Result<()> {
        // SAFETY: see `handle_input`.
        outcome(self.callbacks.exception.map(|exception| unsafe { exception(self.object, self.id) }))
    }

    fn handle_timeout(&mut self, _: &Context<'_>, timer: Expired) -> io::Result<()> {
        let mut timers = self.host.timers.lock();
        let Some(entry) = timers.get(&timer.argument) else { return Ok(()) }; // cancelled just now
        let argument = entry.argument;
        if !entry.repeats {
            timers.remove(&timer.argument);
        }
        drop(timers);
        // SAFETY: see `handle_input`.
        outcome(self.callbacks.timeout.map(|timeout| unsafe { timeout(self.object, self.id, argument) }))
    }

    fn handle_notice(&mut self, _: &Context<'_>, notice: u64) -> io::Result<()> {
        // SAFETY: see `handle_input`.
        outcome(self.callbacks.notice.map(|call| unsafe { call(self.object, self.id, notice) }))
    }

    fn handle_close(&mut self, _: &Context<'_>, reason: CloseReason) {
        if let CloseReason::Failed(error) = &reason
            && let Some(Unlogged(unlogged)) = self.host.log_limit.admit("handler")
        {
            tracing::warn!(service = self.host.name(), %error, unlogged, "a handler of a library is closed");
        }
        self.host.handlers.lock().remove(&self.id);
        self.host.timers.lock().retain(|_, timer| timer.handler != self.id);
        if let Some(close) = self.callbacks.close {
            // SAFETY: see `handle_input`. It is the last call.
            unsafe { close(self.object, self.id) };
        }
    }
}
