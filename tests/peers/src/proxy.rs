//! The HTTP proxy against programs of others that read its OpenAPI document.
//!
//! Everything runs as a user runs it: `spandrel-up` with the IDL in its interface repository, the servers of an account
//! and of every IDL type with names in the naming service, and `spandrel-proxy` before them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use xtask::workspace::{self, build_as_for_tests};

use crate::bounded::Bounded;

/// The programs, as packages of the Python package index.
const PACKAGES: [&str; 3] = ["openapi-spec-validator==0.9.0", "openapi-python-client==0.29.1", "schemathesis==4.32.5"];

/// The time that a program may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(60);

const TOKEN: &str = "0123456789abcdef-tester";
const ACCOUNT: &str = "Bank/alice";
/// The objects of the interoperability suite, by their attributes of `Interop::Hub`.
const TYPES: [&str; 5] = ["the_primitives", "the_strings", "the_sequences", "the_structs", "the_arrays"];

/// Stores a page that needs a token in a file.
const DOWNLOAD: &str = r#"
import sys
from urllib.request import Request, urlopen

url, token, file = sys.argv[1:]
with urlopen(Request(url, headers={"Authorization": f"Bearer {token}"})) as page, open(file, "wb") as stored:
    stored.write(page.read())
"#;

/// Calls of the account by the client that `openapi-python-client` has made.
const SCRIPT: &str = r#"
import sys
from bank.client import AuthenticatedClient
from bank.api.bankalice import bank_alice_deposit, bank_alice_get_owner, bank_alice_withdraw
from bank.models import BankAliceDepositBodyType0, BankAliceWithdrawBodyType0

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
assert bank_alice_deposit.sync(client=client, body=BankAliceDepositBodyType0(cents=500)).result == 500
assert bank_alice_deposit.sync(client=client, body=BankAliceDepositBodyType0(cents="9007199254740993")).result == "9007199254741493"
assert bank_alice_get_owner.sync(client=client).result == "Grace"
refused = bank_alice_withdraw.sync_detailed(client=client, body=BankAliceWithdrawBodyType0(cents="9007199254741494"))
assert refused.status_code == 422, refused
"#;

/// Installs the programs into the target folder, and runs them, schemathesis with this many requests for each operation
/// and phase.
pub(crate) fn run(examples: u32) -> Result<()> {
    let programs = install()?;
    workspace::run(&mut build_as_for_tests(&["spandrel", "spandrel-up", "spandrel-proxy", "interop-*"]))?;
    let folder = workspace::target().join("proxy");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder)?;

    let mut up = program("spandrel-up");
    up.arg("--data").arg(folder.join("data")).args(["--listen", "iiop://127.0.0.1:0"]);
    let services = Services::start(&mut up)?;
    for file in ["examples/bank/bank.idl", "tests/interop/idl/interop.idl"] {
        let mut idl = program("spandrel");
        idl.args(["idl", &format!("--to-repository={}", services.repository)]).arg(workspace::root().join(file));
        workspace::run(&mut idl)?;
    }
    let account = Bounded::start("bank-server", &mut program("examples/bank-server"))?;
    services.bind(ACCOUNT, &reference(&account)?)?;
    let types = Bounded::start("interop-server", &mut program("interop-server"))?;
    let hub = reference(&types)?;
    for name in TYPES {
        services.bind(&format!("Types/{name}"), &services.attribute(&hub, name)?)?;
    }

    for exposed in ["Bank/*", "Types/*"] {
        println!("-- {exposed}");
        let proxy = Proxy::start(&services, exposed, &folder)?;
        proxy.check_document(&programs)?;
        if exposed == "Bank/*" {
            proxy.call_with_generated_client(&programs)?;
        }
        proxy.send_generated_requests(&programs, examples)?;
    }
    Ok(())
}

/// Installs the programs, and returns their folder.
fn install() -> Result<PathBuf> {
    let folder = workspace::target().join("proxy-tools");
    if !folder.join("bin/schemathesis").exists() {
        workspace::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))
            .context("python3 and its module venv are needed (packages python3, python3-venv)")?;
        let mut pip = Command::new(folder.join("bin/pip"));
        workspace::run(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES))?;
    }
    Ok(folder.join("bin"))
}

/// One of our programs.
fn program(name: &str) -> Command {
    Command::new(workspace::target().join("debug").join(name))
}

/// The reference that a server prints first.
fn reference(server: &Bounded) -> Result<String> {
    let line = server.line(Instant::now() + START_TIMEOUT)?.unwrap_or_default();
    ensure!(line.starts_with("IOR:"), "no reference: {line}\n{}", server.stderr());
    Ok(line)
}

/// The output of a command that must succeed.
fn output(command: &mut Command) -> Result<String> {
    let Output { status, stdout, stderr } = command.output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}\n{}", String::from_utf8_lossy(&stderr));
    Ok(String::from_utf8(stdout)?)
}

/// `spandrel-up` and the URLs of its services.
struct Services {
    _program: Bounded,
    naming: String,
    repository: String,
}

impl Services {
    fn start(command: &mut Command) -> Result<Self> {
        let program = Bounded::start("spandrel-up", command)?;
        let deadline = Instant::now() + START_TIMEOUT;
        let (mut naming, mut repository) = (None, None);
        while naming.is_none() || repository.is_none() {
            let line = program.line(deadline)?.with_context(|| format!("it is not ready: {}", program.stderr()))?;
            match line.trim_start_matches("ready: ").split_once(' ') {
                Some(("NameService", url)) => naming = Some(url.to_owned()),
                Some(("InterfaceRepository", url)) => repository = Some(url.to_owned()),
                _ => {}
            }
        }
        let (naming, repository) = (naming.unwrap_or_default(), repository.unwrap_or_default());
        Ok(Self { _program: program, naming, repository })
    }

    fn initial_references(&self) -> [String; 4] {
        let option = |name: &str, url: &str| format!("-ORBInitRef {name}={url}");
        let (naming, repository) =
            (option("NameService", &self.naming), option("InterfaceRepository", &self.repository));
        ["--orb".to_owned(), naming, "--orb".to_owned(), repository]
    }

    fn bind(&self, name: &str, reference: &str) -> Result<()> {
        let mut bind = program("spandrel");
        workspace::run(bind.args(["bind", "--parents", name, reference]).args(self.initial_references()))
    }

    /// An attribute of an object that is a reference.
    fn attribute(&self, object: &str, name: &str) -> Result<String> {
        let mut call = program("spandrel");
        let text = output(call.args(["call", "--json", object, name]).args(self.initial_references()))?;
        let reference = text.split('"').find(|part| part.starts_with("IOR:"));
        reference.map(str::to_owned).with_context(|| format!("no reference: {text}"))
    }
}

/// A proxy before the services.
struct Proxy {
    _program: Bounded,
    url: String,
    folder: PathBuf,
}

impl Proxy {
    fn start(services: &Services, exposed: &str, folder: &Path) -> Result<Self> {
        let tokens = folder.join("tokens.txt");
        fs::write(&tokens, format!("tester {TOKEN}\n"))?;
        workspace::run(Command::new("chmod").arg("640").arg(&tokens))?;
        let mut command = program("spandrel-proxy");
        command.args(["--expose", exposed, "--listen", "127.0.0.1:0", "--tokens"]).arg(tokens);
        let program = Bounded::start("spandrel-proxy", command.args(services.initial_references()))?;
        let line = program.line(Instant::now() + START_TIMEOUT)?.unwrap_or_default();
        let Some(url) = line.strip_prefix("ready: proxy ") else { bail!("it is not ready: {}", program.stderr()) };
        Ok(Self { url: url.trim_end_matches('/').to_owned(), folder: folder.to_owned(), _program: program })
    }

    /// Stores the document, and has it validated.
    fn check_document(&self, programs: &Path) -> Result<()> {
        let mut python = Command::new(programs.join("python"));
        python.args(["-c", DOWNLOAD, &format!("{}/openapi.json", self.url), TOKEN]);
        workspace::run(python.arg(self.document()))?;
        workspace::run(Command::new(programs.join("openapi-spec-validator")).arg(self.document()))
    }

    fn document(&self) -> PathBuf {
        self.folder.join("openapi.json")
    }

    fn call_with_generated_client(&self, programs: &Path) -> Result<()> {
        let client = self.folder.join("client");
        let mut generate = Command::new(programs.join("openapi-python-client"));
        generate.args(["generate", "--meta", "none", "--path"]).arg(self.document());
        workspace::run(generate.arg("--output-path").arg(client.join("bank")))?;
        let mut python = Command::new(programs.join("python"));
        workspace::run(python.current_dir(client).args(["-c", SCRIPT, &self.url, TOKEN]))
    }

    fn send_generated_requests(&self, programs: &Path, examples: u32) -> Result<()> {
        let mut command = Command::new(programs.join("schemathesis"));
        command.arg("run").arg(format!("{}/openapi.json", self.url));
        command.args(["--checks", "not_a_server_error,response_schema_conformance,content_type_conformance"]);
        command.args(["--max-examples", &examples.to_string(), "--header", &format!("Authorization: Bearer {TOKEN}")]);
        // One thread: several parse Python sources at once, which fails in CPython 3.11 (its issue 106905).
        command.args(["--request-timeout", "10", "--no-color", "--workers", "1"]);
        workspace::run(command.current_dir(&self.folder))
    }
}
