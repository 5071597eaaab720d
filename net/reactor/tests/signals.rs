//! Signals as events. Run without the test harness, since signals concern the whole process.

use std::io;

use spandrel_ipc::Pollable;
use spandrel_reactor::{Backend, Context, EventHandler, Signal};
use spandrel_sync::Arc;
use spandrel_sync::atomic::Ordering;

use crate::scripted::{Log, NONE, reactor, run_until};

struct Listener(&'static str, Log);

impl EventHandler for Listener {
    fn pollable(&self) -> Option<&dyn Pollable> {
        None
    }
    fn handle_signal(&mut self, cx: &Context<'_>, signal: Signal) -> io::Result<()> {
        self.1.note(format!("{} {signal}", self.0));
        if self.0 == "once" {
            cx.close();
        }
        Ok(())
    }
}

pub(crate) fn signals_reach_all_subscribers() {
    let before = Arc::new(std::sync::atomic::AtomicBool::new(false));
    signal_hook::flag::register(Signal::USR1.number(), Arc::clone(&before)).expect("an ordinary signal");
    for backend in Backend::available() {
        let reactor = reactor(backend);
        let registry = reactor.registry();
        let log = Log::default();
        let first = registry.register(Listener("first", log.clone()), NONE).expect("registered");
        let once = registry.register(Listener("once", log.clone()), NONE).expect("registered");
        registry.on_signal(first, Signal::USR1).expect("an ordinary signal");
        registry.on_signal(once, Signal::USR1).expect("an ordinary signal");
        registry.on_signal(first, Signal::USR2).expect("an ordinary signal");
        assert_eq!(registry.len(), 2, "the reactor's own handlers are not counted");

        raise(Signal::USR1);
        run_until(&reactor, || log.lines().len() == 2);
        assert_eq!(log.take(), ["first SIGUSR1", "once SIGUSR1"]);
        assert!(before.swap(false, Ordering::SeqCst), "earlier signal handlers run as well");
        raise(Signal::USR2);
        run_until(&reactor, || !log.lines().is_empty());
        assert_eq!(log.take(), ["first SIGUSR2"]);
        raise(Signal::USR1);
        run_until(&reactor, || !log.lines().is_empty());
        assert_eq!(log.take(), ["first SIGUSR1"], "the other was removed");

        reactor.close();
        assert!(registry.on_signal(first, Signal::USR1).is_err());
        raise(Signal::USR1);
        assert!(before.swap(false, Ordering::SeqCst));
        assert!(log.take().is_empty());
    }
    assert!(Signal::new(9).is_err() && Signal::new(0).is_err() && Signal::new(15).is_ok());
}

fn raise(signal: Signal) {
    signal_hook::low_level::raise(signal.number()).expect("raised");
}
