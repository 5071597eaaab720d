//! Services of this crate's interface as services of a shared library: the library's side of the boundary.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::OnceLock;

use spandrel_reactor::{Reactor, Registry};
use spandrel_sync::Mutex;
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};

use super::abi::{KIND_MODULE, KIND_SERVICE, RawHost, RawMessage, RawNext, RawService, RawThread};
use super::message::ForeignMessage;
use super::module::{ModuleObject, ModuleSide, ModuleThread, NextTask};
use super::own_reactor::{self, OwnReactor};
use crate::lifecycle::panic_text;
use crate::service_object::Process;
use crate::{ServiceContext, ServiceObject, ServiceResult, SharedObject};

/// Exports services from a shared library (a crate of the type `cdylib`), in one line:
///
/// ```
/// # use spandrel_configurator::{ServiceContext, ServiceObject, ServiceResult, SharedObject};
/// # struct Beeper;
/// # impl SharedObject for Beeper {
/// #     fn init(&self, _: &ServiceContext<'_>, _: &[String]) -> ServiceResult { Ok(()) }
/// #     fn info(&self) -> String { "beeps".to_owned() }
/// # }
/// # impl ServiceObject for Beeper {}
/// spandrel_configurator::export_services!(make_beeper => Beeper);
/// # fn main() {}
/// ```
///
/// A file then names it: `dynamic Beeper Service_Object * beeper:make_beeper() "…"`. The macro stands once in a library; it
/// takes several services, and modules ([`ModuleObject`]) with the word `module`:
/// `export_services!(make_a => A, module make_b => B::new())`.
///
/// The service has a reactor of its own ([`ServiceContext::registry`]) with a thread of its own, and what it logs with
/// `tracing` becomes log lines of the process. A panic in one of its methods fails that method.
#[macro_export]
macro_rules! export_services {
    (@one module $function:ident => $make:expr) => {
        /// Makes a module for the host.
        #[unsafe(no_mangle)]
        pub extern "C" fn $function() -> *mut $crate::plugin::RawService {
            $crate::plugin::exported_module(|| ::std::boxed::Box::new($make))
        }
    };
    (@one $function:ident => $make:expr) => {
        /// Makes a service for the host.
        #[unsafe(no_mangle)]
        pub extern "C" fn $function() -> *mut $crate::plugin::RawService {
            $crate::plugin::exported_service(|| ::std::boxed::Box::new($make))
        }
    };
    (@list) => {};
    (@list module $function:ident => $make:expr $(, $($rest:tt)*)?) => {
        $crate::export_services!(@one module $function => $make);
        $crate::export_services!(@list $($($rest)*)?);
    };
    (@list $function:ident => $make:expr $(, $($rest:tt)*)?) => {
        $crate::export_services!(@one $function => $make);
        $crate::export_services!(@list $($($rest)*)?);
    };
    ($($list:tt)+) => {
        /// The version of the interface, by which the host accepts or rejects the library.
        #[unsafe(no_mangle)]
        #[allow(non_upper_case_globals)]
        pub static spandrel_service_abi: $crate::plugin::Abi = $crate::plugin::Abi::CURRENT;
        $crate::export_services!(@list $($list)+);
    };
}

enum Kind {
    Service(Box<dyn ServiceObject>),
    Module(Box<dyn ModuleObject>),
}

impl Kind {
    fn shared(&self) -> &dyn SharedObject {
        match self {
            Self::Service(service) => &**service,
            Self::Module(module) => &**module,
        }
    }
}

/// A service with the structure by which the process knows it.
struct Exported {
    raw: RawService,
    kind: Kind,
    host: OnceLock<HostPointer>,
    reactor: OwnReactor,
}

#[derive(Clone, Copy)]
struct HostPointer(*const RawHost);

// SAFETY: functions of the host may be called from any thread, as the header says.
unsafe impl Send for HostPointer {}
// SAFETY: the same.
unsafe impl Sync for HostPointer {}

impl HostPointer {
    fn raw(&self) -> &RawHost {
        // SAFETY: valid from `init` to the end of the last thread of the service, as the header says.
        unsafe { &*self.0 }
    }

    fn fail(&self, text: &str) {
        // SAFETY: the text is valid during the call.
        unsafe { (self.raw().fail)(self.raw().context, text.as_ptr().cast::<c_char>(), text.len()) };
    }

    fn log(&self, level: Level, text: &str) {
        let level = match level {
            Level::ERROR => 1,
            Level::WARN => 2,
            Level::INFO => 3,
            Level::DEBUG => 4,
            Level::TRACE => 5,
        };
        // SAFETY: the text is valid during the call.
        unsafe { (self.raw().log)(self.raw().context, level, text.as_ptr().cast::<c_char>(), text.len()) };
    }
}

/// Makes the structure of a service, for [`export_services!`](crate::export_services).
pub fn exported_service(make: impl FnOnce() -> Box<dyn ServiceObject>) -> *mut RawService {
    exported(|| Kind::Service(make()))
}

/// Makes the structure of a module, for [`export_services!`](crate::export_services).
pub fn exported_module(make: impl FnOnce() -> Box<dyn ModuleObject>) -> *mut RawService {
    exported(|| Kind::Module(make()))
}

fn exported(make: impl FnOnce() -> Kind) -> *mut RawService {
    let constructed = catch_unwind(AssertUnwindSafe(|| {
        let kind = make();
        let has_thread = matches!(&kind, Kind::Module(module) if module.has_thread());
        (kind, has_thread)
    }));
    let Ok((kind, has_thread)) = constructed else { return ptr::null_mut() };
    let raw = RawService {
        size: size_of::<RawService>() as u32,
        kind: if matches!(kind, Kind::Service(_)) { KIND_SERVICE } else { KIND_MODULE },
        object: ptr::null_mut(),
        init: Some(init),
        fini: Some(fini),
        suspend: Some(suspend),
        resume: Some(resume),
        info: Some(info),
        put: Some(put),
        svc: has_thread.then_some(svc),
        destroy: Some(destroy),
    };
    let exported =
        Box::into_raw(Box::new(Exported { raw, kind, host: OnceLock::new(), reactor: OwnReactor::default() }));
    // SAFETY: it was a box just now.
    unsafe {
        (*exported).raw.object = exported.cast::<c_void>();
        &raw mut (*exported).raw
    }
}

/// # Safety
/// `object` is that of a structure that [`exported`] has made, and that is not destroyed.
unsafe fn object<'a>(object: *mut c_void) -> &'a Exported {
    // SAFETY: as above.
    unsafe { &*object.cast::<Exported>() }
}

impl Exported {
    /// Runs a method; its failure becomes one of the process's call.
    fn run(&self, method: impl FnOnce() -> ServiceResult) -> c_int {
        let text = match catch_unwind(AssertUnwindSafe(method)) {
            Ok(Ok(())) => return 0,
            Ok(Err(error)) => spandrel_error::report_in_line(&*error),
            Err(panic) => format!("it has panicked: {}", panic_text(&*panic)),
        };
        if let Some(host) = self.host.get() {
            host.fail(&text);
        }
        -1
    }

    /// Starts the thread of the reactor.
    fn start_thread(&self, reactor: Reactor) -> std::io::Result<()> {
        unsafe extern "C" fn run(argument: *mut c_void) {
            // SAFETY: the argument is the box of `start_thread`.
            let reactor = unsafe { Box::from_raw(argument.cast::<Reactor>()) };
            own_reactor::run(&reactor, "");
        }
        let argument = Box::into_raw(Box::new(reactor));
        let host = self.host.get().expect("set before the first call of the service").raw();
        // SAFETY: the function takes the argument over.
        let code = unsafe { (host.spawn)(host.context, Some(run), argument.cast::<c_void>()) };
        if code != 0 {
            // SAFETY: the thread was not started.
            drop(unsafe { Box::from_raw(argument) });
            return Err(std::io::Error::other("the process starts no thread for the reactor"));
        }
        Ok(())
    }
}

impl Process for Exported {
    fn registry(&self) -> &Registry {
        match self.reactor.registry(|reactor| self.start_thread(reactor)) {
            Ok(registry) => registry,
            Err(error) => panic!("there is no reactor: {error}"),
        }
    }

    fn find(&self, _name: &str) -> Option<std::sync::Arc<dyn std::any::Any + Send + Sync>> {
        None
    }
}

unsafe extern "C" fn init(this: *mut c_void, host: *const RawHost, argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: the contracts of the header, here and below.
    let exported = unsafe { object(this) };
    let host = HostPointer(host);
    _ = exported.host.set(host);
    exported.run(|| {
        forward_log(host);
        // SAFETY: the name and the arguments are texts.
        let text = |at: *const c_char| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned();
        let count = usize::try_from(argc).unwrap_or_default();
        // SAFETY: `argv` has `argc` texts.
        let arguments: Vec<String> = (0..count).map(|at| text(unsafe { *argv.add(at) })).collect();
        let name = text(host.raw().name);
        let context = ServiceContext::new(&name, exported);
        let init = || exported.kind.shared().init(&context, &arguments);
        match exported.reactor.initialize(|| catch_unwind(AssertUnwindSafe(init))) {
            Ok(Ok(())) => {
                if let Kind::Module(_) = exported.kind {
                    exported.reactor.resume(); // a module is never suspended
                }
                Ok(())
            }
            failed => {
                exported.reactor.close();
                failed.unwrap_or_else(|panic| resume_unwind(panic))
            }
        }
    })
}

unsafe extern "C" fn fini(this: *mut c_void) -> c_int {
    // SAFETY: the contract of the header.
    let exported = unsafe { object(this) };
    let code = exported.run(|| exported.kind.shared().fini());
    exported.reactor.close();
    code
}

unsafe extern "C" fn suspend(this: *mut c_void) -> c_int {
    // SAFETY: the contract of the header.
    let exported = unsafe { object(this) };
    exported.reactor.suspend();
    exported.run(|| match &exported.kind {
        Kind::Service(service) => service.suspend(),
        Kind::Module(_) => Ok(()),
    })
}

unsafe extern "C" fn resume(this: *mut c_void) -> c_int {
    // SAFETY: the contract of the header.
    let exported = unsafe { object(this) };
    exported.run(|| {
        if let Kind::Service(service) = &exported.kind {
            service.resume()?;
        }
        exported.reactor.resume();
        Ok(())
    })
}

unsafe extern "C" fn info(this: *mut c_void, text: *mut c_char, capacity: usize) -> usize {
    // SAFETY: the contract of the header.
    let exported = unsafe { object(this) };
    let told = catch_unwind(AssertUnwindSafe(|| exported.kind.shared().info()));
    let told = told.unwrap_or_else(|panic| format!("has panicked: {}", panic_text(&*panic)));
    // SAFETY: `text` has room for `capacity` octets.
    unsafe { ptr::copy_nonoverlapping(told.as_ptr(), text.cast::<u8>(), told.len().min(capacity)) };
    told.len()
}

unsafe extern "C" fn put(this: *mut c_void, side: u32, message: *mut RawMessage, next: *const RawNext) -> c_int {
    // SAFETY: the contract of the header.
    let exported = unsafe { object(this) };
    let Kind::Module(module) = &exported.kind else { return -1 };
    let side = if side == 0 { ModuleSide::Reader } else { ModuleSide::Writer };
    // SAFETY: the process owns the message.
    let Some(message) = (unsafe { ForeignMessage::from_raw(message) }) else { return -1 };
    // SAFETY: valid during this call.
    let neighbours = Neighbours(unsafe { &*next });
    match catch_unwind(AssertUnwindSafe(|| module.put(side, message, &neighbours))) {
        Ok(Ok(())) => 0,
        // The process has the message again.
        Ok(Err(refused)) => {
            _ = refused.0.into_raw();
            -1
        }
        Err(panic) => {
            // The message is gone with the panic.
            tracing::error!("a module has panicked: {}", panic_text(&*panic));
            0
        }
    }
}

unsafe extern "C" fn svc(this: *mut c_void, thread: *const RawThread) {
    // SAFETY: the contract of the header.
    let exported = unsafe { object(this) };
    let Kind::Module(module) = &exported.kind else { return };
    // SAFETY: valid during this call, and so is `next`.
    let thread = unsafe { &*thread };
    // SAFETY: see above.
    let thread = OwnThread { thread, neighbours: Neighbours(unsafe { &*thread.next }) };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| module.svc(&thread))) {
        tracing::error!("the thread of a module has panicked: {}", panic_text(&*panic));
    }
}

unsafe extern "C" fn destroy(service: *mut RawService) {
    // SAFETY: `object` is the box that contains the structure; this is the last call.
    let exported = unsafe { Box::from_raw((*service).object.cast::<Exported>()) };
    let host = exported.host.get().map(|host| host.0);
    HOSTS.lock().retain(|other| Some(other.0) != host);
    _ = catch_unwind(AssertUnwindSafe(|| drop(exported)));
}

struct Neighbours<'a>(&'a RawNext);

impl NextTask for Neighbours<'_> {
    fn put_next(&self, message: ForeignMessage) -> bool {
        // SAFETY: the function takes the message over; the context is valid during `put` and `svc`.
        unsafe { (self.0.put_next)(self.0.context, message.into_raw()) == 0 }
    }

    fn reply(&self, message: ForeignMessage) -> bool {
        // SAFETY: as above.
        unsafe { (self.0.reply)(self.0.context, message.into_raw()) == 0 }
    }
}

/// The thread of a module of this library.
struct OwnThread<'a> {
    thread: &'a RawThread,
    neighbours: Neighbours<'a>,
}

impl NextTask for OwnThread<'_> {
    fn put_next(&self, message: ForeignMessage) -> bool {
        self.neighbours.put_next(message)
    }

    fn reply(&self, message: ForeignMessage) -> bool {
        self.neighbours.reply(message)
    }
}

impl ModuleThread for OwnThread<'_> {
    fn is_running(&self) -> bool {
        // SAFETY: the context is valid during `svc`.
        unsafe { (self.thread.is_running)(self.thread.context) != 0 }
    }
}

/// The hosts of the services of this library that are not destroyed.
static HOSTS: Mutex<Vec<HostPointer>> = Mutex::new(Vec::new());

/// Gives the log lines of this library to the process, as those of the service that was initialized last.
fn forward_log(host: HostPointer) {
    HOSTS.lock().push(host);
    // There is one already if the library has several services.
    _ = tracing::subscriber::set_global_default(HostLog);
}

struct HostLog;

impl Subscriber for HostLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::DEBUG
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        // Locked, so that the service is not destroyed in between.
        if let Some(host) = HOSTS.lock().last() {
            host.log(*event.metadata().level(), &line.0);
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The message of a log line, then its fields.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let fields = std::mem::take(&mut self.0);
            _ = write!(self.0, "{value:?}{fields}");
        } else {
            _ = write!(self.0, " {}={value:?}", field.name());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.record_debug(field, &format_args!("{value}"));
        } else {
            self.record_debug(field, &value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::module::RefusedMessage;
    use super::*;
    use crate::plugin::ForeignKind;

    /// Passes messages on in reverse, refuses empty ones, and panics at `!`.
    struct Reversing;

    impl SharedObject for Reversing {
        fn init(&self, _: &ServiceContext<'_>, _: &[String]) -> ServiceResult {
            Ok(())
        }

        fn info(&self) -> String {
            "reverses".to_owned()
        }
    }

    impl ModuleObject for Reversing {
        fn put(&self, _: ModuleSide, message: ForeignMessage, next: &dyn NextTask) -> Result<(), RefusedMessage> {
            let octets: Vec<u8> = message.to_vec().into_iter().rev().collect();
            match octets[..] {
                [] => return Err(RefusedMessage(message)),
                [b'!'] => panic!("as asked"),
                _ => {}
            }
            assert!(next.put_next(ForeignMessage::new(message.kind(), octets)));
            Ok(())
        }
    }

    unsafe extern "C" fn collect(context: *mut c_void, message: *mut RawMessage) -> c_int {
        // SAFETY: the context is the list of the test, and the message is given away.
        unsafe {
            let list = &mut *context.cast::<Vec<Vec<u8>>>();
            list.push(ForeignMessage::from_raw(message).unwrap().to_vec());
        }
        0
    }

    #[test]
    fn an_exported_module_is_a_structure_of_functions() {
        let service = exported_module(|| Box::new(Reversing));
        // SAFETY: the structure was made just now, and is used as its process does.
        unsafe {
            let RawService { object, info, put, destroy, .. } = *service;
            let mut text = [0_u8; 4];
            assert_eq!(info.unwrap()(object, text.as_mut_ptr().cast(), text.len()), "reverses".len());
            assert_eq!(&text, b"reve");
            let mut list: Vec<Vec<u8>> = Vec::new();
            let next = RawNext {
                size: size_of::<RawNext>() as u32,
                context: ptr::from_mut(&mut list).cast(),
                put_next: collect,
                reply: collect,
            };
            let give = |octets: &[u8]| {
                let message = ForeignMessage::new(ForeignKind::Data, octets.to_vec()).into_raw();
                (put.unwrap()(object, 0, message, &raw const next), message)
            };
            assert_eq!(give(b"abc").0, 0);
            let (code, refused) = give(b"");
            assert_eq!(code, -1);
            drop(ForeignMessage::from_raw(refused));
            assert_eq!(give(b"!").0, 0, "a panic takes the message along");
            assert_eq!(list, [b"cba"]);
            destroy.unwrap()(service);
        }
    }
}
