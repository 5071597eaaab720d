//! Services of the program.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use spandrel_ipc::inet::{Addr, Inet};
use spandrel_reactor::{Acceptor, Family, Peer, Reactor, Server, ServiceHandler};
use spandrel_sync::Mutex;
use spandrel_test_support::{eventually, read_some};

use super::{Recorder, names, recorders};
use crate::{Catalogue, Configurator, ServiceContext, ServiceObject, ServiceResult, SharedObject};

#[test]
fn services_start_together_and_end_in_reverse() {
    let (configurator, journal, _reactor) = recorders();
    let changes =
        configurator.process_text("static A 'x y'\nstatic B\ndynamic C2 Service_Object * lib:_make_A() 'z'").unwrap();
    assert_eq!(changes.to_string(), "added A, B, C2");
    assert_eq!(journal.take(), ["A init", "B init", "C2 init", "A resume", "B resume", "C2 resume"]);
    assert_eq!(configurator.repository().info("A").unwrap(), "A x y");
    assert!(configurator.repository().find::<Recorder>("B").is_some());
    assert!(configurator.close().is_empty());
    let expected = ["C2 suspend", "C2 fini", "B suspend", "B fini", "A suspend", "A fini"];
    assert_eq!(journal.take(), expected);
    assert!(configurator.repository().is_empty());
}

#[test]
fn directives_suspend_resume_and_remove() {
    let (configurator, journal, _reactor) = recorders();
    configurator.process_text("static A\nsuspend A").unwrap();
    assert_eq!(journal.take(), ["A init"], "an inactive service is not resumed");
    assert!(configurator.repository().status("A").unwrap().is_suspended);
    assert_eq!(configurator.process_text("resume A").unwrap().resumed, ["A"]);
    assert!(!configurator.resume("A").unwrap());
    assert_eq!(configurator.process_text("suspend A").unwrap().suspended, ["A"]);
    assert_eq!(configurator.process_text("remove A").unwrap().removed, ["A"]);
    assert_eq!(journal.take(), ["A resume", "A suspend", "A fini"]);
    let text = configurator.process_text("static B\nsuspend C").unwrap_err().to_string();
    assert_eq!(text, "directive, column 1: there is no service `C`; the services are `B`");
    assert!(names(&configurator).is_empty(), "all or nothing");
}

#[test]
fn unknown_services_are_refused_with_those_that_exist() {
    let (configurator, ..) = recorders();
    let text = configurator.process_text("static X\ndynamic Y Service_Object * :nothing()").unwrap_err().to_string();
    let expected = "directive, column 1: the program contains no service `X`; it contains `A`, `B`, `C`, `D`, `E`\n\
        directive, column 1: the program has no factory `nothing()`";
    assert_eq!(text, expected);
    configurator.process_text("dynamic Y Service_Object * :make_b()").unwrap();
    assert!(configurator.process_text("dynamic Z Service_Object * lib:make_b()").is_err(), "that of the library");
    let text = configurator.process_text("stream static S").unwrap_err().to_string();
    assert_eq!(text, "directive, column 1: this program has no streams");
    let text = configurator.process_text("dynamic L Service_Object * nolib:make()").unwrap_err().to_string();
    assert!(text.contains("there is no library `nolib` (nor libnolib.so) in") || cfg!(windows), "{text}");
    assert!(configurator.remove("A").is_err() && configurator.suspend("A").is_err());
}

#[test]
fn a_service_that_refuses_or_panics_changes_nothing() {
    let (configurator, journal, _reactor) = recorders();
    configurator.process_text("static A").unwrap();
    journal.take();
    for (directives, reason) in [
        ("static B\nstatic C fail=init".replace("fail=init", "'fail=init'"), "as asked"),
        ("static B\nstatic C 'panic=init'".to_owned(), "it has panicked: as asked"),
        ("static B\nstatic C 'fail=resume'".to_owned(), "as asked"),
    ] {
        let text = configurator.process_text(&directives).unwrap_err().to_string();
        assert_eq!(text, format!("directive, column 1: the service `C`: {reason}"));
        assert_eq!(names(&configurator), ["A"]);
        let calls = journal.take();
        assert!(calls.contains(&"B fini".to_owned()), "{calls:?}");
        assert!(!calls.iter().any(|call| call.starts_with("A ")), "{calls:?}");
    }
    configurator.process_text("static B 'panic=info'").unwrap();
    assert_eq!(configurator.repository().info("B").unwrap(), "cannot be asked: it has panicked: as asked");
}

#[test]
fn a_service_that_never_returns_is_left_alone() {
    let (configurator, journal, _reactor) = recorders();
    let text = configurator.process_text("static A 'hang=init'").unwrap_err().to_string();
    assert_eq!(text, "directive, column 1: the service `A`: it has not returned after 500ms, and is left alone");
    configurator.process_text("static B 'hang=fini'").unwrap();
    let changes = configurator.remove("B").unwrap();
    assert_eq!(changes.warnings, ["the service `B`: it has not returned after 500ms, and is left alone"]);
    configurator.process_text("static C").unwrap();
    assert_eq!(names(&configurator), ["C"]);
    assert!(journal.take().contains(&"C resume".to_owned()));
}

#[test]
fn a_changed_directive_replaces_its_service_alone() {
    let (configurator, journal, _reactor) = recorders();
    configurator.process_text("static A 'port=1'\nstatic B 'port=2'").unwrap();
    journal.take();
    let changes = configurator.process_text("static A 'port=1 x'").unwrap();
    assert_eq!(changes.to_string(), "replaced A");
    assert_eq!(journal.take(), ["A suspend", "A fini", "A init", "A resume"]);
    assert_eq!(names(&configurator), ["A", "B"], "its place stays");
    let text = configurator.process_text("static A 'port=1 fail=init'").unwrap_err().to_string();
    assert_eq!(text, "directive, column 1: the service `A`: as asked");
    assert_eq!(configurator.repository().info("A").unwrap(), "A port=1 x", "the former service runs again");
    assert!(!configurator.repository().status("A").unwrap().is_suspended);
}

#[test]
fn a_new_service_gets_what_a_removed_one_held() {
    let (configurator, journal, _reactor) = recorders();
    configurator.process_text("static A 'port=1'").unwrap();
    journal.take();
    let changes = configurator.process_text("remove A\nstatic B 'port=1'").unwrap();
    assert_eq!((&changes.added[..], &changes.removed[..]), (&["B".to_owned()][..], &["A".to_owned()][..]));
    // Otherwise a new one is ready before the old one ends.
    journal.take();
    configurator.process_text("static C\nremove B").unwrap();
    assert_eq!(journal.take(), ["C init", "B suspend", "B fini", "C resume"]);
    // A failure after the end of the old one brings it back.
    let text = configurator.process_text("remove C\nstatic D 'fail=resume'").unwrap_err().to_string();
    assert_eq!(text, "directive, column 1: the service `D`: as asked");
    assert_eq!(names(&configurator), ["C"]);
    assert_eq!(journal.take().last().unwrap(), "C resume");
}

#[test]
fn a_service_is_linked_again_with_one_that_it_has_found() {
    let (configurator, journal, _reactor) = recorders();
    configurator.process_text("static A\nstatic B 'needs=A'\nstatic C 'needs=B'\nstatic D").unwrap();
    journal.take();
    let changes = configurator.process_text("static A 'x'").unwrap();
    assert_eq!(changes.to_string(), "replaced A, B, C");
    let calls = journal.take();
    assert_eq!(calls[..6], ["C suspend", "C fini", "B suspend", "B fini", "A suspend", "A fini"]);
    assert_eq!(calls[6..9], ["A init", "B init", "C init"]);
    // A new service that finds one that ends.
    let changes = configurator.process_text("remove C\nstatic A 'y'\nstatic E 'needs=A'").unwrap();
    assert_eq!(changes.to_string(), "added E; replaced A, B; removed C");
    let text = configurator.process_text("remove A").unwrap_err().to_string();
    assert_eq!(text, "directive, column 1: the service `B`: there is no A");
    assert_eq!(names(&configurator), ["A", "B", "D", "E"]);
    assert_eq!(configurator.process_text("remove A\nremove B\nremove E").unwrap().to_string(), "removed A, B, E");
}

#[test]
fn all_services_can_be_suspended() {
    let (configurator, journal, _reactor) = recorders();
    configurator.process_text("static A\nstatic B").unwrap();
    journal.take();
    assert!(configurator.suspend_all().is_empty() && configurator.resume_all().is_empty());
    assert_eq!(journal.take(), ["A suspend", "B suspend", "A resume", "B resume"]);
}

/// Sends octets back, from handlers of the reactor.
#[derive(Default)]
struct EchoService(Mutex<Option<Server<Inet>>>);

struct Echo;

impl<F: Family> ServiceHandler<F> for Echo {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> std::io::Result<()> {
        let mut octets = [0; 64];
        match peer.recv(&mut octets)? {
            0 => peer.close(),
            count => peer.put(&octets[..count])?,
        }
        Ok(())
    }
}

impl SharedObject for EchoService {
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let server = Acceptor::new(Inet::default(), || Echo).open(context.registry(), &Addr::loopback(0))?;
        if arguments.contains(&"fail".to_owned()) {
            return Err("as asked".into());
        }
        *self.0.lock() = Some(server);
        Ok(())
    }

    fn info(&self) -> String {
        self.0.lock().as_ref().map(|server| server.addr().to_string()).unwrap_or_default()
    }
}

impl ServiceObject for EchoService {}

#[test]
fn handlers_of_init_wait_while_the_service_runs() {
    let reactor = Reactor::new().unwrap();
    let configurator = Configurator::new(reactor.registry(), Catalogue::new().service("Echo", EchoService::default));
    let running = reactor.clone();
    let thread = std::thread::spawn(move || running.run().unwrap());
    configurator.process_text("static Echo\nsuspend Echo").unwrap();
    let address = configurator.repository().info("Echo").unwrap();
    let mut client = TcpStream::connect(&address).unwrap();
    client.write_all(b"hello").unwrap();
    client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(read_some(&client, &mut [0; 8]).is_err(), "a suspended service accepts nothing");
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    configurator.resume("Echo").unwrap();
    let mut octets = [0; 5];
    client.read_exact(&mut octets).unwrap();
    assert_eq!(&octets, b"hello");

    assert!(configurator.process_text("static Echo 'fail'").is_err());
    let address = configurator.repository().info("Echo").unwrap();
    TcpStream::connect(&address).unwrap();
    configurator.remove("Echo").unwrap();
    eventually(|| TcpStream::connect(&address).is_err());
    // Connections outlive the acceptor, and go with the reactor.
    reactor.stop();
    thread.join().unwrap();
}
