//! Tests of the stock services, and of the executable.

mod administration;
mod architectures;
#[cfg(unix)]
mod executable;
mod orb;
mod services;

use spandrel::net::reactor::Reactor;
use spandrel_configurator::Configurator;
use spandrel_serve::{Administered, catalogue};
use spandrel_stream::StreamDirectives;

/// A process with the stock services.
struct Process {
    configurator: Configurator,
    reactor: Reactor,
}

impl Process {
    fn new() -> Self {
        // ANCHOR: configurator
        let administered = Administered::default();
        let reactor = Reactor::new().unwrap();
        let configurator = Configurator::new(reactor.registry(), catalogue(&administered)).streams(StreamDirectives);
        administered.set(&configurator);
        // ANCHOR_END: configurator
        let running = reactor.clone();
        std::thread::spawn(move || running.run().unwrap());
        Self { configurator, reactor }
    }

    fn process(&self, directives: &str) -> Result<String, String> {
        let done = self.configurator.process_text(directives);
        done.map(|changes| changes.to_string()).map_err(|error| error.to_string())
    }

    fn info(&self, name: &str) -> String {
        self.configurator.repository().info(name).unwrap()
    }

    /// The address at the beginning of a service's description.
    fn address(&self, name: &str) -> String {
        self.info(name).split('/').next().unwrap().to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.configurator.close();
        self.reactor.close();
    }
}
