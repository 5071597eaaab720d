//! The servers of the contenders, each in a process of its own.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use spandrel::{Endpoint, Orb};
use spandrel_error::output;
use spandrel_event::{EventOptions, EventService};
use spandrel_lab::peer_programs;
use spandrel_notification::{NotificationOptions, NotificationService};

use super::contender::Contender;
use super::target::{Form, Target};

/// The longest start of a server.
const START: Duration = Duration::from_secs(60);
/// The server of omniEvents, which Debian does not put into the search path of users.
const OMNI_EVENTS: &str = "/usr/sbin/omniEvents";
/// The class of JacORB's notification service, with the argument that makes it print its reference.
const JACORB_NOTIFICATION: [&str; 2] = ["org.jacorb.notification.ConsoleMain", "-printIOR"];

/// Serve the event or notification service until standard input ends; prints the reference of its factory.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    service: ServedService,
    /// The folder of the store; without one all is in memory
    data: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ServedService {
    Event,
    Notification,
}

impl ServerArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
        let wait = |factory: &dyn std::fmt::Display| -> anyhow::Result<()> {
            output::print(&format!("{factory}\n"))?;
            io::copy(&mut io::stdin().lock(), &mut io::sink()).context("cannot listen to the parent")?;
            Ok(())
        };
        match self.service {
            ServedService::Event => {
                let service =
                    EventService::start(&orb, EventOptions { data: self.data.clone(), ..EventOptions::default() })?;
                wait(service.factory())?;
                service.stop()?;
            }
            ServedService::Notification => {
                let options = NotificationOptions { data: self.data.clone(), ..NotificationOptions::default() };
                let service = NotificationService::start(&orb, options)?;
                wait(service.factory())?;
                service.stop()?;
            }
        }
        orb.shutdown()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The process of a server, killed when dropped: not every server ends with its input.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl ServerProcess {
    fn start(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::piped());
        let program = command.get_program().to_string_lossy().into_owned();
        Ok(Self { child: command.spawn().with_context(|| format!("cannot start {program}"))? })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Starts a server that prints one line when it is ready.
    fn start_with_line(mut command: Command) -> anyhow::Result<(Self, String)> {
        command.stdout(Stdio::piped());
        let mut server = Self::start(command)?;
        let output = server.child.stdout.take().context("no output")?;
        let (sender, line) = mpsc::channel();
        // Further lines are read as well, so that the server can write them.
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).for_each(|line| _ = sender.send(line))
        });
        let line = line.recv_timeout(START).context("the server has not printed its address")?;
        Ok((server, line))
    }

    /// Starts a server that listens at a port of its command line.
    fn start_at(mut command: Command, address: SocketAddr) -> anyhow::Result<Self> {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self::start(command)?;
        let deadline = Instant::now() + START;
        while TcpStream::connect(address).is_err() {
            if let Some(status) = server.child.try_wait()? {
                return Err(anyhow!("the server has ended ({status})"));
            }
            ensure!(Instant::now() < deadline, "the server does not listen at {address}");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }
}

/// A running server of a contender, or a folder.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) target: Target,
    process: Option<ServerProcess>,
}

impl Server {
    pub(super) fn process(&self) -> Option<u32> {
        self.process.as_ref().map(ServerProcess::id)
    }

    /// Starts the server of a contender, whose files are in this folder.
    pub(super) fn start(contender: Contender, folder: &Path) -> anyhow::Result<Self> {
        match contender {
            Contender::C => {
                let program = peer_programs::find("fanout-c", None).map_err(|reason| anyhow!("{reason}"))?;
                let (process, port) = ServerProcess::start_with_line(Command::new(program))?;
                let port = port.parse().with_context(|| format!("{port:?} is no port"))?;
                Ok(Self { target: Target::Plain(local(port)), process: Some(process) })
            }
            Contender::Event => own("event", None, Target::Event),
            Contender::NotificationAny => own("notification", None, notification(Form::Any, false)),
            Contender::NotificationStructured => own("notification", None, notification(Form::Structured, false)),
            Contender::NotificationSequence => own("notification", None, notification(Form::Sequence, false)),
            Contender::Persistent1 | Contender::Persistent64 => {
                let data = folder.join("data");
                fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))?;
                own("notification", Some(&data), notification(Form::Structured, true))
            }
            Contender::Fdatasync => Ok(Self { target: Target::Disk(folder.to_owned()), process: None }),
            Contender::OmniEvents => omni_events(folder),
            Contender::JacorbEvent => jacorb(&["EventServer"], Target::EventChannel),
            Contender::JacorbAny => jacorb(&JACORB_NOTIFICATION, notification(Form::Any, false)),
            Contender::JacorbStructured => jacorb(&JACORB_NOTIFICATION, notification(Form::Structured, false)),
            Contender::Nats => {
                let address = free_address()?;
                let mut command = Command::new(program("nats-server").context("absent")?);
                command.args(["--addr", "127.0.0.1", "--port", &address.port().to_string()]);
                Ok(Self { target: Target::Nats(address), process: Some(ServerProcess::start_at(command, address)?) })
            }
            Contender::Mosquitto0 => mosquitto(folder, 0),
            Contender::Mosquitto1 => mosquitto(folder, 1),
        }
    }
}

/// The reason why a contender cannot be measured here; `None` if it can.
pub(super) fn absence(contender: Contender) -> Option<String> {
    let (package, is_there) = match contender {
        Contender::C => return peer_programs::find("fanout-c", None).err(),
        Contender::OmniEvents => ("package omnievents", Path::new(OMNI_EVENTS).is_file()),
        Contender::Nats => ("package nats-server", program("nats-server").is_some()),
        Contender::Mosquitto0 | Contender::Mosquitto1 => ("package mosquitto", program("mosquitto").is_some()),
        contender if contender.is_java() && program("java").is_none() => ("package openjdk-17-jdk-headless", false),
        contender if contender.is_java() => ("JacORB, built by `cargo xtask services`", jacorb_folder().is_some()),
        _ => return None,
    };
    (!is_there).then(|| package.to_owned())
}

/// A program in the search path, or in the folders of programs of the system.
fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// An address at which nothing listens.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind(local(0))?.local_addr()?)
}

fn notification(form: Form, is_persistent: bool) -> impl FnOnce(String) -> Target {
    move |factory| Target::Notification { factory, form, is_persistent }
}

/// A service of ours in a process of its own.
fn own(service: &str, data: Option<&Path>, target: impl FnOnce(String) -> Target) -> anyhow::Result<Server> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["events-server", service]).args(data);
    let (process, factory) = ServerProcess::start_with_line(command)?;
    Ok(Server { target: target(factory), process: Some(process) })
}

fn omni_events(folder: &Path) -> anyhow::Result<Server> {
    let address = free_address()?;
    let mut command = Command::new(OMNI_EVENTS);
    command.args(["-f", "-p", &address.port().to_string(), "-l"]).arg(folder).arg("-t").arg(folder.join("trace"));
    command.args(["-ORBInitRef", "NameService=corbaloc::127.0.0.1:1/x"]); // without a naming service
    let process = ServerProcess::start_at(command, address)?;
    let factory = format!("corbaloc::{address}/omniEvents");
    // It listens before it has its factory.
    let client = Orb::builder().build()?;
    let object = client.string_to_object(&factory)?.with_timeout(Some(Duration::from_secs(5)));
    let deadline = Instant::now() + START;
    while object.non_existent().unwrap_or(true) {
        ensure!(Instant::now() < deadline, "omniEvents does not answer");
        thread::sleep(Duration::from_millis(20));
    }
    client.shutdown()?;
    Ok(Server { target: Target::Event(factory), process: Some(process) })
}

/// The folder with JacORB, its services and `EventServer`, in the build folder of this program or of the source tree.
fn jacorb_folder() -> Option<PathBuf> {
    let own = env::current_exe().ok();
    let around = own.as_deref().and_then(|program| Some(program.parent()?.parent()?.to_owned()));
    let folders = [around, Some(PathBuf::from("target"))].into_iter().flatten();
    folders
        .map(|folder| folder.join("services/events"))
        .find(|folder| folder.join("classes/EventServer.class").is_file())
}

/// A service of JacORB, which prints a reference.
fn jacorb(main: &[&str], target: impl FnOnce(String) -> Target) -> anyhow::Result<Server> {
    let folder = jacorb_folder().context("absent")?;
    let mut command = Command::new("java");
    command.arg("-classpath");
    command.arg(format!("{}:{}", folder.join("classes").display(), folder.join("lib/*").display()));
    command.args(["-Dorg.omg.CORBA.ORBClass=org.jacorb.orb.ORB"]);
    command.args(["-Dorg.omg.CORBA.ORBSingletonClass=org.jacorb.orb.ORBSingleton"]);
    command.args(["-Djacorb.orb.print_version=off", "-DOAIAddr=127.0.0.1"]);
    command.args(main).stderr(Stdio::null());
    let (process, reference) = ServerProcess::start_with_line(command)?;
    ensure!(reference.starts_with("IOR:"), "JacORB has printed no reference: {reference}");
    Ok(Server { target: target(reference), process: Some(process) })
}

fn mosquitto(folder: &Path, quality: u8) -> anyhow::Result<Server> {
    let address = free_address()?;
    let file = folder.join("mosquitto.conf");
    // No message is dropped for a bound of a queue, and none waits for others in its packet.
    let listener = format!("listener {} 127.0.0.1", address.port());
    let lines = [
        listener.as_str(),
        "allow_anonymous true",
        "persistence false",
        "set_tcp_nodelay true",
        "max_queued_messages 0",
        "log_dest none",
    ];
    fs::write(&file, lines.join("\n") + "\n").with_context(|| format!("cannot write {}", file.display()))?;
    let mut command = Command::new(program("mosquitto").context("absent")?);
    command.args([OsStr::new("-c"), file.as_os_str()]);
    Ok(Server { target: Target::Mqtt(address, quality), process: Some(ServerProcess::start_at(command, address)?) })
}
