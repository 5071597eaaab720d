//! Calls: values of every type, attributes, exceptions, time limits, cancellation.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::json;
use spandrel_proxy::CallLimits;
use spandrel_test_support::wait_until;

use crate::fixture::{AUTHORIZATION, Fixture, Settings};

#[test]
fn values_of_every_type_are_those_of_static_stubs() {
    let fixture = Fixture::types();
    let mut types = 0;
    for seed in 0..4 {
        for case in spandrel_interop::json_cases(seed) {
            let path = format!("/Types/{}/{}", case.object, case.operation);
            let response = fixture.send("POST", &path, &case.arguments);
            assert_eq!(response.status, 200, "{} {}: {}", case.operation, case.arguments, response.body);
            assert_eq!(response.body, case.results, "{}", case.operation);
            types += 1;
        }
    }
    assert!(types >= 4 * 50, "{types} cases");
}

/// The types that the suite of interoperability lacks.
#[test]
fn values_of_all_other_types_come_back() {
    let cases = [
        ("wchar", json!("ß"), json!("€")),
        ("wstring", json!("grüß €"), json!("")),
        ("wstring<4>", json!("abcd"), json!("ü")),
        ("Price", json!("-123.45"), json!("0")),
        ("unsigned long long", json!("18446744073709551615"), json!(7)),
        ("CORBA::TypeCode", json!("sequence<short>"), json!("string<8>")),
        ("any", json!({ "_type": "fixed<3, 1>", "_value": "1.5" }), json!(null)),
        ("Object", json!(null), json!(null)),
        ("Label", json!("a box"), json!(null)),
        ("Node", json!({ "number": 1, "next": { "number": 2, "next": null } }), json!(null)),
        ("Node", json!({ "_id": 1, "number": 1, "next": { "_ref": 1 } }), json!({ "number": 2, "next": null })),
        ("Node", json!({ "_type": "IDL:Leaf:1.0", "number": 1, "next": null, "name": "x" }), json!(null)),
        ("Shown", json!({ "_type": "IDL:Sign:1.0", "text": "y" }), json!(null)),
        (
            "Tree",
            json!({ "label": "a", "below": [{ "label": "b", "below": [] }] }),
            json!({ "label": "", "below": [] }),
        ),
        ("Choice", json!({ "_d": "c", "data": "AQI=" }), json!({ "_d": "b", "number": 5 })),
        ("Choice", json!({ "_d": "z" }), json!({ "_d": "a", "number": 1 })),
        ("Grid", json!([[1, 2], [3, 4]]), json!([[0, 0], [0, -1]])),
        ("Octets", json!("AAEC"), json!("")),
    ];
    let operations: String = (0..)
        .zip(&cases)
        .map(|(at, (of, ..))| format!("{of} pass_{at}(in {of} a, inout {of} b, out {of} c);"))
        .collect();
    let idl = format!(
        "#include <orb.idl>
        typedef fixed<5, 2> Price; typedef long Grid[2][2]; typedef sequence<octet> Octets;
        struct Tree; typedef sequence<Tree> Trees; struct Tree {{ string label; Trees below; }};
        union Choice switch (char) {{ case 'a': case 'b': long number; case 'c': Octets data; }};
        valuetype Label string;
        valuetype Node {{ public long number; public Node next; }};
        valuetype Leaf : Node {{ public string name; }};
        abstract interface Shown {{ void show(); }};
        valuetype Sign supports Shown {{ public string text; }};
        interface Echo {{ {operations} }};"
    );
    let fixture = Fixture::echo(&idl, "Echo");
    for (at, (of, a, b)) in cases.into_iter().enumerate() {
        let response = fixture.send("POST", &format!("/Echo/all/pass_{at}"), &json!({ "a": a, "b": b }).to_string());
        assert_eq!(response.status, 200, "{of} {a}: {response:?}");
        assert_eq!(response.json(), json!({ "result": b, "out": { "b": a, "c": b } }), "{of}");
    }
    let document = fixture.send("GET", "/openapi.json", "").json();
    assert_eq!(document["paths"].as_object().unwrap().len(), 18);
}

/// For each type that a request names, its arguments are read again.
#[test]
fn a_request_names_sixteen_types_at_most() {
    let structs: String = (0..17).map(|nth| format!("struct S{nth} {{ long n; }}; ")).collect();
    let idl = format!("{structs} interface Echo {{ any pass(in any a, inout any b, out any c); }};");
    let fixture = Fixture::echo(&idl, "Echo");
    let send = |types: usize| {
        let members = (0..types).map(|nth| json!({ "_type": format!("IDL:S{nth}:1.0"), "_value": { "n": nth } }));
        let any = json!({ "_type": "sequence<any>", "_value": members.collect::<Vec<_>>() });
        fixture.send("POST", "/Echo/all/pass", &json!({ "a": any, "b": null }).to_string())
    };
    let response = send(16);
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.json()["out"]["b"]["_value"][15]["_value"], json!({ "n": 15 }));
    assert_eq!(send(17).status, 400);
    let unknown = json!({ "a": { "_type": "IDL:Absent:1.0", "_value": null }, "b": null });
    assert_eq!(fixture.send("POST", "/Echo/all/pass", &unknown.to_string()).status, 400);
}

#[test]
fn operations_and_attributes_are_called() {
    let fixture = Fixture::bank(Settings::default());
    let response = fixture.send("POST", "/Bank/alice/deposit", r#"{"cents": 500}"#);
    assert_eq!((response.status, response.body.as_str()), (200, r#"{"result":500,"out":{}}"#));
    assert!(response.head.contains("content-type: application/json"));
    assert_eq!(fixture.send("POST", "/Bank/alice/deposit", "[250]").json()["result"], 750);
    assert_eq!(fixture.send("GET", "/Bank/alice/owner", "").json()["result"], "Alice");
    assert_eq!(fixture.send("PUT", "/Bank/alice/limit", "[-7]").status, 200);
    assert_eq!(fixture.send("GET", "/Bank/alice/limit", "").json(), json!({ "result": -7, "out": {} }));
    // A one-way is sent and not answered.
    let response = fixture.send("POST", "/Bank/alice/note", r#"{"text": "gr\u00fc\u00df"}"#);
    assert_eq!((response.status, response.body.as_str()), (202, r#"{"out":{}}"#));
    fixture.account.wait(|state| state.notes == ["gr\u{fc}\u{df}"]);
    // Anys, and references in results.
    let any = json!({ "_type": "sequence<string>", "_value": ["a", "b"] });
    let response = fixture.send("POST", "/Bank/alice/reflect", &json!({ "value": any }).to_string());
    assert_eq!(response.json(), json!({ "result": any, "out": { "reference": null } }));
}

#[test]
fn what_is_not_served_is_not_found() {
    let fixture = Fixture::bank(Settings::default());
    let status = |method: &str, path: &str| fixture.send(method, path, "").status;
    for path in [
        "/",
        "/Bank",
        "/Bank/alice",
        "/Bank/bob/deposit",
        "/Other/alice/deposit",
        "/Bank/alice/steal",
        "//",
        "/Bank//x",
    ] {
        assert_eq!(status("POST", path), 404, "{path}");
    }
    // Accessors have the names of their attributes.
    for path in ["/Bank/alice/_get_owner", "/Bank/alice/_is_a", "/Bank/alice/_non_existent"] {
        assert_eq!(status("POST", path), 404, "{path}");
    }
    let response = fixture.send("GET", "/Bank/alice/deposit", "");
    assert_eq!(response.status, 405);
    assert!(response.head.contains("allow: options, post\r\n"), "{response:?}");
    for (method, path) in [("POST", "/Bank/alice/owner"), ("PUT", "/Bank/alice/owner"), ("DELETE", "/Bank/alice/limit")]
    {
        assert_eq!(status(method, path), 405, "{method} {path}");
    }
}

#[test]
fn wrong_arguments_are_explained() {
    let fixture = Fixture::bank(Settings::default());
    let cases = [
        ("{}", "the member `cents` is missing"),
        (r#"{"cents": "many"}"#, "invalid"),
        (r#"{"cents": 1, "more": 2}"#, "more"),
        ("[1, 2]", "has 1 members, not 2"),
        ("7", "expected an object or an array, such as `{\\\"cents\\\": …}`"),
        (r#"{"cents": 99999999999999999999}"#, "invalid"),
        // The text form is not JSON.
        ("{cents: 1}", "not JSON"),
        ("{\"cents\": 0x10}", "not JSON"),
        ("{", "not JSON"),
    ];
    for (body, part) in cases {
        let response = fixture.send("POST", "/Bank/alice/deposit", body);
        assert_eq!(response.status, 400, "{body}: {response:?}");
        assert!(response.head.contains("content-type: application/problem+json"), "{response:?}");
        let problem = response.json();
        let text = format!("{} {}", problem["title"], problem["detail"]);
        assert!(text.contains(part), "{body}: {text}");
        assert_eq!(problem["status"], 400);
    }
    let detail = fixture.send("PUT", "/Bank/alice/limit", "-7").json()["detail"].to_string();
    assert!(detail.contains("such as `{\\\"value\\\": …}`"), "{detail}");
    let headers = format!("{AUTHORIZATION}Content-Type: text/plain\r\n");
    assert_eq!(fixture.send_with("POST", "/Bank/alice/deposit", &headers, "{\"cents\": 1}").status, 415);
    // A reference that would have to be looked up elsewhere.
    let any = r#"{"value": {"_type": {"kind": "interface", "id": "IDL:omg.org/CORBA/Object:1.0", "name": "Object"}, "_value": "URL"}}"#;
    for url in [
        "corbaname:rir:#x",
        "corbaname::127.0.0.1:9#x",
        "file:///etc/passwd",
        "http://127.0.0.1/",
        "corbaloc:rir:/NameService",
    ] {
        let response = fixture.send("POST", "/Bank/alice/reflect", &any.replace("URL", url));
        assert_eq!(response.status, 400, "{url}: {response:?}");
    }
    let response = fixture.send("POST", "/Bank/alice/reflect", &any.replace("URL", "corbaloc::127.0.0.1:9/x"));
    assert_eq!(response.status, 200, "{response:?}");
}

#[test]
fn exceptions_are_problem_details() {
    let fixture = Fixture::bank(Settings::default());
    let response = fixture.send("POST", "/Bank/alice/withdraw", r#"{"cents": 5}"#);
    assert_eq!(response.status, 422);
    let problem = response.json();
    assert_eq!(problem["type"], "IDL:Bank/Refused:1.0");
    let members = json!({ "why": "overdrawn", "missing": 5 });
    assert_eq!(problem["exception"], json!({ "id": "IDL:Bank/Refused:1.0", "members": members }));
    let expected = [
        ("BAD_PARAM", 400),
        ("NO_PERMISSION", 403),
        ("OBJECT_NOT_EXIST", 404),
        ("TRANSIENT", 503),
        ("NO_RESOURCES", 503),
        ("TIMEOUT", 504),
        ("INTERNAL", 502),
        ("UNKNOWN", 502),
    ];
    for (name, status) in expected {
        let response = fixture.send("POST", "/Bank/alice/fail", &json!({ "name": name }).to_string());
        assert_eq!(response.status, status, "{name}: {response:?}");
        assert_eq!(response.head.contains("retry-after:"), status == 503, "{name}");
        let problem = response.json();
        assert_eq!(problem["system_exception"]["id"], format!("IDL:omg.org/CORBA/{name}:1.0"));
        assert_eq!(problem["system_exception"]["completed"], "COMPLETED_NO");
    }
}

#[test]
fn a_call_ends_with_its_time() {
    let fixture = Fixture::bank(Settings::default());
    let start = Instant::now();
    let response =
        fixture.send_with("POST", "/Bank/alice/hold", &format!("{AUTHORIZATION}Prefer: respond-async, wait=1\r\n"), "");
    assert_eq!(response.status, 504, "{response:?}");
    let passed = start.elapsed();
    assert!(passed >= Duration::from_secs(1) && passed < Duration::from_secs(10), "{passed:?}");
    // The server's own limit holds whatever the client wants.
    let calls = CallLimits { timeout: Duration::from_millis(300), ..CallLimits::default() };
    let fixture = Fixture::bank(Settings { calls, ..Settings::default() });
    let response = fixture.send_with("POST", "/Bank/alice/hold", &format!("{AUTHORIZATION}Prefer: wait=1000\r\n"), "");
    assert_eq!(response.status, 504, "{response:?}");
}

#[test]
fn a_closed_connection_gives_its_call_up() {
    let calls = CallLimits { calls: 1, ..CallLimits::default() };
    let fixture = Fixture::bank(Settings { calls, ..Settings::default() });
    let mut stream = fixture.connect();
    write!(stream, "POST /Bank/alice/hold HTTP/1.1\r\nHost: test\r\n{AUTHORIZATION}Content-Length: 0\r\n\r\n").unwrap();
    fixture.account.wait(|state| state.holding == 1);
    // There is room for one call, which waits.
    let response = fixture.send("GET", "/Bank/alice/owner", "");
    assert_eq!(response.status, 503, "{response:?}");
    assert!(response.head.contains("retry-after: 1"));
    drop(stream);
    let deadline = Instant::now() + crate::fixture::TIMEOUT;
    while fixture.send("GET", "/Bank/alice/owner", "").status != 200 {
        assert!(Instant::now() < deadline, "the call was not given up");
    }
}

#[test]
fn a_dead_server_is_a_bad_gateway_or_unavailable() {
    let fixture = Fixture::bank(Settings::default());
    assert_eq!(fixture.send("GET", "/Bank/alice/owner", "").status, 200);
    fixture.objects.shutdown().unwrap();
    let response = fixture.send("GET", "/Bank/alice/owner", "");
    assert!(matches!(response.status, 502 | 503), "{response:?}");
}

/// The reference of a name is kept for a while, unless a call of it fails.
#[test]
fn a_name_is_resolved_again_after_a_failed_call() {
    let fixture = Fixture::bank(Settings::default());
    fixture.bind(&[("Bank", ""), ("bob", "")], "Bank/alice");
    let status = |name: &str| fixture.send("GET", &format!("/Bank/{name}/owner"), "").status;
    assert_eq!(["alice", "bob"].map(status), [200; 2]);
    fixture.unbind(&[("Bank", ""), ("alice", "")]);
    fixture.unbind(&[("Bank", ""), ("bob", "")]);
    assert_eq!(["alice", "bob", "alice"].map(status), [200; 3], "the references are kept");
    // An exception of the operation says nothing about the reference.
    assert_eq!(fixture.send("POST", "/Bank/alice/withdraw", "[1]").status, 422);
    assert_eq!(status("alice"), 200);
    assert_eq!(fixture.send("POST", "/Bank/alice/fail", r#"["TRANSIENT"]"#).status, 503);
    assert_eq!(["alice", "bob"].map(status), [404, 200]);
}

#[test]
fn the_default_limits_are_those_of_the_documentation() {
    let CallLimits { calls, timeout, body_timeout, body_octets, bodies } = CallLimits::default();
    assert_eq!((calls, body_octets, bodies), (1024, 4_194_304, 268_435_456));
    assert_eq!([timeout, body_timeout], [Duration::from_secs(30); 2]);
}

/// Begins a request whose body does not come, and waits until there is room for it.
fn begin(fixture: &Fixture, length: &str) -> std::net::TcpStream {
    let mut stream = fixture.connect();
    write!(
        stream,
        "POST /Bank/alice/deposit HTTP/1.1\r\nHost: test\r\n{AUTHORIZATION}Content-Type: application/json\r\n\
         Expect: 100-continue\r\n{length}\r\n\r\n"
    )
    .unwrap();
    let mut answer = [0; 25];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"HTTP/1.1 100 Continue\r\n\r\n", "the body is read");
    stream
}

#[test]
fn bodies_of_requests_share_their_room() {
    let calls = CallLimits { body_octets: 4096, bodies: 8192, ..CallLimits::default() };
    let fixture = Fixture::bank(Settings { calls, ..Settings::default() });
    let status = || fixture.send("POST", "/Bank/alice/deposit", "[1]").status;
    let _longest = begin(&fixture, "Content-Length: 4096");
    let _nearly = begin(&fixture, "Content-Length: 2049"); // it counts as three KiB
    assert_eq!(status(), 200, "a KiB is left");
    let last = begin(&fixture, "Content-Length: 1");
    assert_eq!(status(), 503);
    assert_eq!(fixture.send("GET", "/Bank/alice/owner", "").status, 200, "a request without a body needs no room");
    drop(last);
    wait_until("the room", || status() == 200);
    // A length above the limit counts as the longest, and is refused.
    assert_eq!(fixture.send("POST", "/Bank/alice/deposit", &"1".repeat(4097)).status, 503);
}

#[test]
fn a_body_without_a_length_needs_the_room_of_the_longest() {
    let calls = CallLimits { body_octets: 4096, bodies: 8192, ..CallLimits::default() };
    let fixture = Fixture::bank(Settings { calls, ..Settings::default() });
    let status = || fixture.send("POST", "/Bank/alice/deposit", "[1]").status;
    let _first = begin(&fixture, "Transfer-Encoding: chunked");
    assert_eq!(status(), 200);
    let _second = begin(&fixture, "Transfer-Encoding: chunked");
    assert_eq!(status(), 503);
}

#[test]
fn a_thousand_clients_are_served() {
    const CLIENTS: usize = 1000;
    let fixture = Fixture::bank(Settings::default());
    let address = fixture.address;
    let answered = fixture.runtime.block_on(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let clients = (0..CLIENTS).map(|_| {
            tokio::spawn(async move {
                let mut stream = tokio::net::TcpStream::connect(address).await?;
                let request = format!(
                    "POST /Bank/alice/deposit HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{AUTHORIZATION}\
                     Content-Type: application/json\r\nContent-Length: 11\r\n\r\n{{\"cents\":1}}"
                );
                stream.write_all(request.as_bytes()).await?;
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await?;
                std::io::Result::Ok(answer)
            })
        });
        let clients: Vec<_> = clients.collect();
        let mut answered = 0;
        for client in clients {
            let answer = client.await.expect("no panic").expect("an answer");
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            answered += 1;
        }
        answered
    });
    assert_eq!(answered, CLIENTS);
    assert_eq!(fixture.account.state.lock().unwrap().balance, CLIENTS as i64);
}

#[test]
fn options_names_the_methods_of_a_resource() {
    let fixture = Fixture::bank(Settings::default());
    let allowed = [("deposit", "options, post"), ("limit", "get, head, options, put"), ("owner", "get, head, options")];
    for (member, methods) in allowed {
        let path = format!("/Bank/alice/{member}");
        let response = fixture.send("OPTIONS", &path, "");
        assert_eq!(response.status, 204, "{response:?}");
        for response in [response, fixture.send("DELETE", &path, "")] {
            assert!(response.head.lines().any(|line| line == format!("allow: {methods}")), "{response:?}");
        }
    }
    assert_eq!(fixture.send("PUT", "/Bank/alice/owner", "[\"x\"]").status, 405);
    for absent in ["absent", "_get_owner"] {
        assert_eq!(fixture.send("OPTIONS", &format!("/Bank/alice/{absent}"), "").status, 404);
    }
}

/// Characters that act on a terminal are escaped, and what is no result is bounded.
#[test]
fn texts_of_a_peer_are_escaped_and_bounded() {
    let fixture = Fixture::bank(Settings::default());
    let acting = "a\u{9b}\u{7f}\u{202e}\u{85}";
    let any = json!({ "_type": "string", "_value": acting });
    let response = fixture.send("POST", "/Bank/alice/reflect", &json!({ "value": any }).to_string());
    assert_eq!(response.json()["result"], any);
    assert!(!response.body.contains(|character: char| acting[1..].contains(character)), "{response:?}");
    let long = acting.repeat(20_000);
    for (path, body) in [
        (format!("/Bank/alice/{}", "x".repeat(10_000)), String::new()),
        ("/Bank/alice/deposit".to_owned(), json!({ "cents": long }).to_string()),
        ("/Bank/alice/reflect".to_owned(), json!({ "value": { "_type": long, "_value": 1 } }).to_string()),
    ] {
        let response = fixture.send("POST", &path, &body);
        assert!((400..500).contains(&response.status), "{response:?}");
        assert!(response.body.len() < 4_096, "{} octets", response.body.len());
        assert!(!response.body.contains(|character: char| acting[1..].contains(character)), "{response:?}");
    }
}
