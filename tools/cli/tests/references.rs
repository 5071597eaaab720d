//! `spandrel ior` and `spandrel ping` on valid and invalid references.

use crate::support;

use spandrel::dynamic::{DescribedCall, DescribedServant, DynAny, NvList, RequestError, describe, object_to_any};
use spandrel::server::{Replied, Servant, ServerCall};
use spandrel::types::{Any, IiopProfile, Ior, TypeCode};
use spandrel::{Orb, Poa, SystemException};
use spandrel_cdr::GiopVersion;
use spandrel_giop::ior_to_string;
use support::bank::Bank;
use support::{check_code, spandrel, spandrel_with_input, stderr, stdout};

/// A servant with the implicit operations only.
struct Anything;

impl Servant for Anything {
    fn repository_id(&self) -> &'static str {
        "IDL:Anything:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        call.implicit(self)
    }
}

/// Made by omniORB 4.2.5's server of `tools/lab/idl/latency.idl`, listening at `giop:tcp:127.0.0.1:4711`.
const OMNIORB: &str = "IOR:\
010000001000000049444c3a4c6174656e63793a312e3000010000000000000060000000010102000a0000003132372e302e\
302e310067120e000000fef512026b00001b4200000000000000020000000000000008000000010000000054544101000000\
1c00000001000000010001000100000001000105090101000100000009010100";

#[test]
fn a_reference_of_another_orb_is_shown() {
    let output = spandrel(&["ior", OMNIORB]);
    check_code(&output, 0);
    let text = stdout(&output);
    for words in
        ["IDL:Latency:1.0", "IIOP 1.2", "127.0.0.1", "4711", "14 octets", "fe f5 12 02", "omniORB", "TAG_CODE_SETS"]
    {
        assert!(text.contains(words), "`{words}` is missing in:\n{text}");
    }
}

#[test]
fn control_characters_of_a_reference_are_shown_as_everywhere() {
    let profile = IiopProfile {
        version: GiopVersion::V1_2,
        host: "x\n\u{1b}[2J".to_owned(),
        port: 1,
        object_key: b"k".to_vec(),
        components: vec![],
    };
    let ior = Ior { type_id: "IDL:A\u{9b}\t:1.0".to_owned(), profiles: vec![profile.encode().unwrap()] };
    let text = stdout(&spandrel(&["ior", &ior_to_string(&ior)]));
    for line in [r"type id       IDL:A\u009b\t:1.0", r"  host        x\n\u001b[2J"] {
        assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_reference_is_shown_as_json() {
    let shown = |args: &[&str]| -> serde_json::Value {
        let output = spandrel(args);
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {}", stdout(&output)))
    };
    let reference = shown(&["ior", "--json", OMNIORB]);
    assert_eq!(reference["type_id"], "IDL:Latency:1.0");
    assert_eq!(reference["security"], "none");
    let profile = &reference["profiles"][0];
    assert_eq!((&profile["host"], &profile["port"]), (&"127.0.0.1".into(), &4711.into()));
    assert_eq!(profile["components"][0]["content"]["name"], "omniORB");
    assert_eq!(profile["components"][1]["content"]["char"]["native"]["name"], "ISO 8859-1");
    let url = shown(&["ior", "--json", "corbaloc::[::1]:5000/Key"]);
    assert_eq!((&url["addresses"][0]["host"], &url["object_key"]), (&"::1".into(), &"4b6579".into()));
    assert!(shown(&["ior", "--json", "IOR:zz"])["error"].as_str().unwrap().contains("cannot read the reference"));
    // Resolved, with the options of the ORB.
    let initial = format!("-ORBInitRef Bank={OMNIORB}");
    assert_eq!(shown(&["ior", "--json", "--orb", &initial, "corbaloc:rir:/Bank"]), reference);
    assert_eq!(shown(&["ior", "--json", "--orb", &initial, "corbaname:rir:/Bank"]), reference);
}

#[test]
fn a_reference_is_read_from_standard_input() {
    let output = spandrel_with_input(&["ior", "-"], &format!("{OMNIORB}\n"));
    check_code(&output, 0);
    assert!(stdout(&output).contains("IDL:Latency:1.0"));
    let output = spandrel_with_input(&["ior", "-"], "");
    check_code(&output, 1);
}

#[test]
fn an_invalid_reference_fails_with_the_position() {
    for text in
        ["IOR:0", "IOR:zz", "IOR:", "corbaloc:", "corbaloc::[::1", "http://example.com/", "IOR:0100000000000010"]
    {
        let output = spandrel(&["ior", text]);
        check_code(&output, 1);
        let message = stderr(&output);
        assert!(message.starts_with("error: cannot read the reference\n  cause: "), "{text}: {message}");
    }
}

#[test]
fn an_existing_object_replies_to_both_requests() {
    let orb = Orb::builder().build().unwrap();
    let poa = Poa::root(&orb).unwrap();
    let object = poa.activate(Anything).unwrap();
    let reference = orb.object_to_string(&object);

    let output = spandrel(&["ping", "--count", "3", "--interval", "0", &reference]);
    check_code(&output, 0);
    let text = stdout(&output);
    assert!(text.starts_with("pinging IDL:Anything:1.0 at iiop://127.0.0.1:"), "{text}");
    assert_eq!(text.matches("LocateRequest: OBJECT_HERE in ").count(), 3, "{text}");
    assert_eq!(text.matches("_non_existent: false in ").count(), 3, "{text}");
    assert!(text.contains("3 LocateRequests, 3 answered; min/median/max "), "{text}");
    assert!(text.contains("3 _non_existent calls, 3 answered; min/median/max "), "{text}");

    poa.deactivate(&object).unwrap();
    let output = spandrel(&["ping", "--count", "1", &reference]);
    check_code(&output, 1);
    assert!(stdout(&output).contains("LocateRequest: UNKNOWN_OBJECT"), "{}", stdout(&output));
    assert!(stderr(&output).contains("the server answers, and the object does not exist"), "{}", stderr(&output));
    orb.shutdown().unwrap();
}

#[test]
fn an_object_that_has_moved_is_followed() {
    let orb = Orb::builder().build().unwrap();
    let poa = Poa::root(&orb).unwrap();
    let (old, new) = (poa.activate(Anything).unwrap(), poa.activate(Anything).unwrap());
    poa.forward(&old, new.clone()).unwrap();
    let output = spandrel(&["ping", "--count", "1", &orb.object_to_string(&old)]);
    check_code(&output, 0);
    let text = stdout(&output);
    assert!(text.contains("LocateRequest: OBJECT_FORWARD in ") && text.contains("_non_existent: false in "), "{text}");
    assert!(text.contains(&format!("forwarded to {}", orb.object_to_string(&new))), "{text}");
    orb.shutdown().unwrap();
}

#[test]
fn a_refused_connection_is_a_failure_with_its_cause() {
    // Bound for UDP only: TCP connections are refused.
    let unused = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let reference = format!("corbaloc::127.0.0.1:{}/key", unused.local_addr().unwrap().port());
    let output = spandrel(&["ping", "--count", "1", &reference]);
    check_code(&output, 1);
    let text = stderr(&output);
    assert!(text.starts_with("error: cannot reach the object: LocateRequest and `_non_existent` failed"), "{text}");
    assert!(text.contains("\n  cause: CORBA::TRANSIENT") && text.contains("refused"), "{text}");

    let output = spandrel(&["ping", "--count", "1", "corbaloc::no-such-host.invalid/key"]);
    check_code(&output, 1);
    assert!(stderr(&output).contains("no-such-host.invalid"), "{}", stderr(&output));
}

#[test]
fn a_silent_server_is_a_failure_at_the_timeout() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let reference = format!("corbaloc::{}/key", listener.local_addr().unwrap());
    let output = spandrel(&["ping", "--count", "1", "--timeout", "0.2", &reference]);
    check_code(&output, 1);
    let text = stdout(&output);
    assert!(text.contains("LocateRequest: CORBA::TIMEOUT"), "{text}");
    assert!(text.contains("_non_existent: CORBA::TIMEOUT"), "{text}");
    assert!(stderr(&output).contains("LocateRequest and `_non_existent` failed"), "{}", stderr(&output));
}

#[test]
fn wrong_usage_is_reported_before_any_connection() {
    for args in [
        &["ping"][..],
        &["ping", "--count", "0", "x"],
        &["ping", "--timeout", "0", "x"],
        &["ping", "--interval", "soon", "x"],
        &["ior"],
    ] {
        check_code(&spandrel(args), 2);
    }
}

/// A naming context with one name, as much of it as resolving needs.
const NAMING: &str = "
#pragma prefix \"omg.org\"
module CosNaming {
  struct NameComponent { string id; string kind; };
  typedef sequence<NameComponent> Name;
  interface NamingContext { Object resolve(in Name n); };
};
";

#[test]
fn names_are_resolved_by_every_command() {
    let bank = Bank::open();
    let orb = Orb::builder().build().unwrap();
    let target = orb.string_to_object(&bank.reference).unwrap();
    let serve = move |_: &DescribedCall<'_>, arguments: &mut NvList| -> Result<Any, RequestError> {
        let name = DynAny::new(arguments.get(0).unwrap().value.as_ref().unwrap()).unwrap();
        assert_eq!(name.to_string(), r#"[{id: "bank", kind: ""}, {id: "account", kind: ""}]"#);
        Ok(object_to_any(Some(&target), &TypeCode::object()).unwrap())
    };
    let context = describe(NAMING).unwrap().interface("CosNaming::NamingContext").unwrap();
    let poa = Poa::root(&orb).unwrap();
    let context = poa.activate(DescribedServant::described(context, serve)).unwrap();
    orb.set_object_key_alias("NameService", &context).unwrap();
    let port = IiopProfile::decode(&context.ior().profiles[0]).unwrap().unwrap().port;
    let url = format!("corbaname:iiop:1.2@127.0.0.1:{port}#bank/account");
    let output = spandrel(&["ior", &url]);
    check_code(&output, 0);
    assert!(stdout(&output).contains("IDL:Bank/Account:1.0"), "{}", stdout(&output));
    check_code(&spandrel(&["ping", "--count", "1", &url]), 0);
    let output = spandrel(&["call", "--idl", bank.file.to_str().unwrap(), &url, "sort"]);
    check_code(&output, 0);
    assert_eq!(stdout(&output), "saving\n");
    orb.shutdown().unwrap();
}

/// A servant that raises an exception in all operations.
struct Refusing;

impl Servant for Refusing {
    fn repository_id(&self) -> &'static str {
        "IDL:Refusing:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        true
    }

    fn dispatch(&self, _: &str, _: ServerCall<'_>) -> Result<Replied, SystemException> {
        Err(SystemException::no_permission(0, spandrel::CompletionStatus::No))
    }
}

#[test]
fn an_object_that_answers_only_locate_requests_was_reached() {
    let orb = Orb::builder().build().unwrap();
    let object = Poa::root(&orb).unwrap().activate(Refusing).unwrap();
    let output = spandrel(&["ping", "--count", "2", "--interval", "1ms", &orb.object_to_string(&object)]);
    check_code(&output, 1);
    let text = stderr(&output);
    let expected =
        "error: cannot ask the object whether it exists: LocateRequest was answered, and `_non_existent` failed\n";
    assert!(text.starts_with(expected) && text.contains("  cause: CORBA::NO_PERMISSION"), "{text}");
    assert!(stdout(&output).contains("2 LocateRequests, 2 answered"), "{}", stdout(&output));
    orb.shutdown().unwrap();
}
