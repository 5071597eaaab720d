//! Tokens, client certificates, the policy.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use spandrel::authorization::{AuditLog, AuditOptions, Authorizer};
use spandrel_proxy::Exposure;
use spandrel_proxy::http::{Authentication, TlsFiles, Tokens};
use spandrel_test_support::HttpResponse;
use spandrel_test_support::certificates::Authority;

use crate::fixture::{AUTHORIZATION, Fixture, Settings, TIMEOUT, TOKEN};

#[test]
fn a_token_is_required() {
    let fixture = Fixture::bank(Settings::default());
    let headers = [
        "",
        "Authorization: Bearer 0123456789abcdef-teste\r\n",
        "Authorization: Bearer 0123456789abcdef-testerr\r\n",
        "Authorization: Bearer \r\n",
        "Authorization: Bearer\r\n",
        "Authorization: Basic dGVzdGVyOjAxMjM0NTY3ODlhYmNkZWYtdGVzdGVy\r\n",
        "Authorization: 0123456789abcdef-tester\r\n",
    ];
    for header in headers {
        for path in ["/Bank/alice/owner", "/openapi.json", "/nothing"] {
            let response = fixture.send_with("GET", path, header, "");
            assert_eq!(response.status, 401, "{header}: {response:?}");
            assert!(response.head.contains("www-authenticate: bearer"), "{response:?}");
        }
    }
    assert_eq!(fixture.send_with("GET", "/Bank/alice/owner", AUTHORIZATION, "").status, 200);
    assert_eq!(
        fixture.send_with("GET", "/Bank/alice/owner", &AUTHORIZATION.replace("Bearer", "bearer"), "").status,
        200
    );
    // Probes have none.
    assert_eq!(fixture.send_with("GET", "/healthz", "", "").status, 200);
}

#[test]
fn the_policy_decides_about_each_call() {
    let policy = r#"
        [[rule]]
        action = "allow"
        identity = "token:tester"
        path = "Bank/alice"
        operation = ["deposit", "_get_*"]
        address = "loopback"

        [[rule]]
        action = "deny"
    "#;
    let authorizer = Some(Authorizer::new(policy.parse().unwrap()));
    let fixture = Fixture::bank(Settings { authorizer, ..Settings::default() });
    assert_eq!(fixture.send("POST", "/Bank/alice/deposit", "[1]").status, 200);
    assert_eq!(fixture.send("GET", "/Bank/alice/limit", "").status, 200);
    for (method, path, body) in [("PUT", "/Bank/alice/limit", "[1]"), ("POST", "/Bank/alice/withdraw", "[1]")] {
        let response = fixture.send(method, path, body);
        assert_eq!(response.status, 403, "{response:?}");
        let tells = |text: &str| response.body.contains(text);
        assert!(tells("is denied to the holder of the token") && !tells("rule at line"), "{response:?}");
    }
    assert_eq!(fixture.account.state.lock().unwrap().limit, 0);
    let unknown = fixture.send("POST", "/Bank/nosuch/deposit", "[1]");
    assert_eq!(unknown.status, 403, "no answer tells which names exist: {unknown:?}");
    let document = fixture.send("GET", "/openapi.json", "").json();
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths, ["/Bank/alice/deposit", "/Bank/alice/limit", "/Bank/alice/owner"]);
    assert!(document["paths"]["/Bank/alice/limit"].get("put").is_none());
}

#[test]
fn a_client_certificate_takes_the_place_of_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let (server_authority, clients) = (Authority::new("HTTP"), Authority::new("clients"));
    let server = server_authority.issue("localhost");
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let tls = TlsFiles {
        certificate: write("server.pem", &server.chain),
        key: write("server.key", &server.key),
        client_authorities: Some(write("clients.pem", &clients.pem())),
    };
    let policy = r#"
        [[rule]]
        action = "allow"
        identity = "dns:teller.bank.example"
        issuer = "clients"
    "#;
    let authentication = Authentication { tokens: Tokens::default(), certificates: true, anonymous: false };
    let authorizer = Some(Authorizer::new(policy.parse().unwrap()));
    let settings = Settings { authorizer, authentication: Some(authentication), tls: Some(tls), ..Settings::default() };
    let fixture = Fixture::bank(settings);
    let get = |identity: Option<&spandrel_test_support::certificates::Identity>| {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(server_authority.pem().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        let config = match identity {
            Some(identity) => {
                let chain = CertificateDer::pem_slice_iter(identity.chain.as_bytes()).map(Result::unwrap).collect();
                let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        let connection = rustls::ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
        let stream = TcpStream::connect(fixture.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, stream);
        stream.write_all(b"GET /Bank/alice/owner HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        HttpResponse::read(stream)
    };
    assert_eq!(get(Some(&clients.issue("teller.bank.example"))).unwrap().status, 200);
    assert_eq!(get(Some(&clients.issue("guest.bank.example"))).unwrap().status, 403);
    assert_eq!(get(None).unwrap().status, 401);
    // One of another authority is refused in the handshake.
    assert!(get(Some(&Authority::new("strangers").issue("teller.bank.example"))).is_err());
}

/// All spellings of a name are one name for what is served and for the policy.
#[test]
fn names_have_one_spelling() {
    let policy = r#"
        [[rule]]
        action = "deny"
        path = 'Bank/a\/b\.c.d'
        operation = "withdraw"

        [[rule]]
        action = "allow"
    "#;
    let authorizer = Some(Authorizer::new(policy.parse().unwrap()));
    let exposures = Some(vec![Exposure { name: r"Bank/a\/b\.c.d".to_owned(), operations: Vec::new() }]);
    let fixture = Fixture::bank(Settings { authorizer, exposures, ..Settings::default() });
    fixture.bind(&[("Bank", ""), ("a/b.c", "d")], "Bank/alice");
    for name in ["a%5C%2Fb%5C.c.d", "a%2Fb%5C.c.d", "%61%2fb%5c%2Ec.%64"] {
        assert_eq!(fixture.send("POST", &format!("/Bank/{name}/deposit"), "[1]").status, 200, "{name}");
        let response = fixture.send("POST", &format!("/Bank/{name}/withdraw"), "[1]");
        assert!(response.status == 403 && response.body.contains("`withdraw` is denied to"), "{name}: {response:?}");
    }
    for name in ["a/b%5C.c.d", "a%2Fb.c.d", "a%2Fb%5C.c", "%5Ca%2Fb%5C.c.d", "a%2Fb%5C.c.d.", "a%5C%5C%2Fb%5C.c.d", ""]
    {
        assert_eq!(fixture.send("POST", &format!("/Bank/{name}/withdraw"), "[1]").status, 404, "{name}");
    }
    assert_eq!(fixture.send("POST", "/Bank%2Fa%5C%2Fb%5C.c.d/withdraw", "[1]").status, 404);
    let document = fixture.send("GET", "/openapi.json", "").json();
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert!(paths.iter().any(|path| *path == "/Bank/a%5C%2Fb%5C.c.d/deposit"), "{paths:?}");
}

/// A browser shows no secret for an anonymous request, nor for one with a certificate: pages of others could make it.
#[test]
fn pages_of_other_origins_make_no_requests_without_a_token() {
    let authentication =
        Authentication { anonymous: true, tokens: Tokens::one("tester", TOKEN), ..Authentication::default() };
    let fixture = Fixture::bank(Settings { authentication: Some(authentication), ..Settings::default() });
    let status = |headers: &str| fixture.send_with("POST", "/Bank/alice/note", headers, "").status;
    let content = "Content-Type: application/json\r\n";
    for origin in ["http://evil.example", "null", "http://test.evil.example", "file://test"] {
        assert_eq!(status(&format!("Origin: {origin}\r\n{content}")), 403, "{origin}");
        let with_token = format!("Origin: {origin}\r\n{content}{AUTHORIZATION}");
        assert_ne!(status(&with_token), 403, "{origin}");
    }
    assert_ne!(status(&format!("Origin: http://test\r\n{content}")), 403);
}

/// A policy's audit log has the calls, not what a document asks about.
#[test]
fn the_document_is_not_audited() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let audit = AuditLog::open(&file, AuditOptions::default()).unwrap();
    let policy = "[[rule]]\naction = 'allow'\noperation = ['deposit']";
    let authorizer = Authorizer::audited(policy.parse().unwrap(), audit);
    let fixture = Fixture::bank(Settings { authorizer: Some(authorizer), ..Settings::default() });
    let document = fixture.send("GET", "/openapi.json", "").json();
    assert_eq!(document["paths"].as_object().unwrap().len(), 1, "{document}");
    assert_eq!(fixture.send("POST", "/Bank/alice/deposit", "[1]").status, 200);
    drop(fixture);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
}
