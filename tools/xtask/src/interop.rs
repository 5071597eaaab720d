//! `cargo xtask interop`: our ORB against omniORB and JacORB.
//!
//! Runs every client against every server of the other side in each GIOP version, ours in both byte orders, and prints
//! one matrix per suite; then those of GIOP 1.2 with our programs made for each of the other marshaling engines. What the cases are belongs to
//! the clients; this only counts their lines. Whom to run against whom is in `pairings`, how a program is started in `side`.

use std::cell::Cell;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::matrix::{Matrix, Outcome};
use crate::peer::Peer;
use crate::{idl, packages, place};

mod capture;
mod certificates;
mod jacorb;
mod packets;
mod pairing;
mod pairings;
mod side;
mod totals;

pub(crate) use jacorb::build as build_jacorb;
use pairing::{Pairing, Suite};
use side::Side;
use totals::Totals;

/// Engines besides the compiled one.
const OTHER_ENGINES: [&str; 2] = ["interpretive", "adaptive"];

/// What is to be run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted<'w> {
    /// Only cases that begin so.
    pub(crate) only: &'w str,
    /// Only pairings of this suite, with our compiled engine.
    pub(crate) suite: &'w str,
    /// Only pairings with this peer in them.
    pub(crate) peer: Option<Peer>,
    /// A peer that is not to be had is told, but is no failure.
    pub(crate) allow_absent: bool,
    /// All that goes in plain is captured, and tshark is to agree with it.
    pub(crate) tshark: bool,
    /// Of the pairings of a client with a server in a suite only the first and the last, and our compiled engine alone.
    pub(crate) chosen: bool,
    /// How many cases a whole run has had is written to the page that says it, instead of compared with it.
    pub(crate) record: bool,
}

impl<'w> Wanted<'w> {
    /// Reads `[--only PREFIX] [--suite NAME] [--peer omniorb|jacorb] [--allow-absent] [--tshark] [--record] [--chosen]`.
    pub(crate) fn parse(words: &[&'w str]) -> Result<Self> {
        let mut wanted = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().copied().with_context(|| format!("{word} what?"));
            match *word {
                "--only" => wanted.only = value()?,
                "--suite" => wanted.suite = value()?,
                "--peer" => wanted.peer = Some(value()?.parse()?),
                "--allow-absent" => wanted.allow_absent = true,
                "--tshark" => wanted.tshark = true,
                "--record" => wanted.record = true,
                "--chosen" => wanted.chosen = true,
                _ => bail!("not an option: {word}"),
            }
        }
        Ok(wanted)
    }

    fn compares_compilers(self) -> bool {
        self.suite.is_empty()
    }
}

/// Runs everything that is wanted.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let wanted = Wanted::parse(words)?;
    let bench = Bench { wanted, absent: absent(wanted), totals: Cell::default() };
    let mut is_good = bench.absent.is_empty() || wanted.allow_absent;
    build_ours("compiled")?;
    if wanted.tshark {
        // From then on there is no network but this machine's own: nothing can be installed any more.
        packages::require(packages::CAPTURING)?;
        packages::require(packages::CERTIFICATES)?;
        if wanted.compares_compilers() {
            packages::require(packages::IDL)?;
        }
        if let Some(is_good) = capture::isolated(words)? {
            anyhow::ensure!(is_good, "interoperability is broken: see above");
            return Ok(());
        }
    }
    is_good &= bench.run_all(pairings::types());
    is_good &= bench.run_all(pairings::bridged());
    if wanted.only.is_empty() {
        is_good &= bench.run_all(pairings::features());
        is_good &= bench.run_all(pairings::callbacks());
        is_good &= bench.run_all(pairings::values());
        is_good &= bench.run_all(pairings::anything());
        is_good &= bench.run_all(pairings::texts());
        is_good &= bench.run_all(pairings::names());
        is_good &= bench.run_secure()?;
    }
    let is_whole = wanted.only.is_empty() && wanted.suite.is_empty() && !wanted.chosen;
    for engine in OTHER_ENGINES.into_iter().filter(|_| is_whole) {
        println!("\n{engine}:");
        build_ours(engine)?;
        for suite in [Suite::Types, Suite::Values, Suite::Anything { euro: false }] {
            is_good &= bench.run_all(pairings::newest(suite));
        }
    }
    let idl = if wanted.compares_compilers() { idl::run(false) } else { Ok(()) };
    let totals = bench.totals.get();
    println!("\nin all: {totals}");
    if !is_good {
        bail!("interoperability is broken: see above");
    }
    idl?;
    if is_whole && wanted.peer.is_none() && bench.absent.is_empty() {
        totals.compare_with_page(wanted.record)?;
    }
    Ok(())
}

/// Runs our programs of this machine against those of one with the other order of octets, which have been built.
pub(crate) fn between_orders() -> Result<bool> {
    build_ours("compiled")?;
    let bench = Bench { wanted: Wanted::default(), absent: Vec::new(), totals: Cell::default() };
    // Each suite has cases of its own, which all pairings that it is run in are to have run.
    let failed =
        pairings::between_orders().map(|pairings| bench.run_all(pairings)).into_iter().filter(|good| !good).count();
    Ok(failed == 0)
}

/// The peers that are not to be had, and why.
fn absent(wanted: Wanted<'_>) -> Vec<(Peer, String)> {
    let mut absent = Vec::new();
    for peer in Peer::ALL.into_iter().filter(|peer| wanted.peer.is_none_or(|only| only == *peer)) {
        let built = match peer {
            Peer::OmniOrb => packages::require(packages::OMNIORB).and_then(|()| build_omniorb()),
            Peer::JacOrb => packages::require(packages::JACORB).and_then(|()| jacorb::build()),
        };
        if let Err(error) = built {
            println!("absent: {peer}: {error:#}");
            absent.push((peer, format!("{error:#}")));
        }
    }
    absent
}

/// Builds our programs with code for this marshaling engine.
fn build_ours(engine: &str) -> Result<()> {
    let mut build = Command::new(place::cargo_program());
    build.args(["build", "--quiet", "--package", "spandrel-interop"]).env("SPANDREL_INTEROP_MARSHAL", engine);
    place::run(build.current_dir(place::root())).with_context(|| format!("our programs do not build for {engine}"))
}

/// Builds the C++ programs, or finds them up to date.
pub(crate) fn build_omniorb() -> Result<()> {
    let mut out = std::ffi::OsString::from("OUT=");
    out.push(place::omniorb());
    let mut make = Command::new("make");
    make.args(["--silent", "--jobs=2", "--directory"]).arg(place::root().join("peers/omniorb")).arg(out);
    place::run(&mut make).context("the omniORB peers do not build")
}

/// Where pairings are run.
struct Bench<'w> {
    wanted: Wanted<'w>,
    absent: Vec<(Peer, String)>,
    totals: Cell<Totals>,
}

impl Bench<'_> {
    /// Runs them, prints the matrix, and says whether all went well. What cannot be run for want of a peer has a line all the same.
    fn run_all(&self, pairings: Vec<Pairing>) -> bool {
        let mut matrix = Matrix::default();
        let mut wanted: Vec<_> = pairings.into_iter().filter(|pairing| self.wants(*pairing)).collect();
        if self.wanted.chosen {
            wanted = pairings::first_and_last(&wanted);
        }
        if wanted.is_empty() {
            return true; // the peer that was asked for has no part in these
        }
        let is_plain = !wanted.iter().any(|pairing| pairing.suite.is_secure());
        let capture = (self.wanted.tshark && is_plain).then(capture::Capture::start);
        for pairing in wanted {
            if let Some((peer, why)) = self.absent.iter().find(|(peer, _)| pairing.involves(*peer)) {
                matrix.add_absent(&pairing.title(), &format!("{peer} is absent: {why}"));
                continue;
            }
            let started = Instant::now();
            matrix.add(&pairing.title(), pairing.run(self.wanted.only));
            println!("{}  {:.1} s", pairing.title(), started.elapsed().as_secs_f64());
        }
        println!("\n{matrix}");
        let Totals { cases, pairings } = self.totals.get();
        self.totals.set(Totals { cases: cases + matrix.cases(), pairings: pairings + matrix.pairings() });
        matrix.is_good() & capture.is_none_or(capture::agrees)
    }

    /// The same for what is over TLS, for which there are certificates first.
    fn run_secure(&self) -> Result<bool> {
        let (types, callbacks) = pairings::secure();
        if types.iter().any(|pairing| self.wants(*pairing)) {
            let there = |peer: &Peer| !self.absent.iter().any(|(absent, _)| absent == peer);
            certificates::make(&Peer::ALL.into_iter().filter(there).collect::<Vec<_>>())?;
        }
        Ok(self.run_all(types) & self.run_all(callbacks))
    }

    fn wants(&self, pairing: Pairing) -> bool {
        let suite = self.wanted.suite;
        self.wanted.peer.is_none_or(|peer| pairing.involves(peer))
            && (suite.is_empty() || suite == pairing.suite.name())
    }
}
