//! The test bed of scenarios: a server with a gate, a proxy in front of it, and a client in this process.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use spandrel::{Orb, types::IiopProfile};
use spandrel_test_support::holds_within;
use tempfile::TempDir;

use crate::call::Outcome;
use crate::journal::{self, Executions};
use crate::judge::Case;
use crate::ledger::Book;
use crate::proxy::{Direction, Fault};
use crate::scenario::{Scenario, ServerKind, Step};
use crate::secure;
use crate::server::Configuration;
use crate::{Gate, Proxy, Server, TIMEOUT};

/// The timeout of calls with a silence fault.
const SILENCE_TIMEOUT: Duration = Duration::from_millis(250);
/// The additional time allowed on a loaded machine.
const LEEWAY: Duration = Duration::from_secs(10);

/// Descriptors that a server opens on first use, such as those of a reactor. A test bed has many more
/// connections.
const LAZY_DESCRIPTORS: usize = 8;

/// The current server; `None` while it is replaced, or if its successor failed to start.
type Current = Arc<Mutex<Option<Server>>>;

/// The test bed of many scenarios.
pub struct TestBed {
    folder: TempDir,
    configuration: Configuration,
    current: Current,
    gate: Gate,
    proxy: Proxy,
    reference: String,
    secure: bool,
    next: u64,
    /// The number of descriptors of a server without connections.
    idle_descriptors: Option<usize>,
}

/// The address in a reference.
fn address(reference: &str) -> Result<SocketAddr> {
    let ior = Orb::builder().build()?.string_to_object(reference)?.ior().clone();
    let profile = IiopProfile::decode(&ior.profiles[0])?.context("the server has no IIOP profile")?;
    Ok(SocketAddr::new(profile.host.parse()?, secure::port(&profile).unwrap_or(profile.port)))
}

impl TestBed {
    /// A test bed with this kind of server and these options.
    pub fn new(kind: ServerKind, options: &[&str]) -> Result<Self> {
        let ServerKind { asynchronous, secure } = kind;
        let folder = tempfile::tempdir()?;
        let gate = Gate::open()?;
        let journal = folder.path().join("journal");
        let endpoint = match secure {
            true => secure::server_options(folder.path())?,
            false => ["-ORBListenEndpoints", "iiop://127.0.0.1:0"].map(str::to_owned).to_vec(),
        };
        let options = options.iter().map(|&option| option.to_owned()).chain(endpoint).collect();
        let configuration = Configuration { journal, gate: gate.addr(), asynchronous, options };
        let server = Server::start(&configuration)?;
        let idle_descriptors = server.descriptors();
        let (reference, upstream) = (server.reference.clone(), address(&server.reference)?);
        let current: Current = Arc::new(Mutex::new(Some(server)));
        let (killed, again) = (Arc::clone(&current), configuration.clone());
        let replace = move || -> Result<SocketAddr> {
            let mut current = killed.lock().map_err(|_| anyhow!("a thread panicked with the lock held"))?;
            current.as_mut().context("there is no server")?.kill()?;
            let server = current.insert(Server::start(&again)?);
            address(&server.reference)
        };
        let kill = move || replace().inspect_err(|error| println!("the server was not replaced: {error:#}")).ok();
        let proxy = Proxy::start(upstream, !secure, Box::new(kill))?;
        Ok(Self { folder, configuration, current, gate, proxy, reference, secure, next: 0, idle_descriptors })
    }

    pub fn journal(&self) -> &Path {
        &self.configuration.journal
    }

    /// The server's object, with the proxy's address.
    fn book(&self, orb: &Orb) -> Result<Book> {
        let mut ior = orb.string_to_object(&self.reference)?.ior().clone();
        let profile = IiopProfile::decode(&ior.profiles[0])?.context("the server has no IIOP profile")?;
        let port = self.proxy.port();
        let profile = if self.secure { secure::with_port(profile, port)? } else { IiopProfile { port, ..profile } };
        ior.profiles = vec![profile.encode()?];
        Ok(Book::unchecked_narrow(&orb.reference(ior)))
    }

    /// Runs a scenario; returns the outcomes of its calls.
    ///
    /// # Errors
    /// If there is no server, or a call did not end in time.
    pub fn run(&mut self, scenario: Scenario) -> Result<Vec<Case>> {
        let timeout = if scenario.fault == Fault::Silence { SILENCE_TIMEOUT } else { TIMEOUT };
        let sharing = if scenario.callers > 1 { "multiplexed" } else { "mixed" };
        let builder = match self.secure {
            true => Orb::builder().protocol(secure::client(self.folder.path())?),
            false => Orb::builder(),
        };
        let orb = builder.request_timeout(Some(timeout)).option("-ORBConnectionSharing", sharing)?.build()?;
        let book = self.book(&orb)?;
        if scenario.warm {
            book.as_object().with_timeout(Some(TIMEOUT)).locate().context("the LocateRequest before the fault")?;
        }
        let numbers = self.next..self.next + scenario.callers as u64;
        self.next = numbers.end;
        match scenario.step {
            Step::Request(after) => self.proxy.arm(Direction::Request, after, scenario.fault),
            Step::Reply(after) => self.proxy.arm(Direction::Reply, after, scenario.fault),
            Step::Upcall => {
                let (proxy, scenario_number) = (self.proxy.clone(), self.proxy.scenario());
                self.gate.on_next_arrival(numbers.clone(), move || {
                    proxy.inject(scenario_number, Direction::Request, scenario.fault)
                });
            }
        }
        let start = Instant::now();
        let outcomes = call_all(&book, scenario, numbers.clone())?;
        let took = start.elapsed();
        orb.shutdown()?;
        self.gate.clear();
        let injected = self.proxy.end_scenario()?;
        ensure!(took <= timeout.min(LEEWAY) + LEEWAY, "{scenario}: the calls took {took:?}: {outcomes:?}");
        Ok(numbers.zip(outcomes).map(|(number, outcome)| Case { scenario, number, outcome, injected }).collect())
    }

    /// Shuts the server down; returns the executions.
    ///
    /// # Errors
    /// If it keeps descriptors of closed connections, or does not exit.
    pub fn finish(self) -> Result<HashMap<u64, Executions>> {
        let is_clean = holds_within(LEEWAY, || {
            self.descriptors() <= self.idle_descriptors.map(|idle_descriptors| idle_descriptors + LAZY_DESCRIPTORS)
        });
        ensure!(is_clean, "the server keeps descriptors of closed connections");
        let server = self.current.lock().expect("no thread panics with the lock held").take();
        server.context("there is no server")?.finish()?;
        Ok(journal::read(self.journal())?)
    }

    /// The number of the server's open descriptors.
    pub fn descriptors(&self) -> Option<usize> {
        self.current.lock().expect("no thread panics with the lock held").as_ref()?.descriptors()
    }
}

fn call_all(book: &Book, scenario: Scenario, numbers: std::ops::Range<u64>) -> Result<Vec<Outcome>> {
    let invoke = |number| scenario.call_kind.invoke(book, number, &scenario.data(number));
    if scenario.callers == 1 {
        return Ok(vec![invoke(numbers.start)]);
    }
    thread::scope(|scope| {
        let callers: Vec<_> = numbers.map(|number| scope.spawn(move || invoke(number))).collect();
        callers.into_iter().map(|caller| caller.join().map_err(|_| anyhow!("{scenario}: a caller panicked"))).collect()
    })
}
