//! Names that programs publish and resolve, and that the service loses.

use std::time::Duration;

#[cfg(unix)]
use spandrel::net::reactor::on_termination;
use spandrel::services::cos_naming::NamingContextExt;
use spandrel::services::{NamingClient, NamingError};
use spandrel::{Endpoint, ObjectRef, Orb};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_test_support::{block_on, free_port, wait_until};

use crate::executable::object;

/// A service on a port, with a folder of its own.
struct Served {
    orb: Orb,
    service: Option<NamingService>,
    _data: tempfile::TempDir,
}

impl Served {
    fn start(port: u16) -> Self {
        let data = tempfile::tempdir().unwrap();
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", port)).build().unwrap();
        let service = NamingService::start(&orb, NamingOptions::new(data.path())).unwrap();
        Self { orb, service: Some(service), _data: data }
    }

    fn port(&self) -> u16 {
        self.orb.listen().unwrap()[0].1
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.service.take().unwrap().stop().unwrap();
        self.orb.shutdown().unwrap();
    }
}

fn client(port: u16) -> (Orb, NamingClient) {
    let orb =
        Orb::builder().init_ref("NameService", format!("corbaloc::127.0.0.1:{port}/NameService")).build().unwrap();
    let names = NamingClient::new(&orb).unwrap();
    (orb, names)
}

fn publish(orb: &Orb, line: &ObjectRef) -> Result<(), NamingError> {
    // ANCHOR: publish
    let names = NamingClient::new(orb)?; // the initial reference `NameService`
    names.publish("plant/line1", line)?;
    let line: ObjectRef = names.resolve("plant/line1")?; // or the reference type of an interface
    // ANCHOR_END: publish
    names.publish("plant/copy", &names.resolve::<NamingContextExt>("plant")?)?; // of any type, without a variable
    assert!(names.resolve::<ObjectRef>("plant/line1").is_ok_and(|bound| bound == line));
    Ok(())
}

#[cfg(unix)]
fn serve(orb: &Orb, names: &NamingClient, ready: impl FnOnce()) -> Result<(), Box<dyn std::error::Error>> {
    // ANCHOR: withdraw
    let (stop, stopped) = std::sync::mpsc::channel();
    let handler = on_termination(move |_| stop.send(()).is_ok())?; // Ctrl-C or SIGTERM
    ready(); // of this program: tells that it serves
    stopped.recv()?; // threads of the ORB serve meanwhile
    drop(handler); // a second signal ends the process at once
    names.withdraw("plant/line1")?;
    orb.shutdown()?;
    // ANCHOR_END: withdraw
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_server_withdraws_its_names_when_it_is_told_to_end() {
    let served = Served::start(0);
    let ((orb, names), (observer, names_left)) = (client(served.port()), client(served.port()));
    let line = object(&orb);
    names.publish("plant/line1", &line).unwrap();
    names.publish("plant/copy", &line).unwrap();
    let terminate = || {
        let pid = std::process::id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    };
    serve(&orb, &names, terminate).unwrap();
    assert!(names_left.resolve::<ObjectRef>("plant/line1").is_err());
    assert!(names_left.resolve::<ObjectRef>("plant/copy").is_ok(), "it was not withdrawn");
    observer.shutdown().unwrap();
}

#[test]
fn a_published_name_is_resolved_and_withdrawn() {
    let served = Served::start(0);
    let (orb, names) = client(served.port());
    let line = object(&orb);
    names.publish("plant/hall/line1", &line).unwrap();
    names.publish("plant/hall/line1", &line).unwrap(); // bound anew
    publish(&orb, &line).unwrap();
    block_on(names.publish_async("plant/hall/line2.kind", &line)).unwrap();
    assert_eq!(block_on(names.resolve_async::<ObjectRef>("plant/hall/line2.kind")).unwrap(), line);
    assert_eq!(names.resolve::<ObjectRef>("plant/hall/line1").unwrap(), line);
    assert!(names.resolve::<NamingContextExt>("plant/hall").is_ok());

    let text = |name: &str| names.resolve::<ObjectRef>(name).unwrap_err().to_string();
    assert_eq!(text("plant/hall/line3"), "`plant/hall/line3` is not bound: the naming service has no `line3`");
    assert_eq!(text("site/line3"), "`site/line3` is not bound: the naming service has no `site/line3`");
    let beyond = "`plant/hall/line1/x` cannot be resolved: what is bound before `line1/x` is no naming context";
    assert_eq!(text("plant/hall/line1/x"), beyond);
    assert_eq!(text("plant//line1"), "`plant//line1` is not a name");
    let under_an_object = names.publish("plant/hall/line1/x", &line).unwrap_err();
    assert!(matches!(under_an_object, NamingError::NotContext { .. }), "{under_an_object}");

    assert!(names.withdraw("plant/hall/line1").unwrap());
    assert!(!names.withdraw("plant/hall/line1").unwrap());
    assert!(matches!(names.resolve::<ObjectRef>("plant/hall/line1"), Err(NamingError::NotFound { .. })));
    // Another server has published the name since.
    let (other_orb, others) = client(served.port());
    let other = orb.string_to_object("corbaloc::other.example/line2").unwrap();
    others.publish("plant/hall/line2.kind", &other).unwrap();
    assert!(!names.withdraw("plant/hall/line2.kind").unwrap());
    assert_eq!(others.resolve::<ObjectRef>("plant/hall/line2.kind").unwrap(), other);
    other_orb.shutdown().unwrap();
    orb.shutdown().unwrap();
}

#[test]
fn a_name_that_the_service_has_lost_is_bound_again() {
    let port = free_port();
    let served = Served::start(port);
    let (orb, names) = client(port);
    let names = names.check_interval(Duration::from_millis(5));
    let (line, other) = (object(&orb), orb.string_to_object("corbaloc::other.example/line2").unwrap());
    names.publish("plant/line1", &line).unwrap();
    names.publish("plant/line2", &line).unwrap();
    drop(served);
    assert!(names.resolve::<ObjectRef>("plant/line1").is_err());

    let served = Served::start(port);
    let (new_orb, new_names) = client(port);
    let root: NamingContextExt = new_orb.resolve_initial_references("NameService").unwrap().narrow().unwrap();
    let bound = |name: &str| root.resolve_str(name).ok().flatten();
    wait_until("both names are bound", || bound("plant/line1").is_some() && bound("plant/line2").is_some());
    // A name of another object is left to that.
    new_names.publish("plant/line2", &other).unwrap();
    names.withdraw("plant/line2").unwrap();
    root.unbind(&root.to_name("plant/line1").unwrap()).unwrap();
    wait_until("the name is bound", || bound("plant/line1") == Some(line.clone()));
    assert_eq!(bound("plant/line2"), Some(other));
    // Nothing is checked any more.
    drop(names);
    new_orb.shutdown().unwrap();
    orb.shutdown().unwrap();
    drop(served);
}
