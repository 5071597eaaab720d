//! SIGHUP: the policy is read again.

use std::io;

use spandrel::authorization::Authorizer;

/// Reads the policy again at each SIGHUP. The reason why a file is invalid is logged, and the policy in force stays so.
#[cfg(unix)]
pub(crate) fn reload_on_hangup(authorizer: &Authorizer) -> io::Result<()> {
    use std::thread;

    use spandrel::net::ipc::{Interest, Pollable};
    use spandrel::net::reactor::{Context, EventHandler, Options, Reactor, Signal};

    struct Hangup(Authorizer);

    impl EventHandler for Hangup {
        fn pollable(&self) -> Option<&dyn Pollable> {
            None
        }

        fn handle_signal(&mut self, _: &Context<'_>, _: Signal) -> io::Result<()> {
            // The reason was logged.
            _ = self.0.reload();
            Ok(())
        }
    }

    let reactor = Reactor::with(&Options::new().max_handlers(4))?;
    let id = reactor.registry().register(Hangup(authorizer.clone()), Interest::NONE)?;
    reactor.registry().on_signal(id, Signal::HUP)?;
    let run = move || {
        if let Err(error) = reactor.run() {
            tracing::error!(%error, "SIGHUP is no longer handled");
        }
    };
    thread::Builder::new().name("spandrel-hangup".to_owned()).spawn(run).map(drop)
}

#[cfg(not(unix))]
pub(crate) fn reload_on_hangup(_authorizer: &Authorizer) -> io::Result<()> {
    Ok(())
}
