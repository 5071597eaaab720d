//! Agents: allowed and forbidden commands, usage, the paper's operations, live samples, and the end.

use std::fs;
use std::time::{Duration, Instant};

use spandrel::SystemExceptionKind;
use spandrel_orchestra::idl::orchestra::harness::{StartServerError, StopServerError};
use spandrel_orchestra::idl::orchestra::work_team::{BeginError, TakeResultError};
use spandrel_orchestra::idl::orchestra::{Load, Scope, Server, Snapshot};
use spandrel_orchestra::load::paper_load;
use spandrel_orchestra::names::{self, Names};
use spandrel_test_support::wait_until;

use crate::running::{Agent, Site, orchestra, output, text};

fn server(architecture: &str) -> Server {
    Server { name: "test".to_owned(), architecture: architecture.to_owned(), workers: 0, greeting: true }
}

fn total(snapshot: &Snapshot, scope: Scope) -> f64 {
    let time = snapshot.cpu.iter().find(|usage| usage.counted == scope).map(|usage| usage.time);
    time.map_or(-1.0, |time| time.user + time.system)
}

#[test]
fn only_commands_of_the_configuration_are_started() {
    let site = Site::new();
    let _agent = site.agent("alpha");
    let harness = site.harness("alpha");
    let refused = |server: &Server| match harness.start_server(server, &[]) {
        Err(StartServerError::Refused(refused)) => refused.reason,
        other => panic!("{server:?}: {other:?}"),
    };
    assert!(refused(&Server { name: "/bin/sh".to_owned(), ..server("steady") }).contains("no command `/bin/sh`"));
    assert!(refused(&server("-c")).contains("no architecture `-c`"));
    assert!(refused(&Server { workers: 17, ..server("pool") }).contains("max_workers = 16"));
    for line in ["/bin/sh -c true", "test", "test -c", "test steady --port 1", "test steady; true", ""] {
        assert!(!harness.start(line).unwrap(), "`{line}` was started");
    }
    assert!(harness.server_address(0).is_err(), "no server runs");
    let commands = harness.list_commands().unwrap();
    assert_eq!((&*commands[0].name, &*commands[0].version), ("test", "test server 1.2.3"));
}

#[test]
fn load_is_applied_to_allowed_hosts_only() {
    let site = Site::new();
    let _agent = site.agent("alpha");
    let team = site.team("alpha");
    assert!(!team.init("192.0.2.1", 80, 4000).unwrap(), "without TLS, loopback is the only target");
    assert!(matches!(team.begin(&paper_load("192.0.2.1", 80, 1, 10, 1)), Err(BeginError::Refused(_))));
    assert!(matches!(team.begin(&paper_load("127.0.0.1", 80, 1, 10, 101)), Err(BeginError::InvalidLoad(_))));
    assert!(team.dowork(&mut 1, &mut 0.0, 1).is_err(), "init has failed");
    assert!(team.take_result(0.0).is_err(), "no load was begun");
}

#[test]
fn an_occupied_port_has_an_exit_code_of_its_own() {
    let site = Site::new();
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("iiop://{}", occupied.local_addr().unwrap());
    let mut command = orchestra();
    command.args(["agent", "--insecure", "--naming", &site.naming, "--listen", &listen, "--commands"]);
    let done = output(command.arg(site.config("alpha", "")));
    assert_eq!(done.status.code(), Some(3), "{}", text(&done));
    assert!(text(&done).contains("cannot listen (--listen)"), "{}", text(&done));
}

#[test]
fn wrong_configurations_are_explained() {
    let site = Site::new();
    let command = "[commands.test]\nprogram = \"/bin/true\"\narchitectures = ";
    for (host, configuration, reason) in [
        ("", format!("{command}[\"a\"]"), "the machine has no name: give --host"),
        ("alpha", format!("{command}[]"), "command `test` has no architecture"),
        (
            "alpha",
            format!("{command}[\"a\"]\nstart_timeout = \"-3s\""),
            "invalid time \"-3s\": expected one such as \"20s\"",
        ),
        ("alpha", format!("{command}[\"a\"]\nmax_workers = -1"), "invalid value: integer `-1`"),
    ] {
        let mut command = orchestra();
        command.args(["agent", "--insecure", "--host", host, "--naming", &site.naming, "--commands"]);
        let done = output(command.arg(site.write("alpha.toml", &configuration)));
        assert_eq!(done.status.code(), Some(2), "{}", text(&done));
        assert!(text(&done).contains(reason), "`{reason}` is missing in: {}", text(&done));
    }
}

#[test]
fn an_agent_that_ends_leaves_the_names_of_its_successor() {
    let site = Site::new();
    let mut earlier = site.agent("alpha");
    let mut later = site.agent("alpha");
    assert_eq!(earlier.terminate(), Some(0));
    assert!(site.harness("alpha").server_address(0).is_err(), "the later one answers: it has no server");
    let names = Names::at(&site.orb, &site.naming).unwrap();
    assert_eq!(later.terminate(), Some(0));
    assert!(names.resolve(&names::harness("alpha")).is_err(), "its own names go with it");
}

#[test]
fn a_server_that_fails_is_reported_with_its_output() {
    let site = Site::new();
    let _agent = site.agent("alpha");
    match site.harness("alpha").start_server(&server("fails"), &[]) {
        Err(StartServerError::ServerFailed(failed)) => {
            assert!(failed.reason.contains("exit status: 7"), "{failed:?}");
            assert!(failed.output.contains("the configuration of the server is wrong"), "{failed:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn servers_end_in_the_way_of_the_configuration() {
    let site = Site::new();
    // Ignores SIGTERM, and ends with its standard input.
    let stubborn = site.program("stubborn", "trap '' TERM; echo listening 127.0.0.1:9; cat");
    let mute = site.program("mute", "echo starting; read _ignored");
    let command = |name: &str, program: &std::path::Path, more: &str| {
        format!("[commands.{name}]\nprogram = '{}'\narchitectures = [\"steady\"]\n{more}\n", program.display())
    };
    let commands = [
        command("stdin", &stubborn, "end = \"close-stdin\""),
        command("mute", &mute, "end = \"close-stdin\"\nstart_timeout = \"100ms\""),
    ];
    let commands = commands.concat();
    let config = site.write("alpha.toml", &commands);
    let mut start = orchestra();
    let _agent = Agent::start(&site, "alpha", start.args(["agent", "--insecure", "--commands"]).arg(config));
    let harness = site.harness("alpha");
    let start = |name: &str| harness.start_server(&Server { name: name.to_owned(), ..server("steady") }, &[]);
    start("stdin").unwrap();
    harness.stop_server(0, 20.0).unwrap();
    match start("mute") {
        Err(StartServerError::ServerFailed(failed)) => {
            assert!(failed.reason.contains("no line `listening HOST:PORT` within 0.1 s"), "{failed:?}");
            assert_eq!(failed.output, "starting\n");
        }
        other => panic!("{other:?}"),
    }
    assert!(harness.server_address(0).is_err(), "it was ended");
}

#[test]
fn a_server_that_does_not_end_is_killed() {
    let site = Site::new();
    // `cat` without input ends at once: a pipe has no end here.
    let program =
        site.program("stubborn", "trap '' TERM; echo listening 127.0.0.1:9; mkfifo \"$0.pipe\"; read _ < \"$0.pipe\"");
    let text = format!("[commands.test]\nprogram = '{}'\narchitectures = [\"steady\"]\n", program.display());
    let config = site.write("alpha.toml", &text);
    let mut start = orchestra();
    let _agent = Agent::start(&site, "alpha", start.args(["agent", "--insecure", "--commands"]).arg(config));
    let harness = site.harness("alpha");
    harness.start_server(&server("steady"), &[]).unwrap();
    let failed = harness.stop_server(0, 0.05).unwrap_err().to_string();
    assert!(failed.contains("did not end within 0.05 s, and was killed"), "{failed}");
    assert!(harness.server_address(0).is_err());
}

#[test]
fn a_time_that_is_no_number_is_refused_and_one_out_of_range_is_limited() {
    let site = Site::new();
    let _agent = site.agent("alpha");
    let (harness, team) = (site.harness("alpha"), site.team("alpha"));
    harness.start_server(&server("steady"), &[]).unwrap();
    match harness.stop_server(0, f64::NAN) {
        Err(StopServerError::System(exception)) => {
            assert_eq!(exception.kind(), SystemExceptionKind::BadParam, "{exception}")
        }
        other => panic!("{other:?}"),
    }
    harness.server_address(0).expect("it still runs");
    harness.stop_server(0, f64::INFINITY).unwrap();
    harness.start_server(&server("steady"), &[]).unwrap();
    _ = harness.stop_server(0, -1.0); // without a time to end it may be killed
    assert!(harness.server_address(0).is_err());

    let address = crate::server::start(crate::server::Behaviour::Silent, true);
    let load = paper_load(&address.ip().to_string(), address.port(), 1, 400, 1);
    team.begin(&Load { timeout: 3600.0, ..load }).unwrap();
    match team.take_result(f64::NAN) {
        Err(TakeResultError::System(exception)) => {
            assert_eq!(exception.kind(), SystemExceptionKind::BadParam, "{exception}")
        }
        other => panic!("{other:?}"),
    }
    for seconds in [-1.0, f64::NEG_INFINITY] {
        assert!(!team.take_result(seconds).unwrap().0, "the load goes on");
    }
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| team.take_result(f64::INFINITY));
        team.cancel().unwrap();
        let ended = waiting.join().unwrap().unwrap_err();
        assert!(matches!(ended, TakeResultError::LoadFailed(_) | TakeResultError::NoLoad(_)), "{ended}");
    });
}

#[test]
fn the_papers_operations_start_load_and_measure_a_server() {
    let site = Site::new();
    let _agent = site.agent("alpha");
    let (harness, team) = (site.harness("alpha"), site.team("alpha"));
    assert!(!harness.getcurrent().unwrap().0, "no server runs");
    assert!(!harness.signal(15).unwrap());
    assert!(harness.start("test pool --workers 3").unwrap());
    let address = harness.server_address(0).unwrap();
    assert!(team.init(&address.host, address.port, 4000).unwrap());
    let (mut requests, mut time) = (100, 0.0);
    assert_eq!(team.dowork(&mut requests, &mut time, 5).unwrap(), 0);
    assert!(requests == 100 && time > 0.0, "{requests} requests in {time} s");
    let (is_known, usage) = harness.getcurrent().unwrap();
    assert!(is_known && usage.user >= 0.0 && usage.total_user + usage.total_system >= 0.0);
    assert!(harness.signal(15).unwrap());
    assert!(!harness.signal(15).unwrap(), "it was told so");
    wait_until("the server ends", || harness.server_address(0).is_err());
}

#[test]
fn the_group_counts_the_time_of_the_server() {
    let site = Site::new();
    let agent = site.agent("alpha");
    let (harness, team) = (site.harness("alpha"), site.team("alpha"));
    let address = harness.start_server(&server("steady"), &[]).unwrap().listens_at;
    let before = harness.take_snapshot(0).unwrap();
    let number = team.begin(&paper_load(&address.host, address.port, 1000, 4000, 5)).unwrap();
    assert!(matches!(team.begin(&paper_load(&address.host, address.port, 1, 1, 1)), Err(BeginError::Busy(_))));
    let result = std::iter::from_fn(|| Some(team.take_result(5.0).unwrap())).find(|(is_done, _)| *is_done).unwrap().1;
    assert_eq!((result.answered, result.failed), (1000, 0), "{:?}", result.errors);
    assert_eq!(result.number, number);
    let after = harness.take_snapshot(0).unwrap();
    let machine = harness.machine().unwrap();
    let group = &machine.iter().find(|property| property.name == "control group").unwrap().value;
    let scopes = [Scope::Process, Scope::Tree, Scope::Machine];
    for scope in scopes {
        assert!(total(&after, scope) >= total(&before, scope), "{scope:?}: {before:?} {after:?}");
    }
    if group.starts_with("version") {
        // A thousand threads and replies take time, which the group counts in nanoseconds or microseconds.
        assert!(total(&after, Scope::Group) > total(&before, Scope::Group), "{before:?} {after:?}");
    } else {
        assert!(agent.errors().contains("no control group"), "{}", agent.errors());
        assert_eq!(total(&after, Scope::Group), -1.0);
    }
    assert!(after.processes >= 1 && after.resident > 0 && after.peak_resident > 0 && !after.threads.is_empty());
    assert!(after.voluntary_switches > 0);
    harness.stop_server(0, 5.0).unwrap();
    assert!(harness.stop_server(0, 5.0).is_err(), "it has ended");
}

#[test]
fn the_cancellation_of_a_load_ends_waits_for_it_while_its_server_is_silent() {
    let site = Site::new();
    let _agent = site.agent("alpha");
    let team = site.team("alpha");
    let address = crate::server::start(crate::server::Behaviour::Silent, true);
    let load = paper_load(&address.ip().to_string(), address.port(), 1, 400, 1);
    team.begin(&Load { timeout: 3600.0, ..load }).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| team.take_result(60.0));
        team.cancel().unwrap();
        let ended = waiting.join().unwrap().unwrap_err();
        assert!(matches!(ended, TakeResultError::LoadFailed(_) | TakeResultError::NoLoad(_)), "{ended}");
    });
}

#[test]
fn live_samples_are_recorded_until_the_server_ends() {
    let site = Site::new();
    let _agent = site.agent("alpha");
    let harness = site.harness("alpha");
    assert!(harness.record(0, 0.02).is_err(), "no server runs");
    harness.start_server(&server("steady"), &[]).unwrap();
    assert!(harness.record(0, 0.001).is_err(), "the interval is too short");
    harness.record(0, 0.02).unwrap();
    wait_until("three samples", || harness.recorded(0).unwrap().len() >= 3);
    let all = harness.recorded(0).unwrap();
    assert!(all.windows(2).all(|pair| pair[1].at >= pair[0].at + 0.02), "{all:?}");
    assert_eq!(harness.recorded(1).unwrap()[0], all[1]);
    harness.stop_server(0, 5.0).unwrap();
    assert!(harness.recorded(0).unwrap().len() >= 3, "samples remain");
}

#[test]
fn an_agent_ends_the_server_of_one_that_was_killed() {
    let site = Site::new();
    let mut agent = site.agent("alpha");
    let address = site.harness("alpha").start_server(&server("steady"), &[]).unwrap().listens_at;
    let is_served = || std::net::TcpStream::connect((address.host.as_str(), address.port)).is_ok();
    assert!(is_served());
    agent.kill();
    // Only a control group tells the processes of the server.
    if !agent.errors().contains("no control group") {
        let _next = site.agent("alpha");
        wait_until("the server ends", || !is_served());
    }
}

#[test]
fn an_agent_ends_promptly_without_its_naming_service() {
    let site = Site::new();
    let mut agent = site.agent("alpha");
    let naming = site.naming.strip_prefix("corbaloc::").unwrap().strip_suffix("/NameService").unwrap();
    let naming: std::net::SocketAddr = naming.parse().unwrap();
    site.orb.shutdown().unwrap();
    // Connections are accepted, and no request is answered.
    let _mute = std::net::TcpListener::bind(naming).unwrap();
    let begin = Instant::now();
    assert_eq!(agent.terminate(), Some(0), "{}", agent.errors());
    // A call of the agent waits ten seconds.
    assert!(begin.elapsed() < Duration::from_secs(9), "after {:?}: {}", begin.elapsed(), agent.errors());
    assert!(agent.errors().contains("the naming service does not answer"), "{}", agent.errors());
}

#[test]
fn an_agent_ends_with_its_server_and_its_names() {
    let site = Site::new();
    let mut agent = site.agent("alpha");
    let address = site.harness("alpha").start_server(&server("steady"), &[]).unwrap().listens_at;
    let names = Names::at(&site.orb, &site.naming).unwrap();
    assert!(names.resolve(&names::harness("alpha")).is_ok());
    assert_eq!(agent.terminate(), Some(0), "{}", agent.errors());
    let missing = names.resolve(&names::harness("alpha")).unwrap_err().to_string();
    assert!(missing.contains("no agent has registered it"), "{missing}");
    let connected = std::net::TcpStream::connect((address.host.as_str(), address.port));
    assert!(connected.is_err(), "the server has ended");
}

/// As the paper prints it (A.2): `harness.start("myserver")`.
#[test]
fn a_command_with_one_architecture_needs_no_other_word() {
    let site = Site::new();
    let config = site.config("alpha", "max_workers = 100");
    let text = fs::read_to_string(&config).unwrap();
    let program = text.lines().find(|line| line.starts_with("program = ")).unwrap();
    fs::write(&config, format!("{text}\n[commands.myserver]\n{program}\narchitectures = [\"steady\"]\n")).unwrap();
    let _agent = Agent::start(&site, "alpha", orchestra().args(["agent", "--insecure", "--commands"]).arg(config));
    let harness = site.harness("alpha");
    assert!(harness.start("myserver").unwrap());
    assert!(harness.signal(15).unwrap());
    assert!(harness.start("myserver --no-greeting").unwrap());
    assert!(!harness.start("test").unwrap(), "it has several");
    assert!(!harness.start("none").unwrap() && !harness.start("").unwrap());
}
