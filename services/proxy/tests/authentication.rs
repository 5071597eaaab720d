//! Tokens, and the checks of `Host` and `Origin`, without a connection.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Request};
use axum::middleware::{self, Next};
use axum::routing::get;
use spandrel_proxy::http::{AllowedHosts, Authentication, Caller, Peer, TokenError, Tokens};
use tower::ServiceExt as _;

const ALICE: &str = "0123456789abcdef-alice";
const BOB: &str = "0123456789abcdef-bob";

/// The status and the body of the answer to a request for `/` with these headers.
fn answer(router: &Router, headers: &[(&str, &str)]) -> (u16, String) {
    let mut request = Request::builder().uri("/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    answer_to(router, request.body(Body::empty()).unwrap())
}

fn answer_to(router: &Router, request: Request) -> (u16, String) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    })
}

/// A router that answers with the name of the caller's token and its address.
fn router(authentication: Authentication) -> Router {
    let whoami = |Extension(caller): Extension<Caller>| async move {
        format!("{:?} {}", caller.0.identity().token_name, caller.0.address())
    };
    let authentication = Arc::new(authentication);
    let check = move |request: Request, next: Next| Arc::clone(&authentication).check(request, next);
    let peer = Peer { address: SocketAddr::from(([10, 0, 0, 7], 1)), certificates: Arc::from([]) };
    Router::new().route("/", get(whoami)).layer(middleware::from_fn(check)).layer(Extension(peer))
}

/// Writes a file that other users cannot read.
fn file(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("tokens.txt");
    fs::write(&file, text).unwrap();
    #[cfg(unix)]
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    file
}

#[test]
fn each_token_of_a_file_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = file(folder.path(), &format!("# people\n\n  alice {ALICE}  \nbob\t {BOB}\n"));
    let tokens = Tokens::read(&file).unwrap();
    assert_eq!(format!("{tokens:?}"), r#"["alice", "bob"]"#, "secrets are not shown");
    let router = router(Authentication { tokens, ..Authentication::default() });
    let name = |token: &str| answer(&router, &[("authorization", &format!("Bearer {token}"))]);
    assert_eq!(name(ALICE), (200, "Some(\"alice\") http://10.0.0.7:1".to_owned()));
    assert_eq!(name(BOB), (200, "Some(\"bob\") http://10.0.0.7:1".to_owned()));
    assert_eq!(name(&ALICE[1..]).0, 401);
}

#[test]
fn a_line_that_is_no_token_is_named_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let line = |text: &str| match Tokens::read(&file(folder.path(), text)) {
        Ok(_) | Err(TokenError::Empty { .. }) => None,
        Err(TokenError::Line { line, .. }) => Some(line),
        Err(other) => panic!("{other}"),
    };
    for (text, expected) in [
        ("alice 0123456789abcdef", None),
        ("alice ABCXYZabcxyz09-._~+/=", None),
        ("alice 0123456789abcde", Some(1)),
        ("# people\n\nalice", Some(3)),
        ("alice 0123456789abcdef\nbob 0123456789abcde,", Some(2)),
        ("alice 0123456789abc def", Some(1)),
        ("alice 0123456789abcde\u{fc}", Some(1)),
        ("", None),
    ] {
        assert_eq!(line(text), expected, "{text}");
    }
}

#[test]
fn a_file_without_a_token_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["", "\n\n", "# nobody yet\n"] {
        let error = Tokens::read(&file(folder.path(), text)).unwrap_err();
        assert!(matches!(error, TokenError::Empty { .. }), "{error}");
    }
}

#[test]
fn a_file_of_tokens_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let text = |octets: usize| {
        let line = format!("alice {ALICE}\n");
        format!("{line}#{}\n", "x".repeat(octets - 2 - line.len()))
    };
    Tokens::read(&file(folder.path(), &text(1_048_576))).unwrap();
    let error = Tokens::read(&file(folder.path(), &text(1_048_577))).unwrap_err();
    assert!(matches!(error, TokenError::Unreadable { .. }), "{error}");
    let absent = Tokens::read(&folder.path().join("absent")).unwrap_err();
    assert!(matches!(absent, TokenError::Unreadable { .. }), "{absent}");
}

#[test]
#[cfg(unix)]
fn tokens_that_every_user_can_read_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = file(folder.path(), &format!("alice {ALICE}"));
    for (mode, is_refused) in [(0o640, false), (0o600, false), (0o644, true), (0o642, true), (0o641, true)] {
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        let refused = matches!(Tokens::read(&file), Err(TokenError::Exposed { .. }));
        assert_eq!(refused, is_refused, "{mode:o}");
    }
}

#[test]
fn anonymous_callers_are_served_only_where_that_is_allowed_and_a_wrong_token_is_not_anonymous() {
    for anonymous in [false, true] {
        let tokens = Tokens::one("alice", ALICE);
        let router = router(Authentication { tokens, anonymous, certificates: true });
        let status = |headers: &[(&str, &str)]| answer(&router, headers).0;
        assert_eq!(status(&[]), if anonymous { 200 } else { 401 });
        assert_eq!(status(&[("authorization", &format!("bearer  {ALICE} "))]), 200);
        for wrong in ["Bearer", &format!("Basic {ALICE}"), &format!("Bearer {ALICE}x"), ALICE] {
            assert_eq!(status(&[("authorization", wrong)]), 401, "{wrong}");
        }
    }
}

#[test]
fn a_request_without_a_known_connection_is_a_fault_of_the_server() {
    let authentication = Arc::new(Authentication { anonymous: true, ..Authentication::default() });
    let check = move |request: Request, next: Next| Arc::clone(&authentication).check(request, next);
    let router = Router::new().route("/", get(|| async {})).layer(middleware::from_fn(check));
    assert_eq!(answer(&router, &[]).0, 500);
}

#[test]
fn without_a_token_the_page_of_a_request_has_the_origin_of_the_server() {
    let tokens = Tokens::one("alice", ALICE);
    let router = router(Authentication { tokens, anonymous: true, ..Authentication::default() });
    for (origin, expected) in [
        (None, 200),
        (Some("http://bank.example:8080"), 200),
        (Some("https://bank.example:8080"), 200),
        (Some("http://bank.example"), 403),
        (Some("ftp://bank.example:8080"), 403),
        (Some("null"), 403),
    ] {
        let mut headers = vec![("host", "bank.example:8080")];
        headers.extend(origin.map(|origin| ("origin", origin)));
        assert_eq!(answer(&router, &headers).0, expected, "{origin:?}");
        let token = format!("Bearer {ALICE}");
        headers.push(("authorization", &token));
        assert_eq!(answer(&router, &headers).0, 200, "{origin:?}: a page of others has no token");
    }
}

fn guarded(address: &str, names: &[&str]) -> Router {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let hosts = AllowedHosts::of(address.parse().unwrap(), &names);
    hosts.guard(Router::new().route("/", get(|| async { "served" })))
}

#[test]
fn a_server_is_addressed_by_its_address_and_its_names_alone() {
    for (address, names, host, expected) in [
        ("127.0.0.1:8080", &[][..], "127.0.0.1:8080", 200),
        ("127.0.0.1:8080", &[], "localhost:8080", 200),
        ("127.0.0.1:8080", &[], "LocalHost:8080", 200),
        ("127.0.0.1:8080", &[], "localhost", 421),
        ("127.0.0.1:8080", &[], "localhost:8081", 421),
        ("127.0.0.1:8080", &[], "evil.example:8080", 421),
        ("10.0.0.7:8080", &[], "localhost:8080", 421),
        ("10.0.0.7:8080", &["bank.example"], "bank.example:8080", 200),
        ("10.0.0.7:8080", &["bank.example"], "bank.example", 421),
        ("10.0.0.7:80", &["bank.example"], "bank.example", 200),
        ("10.0.0.7:443", &["bank.example"], "bank.example", 200),
        ("10.0.0.7:443", &["bank.example"], "10.0.0.7", 200),
        ("[::1]:80", &[], "[::1]", 200),
    ] {
        assert_eq!(answer(&guarded(address, names), &[("host", host)]).0, expected, "{address} {names:?} {host}");
    }
    let (status, body) = answer(&guarded("127.0.0.1:8080", &[]), &[]);
    assert_eq!(status, 421, "a request without a host");
    assert!(body.contains("this server is addressed as 127.0.0.1:8080 or localhost:8080"), "{body}");
}

#[test]
fn the_host_in_the_target_of_a_request_counts_if_there_is_no_header() {
    let router = guarded("127.0.0.1:8080", &[]);
    let status = |target: &str| answer_to(&router, Request::get(target).body(Body::empty()).unwrap()).0;
    assert_eq!(status("http://localhost:8080/"), 200);
    assert_eq!(status("http://evil.example:8080/"), 421);
}

#[test]
fn pages_of_other_origins_are_refused_by_a_guarded_server() {
    let router = guarded("127.0.0.1:8080", &["bank.example"]);
    for (origin, expected) in [
        ("http://127.0.0.1:8080", 200),
        ("https://bank.example:8080", 200),
        ("http://localhost:8080", 200),
        ("http://evil.example", 403),
        ("null", 403),
    ] {
        let headers = [("host", "127.0.0.1:8080"), ("origin", origin)];
        assert_eq!(answer(&router, &headers).0, expected, "{origin}");
    }
    assert_eq!(answer(&router, &[("host", "127.0.0.1:8080")]), (200, "served".to_owned()));
}
