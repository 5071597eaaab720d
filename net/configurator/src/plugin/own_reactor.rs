//! The reactor of a service of a library, on either side of the boundary: a handler that blocks, or that needs much
//! time, delays the handlers of its own service only.

use std::cell::RefCell;
use std::io;
use std::sync::OnceLock;

use spandrel_reactor::{HandlerId, HeldRegistrations, Options, Reactor, Registry};
use spandrel_sync::Mutex;

/// The maximum number of handlers of a service of a library, and also of its timers.
pub(super) const MAX_HANDLERS: usize = 16_384;

std::thread_local! {
    /// In a thread that runs `init` of a service: what it has registered. `None` in other threads.
    static INIT: RefCell<Option<Vec<HeldRegistrations>>> = const { RefCell::new(None) };
}

/// A reactor that begins with the first handler of its service.
#[derive(Default)]
pub(super) struct OwnReactor {
    reactor: OnceLock<Reactor>,
    /// Locked while the reactor begins.
    beginning: Mutex<()>,
    /// The handlers that `init` has registered: they wait for their handles while the service runs.
    handlers: Mutex<Vec<HandlerId>>,
}

impl OwnReactor {
    /// The registry of the reactor. `spawn` starts the thread that [`run`]s it.
    ///
    /// # Errors
    /// Those of the system, and of `spawn`.
    pub(super) fn registry(&self, spawn: impl FnOnce(Reactor) -> io::Result<()>) -> io::Result<&Registry> {
        let _beginning = self.beginning.lock();
        if self.reactor.get().is_none() {
            let reactor = Reactor::with(&Options::new().max_handlers(MAX_HANDLERS))?;
            spawn(reactor.clone())?;
            _ = self.reactor.set(reactor);
        }
        let registry = self.reactor.get().expect("set just now").registry();
        INIT.with_borrow_mut(|init| {
            if let Some(held) = init
                && held.is_empty()
            {
                held.push(registry.hold_registrations());
            }
        });
        Ok(registry)
    }

    /// Runs `init`, so that the handlers that it registers in this thread begin with [`resume`](Self::resume).
    pub(super) fn initialize<T>(&self, init: impl FnOnce() -> T) -> T {
        struct End<'a>(&'a OwnReactor);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                let held = INIT.take().into_iter().flatten();
                self.0.handlers.lock().extend(held.flat_map(HeldRegistrations::end));
            }
        }
        INIT.set(Some(Vec::new()));
        let _end = End(self);
        init()
    }

    /// Stops the waits of the service's handlers.
    pub(super) fn suspend(&self) {
        self.for_each(|registry, handler| registry.suspend(handler));
    }

    /// Lets the service's handlers wait for their handles.
    pub(super) fn resume(&self) {
        self.for_each(|registry, handler| registry.resume(handler));
    }

    fn for_each(&self, act: impl Fn(&Registry, HandlerId) -> bool) {
        if let Some(reactor) = self.reactor.get() {
            for handler in &*self.handlers.lock() {
                act(reactor.registry(), *handler);
            }
        }
    }

    /// Closes all handlers, and ends the thread.
    pub(super) fn close(&self) {
        if let Some(reactor) = self.reactor.get() {
            reactor.close();
        }
    }
}

/// Runs the reactor of a service until it is closed.
pub(super) fn run(reactor: &Reactor, service: &str) {
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reactor.run()));
    if let Ok(Err(error)) = ran {
        tracing::error!(service, %error, "the reactor of a library's service has ended");
    }
}
