//! The server that the tests start: this test program, with one test alone. A shell hands it its arguments by a
//! variable.

use std::fs::{self, File};
use std::io::Write as _;
use std::sync::Arc;

use spandrel::poa::{IdAssignmentPolicy, LifespanPolicy};
use spandrel::services::activation;
use spandrel::services::implementation_repository::{ServerObjectServant, ServerObjectSkeleton};
use spandrel::ssliop::Ssliop;
use spandrel::{Orb, Poa, SystemException};
use spandrel_naming::{NamingOptions, NamingService};

/// The arguments of a server.
const ARGUMENTS: &str = "TEST_SERVER_ARGUMENTS";

/// A command that runs the server, for the configuration of an activator. Its behaviour is one of those in
/// [`server`]; files are written to `folder`.
pub(crate) fn command(folder: &std::path::Path, behaviour: &str) -> String {
    command_with(folder, behaviour, &[])
}

/// As [`command`], with these options of the server's ORB.
pub(crate) fn command_with(folder: &std::path::Path, behaviour: &str, options: &[&str]) -> String {
    let this = std::env::current_exe().unwrap();
    let trap = if behaviour.starts_with("stubborn") { "trap \"\" TERM; " } else { "" };
    let options: String = options.iter().map(|option| format!(", '{option}'")).collect();
    format!(
        "program = '/bin/sh'\n\
         arguments = ['-c', '{trap}{ARGUMENTS}=\"$*\" exec {} --exact server::server --nocapture', 'sh'{options}]\n\
         environment = {{ TEST_FOLDER = '{}', TEST_BEHAVIOUR = '{behaviour}' }}\n",
        this.display(),
        folder.display(),
    )
}

/// An object that ends its process if told so.
struct Probe;

impl ServerObjectServant for Probe {
    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn shutdown(&self, token: &str) -> Result<(), SystemException> {
        if token == "abort" {
            std::process::abort();
        }
        Ok(())
    }
}

#[test]
fn server() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let folder = std::path::PathBuf::from(std::env::var("TEST_FOLDER").unwrap());
    spandrel_test_support::exit_without(&folder);
    let behaviour = std::env::var("TEST_BEHAVIOUR").unwrap();
    let mut args: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
    let builder = Orb::builder().protocol(Ssliop::new(Arc::new(rustls::crypto::ring::default_provider())));
    let builder = match args.iter().any(|option| option == "-ORBListenEndpoints") {
        true => builder,
        false => builder.listen(spandrel::Endpoint::new("127.0.0.1", 0)),
    };
    let orb = activation::install(builder).unwrap();
    let orb = orb.take_args(&mut args).unwrap().build().unwrap();
    let mut starts = File::options().create(true).append(true).open(folder.join("starts")).unwrap();
    starts.write_all(format!("{} {}\n", orb.server_id(), std::process::id()).as_bytes()).unwrap();
    match behaviour.trim_start_matches("stubborn ") {
        "crash" => std::process::abort(),
        "end" => std::process::exit(0),
        "never ready" => loop {
            std::thread::park();
        },
        "slow" => {
            // Until the test lets it go on.
            while !folder.join("go").exists() {
                std::thread::yield_now();
            }
        }
        _ => {}
    }
    let policies = [LifespanPolicy::Persistent.into(), IdAssignmentPolicy::UserId.into()];
    let poa = Poa::root(&orb).unwrap().create_poa("bank", None, policies).unwrap();
    let id = "grace".into();
    poa.activate_object_with_id(&id, Arc::new(ServerObjectSkeleton::new(Probe))).unwrap();
    let object = poa.id_to_reference(&id).unwrap();
    assert_eq!(poa.reference_to_id(&object).unwrap(), id, "its reference denotes the activator");
    poa.the_poa_manager().activate().unwrap();
    fs::write(folder.join("reference.new"), object.to_string()).unwrap();
    fs::rename(folder.join("reference.new"), folder.join("reference")).unwrap();
    let naming = (behaviour == "naming").then(|| {
        let data = folder.join("naming");
        fs::create_dir_all(&data).unwrap();
        NamingService::start(&orb, NamingOptions::new(data)).unwrap()
    });
    let service = orb.server_id().to_owned();
    activation::activate_service(&orb, &service, "grace", &object, "bank").unwrap();
    if behaviour == "stubborn" {
        // SIGTERM is ignored, as the shell has set it.
        orb.run();
        loop {
            std::thread::park();
        }
    }
    if behaviour == "deaf" {
        orb.shutdown().unwrap();
        loop {
            std::thread::park();
        }
    }
    orb.run_until_signal().unwrap();
    drop(naming);
}
