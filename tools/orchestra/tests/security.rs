//! Supervisors are authenticated by certificates; without TLS an agent serves its own machine only.

use std::path::PathBuf;
use std::sync::Arc;

use spandrel::Orb;
use spandrel::ssliop::{Ssliop, pem};
use spandrel_orchestra::idl::orchestra::Harness;
use spandrel_orchestra::names::{self, Names};
use spandrel_test_support::certificates::{Authority, Identity};

use crate::running::{Agent, Site, orchestra, output, records, text};

#[test]
fn an_agent_needs_tls_or_the_option_that_it_has_none() {
    let site = Site::new();
    let config = site.config("alpha", "");
    let agent = |words: &[&str]| {
        let done = output(orchestra().args(["agent", "--naming", &site.naming, "--commands"]).arg(&config).args(words));
        assert_eq!(done.status.code(), Some(2), "{}", text(&done));
        text(&done)
    };
    assert!(agent(&[]).contains("give --cert, --key and --ca, or --insecure"));
    for endpoint in ["iiop://0.0.0.0:0", "iiop://*:0", "iiop://192.0.2.1:0"] {
        assert!(agent(&["--insecure", "--listen", endpoint]).contains("--insecure listens at loopback only"));
    }
    assert!(
        agent(&["--insecure", "--orb", "-ORBListenEndpoints iiop://:0"]).contains("addresses are given by --listen")
    );
    let file = config.display().to_string();
    let tls = ["--cert", &file, "--key", &file, "--ca", &file, "--listen", "iiop://127.0.0.1:0"];
    let done = output(orchestra().args(["agent", "--commands"]).arg(&config).args(tls));
    assert!(text(&done).contains("supervisors"), "{}", text(&done));
}

/// The options of a command for an identity.
fn options(site: &Site, authority: &Authority, name: &str, identity: &Identity) -> Vec<String> {
    let file = |kind: &str, text: &str| -> PathBuf { site.write(&format!("{name}-{kind}.pem"), text) };
    let files = [
        ("--cert", file("cert", &identity.chain)),
        ("--key", file("key", &identity.key)),
        ("--ca", file("ca", &authority.pem())),
    ];
    files.into_iter().flat_map(|(option, file)| [option.to_owned(), file.display().to_string()]).collect()
}

fn client(authority: &Authority, identity: &Identity) -> Orb {
    let ssliop = Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()))
        .trust(pem::authorities(authority.pem().as_bytes()).unwrap())
        .identity(
            pem::certificates(identity.chain.as_bytes()).unwrap(),
            pem::private_key(identity.key.as_bytes()).unwrap(),
        );
    Orb::builder().protocol(ssliop).build().unwrap()
}

#[test]
fn only_supervisors_of_the_configuration_may_call() {
    let site = Site::new();
    let authority = Authority::new("Laboratory CA");
    let config = site.config("alpha", "supervisors = [\"cn:supervisor\"]");
    let mut command = orchestra();
    command.args(["agent", "--listen", "ssliop://127.0.0.1:0", "--commands"]).arg(config);
    command.args(options(&site, &authority, "agent", &authority.issue("127.0.0.1")));
    let _agent = Agent::start(&site, "alpha", &mut command);

    let harness = |orb: &Orb| {
        let names = Names::at(orb, &site.naming).unwrap();
        Harness::unchecked_narrow(&names.resolve(&names::harness("alpha")).unwrap())
    };
    let stranger = client(&authority, &authority.issue("stranger"));
    let denied = harness(&stranger).start("test steady").unwrap_err().to_string();
    assert!(denied.contains("NO_PERMISSION"), "{denied}");
    let plain = Orb::builder().build().unwrap();
    assert!(harness(&plain).start("test steady").is_err(), "a client without TLS cannot connect");
    let other = Authority::new("Another CA");
    assert!(harness(&client(&other, &other.issue("supervisor"))).start("test steady").is_err());
    let supervisor = authority.issue("supervisor");
    assert!(harness(&client(&authority, &supervisor)).start("test steady").unwrap());

    // The commands of the supervisor have the same options.
    let plan = site.write(
        "plan.toml",
        "name = \"n\"\nclients = [\"alpha\"]\nsamples = 1\nrequests = 10\n[[server]]\nhost = \"alpha\"\n\
         command = \"test\"\narchitectures = [\"steady\"]\n",
    );
    let run = |name: &str, identity: &Identity| {
        let mut command = orchestra();
        command.arg("run").arg(&plan).args(["--naming", &site.naming]);
        output(command.args(options(&site, &authority, name, identity)))
    };
    let denied = run("stranger", &authority.issue("stranger"));
    assert_eq!(denied.status.code(), Some(1));
    assert!(text(&denied).contains("NO_PERMISSION"), "{}", text(&denied));
    let done = run("supervisor", &supervisor);
    assert!(done.status.success(), "{}", text(&done));
    assert_eq!(records(&site.path("plan.jsonl"), "sample").len(), 1);
    let script =
        site.write("machine.rhai", "print(get_handle(\"/orchestrator/servers/alpha/Harness\").machine().len() > 3)");
    let done = output(orchestra().arg("script").arg(&script).args(["--naming", &site.naming]).args(options(
        &site,
        &authority,
        "supervisor",
        &supervisor,
    )));
    assert_eq!(text(&done), "true\n");
}
