//! The ORB and the naming service as services.

use spandrel::Orb;
use spandrel::services::cos_naming::NamingContextExt;
use spandrel_serve::OrbService;

use crate::Process;

/// A configuration as TAO has it, with names of its libraries.
const TAO: &str = r#"
# TAO's default factories
dynamic Advanced_Resource_Factory Service_Object * TAO_Strategies:_make_TAO_Advanced_Resource_Factory() "-ORBReactorType tp -ORBConnectionCachingStrategy lfu"
static Server_Strategy_Factory "-ORBConcurrency thread-per-connection -ORBPOALock null"
static Client_Strategy_Factory "-ORBTransportMuxStrategy EXCLUSIVE -ORBClientConnectionHandler RW"
static Resource_Factory "-ORBNativeCharCodeSet UTF-8"
"#;

#[test]
fn a_naming_service_comes_up_and_ends_with_its_orb() {
    let process = Process::new();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("names");
    let directives = format!(
        "{TAO}\ndynamic ORB Service_Object * :make_orb() '-ORBListenEndpoints iiop://127.0.0.1:0'\nstatic Naming '--data {}'",
        data.display()
    );
    process.process(&directives).unwrap();
    assert_eq!(
        process.info("Client_Strategy_Factory"),
        "options of ORBs: -ORBConnectionSharing exclusive -ORBWaitStrategy on-read"
    );
    let options = |factory| process.info(factory).split(": ").nth(1).unwrap().to_owned();
    assert_eq!(options("Advanced_Resource_Factory"), "-ORBConnectionPurging lfu");
    assert_eq!(options("Server_Strategy_Factory"), "-ORBConcurrency thread-per-connection:64");
    assert_eq!(options("Resource_Factory"), "-ORBNativeCharCodeSet UTF-8");
    let address = process.info("ORB").split('/').next().unwrap().to_owned();
    let orb = Orb::builder().build().unwrap();
    let resolve = || {
        let object = orb.string_to_object(&format!("corbaloc::{address}/NameService")).unwrap();
        NamingContextExt::narrow(&object)
    };
    let context = resolve().unwrap();
    assert!(context.to_name("a/b").unwrap().len() == 2);
    process.process("remove Naming").unwrap();
    assert!(context.to_name("a/b").is_err());
    process.process(&format!("static Naming '--data {}'", data.display())).unwrap();
    assert!(resolve().unwrap().to_name("a").is_ok());
    process.process("remove Naming\nremove ORB").unwrap();
    assert!(resolve().is_err());
}

#[test]
fn wrong_options_of_an_orb_are_refused() {
    let process = Process::new();
    for (directive, reason) in [
        ("static ORB '-ORBConcurrency psychic'", "-ORBConcurrency"),
        ("static ORB '-x'", "unexpected argument '-x' found"),
        ("static Server_Strategy_Factory '-ORBConcurrency psychic'", "invalid value \"psychic\" for -ORBConcurrency"),
        ("static Server_Strategy_Factory '-ORBConcurrency'", "the option -ORBConcurrency has no value"),
        ("static Resource_Factory '-x y'", "the option -x is unknown"),
    ] {
        let text = process.process(directive).unwrap_err();
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn options_and_values_of_factories_are_compared_without_case() {
    let process = Process::new();
    for (directive, options) in [
        ("Client_Strategy_Factory '-ORBWaitStrategy rw'", "-ORBWaitStrategy on-read"),
        ("Client_Strategy_Factory '-orbwaitstrategy MT_noupcall'", "-ORBWaitStrategy on-waker"),
        ("Client_Strategy_Factory '-ORBClientConnectionHandler st'", "-ORBWaitStrategy on-reactor"),
        ("Client_Strategy_Factory '-ORBWaitStrategy on-reactor'", "-ORBWaitStrategy on-reactor"),
        ("Client_Strategy_Factory '-ORBtransportmuxstrategy Exclusive'", "-ORBConnectionSharing exclusive"),
        ("Client_Strategy_Factory '-ORBConnectionHandlerCleanup 1 -ORBForwardOnTransientLimit 3'", ""),
        ("Server_Strategy_Factory '-ORBconcurrency Reactive'", "-ORBConcurrency reactive"),
        ("Server_Strategy_Factory '-ORBconcurrency Thread-Pool:2'", "-ORBConcurrency thread-pool:2"),
        ("Server_Strategy_Factory '-ORBtablesize 128 -ORBpoalock null -ORBactiveobjectmapsize 64'", ""),
        // Of the files that TAO 1.0 shipped.
        (
            "Server_Strategy_Factory '-ORBconcurrency reactive -ORBdemuxstrategy dynamic'",
            "-ORBConcurrency reactive -ORBSystemIdDemux dynamic-hash",
        ),
        (
            "Server_Strategy_Factory '-ORBSystemidPolicyDemuxStrategy Active -ORBUseridPolicyDemuxStrategy linear'",
            "-ORBSystemIdDemux active -ORBUserIdDemux linear",
        ),
        ("Server_Strategy_Factory '-ORBuseridpolicydemuxstrategy perfect-hash'", "-ORBUserIdDemux perfect-hash"),
        ("Server_Strategy_Factory '-ORBTransientidPolicyDemuxStrategy active -ORBActiveHintInIds 1'", ""),
        ("Resource_Factory '-ORBconnectioncachingstrategy LRU'", "-ORBConnectionPurging lru"),
        (
            "Resource_Factory '-ORBZeroCopyWrite -ORBResourceUsage lazy -ORBconnectioncachemax 7'",
            "-ORBMaxClientConnections 7",
        ),
    ] {
        let factory = directive.split(' ').next().unwrap();
        process.process(&format!("static {directive}")).unwrap_or_else(|error| panic!("{directive}: {error}"));
        assert_eq!(process.info(factory), format!("options of ORBs: {options}"), "{directive}");
        process.process(&format!("remove {factory}")).unwrap();
    }
}

#[test]
fn tables_that_no_adapter_has_are_refused() {
    let process = Process::new();
    for (option, reason) in [
        ("-ORBUseridPolicyDemuxStrategy active", "invalid value \"active\" for -ORBUseridPolicyDemuxStrategy"),
        ("-ORBSystemidPolicyDemuxStrategy perfect", "invalid value \"perfect\""),
        ("-ORBPersistentidPolicyDemuxStrategy linear", "no counterpart: adapters of persistent references"),
        ("-ORBTransientidPolicyDemuxStrategy linear", "no counterpart: adapters of transient references"),
        ("-ORBUniqueidPolicyReverseDemuxStrategy linear", "no counterpart: "),
        ("-ORBActiveHintInPOANames yes", "invalid value \"yes\""),
    ] {
        let text = process.process(&format!("static Server_Strategy_Factory '{option}'")).unwrap_err();
        assert!(text.contains(reason), "{option}: {text}");
    }
}

#[test]
fn an_unknown_option_of_a_factory_is_an_error_of_its_directive() {
    let process = Process::new();
    for (option, reason) in [
        ("-ORBPsychic yes", "-ORBPsychic"),
        ("-ORBMaxConnections many", "-ORBMaxConnections"),
        ("-ORBConnectionCacheMax many", "many"),
        ("-ORBWaitStrategy psychic", "psychic"),
    ] {
        for factory in ["Client_Strategy_Factory", "Server_Strategy_Factory", "Resource_Factory"] {
            let directives =
                format!("static {factory} '{option}'\nstatic ORB '-ORBListenEndpoints iiop://127.0.0.1:0'");
            let text = process.process(&directives).unwrap_err();
            assert!(text.contains(factory) && text.contains(reason) && !text.contains("`ORB`"), "{text}");
        }
    }
}

#[test]
fn requests_wait_while_the_orb_is_suspended() {
    let process = Process::new();
    let folder = tempfile::tempdir().unwrap();
    let directives = format!(
        "static ORB '-ORBListenEndpoints iiop://127.0.0.1:0'\nstatic Naming '--data {}'",
        folder.path().display()
    );
    process.process(&directives).unwrap();
    let service = process.configurator.repository().find::<OrbService>("ORB").unwrap();
    let address = process.info("ORB").split('/').next().unwrap().to_owned();
    let orb = Orb::init(["-ORBRequestTimeout".to_owned(), "300".to_owned()]).unwrap();
    let object = orb.string_to_object(&format!("corbaloc::{address}/NameService")).unwrap();
    let context = NamingContextExt::narrow(&object).unwrap();
    context.to_name("a").unwrap();
    process.process("suspend ORB").unwrap();
    assert!(context.to_name("a").is_err());
    process.process("resume ORB").unwrap();
    context.to_name("a").unwrap();
    assert!(service.orb().is_some());
}
