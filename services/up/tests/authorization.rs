//! Policies of a running process.

use std::fs;
use std::sync::Arc;

use spandrel::Orb;
use spandrel::services::cos_naming::NamingContextExt;
use spandrel::ssliop::{Ssliop, pem};
use spandrel_test_support::certificates::{Authority, Identity};
use spandrel_test_support::wait_until;

use crate::executable::{ANY_PORT, name, root};
use crate::running::Running;

/// Whether an outcome is NO_PERMISSION.
fn is_denied<T, E: std::fmt::Debug>(outcome: Result<T, E>) -> bool {
    match outcome {
        Ok(_) => false,
        Err(error) => {
            let text = format!("{error:?}");
            assert!(text.contains("NO_PERMISSION"), "{text}");
            true
        }
    }
}

#[test]
fn a_policy_decides_by_path_and_a_changed_file_takes_effect() {
    let folder = tempfile::tempdir().unwrap();
    let (data, policy, audit) =
        (folder.path().join("data"), folder.path().join("policy.toml"), folder.path().join("audit.log"));
    let write = |text: &str| {
        // Readers see the old file or the new one.
        let new = folder.path().join("new.toml");
        fs::write(&new, text).unwrap();
        fs::rename(&new, &policy).unwrap();
    };
    write("[[rule]]\naction = \"allow\"\noperation = [\"resolve\", \"bind_new_context\"]\npath = \"bank\"\n");
    let words = ["--policy", policy.to_str().unwrap(), "--audit", audit.to_str().unwrap(), ANY_PORT[0], ANY_PORT[1]];
    let running = Running::start(&data, &words);
    let orb = Orb::builder().build().unwrap();
    let names = root(&orb, &running.url);
    assert!(is_denied(names.bind_new_context(&name("other"))));
    assert!(is_denied(names.unbind(&name("bank"))));
    let bank: NamingContextExt = names.bind_new_context(&name("bank")).unwrap().unwrap().as_object().narrow().unwrap();
    bank.bind_new_context(&name("branch")).unwrap();
    assert!(is_denied(names.resolve(&name("other"))));

    write("[[rule]]\naction = \"allow\"\n# longer than before, and for everyone\n");
    running.signal("-HUP");
    wait_until("the policy is in force", || names.bind_new_context(&name("other")).is_ok());
    write("[[rule]]\naction = \"alow\"\n");
    running.signal("-HUP");
    running.wait_for_error("policy.toml:2:10: unknown action `alow`");
    assert!(names.resolve(&name("other")).is_ok(), "the policy before stays in force");

    wait_until("the record is written", || {
        fs::read_to_string(&audit).is_ok_and(|text| text.contains("\"path\":\"bank/branch\""))
    });
    let text = fs::read_to_string(&audit).unwrap();
    let records: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let denied = records.iter().find(|record| record["path"] == "other" && record["decision"] == "deny").unwrap();
    assert_eq!(denied["operation"], "bind_new_context");
    assert!(denied["address"].as_str().unwrap().starts_with("iiop://127.0.0.1:"));
    let allowed = records.iter().find(|record| record["path"] == "bank" && record["decision"] == "allow").unwrap();
    assert_eq!(allowed["rule"], 1);
}

fn client(authority: &Authority, identity: Option<&Identity>) -> Orb {
    let ssliop = Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()))
        .trust(pem::authorities(authority.pem().as_bytes()).unwrap());
    let ssliop = match identity {
        None => ssliop,
        Some(Identity { chain, key }) => {
            ssliop.identity(pem::certificates(chain.as_bytes()).unwrap(), pem::private_key(key.as_bytes()).unwrap())
        }
    };
    Orb::builder().protocol(ssliop).build().unwrap()
}

#[test]
fn certificates_decide_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let authority = Authority::new("Bank CA");
    let server = authority.issue("127.0.0.1");
    let (cert, key, ca) =
        (file("cert.pem", &server.chain), file("key.pem", &server.key), file("ca.pem", &authority.pem()));
    let policy = file(
        "policy.toml",
        "[[rule]]\naction = \"allow\"\nidentity = \"cn:teller\"\nissuer = \"Bank CA\"\nkey = \"NameService\"\n",
    );
    let data = folder.path().join("data");
    let words = ["--listen", "ssliop://127.0.0.1:0", "--cert", &cert, "--key", &key, "--ca", &ca, "--policy", &policy];
    let running = Running::start(&data, &words);
    assert!(running.url.starts_with("IOR:"), "a corbaloc: URL has no address with TLS");
    let names = |name: &str| root(&client(&authority, Some(&authority.issue(name))), &running.url);
    names("teller").bind_new_context(&name("bank")).unwrap();
    let denied = names("thief").resolve(&name("bank")).unwrap_err().to_string();
    assert!(denied.contains("`resolve` is denied to `thief`") && !denied.contains(":0/"), "no plain port: {denied}");
    let unknown = root(&client(&authority, None), &running.url).resolve(&name("bank"));
    assert!(unknown.is_err(), "a client needs a certificate");
}
