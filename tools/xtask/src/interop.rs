//! `cargo xtask interop`: our ORB against omniORB.
//!
//! Runs every client against every server of the other side in each GIOP version, ours in both byte orders, and prints
//! one matrix. What the cases are belongs to the clients; this only counts their lines.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bounded::Bounded;
use crate::matrix::{Matrix, Outcome};
use crate::{idl, packages, place};

const VERSIONS: [&str; 3] = ["1.0", "1.1", "1.2"];
const ORDERS: [&str; 2] = ["little", "big"];
const START_LIMIT: Duration = Duration::from_secs(20);
const RUN_LIMIT: Duration = Duration::from_secs(180);

/// Cases in which omniORB 4.2 does not do what the standard says: they are run, and shown as such when they fail.
const OMNIORB_FAULTS: &[(&str, &str)] = &[(
    "primitives/longdouble",
    "omniORB sends the ten octets of an x87 register, not the IEEE 754 quadruple of CORBA 3.3 Part 2, 9.3.1.5",
)];

/// Runs everything; with a prefix only the cases that begin with it.
pub(crate) fn run(only: &str) -> Result<()> {
    packages::require(packages::OMNIORB)?;
    build_omniorb()?;
    place::cargo(&["build", "--quiet", "--package", "spandrel-interop"])?;
    let types = run_all(pairings(), only);
    let values = only.is_empty().then(|| run_all(value_pairings(), only));
    let is_good = [Some(types), values].iter().flatten().all(|matrix| {
        println!("\n{matrix}");
        matrix.is_good()
    });
    let idl = idl::run();
    if !is_good {
        bail!("interoperability is broken: see above");
    }
    idl
}

fn run_all(pairings: Vec<Pairing>, only: &str) -> Matrix {
    let mut matrix = Matrix::default();
    for pairing in pairings {
        let started = Instant::now();
        matrix.add(&pairing.title(), pairing.run(only));
        println!("{}  {:.1} s", pairing.title(), started.elapsed().as_secs_f64());
    }
    matrix
}

/// Builds the C++ programs, or finds them up to date.
pub(crate) fn build_omniorb() -> Result<()> {
    let mut out = std::ffi::OsString::from("OUT=");
    out.push(place::omniorb());
    let mut make = Command::new("make");
    make.args(["--silent", "--jobs=2", "--directory"]).arg(place::root().join("peers/omniorb")).arg(out);
    place::run(&mut make).context("the omniORB peers do not build")
}

/// Which ORB a program is made with, and how it is to speak.
#[derive(Clone, Copy, Debug)]
enum Side {
    Ours { version: &'static str, order: &'static str },
    OmniOrb { version: &'static str, habit: Habit },
}

/// In what way an omniORB client differs from the usual.
#[derive(Clone, Copy, Debug)]
enum Habit {
    Usual,
    /// All calls share one connection.
    Shares,
    /// Targets are given as a profile.
    Profiles,
    /// Targets are given as a whole reference.
    References,
}

impl Habit {
    const OTHERS: [Self; 3] = [Self::Shares, Self::Profiles, Self::References];

    fn label(self) -> &'static str {
        match self {
            Self::Usual => "",
            Self::Shares => ", one connection",
            Self::Profiles => ", by profile",
            Self::References => ", by reference",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Usual => &[],
            Self::Shares => &["-ORBoneCallPerConnection", "0", "-ORBmaxGIOPConnectionPerServer", "1"],
            Self::Profiles => &["-ORBgiopTargetAddressMode", "1"],
            Self::References => &["-ORBgiopTargetAddressMode", "2"],
        }
    }
}

impl Side {
    fn title(self) -> String {
        match self {
            Self::Ours { version, order } => format!("ours {version} {order}"),
            Self::OmniOrb { version, habit } => format!("omniORB {version}{}", habit.label()),
        }
    }

    fn program(self, role: &str) -> PathBuf {
        match self {
            Self::Ours { .. } => place::target().join("debug").join(format!("interop-{role}")),
            Self::OmniOrb { .. } => place::omniorb().join(role),
        }
    }

    fn command(self, role: &str) -> Command {
        let mut command = Command::new(self.program(role));
        match self {
            Self::Ours { version, order } => {
                command.args(["-ORBGiopVersion", version, "-ORBByteOrder", order]);
            }
            Self::OmniOrb { version, habit } => {
                command.args(["-ORBmaxGIOPVersion", version, "-ORBendPoint", "giop:tcp:127.0.0.1:0"]);
                command.args(habit.options());
            }
        }
        command
    }
}

#[derive(Clone, Copy, Debug)]
struct Pairing {
    client: Side,
    server: Side,
    suite: Suite,
}

/// What is called.
#[derive(Clone, Copy, Debug)]
enum Suite {
    /// `idl/interop.idl`
    Types,
    /// `idl/values.idl`
    Values,
}

impl Suite {
    fn server(self, side: Side) -> Command {
        match self {
            Self::Types => side.command("server"),
            Self::Values => {
                let mut command = side.command("valuetypes");
                command.arg("--serve");
                command
            }
        }
    }

    fn client(self, side: Side, reference: &str) -> Command {
        let mut command = side.command(match self {
            Self::Types => "client",
            Self::Values => "valuetypes",
        });
        if matches!(self, Self::Values) {
            command.arg("--call");
        }
        command.arg(reference);
        command
    }
}

/// Values came with GIOP 1.2.
fn value_pairings() -> Vec<Pairing> {
    let omni = Side::OmniOrb { version: "1.2", habit: Habit::Usual };
    let both = |order| {
        let ours = Side::Ours { version: "1.2", order };
        [(ours, omni), (omni, ours)].map(|(client, server)| Pairing { client, server, suite: Suite::Values })
    };
    ORDERS.into_iter().flat_map(both).collect()
}

/// All that are worth running: both directions, and ours against itself.
fn pairings() -> Vec<Pairing> {
    let suite = Suite::Types;
    let mut all = Vec::new();
    for version in VERSIONS {
        let omni = Side::OmniOrb { version, habit: Habit::Usual };
        for order in ORDERS {
            let ours = Side::Ours { version, order };
            all.push(Pairing { client: ours, server: omni, suite });
            all.push(Pairing { client: omni, server: ours, suite });
            all.push(Pairing { client: ours, server: Side::Ours { version, order: "little" }, suite });
        }
    }
    let server = Side::Ours { version: "1.2", order: "little" };
    all.extend(Habit::OTHERS.map(|habit| Pairing { client: Side::OmniOrb { version: "1.2", habit }, server, suite }));
    all
}

impl Pairing {
    fn title(self) -> String {
        let values = if matches!(self.suite, Suite::Values) { ", values" } else { "" };
        format!("{} -> {}{values}", self.client.title(), self.server.title())
    }

    fn run(self, only: &str) -> Vec<Outcome> {
        self.try_run(only).unwrap_or_else(|error| vec![Outcome::failed("run", format!("{error:#}"))])
    }

    fn try_run(self, only: &str) -> Result<Vec<Outcome>> {
        let server = Bounded::start("the server", &mut self.suite.server(self.server))?;
        let Some(reference) = server.line(Instant::now() + START_LIMIT)? else {
            bail!("the server ended at once: {}", server.complaints());
        };
        let mut command = self.suite.client(self.client, &reference);
        if !only.is_empty() {
            command.args(["--only", only]);
        }
        let client = Bounded::start("the client", &mut command)?;
        let outcomes = self.listen(&client)?;
        let complaints = client.complaints();
        let status = client.finish(START_LIMIT)?;
        let failed = outcomes.iter().any(|outcome| outcome.failure.is_some() && outcome.excuse.is_none());
        if outcomes.is_empty() || (!status.success() && !failed && outcomes.iter().all(|o| o.failure.is_none())) {
            bail!("the client ended with {status} after {} cases: {complaints}", outcomes.len());
        }
        let status = server.finish(START_LIMIT).context("after the client was done")?;
        if !status.success() {
            bail!("the server ended with {status}");
        }
        Ok(outcomes)
    }

    /// Reads the client's lines until its output ends.
    fn listen(self, client: &Bounded) -> Result<Vec<Outcome>> {
        let deadline = Instant::now() + RUN_LIMIT;
        let mut outcomes = Vec::new();
        while let Some(line) = client.line(deadline)? {
            if let Some(name) = line.strip_prefix("ok ") {
                outcomes.push(Outcome::passed(name));
            } else if let Some(rest) = line.strip_prefix("FAIL ") {
                let (name, what) = rest.split_once(": ").unwrap_or((rest, "no reason given"));
                outcomes.push(Outcome { excuse: self.excuse(name), ..Outcome::failed(name, what.to_owned()) });
            }
        }
        Ok(outcomes)
    }

    fn excuse(self, case: &str) -> Option<&'static str> {
        let with_omniorb = [self.client, self.server].iter().any(|side| matches!(side, Side::OmniOrb { .. }));
        let found = OMNIORB_FAULTS.iter().find(|(name, _)| with_omniorb && case == *name);
        found.map(|(_, reason)| *reason)
    }
}
