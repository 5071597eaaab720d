//! `cargo xtask interop`: our ORB against omniORB.
//!
//! Runs every client against every server of the other side in each GIOP version, ours in both byte orders, and prints
//! one matrix; then those of GIOP 1.2 with our programs made for each of the other marshaling engines. What the cases are belongs to the clients; this only counts their lines.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bounded::Bounded;
use crate::known::{self, Between};
use crate::matrix::{Matrix, Outcome};
use crate::{idl, packages, place};

const VERSIONS: [&str; 3] = ["1.0", "1.1", "1.2"];
const ORDERS: [&str; 2] = ["little", "big"];
/// Engines besides the compiled one.
const OTHER_ENGINES: [&str; 2] = ["interpretive", "adaptive"];
const START_LIMIT: Duration = Duration::from_secs(20);
const RUN_LIMIT: Duration = Duration::from_secs(180);

/// Runs everything; with a prefix only the cases that begin with it.
pub(crate) fn run(only: &str) -> Result<()> {
    packages::require(packages::OMNIORB)?;
    build_omniorb()?;
    build_ours("compiled")?;
    let mut is_good = run_all(pairings(), only);
    if only.is_empty() {
        is_good &= run_all(value_pairings(), only);
        is_good &= run_all(anything_pairings(), only);
    }
    for engine in OTHER_ENGINES {
        println!("\n{engine}:");
        build_ours(engine)?;
        is_good &= run_all(newest(Suite::Types), only);
        if only.is_empty() {
            is_good &= run_all(value_pairings(), only);
            is_good &= run_all(newest(Suite::Anything { euro: false }), only);
        }
    }
    let idl = idl::run(false);
    if !is_good {
        bail!("interoperability is broken: see above");
    }
    idl
}

/// Builds our programs with code for this marshaling engine.
fn build_ours(engine: &str) -> Result<()> {
    let mut build = Command::new(place::cargo_program());
    build.args(["build", "--quiet", "--package", "spandrel-interop"]).env("SPANDREL_INTEROP_MARSHAL", engine);
    place::run(build.current_dir(place::root())).with_context(|| format!("our programs do not build for {engine}"))
}

/// Runs them, prints the matrix, and says whether all went well.
fn run_all(pairings: Vec<Pairing>, only: &str) -> bool {
    let mut matrix = Matrix::default();
    for pairing in pairings {
        let started = Instant::now();
        matrix.add(&pairing.title(), pairing.run(only));
        println!("{}  {:.1} s", pairing.title(), started.elapsed().as_secs_f64());
    }
    println!("\n{matrix}");
    matrix.is_good()
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
    Ours { version: &'static str, order: &'static str, native: Native },
    OmniOrb { version: &'static str, habit: Habit },
}

/// The code set that our references name as native for narrow texts.
#[derive(Clone, Copy, Debug)]
enum Native {
    Latin1,
    Utf8,
}

/// In what way omniORB differs from the usual.
#[derive(Clone, Copy, Debug)]
enum Habit {
    Usual,
    /// All calls share one connection.
    Shares,
    /// Targets are given as a profile.
    Profiles,
    /// Targets are given as a whole reference.
    References,
    /// Narrow texts are in UTF-8 in the program.
    Utf8,
}

impl Habit {
    const OTHERS: [Self; 3] = [Self::Shares, Self::Profiles, Self::References];

    fn label(self) -> &'static str {
        match self {
            Self::Usual => "",
            Self::Shares => ", one connection",
            Self::Profiles => ", by profile",
            Self::References => ", by reference",
            Self::Utf8 => " UTF-8",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Usual => &[],
            Self::Shares => &["-ORBoneCallPerConnection", "0", "-ORBmaxGIOPConnectionPerServer", "1"],
            Self::Profiles => &["-ORBgiopTargetAddressMode", "1"],
            Self::References => &["-ORBgiopTargetAddressMode", "2"],
            Self::Utf8 => &["-ORBnativeCharCodeSet", "UTF-8"],
        }
    }
}

impl Side {
    fn ours(version: &'static str, order: &'static str) -> Self {
        Self::Ours { version, order, native: Native::Latin1 }
    }

    fn title(self) -> String {
        match self {
            Self::Ours { version, order, native: Native::Latin1 } => format!("ours {version} {order}"),
            Self::Ours { version, order, native: Native::Utf8 } => format!("ours {version} {order} UTF-8"),
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
            Self::Ours { version, order, native } => {
                command.args(["-ORBGiopVersion", version, "-ORBByteOrder", order]);
                if let Native::Utf8 = native {
                    command.args(["-ORBNativeCharCodeSet", "UTF-8"]);
                }
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
    /// `idl/anything.idl`, with or without a code set for narrow texts that has a euro sign.
    Anything { euro: bool },
}

impl Suite {
    fn server(self, side: Side) -> Command {
        match self {
            Self::Types => side.command("server"),
            Self::Values | Self::Anything { .. } => {
                let mut command = side.command(self.program());
                command.arg("--serve");
                command
            }
        }
    }

    /// The program that is client and server.
    fn program(self) -> &'static str {
        match self {
            Self::Types => "client",
            Self::Values => "valuetypes",
            Self::Anything { .. } => "anything",
        }
    }

    fn client(self, side: Side, reference: &str) -> Command {
        let mut command = side.command(self.program());
        if !matches!(self, Self::Types) {
            command.arg("--call");
        }
        command.arg(reference);
        if let Self::Anything { euro: false } = self {
            command.arg("--no-euro");
        }
        command
    }
}

/// Values came with GIOP 1.2.
fn value_pairings() -> Vec<Pairing> {
    newest(Suite::Values)
}

/// Both directions in GIOP 1.2: what versions differ in is the same code for all engines.
fn newest(suite: Suite) -> Vec<Pairing> {
    let omni = Side::OmniOrb { version: "1.2", habit: Habit::Usual };
    let both = |order| {
        let ours = Side::ours("1.2", order);
        [(ours, omni), (omni, ours)].map(|(client, server)| Pairing { client, server, suite })
    };
    ORDERS.into_iter().flat_map(both).collect()
}

/// Anys, type codes, texts and calls that are not waited for. Without an agreement on another code set texts are in ISO 8859-1:
/// in GIOP 1.0, and where both or the server prefer it (CORBA 3.3 Part 2, 7.10.2.6).
fn anything_pairings() -> Vec<Pairing> {
    let mut all = Vec::new();
    for version in VERSIONS {
        let omni = Side::OmniOrb { version, habit: Habit::Usual };
        for order in ORDERS {
            let ours = Side::ours(version, order);
            let suite = Suite::Anything { euro: false };
            all.extend([(ours, omni), (omni, ours)].map(|(client, server)| Pairing { client, server, suite }));
            let suite = Suite::Anything { euro: version != "1.0" };
            all.push(Pairing { client: ours, server: Side::ours(version, "little"), suite });
        }
    }
    let [omni, omni8] = [Habit::Usual, Habit::Utf8].map(|habit| Side::OmniOrb { version: "1.2", habit });
    let ours = Side::ours("1.2", "little");
    let ours8 = Side::Ours { version: "1.2", order: "little", native: Native::Utf8 };
    let others = [
        (omni8, ours8, true),
        (ours8, omni8, true),
        (omni8, ours, false),
        (ours, omni8, true),
        (omni, ours8, false),
        (ours8, omni, false),
    ];
    all.extend(others.map(|(client, server, euro)| Pairing { client, server, suite: Suite::Anything { euro } }));
    all
}

/// All that are worth running: both directions, and ours against itself.
fn pairings() -> Vec<Pairing> {
    let suite = Suite::Types;
    let mut all = Vec::new();
    for version in VERSIONS {
        let omni = Side::OmniOrb { version, habit: Habit::Usual };
        for order in ORDERS {
            let ours = Side::ours(version, order);
            all.push(Pairing { client: ours, server: omni, suite });
            all.push(Pairing { client: omni, server: ours, suite });
            all.push(Pairing { client: ours, server: Side::ours(version, "little"), suite });
        }
    }
    let server = Side::ours("1.2", "little");
    all.extend(Habit::OTHERS.map(|habit| Pairing { client: Side::OmniOrb { version: "1.2", habit }, server, suite }));
    all
}

impl Pairing {
    fn title(self) -> String {
        let suite = match self.suite {
            Suite::Types => "",
            Suite::Values => ", values",
            Suite::Anything { .. } => ", anything",
        };
        format!("{} -> {}{suite}", self.client.title(), self.server.title())
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
                outcomes.push(Outcome { excuse: self.excuse(name), ..Outcome::passed(name) });
            } else if let Some(rest) = line.strip_prefix("FAIL ") {
                let (name, what) = rest.split_once(": ").unwrap_or((rest, "no reason given"));
                outcomes.push(Outcome { excuse: self.excuse(name), ..Outcome::failed(name, what.to_owned()) });
            }
        }
        Ok(outcomes)
    }

    fn excuse(self, case: &str) -> Option<&'static str> {
        let omniorb = [self.client, self.server].iter().any(|side| matches!(side, Side::OmniOrb { .. }));
        let (Side::Ours { version, .. } | Side::OmniOrb { version, .. }) = self.client;
        known::reason(case, Between { version, omniorb })
    }
}
