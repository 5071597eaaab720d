//! Where scripts are played: a server, a relay before it, a gate in it, and a client in this process.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use spandrel::{IiopProfile, Orb};
use spandrel_test_support::comes_within;
use tempfile::TempDir;

use crate::call::Told;
use crate::journal::{self, Executions};
use crate::judge::Case;
use crate::ledger::Book;
use crate::relay::{Deed, Direction};
use crate::script::{Kind, Script, Step};
use crate::secure;
use crate::server::Arrangement;
use crate::{Gate, LONG, Relay, Server};

/// How long a call may take where nothing comes back.
const PATIENCE: Duration = Duration::from_millis(250);
/// What a loaded machine adds.
const LEEWAY: Duration = Duration::from_secs(10);

/// Descriptors that a server opens when it first needs them, such as those of a reactor. A stage sees many more connections.
const LAZY: usize = 8;

/// The server of the moment; none while it is replaced, or if it could not be.
type Current = Arc<Mutex<Option<Server>>>;

/// One for many scripts.
pub struct Stage {
    folder: TempDir,
    arrangement: Arrangement,
    current: Current,
    gate: Gate,
    relay: Relay,
    reference: String,
    secure: bool,
    next: u64,
    /// Descriptors of a server that has no connections.
    alone: Option<usize>,
}

/// Where a server listens that says so.
fn address(reference: &str) -> Result<SocketAddr> {
    let ior = Orb::builder().build()?.string_to_object(reference)?.ior().clone();
    let profile = IiopProfile::decode(&ior.profiles[0])?.context("a server listens by TCP")?;
    Ok(SocketAddr::new(profile.host.parse()?, secure::port(&profile).unwrap_or(profile.port)))
}

impl Stage {
    /// One whose server is of this kind, and has these options.
    pub fn set(kind: Kind, options: &[&str]) -> Result<Self> {
        let Kind { asynchronous, secure } = kind;
        let folder = tempfile::tempdir()?;
        let gate = Gate::open()?;
        let journal = folder.path().join("journal");
        let endpoint = match secure {
            true => secure::server_options(folder.path())?,
            false => ["-ORBListenEndpoints", "iiop://127.0.0.1:0"].map(str::to_owned).to_vec(),
        };
        let options = options.iter().map(|&option| option.to_owned()).chain(endpoint).collect();
        let arrangement = Arrangement { journal, gate: gate.addr(), asynchronous, options };
        let server = Server::start(&arrangement)?;
        let alone = server.descriptors();
        let (reference, upstream) = (server.reference.clone(), address(&server.reference)?);
        let current: Current = Arc::new(Mutex::new(Some(server)));
        let (killed, again) = (Arc::clone(&current), arrangement.clone());
        let replace = move || -> Result<SocketAddr> {
            let mut current = killed.lock().map_err(|_| anyhow!("somebody panicked with it"))?;
            current.as_mut().context("there is none")?.kill()?;
            let server = current.insert(Server::start(&again)?);
            address(&server.reference)
        };
        let kill = move || replace().inspect_err(|error| println!("the server was not replaced: {error:#}")).ok();
        let relay = Relay::start(upstream, !secure, Box::new(kill))?;
        Ok(Self { folder, arrangement, current, gate, relay, reference, secure, next: 0, alone })
    }

    pub fn journal(&self) -> &Path {
        &self.arrangement.journal
    }

    /// The server's object, as if the relay were the server.
    fn book(&self, orb: &Orb) -> Result<Book> {
        let mut ior = orb.string_to_object(&self.reference)?.ior().clone();
        let profile = IiopProfile::decode(&ior.profiles[0])?.context("a server listens by TCP")?;
        let port = self.relay.port();
        let profile = if self.secure { secure::moved(profile, port)? } else { IiopProfile { port, ..profile } };
        ior.profiles = vec![profile.encode()?];
        Ok(Book::unchecked_narrow(&orb.reference(ior)))
    }

    /// Plays a script: what its callers were told.
    ///
    /// # Errors
    /// If the stage is no more, or a call did not end in time.
    pub fn play(&mut self, script: Script) -> Result<Vec<Case>> {
        let patience = if script.deed == Deed::Silence { PATIENCE } else { LONG };
        let sharing = if script.callers > 1 { "multiplexed" } else { "mixed" };
        let builder = match self.secure {
            true => Orb::builder().protocol(secure::client(self.folder.path())?),
            false => Orb::builder(),
        };
        let orb = builder.request_timeout(Some(patience)).option("-ORBConnectionSharing", sharing)?.build()?;
        let book = self.book(&orb)?;
        if script.warm {
            book.as_object().with_timeout(Some(LONG)).locate().context("before anything has happened")?;
        }
        let numbers = self.next..self.next + script.callers as u64;
        self.next = numbers.end;
        match script.step {
            Step::Request(after) => self.relay.arm(Direction::Request, after, script.deed),
            Step::Reply(after) => self.relay.arm(Direction::Reply, after, script.deed),
            Step::Upcall => {
                let (relay, scene) = (self.relay.clone(), self.relay.scene());
                self.gate.at_next(numbers.clone(), move || relay.fire(scene, Direction::Request, script.deed));
            }
        }
        let begun = Instant::now();
        let told = ask_all(&book, script, numbers.clone())?;
        let took = begun.elapsed();
        orb.shutdown(true)?;
        self.gate.forget();
        let fired = self.relay.calm()?;
        ensure!(took <= patience.min(LEEWAY) + LEEWAY, "{script}: the calls took {took:?}: {told:?}");
        Ok(numbers.zip(told).map(|(number, told)| Case { script, number, told, fired }).collect())
    }

    /// Lets the server end in order; what has been executed.
    ///
    /// # Errors
    /// If it keeps something of connections that have ended, or does not end.
    pub fn finish(self) -> Result<HashMap<u64, Executions>> {
        let is_clean = comes_within(LEEWAY, || self.descriptors() <= self.alone.map(|alone| alone + LAZY));
        ensure!(is_clean, "the server keeps what it had of connections that have ended");
        let server = self.current.lock().expect("nobody panics with it").take();
        server.context("there is no server any more")?.finish()?;
        Ok(journal::read(self.journal())?)
    }

    /// How many descriptors the server has open.
    pub fn descriptors(&self) -> Option<usize> {
        self.current.lock().expect("nobody panics with it").as_ref()?.descriptors()
    }
}

fn ask_all(book: &Book, script: Script, numbers: std::ops::Range<u64>) -> Result<Vec<Told>> {
    let ask = |number| script.way.ask(book, number, &script.data(number));
    if script.callers == 1 {
        return Ok(vec![ask(numbers.start)]);
    }
    thread::scope(|scope| {
        let callers: Vec<_> = numbers.map(|number| scope.spawn(move || ask(number))).collect();
        callers.into_iter().map(|caller| caller.join().map_err(|_| anyhow!("{script}: a caller panicked"))).collect()
    })
}
