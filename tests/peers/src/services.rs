//! The naming service, the interface repository and the trading service against Java's ORBs, the first also started by the
//! activator; the end of the services at many instants; and the naming service over etcd.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use xtask::profile::build_as_for_tests;
use xtask::workspace;

use crate::bounded::Bounded;
use crate::interop::jacorb;
use crate::packages;

/// The time that a program may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The time that the client may take.
const RUN_TIMEOUT: Duration = Duration::from_secs(120);

/// A Java ORB, by the profile in `peers/naming/pom.xml`.
struct JavaOrb {
    profile: &'static str,
    package: &'static str,
}

const JACORB: JavaOrb = JavaOrb { profile: "jacorb", package: "org.jacorb.orb" };
const GLASSFISH: JavaOrb = JavaOrb { profile: "glassfish", package: "com.sun.corba.ee.impl.orb" };

/// Runs the clients of Java's ORBs against our service, our stubs against JacORB's service, and then ends our
/// service this many times while clients bind names, the property and trading services while they change properties and
/// offers, the event service while they create channels, a trader of a ring, and the activator while servers start.
pub(crate) fn run(kills: u32) -> Result<()> {
    packages::require(packages::JACORB)?;
    let programs = ["spandrel", "spandrel-naming", "spandrel-activator", "spandrel-repository", "spandrel-trading"];
    workspace::run(&mut build_as_for_tests(&programs))?;
    for orb in [&JACORB, &GLASSFISH] {
        orb.build()?;
        call_ours(orb)?;
    }
    call_activated()?;
    call_repository()?;
    call_trader()?;
    call_jacorb()?;
    let survive = "acknowledged_changes_survive_kill_9_under_load";
    for (service, package, program, test) in [
        ("naming", "spandrel-naming", "naming", survive),
        ("property", "spandrel-property", "property", survive),
        ("trading", "spandrel-trading", "trading", survive),
        ("event", "spandrel-event", "event", "acknowledged_channels_and_connections_survive_kill_9_under_load"),
    ] {
        println!("-- {kills} times kill -9 of the {service} service under load");
        run_kills(kills, package, program, test)?;
    }
    println!("-- {kills} times kill -9 of a trader in a ring of five");
    run_kills(kills, "spandrel-trading", "trading", "a_ring_of_five_processes_answers_without_a_killed_one")?;
    println!("-- {kills} times kill -9 of the activator while servers start");
    let test = "no_server_is_started_twice_if_the_activator_is_killed_at_any_instant";
    run_kills(kills, "spandrel-activator", "activator", test)
}

/// Runs a test that kills processes this many times.
fn run_kills(kills: u32, package: &str, program: &str, test: &str) -> Result<()> {
    let mut command = Command::new(workspace::cargo_program());
    command.args(["test", "--release", "--package", package, "--test", program, test, "--", "--nocapture"]);
    workspace::run(command.env("SPANDREL_KILLS", kills.to_string()).current_dir(workspace::root()))
}

/// Checks the workspace `extra`: the naming service over a cluster of etcd, whose servers and members are ended.
pub(crate) fn over_etcd() -> Result<()> {
    packages::require(packages::ETCD)?;
    let manifest = workspace::root().join("extra/Cargo.toml");
    let target = workspace::target().join("extra");
    for words in [&["clippy", "--all-targets"][..], &["test"]] {
        let mut command = Command::new(workspace::cargo_program());
        command.args(words).arg("--locked").arg("--manifest-path").arg(&manifest).arg("--target-dir").arg(&target);
        if words[0] == "clippy" {
            command.args(["--", "-D", "warnings"]);
        }
        workspace::run(&mut command)?;
    }
    Ok(())
}

impl JavaOrb {
    fn folder(&self) -> PathBuf {
        workspace::target().join("services").join(self.profile)
    }

    /// Builds the client for this ORB.
    fn build(&self) -> Result<()> {
        let mut maven = Command::new("mvn");
        maven.args(["--quiet", "--batch-mode", "--file"]).arg(workspace::root().join("peers/naming/pom.xml"));
        maven.arg(format!("-P{}", self.profile)).arg(format!("-Dout={}", self.folder().display()));
        workspace::run(maven.arg("package")).context("the client of naming services does not build")
    }

    /// A Java VM with this ORB, without the class to start.
    fn java(&self) -> Command {
        let folder = self.folder();
        let mut command = Command::new("java");
        command.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-classpath"]);
        command.arg(format!("{}:{}", folder.join("classes").display(), folder.join("lib/*").display()));
        command.arg(format!("-Dorg.omg.CORBA.ORBClass={}.{}", self.package, self.class()));
        command.arg(format!("-Dorg.omg.CORBA.ORBSingletonClass={}.ORBSingleton", self.package));
        command.args(["-Djacorb.orb.print_version=off", "-DOAIAddr=127.0.0.1"]);
        command
    }

    fn class(&self) -> &'static str {
        if self.profile == JACORB.profile { "ORB" } else { "ORBImpl" }
    }
}

/// Runs the client of an ORB against our service.
fn call_ours(orb: &JavaOrb) -> Result<()> {
    let data = workspace::target().join("services/data");
    if data.exists() {
        fs::remove_dir_all(&data).with_context(|| data.display().to_string())?;
    }
    let mut command = Command::new(workspace::target().join("debug/spandrel-naming"));
    command.arg("--data").arg(&data).args(["--listen", "iiop://127.0.0.1:0"]);
    let service = Bounded::start("spandrel-naming", &mut command)?;
    let ready = service.line(Instant::now() + START_TIMEOUT)?.unwrap_or_default();
    let url = ready.strip_prefix("ready: NameService ").with_context(|| format!("not ready: {}", service.stderr()))?;
    let port = url.trim_end_matches("/NameService").rsplit(':').next().context("no port")?;

    let mut client = orb.java();
    if orb.profile == JACORB.profile {
        client.arg(format!("-DORBInitRef.NameService={url}"));
    } else {
        client.args(["-Dbootstrap=true", "-Dorg.omg.CORBA.ORBInitialHost=127.0.0.1"]);
        client.arg(format!("-Dorg.omg.CORBA.ORBInitialPort={port}"));
    }
    println!("-- the client of {} against our naming service", orb.profile);
    run_client(client.arg("NamesClient"), 25)
}

/// Runs JacORB's client against our naming service, which the activator starts.
fn call_activated() -> Result<()> {
    let folder = workspace::target().join("services/activated");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let programs = workspace::target().join("debug");
    let commands = format!(
        "[commands.naming]\nprogram = '{}'\norb_arguments = false\narguments = ['--data', 'names', '--listen', \
         'iiop://127.0.0.1:0', '--orb', '-ORBUseImR 1', '--orb', '-ORBServerId {{server}}', '--orb', \
         '-ORBInitRef ImplRepoService={{repository}}']\n",
        programs.join("spandrel-naming").display()
    );
    fs::write(folder.join("commands.toml"), commands).context("the commands of the activator")?;
    let mut command = Command::new(programs.join("spandrel-activator"));
    command.arg("--data").arg(&folder).args(["--listen", "iiop://127.0.0.1:0"]);
    let service = Bounded::start("spandrel-activator", &mut command)?;
    let ready = service.line(Instant::now() + START_TIMEOUT)?.unwrap_or_default();
    let url =
        ready.strip_prefix("ready: ImplRepoService ").with_context(|| format!("not ready: {}", service.stderr()))?;
    let address = url.trim_start_matches("corbaloc::").trim_end_matches("/ImplRepoService");
    let administer = |words: &[&str]| {
        let mut command = Command::new(programs.join("spandrel-activator"));
        workspace::run(command.args(["--server", address]).args(words))
    };
    administer(&["add", "names", "--command", "naming"])?;
    println!("-- the client of jacorb against our naming service, started by the activator");
    let mut client = JACORB.java();
    client.arg(format!("-DORBInitRef.NameService={url}/names/NameService"));
    let outcome = run_client(client.arg("NamesClient"), 25);
    println!("-- a client of jacorb falls back to the activator when its server is killed");
    let mut client = JACORB.java();
    client.arg(format!("-DORBInitRef.NameService={url}/names/NameService"));
    let pid = || {
        let mut command = Command::new(programs.join("spandrel-activator"));
        let output = command.args(["--server", address, "show", "names"]).output().context("spandrel-activator")?;
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        let pid = shown.lines().find_map(|line| line.trim().strip_prefix("pid: ")?.trim().parse().ok());
        pid.with_context(|| format!("no process: {shown}{}", String::from_utf8_lossy(&output.stderr)))
    };
    let outcome = outcome.and_then(|()| call_after_kills(client.arg("ActivatedClient"), 2, pid));
    administer(&["stop", "names"])?;
    outcome
}

/// Runs a client, kills its server this many times, and tells the client so each time: it calls again by the reference that
/// it has. `pid`: the process id of the running server.
fn call_after_kills(client: &mut Command, kills: usize, pid: impl Fn() -> Result<u32>) -> Result<()> {
    let mut client = Bounded::start("the client", client)?;
    let deadline = Instant::now() + RUN_TIMEOUT;
    let expect = |client: &Bounded, case: &str| {
        let line = client.line(deadline)?.unwrap_or_default();
        ensure!(line == format!("ok {case}"), "{line}\n{}", client.stderr());
        Ok(())
    };
    expect(&client, "bind")?;
    let mut killed = Vec::new();
    for nth in 1..=kills {
        let pid = pid()?;
        ensure!(!killed.contains(&pid), "the server {pid} was killed, and is still registered");
        workspace::run(Command::new("kill").args(["-9", &pid.to_string()]))?;
        // The activator waits for it as its parent. Its connections are closed then.
        while PathBuf::from(format!("/proc/{pid}")).exists() {
            ensure!(Instant::now() < deadline, "the killed server {pid} does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        killed.push(pid);
        client.send("killed")?;
        expect(&client, &format!("resolve/{nth}"))?;
    }
    let status = client.finish(START_TIMEOUT)?;
    ensure!(status.success(), "{status}");
    println!("{kills} calls after {kills} kills");
    Ok(())
}

/// Runs JacORB's stubs of the interface repository against ours. (GlassFish's ORB has the `FullInterfaceDescription` of
/// CORBA 2.3, which has a member more.)
fn call_repository() -> Result<()> {
    let data = workspace::target().join("services/repository");
    if data.exists() {
        fs::remove_dir_all(&data).with_context(|| data.display().to_string())?;
    }
    let program = |name: &str| Command::new(workspace::target().join("debug").join(name));
    let mut command = program("spandrel-repository");
    command.arg("--data").arg(&data).args(["--listen", "iiop://127.0.0.1:0"]);
    let service = Bounded::start("spandrel-repository", &mut command)?;
    let ready = service.line(Instant::now() + START_TIMEOUT)?.unwrap_or_default();
    let url = ready.strip_prefix("ready: InterfaceRepository ");
    let url = url.with_context(|| format!("not ready: {}", service.stderr()))?;
    let mut idl = program("spandrel");
    idl.args(["idl", &format!("--to-repository={url}")]).arg(workspace::root().join("examples/bank/bank.idl"));
    workspace::run(&mut idl)?;
    let mut command = program("examples/bank-server");
    command.args(["-ORBListenEndpoints", "iiop://127.0.0.1:0", "-ORBInitRef", &format!("InterfaceRepository={url}")]);
    let server = Bounded::start("bank-server", &mut command)?;
    let account = server.line(Instant::now() + START_TIMEOUT)?.unwrap_or_default();
    ensure!(account.starts_with("IOR:"), "no reference: {account}\n{}", server.stderr());
    println!("-- the client of jacorb against our interface repository");
    let mut client = JACORB.java();
    client.arg(format!("-DORBInitRef.InterfaceRepository={url}"));
    run_client(client.args(["RepositoryClient", &account]), 9)
}

/// Runs JacORB's stubs of the trading service against ours, whose linked trader is in the client.
fn call_trader() -> Result<()> {
    jacorb::build()?;
    let data = workspace::target().join("services/trading");
    let mut command = Command::new(workspace::target().join("debug/spandrel-trading"));
    command.arg("--transient").arg("--data").arg(&data).args(["--listen", "iiop://127.0.0.1:0"]);
    let service = Bounded::start("spandrel-trading", &mut command)?;
    let ready = service.line(Instant::now() + START_TIMEOUT)?.unwrap_or_default();
    let url =
        ready.strip_prefix("ready: TradingService ").with_context(|| format!("not ready: {}", service.stderr()))?;
    println!("-- the client of jacorb against our trading service");
    run_client(jacorb::command().args(["trading", "--call", url]), 10)
}

/// Runs a client, and counts the cases that passed: so many at least.
fn run_client(client: &mut Command, cases: u32) -> Result<()> {
    let mut client = Bounded::start("the client", client)?;
    let deadline = Instant::now() + RUN_TIMEOUT;
    let mut passed = 0;
    while let Some(line) = client.line(deadline)? {
        if line.starts_with("ok ") {
            passed += 1;
        } else {
            println!("{line}");
        }
    }
    let errors = client.stderr();
    let status = client.finish(START_TIMEOUT)?;
    ensure!(status.success() && passed >= cases, "{passed} cases passed, {status}\n{errors}");
    println!("{passed} cases passed");
    Ok(())
}

/// Runs the tests of our stubs against JacORB's naming service.
fn call_jacorb() -> Result<()> {
    let reference = JACORB.folder().join("service.ior");
    if reference.exists() {
        fs::remove_file(&reference).with_context(|| reference.display().to_string())?;
    }
    let mut command = JACORB.java();
    command.arg(format!("-Djacorb.naming.ior_filename={}", reference.display()));
    let service = Bounded::start("JacORB's naming service", command.arg("org.jacorb.naming.NameServer"))?;
    let deadline = Instant::now() + START_TIMEOUT;
    let text = loop {
        match fs::read_to_string(&reference) {
            Ok(text) if text.starts_with("IOR:") => break text,
            _ if Instant::now() > deadline => bail!("JacORB's naming service does not start\n{}", service.stderr()),
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    println!("-- our stubs against JacORB's naming service");
    let mut command = Command::new(workspace::cargo_program());
    command.args(["test", "--package", "spandrel-interop", "--test", "interop", "cos_naming::each_service"]);
    workspace::run(command.env("SPANDREL_NAMING_SERVICE", text.trim()).current_dir(workspace::root()))
}
