//! Services and modules of shared libraries, as this process sees them.

use std::ffi::{CString, c_char, c_int, c_void};
use std::fmt;
use std::ptr;

use spandrel_sync::{Arc, Mutex};

use super::abi::{RawMessage, RawNext, RawThread};
use super::host::Host;
use super::message::ForeignMessage;
use super::module::{ModuleSide, ModuleThread, NextTask, RefusedMessage};
use super::object::ForeignObject;
use super::own_reactor::OwnReactor;
use crate::{ServiceContext, ServiceObject, ServiceResult, SharedObject};

/// The maximum length of a service's description, in octets.
const MAX_INFO: usize = 4096;

/// The lifecycle of a service or a module of a library.
struct Lifecycle {
    object: Arc<ForeignObject>,
    host: Mutex<Option<Arc<Host>>>,
}

impl Lifecycle {
    fn new(object: ForeignObject) -> Self {
        Self { object: Arc::new(object), host: Mutex::new(None) }
    }

    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let name = CString::new(context.name())?;
        let host = Host::new(name, Arc::clone(&self.object));
        *self.host.lock() = Some(Arc::clone(&host));
        let arguments: Vec<CString> =
            arguments.iter().map(|argument| CString::new(argument.as_str())).collect::<Result<_, _>>()?;
        let mut pointers: Vec<*const c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();
        pointers.push(ptr::null());
        let service = self.object.service();
        let init = service.init.expect("checked when it was made");
        // SAFETY: the arguments are valid during the call, and the host as long as anything of the service runs.
        let call = |count| unsafe { init(service.object, host.raw(), count, pointers.as_ptr()) };
        let count = c_int::try_from(arguments.len())?;
        let code = host.reactor().initialize(|| call(count));
        if code != 0 {
            let failure = host.result("init", code);
            _ = host.end();
            return failure;
        }
        Ok(())
    }

    fn call(&self, method: &str, function: Option<unsafe extern "C" fn(*mut c_void) -> c_int>) -> ServiceResult {
        let Some(function) = function else { return Ok(()) };
        // SAFETY: the object belongs to its functions.
        let code = unsafe { function(self.object.service().object) };
        match (&*self.host.lock(), code) {
            (_, 0) => Ok(()),
            (Some(host), code) => host.result(method, code),
            (None, code) => Err(format!("`{method}` has returned {code}").into()),
        }
    }

    fn suspend(&self) -> ServiceResult {
        self.with_reactor(OwnReactor::suspend);
        self.call("suspend", self.object.service().suspend)
    }

    fn resume(&self) -> ServiceResult {
        self.call("resume", self.object.service().resume)?;
        self.with_reactor(OwnReactor::resume);
        Ok(())
    }

    fn with_reactor(&self, act: impl FnOnce(&OwnReactor)) {
        if let Some(host) = &*self.host.lock() {
            act(host.reactor());
        }
    }

    fn fini(&self) -> ServiceResult {
        let finished = self.call("fini", self.object.service().fini);
        let host = self.host.lock().take();
        let ended = host.map_or(Ok(()), |host| host.end());
        finished.and(ended)
    }

    fn info(&self) -> String {
        let service = self.object.service();
        let info = service.info.expect("checked when it was made");
        let mut text = vec![0_u8; MAX_INFO];
        // SAFETY: the capacity is that of the buffer.
        let length = unsafe { info(service.object, text.as_mut_ptr().cast::<c_char>(), text.len()) };
        text.truncate(length);
        String::from_utf8_lossy(&text).replace('\n', " ")
    }
}

/// A service of a shared library.
pub(crate) struct ForeignService(Lifecycle);

impl ForeignService {
    pub(super) fn new(object: ForeignObject) -> Self {
        Self(Lifecycle::new(object))
    }
}

impl SharedObject for ForeignService {
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        self.0.init(context, arguments)
    }

    fn fini(&self) -> ServiceResult {
        self.0.fini()
    }

    fn info(&self) -> String {
        self.0.info()
    }
}

impl ServiceObject for ForeignService {
    fn suspend(&self) -> ServiceResult {
        self.0.suspend()
    }

    fn resume(&self) -> ServiceResult {
        self.0.resume()
    }
}

/// A module of a shared library: the implementation of streams makes tasks of it.
pub struct ForeignModule(Lifecycle);

impl ForeignModule {
    pub(super) fn new(object: ForeignObject) -> Self {
        Self(Lifecycle::new(object))
    }

    /// Gives it a message of one direction, which it passes on to `next` or consumes.
    ///
    /// # Errors
    /// The message, if the module refuses it.
    pub fn put(&self, side: ModuleSide, message: ForeignMessage, next: &dyn NextTask) -> Result<(), RefusedMessage> {
        let service = self.0.object.service();
        let put = service.put.expect("checked when it was made");
        let mut context = next;
        let raw_next = raw_next(&mut context);
        let raw = message.into_raw();
        // SAFETY: the module owns the message if it returns 0; `raw_next` is valid during the call.
        let code = unsafe { put(service.object, side as u32, raw, &raw const raw_next) };
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the module has not taken the message.
        match unsafe { ForeignMessage::from_raw(raw) } {
            Some(message) => Err(RefusedMessage(message)),
            None => Ok(()),
        }
    }

    /// Whether the module has a function for a thread of its own.
    #[must_use]
    pub fn has_thread(&self) -> bool {
        self.0.object.service().svc.is_some()
    }

    /// Runs the module's function for a thread, if it has one, until that returns.
    pub fn svc(&self, thread: &dyn ModuleThread) {
        let service = self.0.object.service();
        let Some(svc) = service.svc else { return };
        let (mut next, mut context): (&dyn NextTask, _) = (thread, thread);
        let next = raw_next(&mut next);
        let raw = RawThread {
            size: size_of::<RawThread>() as u32,
            next: &raw const next,
            context: ptr::from_mut(&mut context).cast::<c_void>(),
            is_running,
        };
        // SAFETY: the object belongs to its functions; `raw` is valid during the call.
        unsafe { svc(service.object, &raw const raw) };
    }
}

/// The C structure of a module's neighbours, which is valid as long as the borrow.
fn raw_next(next: &mut &dyn NextTask) -> RawNext {
    let context = ptr::from_mut(next).cast::<c_void>();
    RawNext { size: size_of::<RawNext>() as u32, context, put_next, reply }
}

/// # Safety
/// `context` is that of a [`RawThread`] of a running [`ForeignModule::svc`], in its thread.
unsafe extern "C" fn is_running(context: *mut c_void) -> c_int {
    // SAFETY: `context` is that of `ForeignModule::svc`.
    let thread = unsafe { *context.cast::<&dyn ModuleThread>() };
    let running = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| thread.is_running()));
    c_int::from(running.unwrap_or(false))
}

/// # Safety
/// `context` is that of a [`RawNext`] of a running [`ForeignModule::put`] or [`ForeignModule::svc`], and `message` is a message that the caller owns.
unsafe extern "C" fn put_next(context: *mut c_void, message: *mut RawMessage) -> c_int {
    // SAFETY: as above.
    unsafe { pass(context, message, |next, message| next.put_next(message)) }
}

/// # Safety
/// As [`put_next`].
unsafe extern "C" fn reply(context: *mut c_void, message: *mut RawMessage) -> c_int {
    // SAFETY: as above.
    unsafe { pass(context, message, |next, message| next.reply(message)) }
}

/// # Safety
/// As [`put_next`].
unsafe fn pass(
    context: *mut c_void,
    message: *mut RawMessage,
    act: impl FnOnce(&dyn NextTask, ForeignMessage) -> bool,
) -> c_int {
    // SAFETY: the caller owns the message.
    let Some(message) = (unsafe { ForeignMessage::from_raw(message) }) else { return -1 };
    // SAFETY: `context` is that of `raw_next`.
    let next = unsafe { *context.cast::<&dyn NextTask>() };
    let passed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| act(next, message)));
    if passed.unwrap_or(false) { 0 } else { -1 }
}

impl SharedObject for ForeignModule {
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        self.0.init(context, arguments)?;
        self.0.with_reactor(OwnReactor::resume); // a module is never suspended
        Ok(())
    }

    fn fini(&self) -> ServiceResult {
        self.0.fini()
    }

    fn info(&self) -> String {
        self.0.info()
    }
}

impl fmt::Debug for ForeignModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignModule").finish_non_exhaustive()
    }
}
