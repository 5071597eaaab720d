//! `spandrel ior` and `spandrel ping` on valid and invalid references.

use crate::support;

use spandrel::{
    Orb, Poa, SystemException,
    server::{Replied, Servant, ServerCall},
};
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
        ["IOR:0", "IOR:zz", "IOR:", "ior", "corbaloc:", "corbaloc::[::1", "http://example.com/", "IOR:0100000000000010"]
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
    assert!(text.starts_with("pinging IDL:Anything:1.0 at 127.0.0.1:"), "{text}");
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
    assert!(text.starts_with("error: cannot connect to 127.0.0.1:") && text.contains("\n  cause: "), "{text}");

    let output = spandrel(&["ping", "corbaloc::no-such-host.invalid/key"]);
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
    assert!(text.contains("LocateRequest: the server did not answer within 0.2 s"), "{text}");
    assert!(text.contains("CORBA::TIMEOUT"), "{text}");
    assert!(stderr(&output).contains("nothing was answered"), "{}", stderr(&output));
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
