//! Tokens, hosts, origins, methods and limits.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::json;
use spandrel::diagnostics::log::LogTail;
use spandrel::services::cos_naming::NamingContextExt;
use spandrel::types::{IiopProfile, Ior};
use spandrel::{Endpoint, Orb};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_test_support::HttpResponse;

use super::probe::Probe;
use super::process::{WithConsole, data};
use crate::executable::{ANY_PORT, name, root};
use crate::running::command;

#[test]
fn data_needs_the_token_and_the_page_does_not() {
    let (_folder, data) = data();
    let console = WithConsole::start(&data, &[]);
    let host = console.host();
    for path in ["/", "/app.js", "/console.css"] {
        let HttpResponse { status, head, body } = console.send(&format!("GET {path}"), std::slice::from_ref(&host), "");
        assert_eq!(status, 200, "{path}");
        assert!(!body.contains(&console.token));
        let policy = "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'";
        for header in [policy, "x-content-type-options: nosniff", "frame-ancestors 'none'", "cache-control: no-store"] {
            assert!(head.contains(header), "{header}: {head}");
        }
    }
    let paths = ["session", "names", "object?path=a", "state?path=a", "servers", "servers/a/output", "load", "log"];
    for path in paths {
        for token in ["Bearer wrong-wrong-wrong-wrong", "Basic Zm9vOmJhcg==", "Bearer"] {
            let headers = [host.clone(), format!("Authorization: {token}")];
            assert_eq!(console.send(&format!("GET /api/{path}"), &headers, "").status, 401, "{path} {token}");
        }
        assert_eq!(console.send(&format!("GET /api/{path}"), std::slice::from_ref(&host), "").status, 401, "{path}");
    }
    assert_eq!(console.send("POST /api/call", std::slice::from_ref(&host), "{}").status, 401);
    assert_eq!(console.send("POST /api/servers/a/start", std::slice::from_ref(&host), "").status, 401);
    assert_eq!(console.api("GET /api/session", "").1["token"], "console");
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    let (_folder, data) = data();
    let console = WithConsole::start(&data, &["--console-host", "console.example"]);
    let port = console.address.rsplit(':').next().unwrap().to_owned();
    let token = format!("Authorization: Bearer {}", console.token);
    let status = |host: &str, origin: &str| {
        let mut headers = vec![format!("Host: {host}"), token.clone()];
        headers.extend((!origin.is_empty()).then(|| format!("Origin: {origin}")));
        console.send("GET /api/session", &headers, "").status
    };
    let own = console.address.clone();
    for host in [own.clone(), format!("localhost:{port}"), format!("console.example:{port}")] {
        assert_eq!(status(&host, ""), 200, "{host}");
    }
    for host in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1", &format!("127.0.0.1.evil:{port}")] {
        assert_eq!(status(host, ""), 421, "{host}");
    }
    assert_eq!(status(&own, &format!("http://{own}")), 200);
    for origin in ["http://evil.example", "null", &format!("http://evil.example:{port}"), &format!("file://{own}")] {
        assert_eq!(status(&own, origin), 403, "{origin}");
    }
    assert_eq!(console.send("GET /", &["Host: evil.example".to_owned()], "").status, 421, "the page, too");
}

#[test]
fn other_methods_and_invalid_requests_get_the_reason() {
    let (_folder, data) = data();
    let console = WithConsole::start(&data, &[]);
    for (request, body, expected, part) in [
        ("GET /api/nothing", "", 404, "no such page"),
        ("DELETE /api/names", "", 405, "method"),
        ("GET /api/call", "", 405, "method"),
        ("GET /api/servers/a/start", "", 405, "method"),
        ("GET /api/names?path=a//b", "", 400, "is no name"),
        ("GET /api/names?path=nothing", "", 404, "is not bound"),
        ("GET /api/object", "", 400, "either a `path` or a `reference`"),
        ("GET /api/object?reference=nonsense", "", 400, "BAD_PARAM"),
        ("POST /api/call", "{", 400, "no JSON"),
        ("POST /api/call", r#"{"path":"","operation":"nothing"}"#, 400, "has no operation or attribute `nothing`"),
        ("GET /api/names?from=1", "", 200, r#""bindings":[]"#),
        ("GET /api/search?text=nothing", "", 200, r#""bindings":[]"#),
        ("POST /api/servers/bank/start", "", 404, "is not registered"),
        ("POST /api/servers/bank/explode", "", 400, "expected start, stop or drain"),
        ("GET /api/servers/..%2Fdata/output", "", 400, "invalid name"),
    ] {
        let (status, problem) = console.api(request, body);
        assert_eq!(status, expected, "{request}: {problem}");
        assert!(problem.to_string().contains(part), "{request}: {problem}");
    }
}

#[test]
fn requests_and_connections_are_bounded() {
    let (_folder, data) = data();
    let console = WithConsole::start(&data, &[]);
    let (host, token) = (console.host(), format!("Authorization: Bearer {}", console.token));
    let large = "x".repeat((1 << 20) + 1);
    assert_eq!(console.send("POST /api/call", &[host.clone(), token.clone()], &large).status, 413);
    // More connections than there is room for: the others wait until some of them end.
    let idle: Vec<_> = (0..100).map(|_| TcpStream::connect(&console.address).unwrap()).collect();
    let mut late = TcpStream::connect(&console.address).unwrap();
    late.set_read_timeout(Some(spandrel_test_support::TEST_TIMEOUT)).unwrap();
    late.write_all(format!("GET /api/session HTTP/1.1\r\n{host}\r\n{token}\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    drop(idle);
    let mut answer = String::new();
    late.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // A header without an end.
    let mut endless = TcpStream::connect(&console.address).unwrap();
    endless.set_read_timeout(Some(spandrel_test_support::TEST_TIMEOUT)).unwrap();
    let filled = format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(64 << 10));
    _ = endless.write_all(filled.as_bytes()); // the server may close while it is written
    let mut answer = Vec::new();
    _ = endless.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(console.api("GET /api/session", "").0, 200);
}

#[test]
fn the_policy_decides_about_the_token() {
    let (folder, data) = data();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "# of the console\nada ada-ada-ada-ada-ada\nbob bob-bob-bob-bob-bob\neve eve-eve-eve-eve-eve\n")
        .unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let policy = folder.path().join("policy.toml");
    fs::write(
        &policy,
        "[[rule]]\naction = \"allow\"\nidentity = \"token:ada\"\n\
         [[rule]]\naction = \"allow\"\nidentity = \"token:bob\"\noperation = [\"list\", \"find\"]\n",
    )
    .unwrap();
    let words = ["--policy", policy.to_str().unwrap(), "--console-tokens", tokens.to_str().unwrap()];
    let mut console = WithConsole::start(&data, &words);
    assert!(!console.login.contains("token"), "{}", console.login);
    let requests = [
        ("GET /api/names", "", [200, 200, 403]),
        ("GET /api/servers", "", [200, 200, 403]),
        ("GET /api/log", "", [200, 403, 403]),
        ("GET /api/load", "", [200, 403, 403]),
        ("GET /api/load?server=bank", "", [404, 403, 403]),
        ("POST /api/servers/bank/start", "", [404, 403, 403]),
        ("GET /api/servers/bank/output", "", [200, 403, 403]),
        ("GET /api/object?path=", "", [200, 403, 403]),
        ("GET /api/search?text=a", "", [200, 200, 403]),
        ("POST /api/call", r#"{"path":"","operation":"list","arguments":"[1]"}"#, [200, 403, 403]),
    ];
    for (at, token) in ["ada-ada-ada-ada-ada", "bob-bob-bob-bob-bob", "eve-eve-eve-eve-eve"].into_iter().enumerate() {
        console.token = token.to_owned();
        for (request, body, expected) in requests {
            let (status, answer) = console.api(request, body);
            assert_eq!(status, expected[at], "{token} {request}: {answer}");
            // The name of the denied operation.
            let denied = match request {
                "GET /api/object?path=" => "`_interface` is denied to the holder of the token `",
                "GET /api/names" => "`list` is denied to the holder of the token `",
                _ => "` is denied to the holder of the token `",
            };
            assert_eq!(answer.to_string().contains(denied), status == 403, "{token} {request}: {answer}");
        }
    }
}

/// Rules name accessors as requests do, and the interface that an object has, not the one that a reference claims.
#[test]
fn the_policy_sees_operations_and_interfaces_as_they_are() {
    let (folder, data) = data();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "bob bob-bob-bob-bob-bob\n").unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let policy = folder.path().join("policy.toml");
    let rules = r#"
        [[rule]]
        action = "allow"
        identity = "token:bob"
        interface = ["IDL:omg.org/*", "IDL:Probe/Other:1.0"]
        [[rule]]
        action = "allow"
        identity = "token:bob"
        interface = "IDL:Probe/Everything:1.0"
        operation = ["_get_*", "_interface"]
        [[rule]]
        action = "deny"
        identity = "token:*"
        [[rule]]
        action = "allow"
        address = "loopback"
    "#;
    fs::write(&policy, rules).unwrap();
    let words = ["--policy", policy.to_str().unwrap(), "--console-tokens", tokens.to_str().unwrap()];
    let mut console = WithConsole::start(&data, &words);
    console.token = "bob-bob-bob-bob-bob".to_owned();
    let probe = Probe::start(&console.naming);
    let call = |target: (&str, &str), operation: &str, set: bool, arguments: &str| {
        let body = json!({ target.0: target.1, "operation": operation, "set": set, "arguments": arguments });
        console.api("POST /api/call", &body.to_string())
    };
    let named = ("path", "probe/everything");
    let (status, answer) = call(named, "level", false, "");
    assert_eq!((status, answer["outcome"].as_str().unwrap_or_default()), (200, r#"{"result":7,"out":{}}"#), "{answer}");
    assert_eq!(call(named, "level", true, "[5]").0, 403);
    assert_eq!(call(named, "refuse", false, r#"["no"]"#).0, 403);
    assert_eq!(call(("path", "probe/other"), "refuse", false, r#"["yes"]"#).0, 422);
    let (_, object) = console.api("GET /api/object?path=probe/everything", "");
    let forged = probe.reference_with_type(object["reference"].as_str().unwrap(), "IDL:Probe/Other:1.0");
    let (status, answer) = call(("reference", &forged), "refuse", false, r#"["no"]"#);
    assert!(status == 403 && answer["title"] == "the object is of another type", "{answer}");
    assert!(probe.last("_set_level").is_none());
    assert_eq!(probe.last("refuse"), Some(vec![json!("yes")]), "the last call that was permitted");
    probe.stop();
}

/// Another address of the console's own process is no way round the policy, and no other server lists for a caller what
/// the caller may not list.
#[test]
fn the_policy_holds_for_own_objects_by_other_addresses_and_for_other_servers() {
    let (folder, data) = data();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "bob bob-bob-bob-bob-bob\n").unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let policy = folder.path().join("policy.toml");
    let rules = r#"
        [[rule]]
        action = "deny"
        identity = "token:bob"
        path = ["vault", "ext/closed"]
        [[rule]]
        action = "deny"
        identity = "token:bob"
        operation = "list"
        path = "ext"
        [[rule]]
        action = "allow"
    "#;
    fs::write(&policy, rules).unwrap();
    let words = ["--policy", policy.to_str().unwrap(), "--console-tokens", tokens.to_str().unwrap()];
    let mut console = WithConsole::start(&data, &words);
    console.token = "bob-bob-bob-bob-bob".to_owned();

    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let other = NamingService::start(&orb, NamingOptions::new(folder.path())).unwrap();
    let other_root: NamingContextExt = other.reference().unchecked_narrow();
    other_root.bind_new_context(&name("open")).unwrap();
    let names = root(&orb, &console.naming);
    let vault = names.bind_new_context(&name("vault")).unwrap().unwrap();
    vault.bind(&name("gold"), Some(other.reference())).unwrap();
    names.bind_context(&name("ext"), Some(&other.reference().unchecked_narrow())).unwrap();
    // The vault, by another host than the published one.
    let ior = vault.as_object().ior();
    let profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    let port = profile.port;
    let profile = IiopProfile { host: "localhost".to_owned(), components: Vec::new(), ..profile };
    let way_round = orb.reference(Ior { profiles: vec![profile.encode().unwrap()], ..ior.clone() });
    names.bind(&name("own"), Some(&way_round)).unwrap();

    let status = |request: &str| console.api(request, "").0;
    assert_eq!(status("GET /api/names?path=vault"), 403);
    assert_eq!(status("GET /api/names?path=own"), 403);
    assert_eq!(status("GET /api/names?path=ext"), 403);
    assert_eq!(status("GET /api/object?path=ext/open"), 200);
    assert_eq!(status("GET /api/object?path=ext/closed"), 403);
    for url in [format!("corbaname::localhost:{port}%23vault/gold"), "%20CorbaLoc:RIR:/NameService".to_owned()] {
        let (refused, answer) = console.api(&format!("GET /api/object?reference={url}"), "");
        assert!(refused == 400 && answer.to_string().contains("expected `IOR:"), "{answer}");
    }
    other.stop().unwrap();
    orb.shutdown().unwrap();
}

#[test]
fn wrong_options_are_named() {
    let (folder, data) = data();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "ada short\n").unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (words, code, part) in [
        (&["--console", "nonsense"][..], 2, "--console"),
        (&["--console-host", "a"], 2, "--console"),
        (&["--console", "127.0.0.1:0", "--console-tokens", tokens.to_str().unwrap()], 2, "tokens:1: expected a name"),
        (&["--console", &address], 3, "cannot listen at"),
    ] {
        let output = command(&data).args(ANY_PORT).args(words).stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {errors}");
        assert!(errors.contains(part), "{words:?}: {errors}");
    }
}

#[test]
fn the_log_of_the_process_is_kept() {
    let (_folder, data) = data();
    let console = WithConsole::start(&data, &[]);
    let (_, log) = console.api("GET /api/log", "");
    let lines = log["lines"].as_array().unwrap();
    assert_eq!(log["written"], json!(lines.len()));
    assert!(lines.iter().any(|line| line.as_str().unwrap().contains("\"level\":\"INFO\"")), "{log}");
    let after = format!("GET /api/log?after={}", lines.len());
    assert_eq!(console.api(&after, "").1["lines"], json!([]));
}

#[test]
fn a_tail_keeps_the_last_lines_and_counts_all() {
    let tail = LogTail::default();
    for number in 0..LogTail::MAX_LINES + 2 {
        tail.clone().write_all(format!("{number}\n").as_bytes()).unwrap();
    }
    let (lines, written) = tail.after(0);
    assert_eq!((lines.len(), written), (LogTail::MAX_LINES, LogTail::MAX_LINES as u64 + 2));
    assert_eq!(lines[0], "2");
    assert_eq!(tail.after(written - 1), (vec![(written - 1).to_string()], written));
    assert_eq!(tail.after(written + 9).0.len(), LogTail::MAX_LINES, "the count of another process");
    tail.clone().write_all(&vec![b'x'; LogTail::MAX_LINE + 1]).unwrap();
    assert!(tail.after(written).0[0].contains("was left out"));
}
