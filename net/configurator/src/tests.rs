//! Tests of services and their configuration.

mod libraries;
mod options;
mod reload;
mod services;

use std::time::Duration;

use spandrel_sync::{Arc, Mutex};

use crate::{Catalogue, Configurator, ServiceContext, ServiceObject, ServiceResult, SharedObject};

/// Calls of services, in their order.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    fn add(&self, text: String) {
        self.0.lock().push(text);
    }

    /// The calls since the last time.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// A service that records its calls, and fails where its arguments say so: `fail=init`, `panic=resume`, `hang=fini`,
/// `port=5` for a port that one service at a time may have, `needs=A` for
/// another service.
struct Recorder {
    journal: Journal,
    ports: Arc<Mutex<Vec<String>>>,
    name: Mutex<String>,
    arguments: Mutex<Vec<String>>,
}

impl Recorder {
    fn called(&self, method: &str) -> ServiceResult {
        let has = |what: &str| self.arguments.lock().contains(&format!("{what}={method}"));
        self.journal.add(format!("{} {method}", self.name.lock().as_str()));
        if has("fail") {
            return Err("as asked".into());
        }
        if has("panic") {
            panic!("as asked");
        }
        if has("hang") {
            std::thread::park_timeout(Duration::from_secs(30));
        }
        Ok(())
    }

    fn port(&self) -> Option<String> {
        self.arguments.lock().iter().find(|argument| argument.starts_with("port=")).cloned()
    }
}

impl SharedObject for Recorder {
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        *self.name.lock() = context.name().to_owned();
        *self.arguments.lock() = arguments.to_vec();
        if let Some(port) = self.port() {
            let mut ports = self.ports.lock();
            if ports.contains(&port) {
                return Err(format!("{port} is in use").into());
            }
            ports.push(port);
        }
        for needed in arguments.iter().filter_map(|argument| argument.strip_prefix("needs=")) {
            context.find::<Self>(needed).ok_or_else(|| format!("there is no {needed}"))?;
        }
        let initialized = self.called("init");
        if let (Err(_), Some(port)) = (&initialized, self.port()) {
            self.ports.lock().retain(|other| *other != port);
        }
        initialized
    }

    fn fini(&self) -> ServiceResult {
        if let Some(port) = self.port() {
            self.ports.lock().retain(|other| *other != port);
        }
        self.called("fini")
    }

    fn info(&self) -> String {
        if self.arguments.lock().contains(&"panic=info".to_owned()) {
            panic!("as asked");
        }
        format!("{} {}", self.name.lock().as_str(), self.arguments.lock().join(" "))
    }
}

impl ServiceObject for Recorder {
    fn suspend(&self) -> ServiceResult {
        self.called("suspend")
    }

    fn resume(&self) -> ServiceResult {
        self.called("resume")
    }
}

/// A configurator whose program contains recorders named A to E.
fn recorders() -> (Configurator, Journal, spandrel_reactor::Reactor) {
    let (journal, ports) = (Journal::default(), Arc::<Mutex<Vec<String>>>::default());
    let mut catalogue = Catalogue::new();
    for name in ["A", "B", "C", "D", "E"] {
        let (journal, ports) = (journal.clone(), Arc::clone(&ports));
        let make = move || Recorder {
            journal: journal.clone(),
            ports: Arc::clone(&ports),
            name: Mutex::default(),
            arguments: Mutex::default(),
        };
        catalogue = catalogue.service(name, make);
    }
    let reactor = spandrel_reactor::Reactor::new().unwrap();
    let catalogue = catalogue.factory_of_any_library("_make_A", "A").factory("make_b", "B");
    let configurator = Configurator::new(reactor.registry(), catalogue).call_timeout(Duration::from_millis(500));
    (configurator, journal, reactor)
}

fn names(configurator: &Configurator) -> Vec<String> {
    configurator.repository().iter().map(|service| service.name).collect()
}
