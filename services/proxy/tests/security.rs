//! Tokens, client certificates, the policy.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use spandrel::authorization::Authorizer;
use spandrel_proxy::http::{Authentication, TlsFiles, Tokens};
use spandrel_test_support::certificates::Authority;

use crate::fixture::{AUTHORIZATION, Fixture, Response, Settings, TIMEOUT};

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
        assert!(response.body.contains("denied by the policy's rule at line"), "{response:?}");
    }
    assert_eq!(fixture.account.state.lock().unwrap().limit, 0);
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
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Response::parse(&answer)
    };
    assert_eq!(get(Some(&clients.issue("teller.bank.example"))).unwrap().status, 200);
    assert_eq!(get(Some(&clients.issue("guest.bank.example"))).unwrap().status, 403);
    assert_eq!(get(None).unwrap().status, 401);
    // One of another authority is refused in the handshake.
    assert!(get(Some(&Authority::new("strangers").issue("teller.bank.example"))).is_err());
}
