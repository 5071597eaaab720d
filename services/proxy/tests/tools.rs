//! Programs of others that read the OpenAPI document: `cargo xtask proxy` installs them and runs these tests.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use spandrel_proxy::Exposure;

use crate::fixture::{Fixture, Settings, TOKEN};

/// The folder of the installed programs.
fn programs() -> PathBuf {
    env::var_os("SPANDREL_PYTHON_PROGRAMS").expect("`cargo xtask proxy` sets it").into()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} exited with {}\n{out}\n{err}", output.status);
    print!("{out}");
}

/// An account without the operations that wait, or fail because that is their purpose.
fn bank() -> Fixture {
    let operations = ["owner", "limit", "deposit", "withdraw", "note", "reflect"].map(str::to_owned).to_vec();
    let exposures = Some(vec![Exposure { name: "Bank/*".into(), operations }]);
    Fixture::bank(Settings { exposures, ..Settings::default() })
}

fn document(fixture: &Fixture, folder: &Path) -> PathBuf {
    let file = folder.join("openapi.json");
    fs::write(&file, fixture.send("GET", "/openapi.json", "").body).expect("a file");
    file
}

#[test]
#[ignore = "needs openapi-spec-validator: cargo xtask proxy"]
fn the_document_is_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    for fixture in [bank(), Fixture::types()] {
        run(Command::new(programs().join("openapi-spec-validator")).arg(document(&fixture, folder.path())));
    }
}

#[test]
#[ignore = "needs openapi-python-client: cargo xtask proxy"]
fn a_generated_client_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let fixture = bank();
    let client = folder.path().join("client");
    let mut generate = Command::new(programs().join("openapi-python-client"));
    generate.arg("generate").arg("--meta").arg("none").arg("--path").arg(document(&fixture, folder.path()));
    run(generate.arg("--output-path").arg(client.join("bank")));
    let script = format!(
        r#"
from bank.client import AuthenticatedClient
from bank.api.bankalice import bank_alice_deposit, bank_alice_get_owner, bank_alice_withdraw
from bank.models import BankAliceDepositBody, BankAliceWithdrawBody

client = AuthenticatedClient(base_url="http://{}", token="{TOKEN}")
assert bank_alice_deposit.sync(client=client, body=BankAliceDepositBody(cents=500)).result == 500
assert bank_alice_deposit.sync(client=client, body=BankAliceDepositBody(cents="9007199254740993")).result == "9007199254741493"
assert bank_alice_get_owner.sync(client=client).result == "Alice"
refused = bank_alice_withdraw.sync_detailed(client=client, body=BankAliceWithdrawBody(cents="9007199254741494"))
assert refused.status_code == 422, refused
"#,
        fixture.address
    );
    run(Command::new(programs().join("python")).current_dir(client).arg("-c").arg(script));
    assert_eq!(fixture.account.state.lock().unwrap().balance, 9_007_199_254_741_493);
}

#[test]
#[ignore = "needs schemathesis: cargo xtask proxy"]
fn generated_requests_find_no_fault_of_the_server() {
    let examples = env::var("SPANDREL_EXAMPLES").unwrap_or_else(|_| "10".to_owned());
    for fixture in [bank(), Fixture::types()] {
        let mut command = Command::new(programs().join("schemathesis"));
        command.arg("run").arg(format!("http://{}/openapi.json", fixture.address));
        command.args(["--checks", "not_a_server_error,response_schema_conformance,content_type_conformance"]);
        command.args(["--max-examples", &examples, "--header", &format!("Authorization: Bearer {TOKEN}")]);
        command.args(["--request-timeout", "10", "--no-color"]);
        run(command.args(["--workers", "2"]).current_dir(tempfile::tempdir().expect("a folder").path()));
    }
}
