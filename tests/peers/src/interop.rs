//! `cargo xtask interop`: our ORB against omniORB and JacORB.
//!
//! Runs every client against every server of the other side in each GIOP version, ours in both byte orders,
//! and prints one matrix per suite. Then it runs those of GIOP 1.2 with our programs made for each of the
//! other marshaling engines. The cases are defined by the clients; this module only counts their lines. The
//! pairings are in `pairings`, the command of each program in `side`.

use std::cell::Cell;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use xtask::workspace::{self, build_as_for_tests};

use crate::builds;
use crate::idl;
use crate::matrix::{Matrix, Outcome};
use crate::packages;
use crate::peer::Peer;

mod capture;
mod certificates;
pub(crate) mod jacorb;
mod packets;
mod pairing;
mod pairings;
mod side;
mod totals;

use capture::Agreement;
pub(crate) use jacorb::build as build_jacorb;
use pairing::{Pairing, Suite};
use side::Side;
use totals::Totals;

/// Engines besides the compiled one.
const OTHER_ENGINES: [&str; 2] = ["interpretive", "adaptive"];

/// Our programs through which calls go in JSON.
pub(crate) const TOOLS: [&str; 3] = ["call", "proxy", "console"];

/// How often the pairings of a suite run at most, until each of their packets is captured.
const CAPTURES: u32 = 3;

/// The pairings and cases to run.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Selection {
    /// Only cases with this prefix
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    only: String,
    /// Only pairings of this suite, with our compiled engine
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    suite: String,
    /// Only pairings with this peer in them
    #[arg(long)]
    peer: Option<Peer>,
    /// Report an absent peer without a failure
    #[arg(long)]
    allow_absent: bool,
    /// Capture all plain GIOP traffic: tshark must dissect as many messages and report no fault
    #[arg(long)]
    tshark: bool,
    /// Run only the oldest and the newest version of each client and server in a suite, with our compiled engine alone
    #[arg(long = "chosen")]
    representative: bool,
    /// Write the number of cases of a whole run to docs/interoperability.md, instead of comparing it
    #[arg(long)]
    record: bool,
}

impl Selection {
    fn compares_compilers(&self) -> bool {
        self.suite.is_empty()
    }
}

/// Runs the selected suites.
pub(crate) fn run(selection: &Selection) -> Result<()> {
    let runner = PairingRunner { selection: selection.clone(), absent: absent(selection), totals: Cell::default() };
    let mut is_good = runner.absent.is_empty() || selection.allow_absent;
    build_ours("compiled")?;
    build_tools()?;
    if selection.tshark {
        // From here on the network is isolated: nothing can be installed any more.
        packages::require(packages::CAPTURING)?;
        packages::require(packages::CERTIFICATES)?;
        if selection.compares_compilers() {
            packages::require(packages::IDL)?;
        }
        if let Some(is_good) = capture::isolated()? {
            anyhow::ensure!(is_good, "interoperability failed: see above");
            return Ok(());
        }
    }
    is_good &= runner.run_all(pairings::types());
    is_good &= runner.run_all(pairings::bridged());
    if selection.only.is_empty() {
        is_good &= runner.run_all(pairings::features());
        is_good &= runner.run_all(pairings::callbacks());
        is_good &= runner.run_all(pairings::values());
        is_good &= runner.run_all(pairings::anything());
        is_good &= runner.run_all(pairings::texts());
        is_good &= runner.run_all(pairings::names());
        for tool in TOOLS {
            is_good &= runner.run_all(pairings::json(tool));
        }
        is_good &= runner.run_secure()?;
    }
    let is_whole = selection.only.is_empty() && selection.suite.is_empty() && !selection.representative;
    for engine in OTHER_ENGINES.into_iter().filter(|_| is_whole) {
        println!("\n{engine}:");
        build_ours(engine)?;
        for suite in [Suite::Types, Suite::Values, Suite::Anything { euro: false }] {
            is_good &= runner.run_all(pairings::newest(suite));
        }
    }
    let idl = if selection.compares_compilers() { idl::run(false) } else { Ok(()) };
    let totals = runner.totals.get();
    println!("\ntotal: {totals}");
    if !is_good {
        bail!("interoperability failed: see above");
    }
    idl?;
    if is_whole && selection.peer.is_none() && runner.absent.is_empty() {
        totals.compare_with_page(selection.record)?;
    }
    Ok(())
}

/// Runs our programs of this machine, which have been built, against those of the big-endian machine.
pub(crate) fn between_orders() -> Result<bool> {
    build_ours("compiled")?;
    let runner = PairingRunner { selection: Selection::default(), absent: Vec::new(), totals: Cell::default() };
    // Each suite has cases of its own, and all pairings of a suite must run all of its cases.
    let failed =
        pairings::between_orders().map(|pairings| runner.run_all(pairings)).into_iter().filter(|good| !good).count();
    Ok(failed == 0)
}

/// The absent peers, each with the reason.
fn absent(selection: &Selection) -> Vec<(Peer, String)> {
    let mut absent = Vec::new();
    for peer in Peer::ALL.into_iter().filter(|peer| selection.peer.is_none_or(|only| only == *peer)) {
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
pub(crate) fn build_ours(engine: &str) -> Result<()> {
    let mut command = build_as_for_tests(&["interop-*"]);
    // Without the variable they are built for the compiled engine, as for the tests.
    match engine {
        "compiled" => command.env_remove("SPANDREL_INTEROP_MARSHAL"),
        _ => command.env("SPANDREL_INTEROP_MARSHAL", engine),
    };
    workspace::run(&mut command).with_context(|| format!("our programs do not build for {engine}"))
}

/// Builds the programs through which calls go in JSON.
pub(crate) fn build_tools() -> Result<()> {
    workspace::run(&mut build_as_for_tests(&["spandrel", "spandrel-up", "spandrel-proxy"]))
}

/// Builds the C++ programs, unless they are up to date.
pub(crate) fn build_omniorb() -> Result<()> {
    let mut out = std::ffi::OsString::from("OUT=");
    out.push(builds::omniorb());
    let mut make = Command::new("make");
    make.args(["--silent", "--jobs=2", "--directory"]).arg(workspace::root().join("peers/omniorb")).arg(out);
    workspace::run(&mut make).context("the omniORB peers do not build")
}

/// The state of a run of pairings.
struct PairingRunner {
    selection: Selection,
    absent: Vec<(Peer, String)>,
    totals: Cell<Totals>,
}

impl PairingRunner {
    /// Runs them, prints the matrix, and returns whether it is good. A pairing with an absent peer has a
    /// line, too.
    fn run_all(&self, pairings: Vec<Pairing>) -> bool {
        let mut selection: Vec<_> = pairings.into_iter().filter(|pairing| self.selects(*pairing)).collect();
        if self.selection.representative {
            selection = pairings::first_and_last(&selection);
        }
        if selection.is_empty() {
            return true; // the selected peer has no part in these
        }
        let is_plain_giop = selection.iter().all(|pairing| pairing.suite.is_plain_giop());
        let (matrix, agrees) = if self.selection.tshark && is_plain_giop {
            self.run_captured(&selection)
        } else {
            (self.run_pairings(&selection), true)
        };
        let Totals { cases, pairings } = self.totals.get();
        self.totals.set(Totals { cases: cases + matrix.cases(), pairings: pairings + matrix.pairings() });
        matrix.is_good() & agrees
    }

    /// Runs the pairings, and returns their matrix and whether tshark agrees with the traffic. When the
    /// capture is incomplete, they run again.
    fn run_captured(&self, selection: &[Pairing]) -> (Matrix, bool) {
        let mut attempts = 1..=CAPTURES;
        loop {
            let capture = capture::Capture::start();
            let matrix = self.run_pairings(selection);
            let agreement = capture::agreement(capture);
            attempts.next();
            if agreement != Agreement::Incomplete || !matrix.is_good() || attempts.is_empty() {
                return (matrix, agreement == Agreement::Yes);
            }
            println!("these pairings run again");
        }
    }

    fn run_pairings(&self, selection: &[Pairing]) -> Matrix {
        let mut matrix = Matrix::default();
        for pairing in selection {
            if let Some((peer, reason)) = self.absent.iter().find(|(peer, _)| pairing.involves(*peer)) {
                matrix.add_absent(&pairing.title(), &format!("{peer} is absent: {reason}"));
                continue;
            }
            let started = Instant::now();
            matrix.add(&pairing.title(), pairing.run(&self.selection.only));
            println!("{}  {:.1} s", pairing.title(), started.elapsed().as_secs_f64());
        }
        println!("\n{matrix}");
        matrix
    }

    /// Makes certificates, and then runs the pairings over TLS.
    fn run_secure(&self) -> Result<bool> {
        let (types, callbacks) = pairings::secure();
        if types.iter().any(|pairing| self.selects(*pairing)) {
            let there = |peer: &Peer| !self.absent.iter().any(|(absent, _)| absent == peer);
            certificates::make(&Peer::ALL.into_iter().filter(there).collect::<Vec<_>>())?;
        }
        Ok(self.run_all(types) & self.run_all(callbacks))
    }

    fn selects(&self, pairing: Pairing) -> bool {
        let suite = &self.selection.suite;
        self.selection.peer.is_none_or(|peer| pairing.involves(peer))
            && (suite.is_empty() || suite == pairing.suite.name())
    }
}
