//! The octets that a CORBA client adds to the smallest program with a socket, now and as recorded.

use std::path::{Path, PathBuf};
use std::{env, fs};

use spandrel_idl::rust::{Options, Sides, generate};
use spandrel_idl::{FrontEndOptions, MemoryFiles, compile_with};

use super::crates::{cargo, write};
use super::results::Minimum;
use crate::LabError;

const IDL: &str = "interface Account { long long deposit(in long long cents); };";

/// Writes to a socket and reads from it.
const SOCKET: &str = r#"use std::io::{Read, Write};

fn main() {
    let address = std::env::args().nth(1).unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(&500i64.to_le_bytes()).unwrap();
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).unwrap();
    println!("{}", i64::from_le_bytes(answer));
}
"#;

/// Invokes one operation of one object.
const CLIENT: &str = r#"mod idl;

fn main() {
    let reference = std::env::args().nth(1).unwrap();
    let orb = spandrel::OrbBuilder::bare().build().unwrap();
    let account = idl::Account::unchecked_narrow(&orb.string_to_object(&reference).unwrap());
    println!("{}", account.deposit(500).unwrap());
}
"#;

/// The value of [`Minimum::added`] on x86-64 Linux when it was last recorded (2026-11-30). A test fails on
/// more than [`MAX_GROWTH`] above it, and on a page with another value.
pub const RECORDED: u64 = 165_408;

/// Tolerated growth in percent.
pub const MAX_GROWTH: f64 = 1.0;

impl Minimum {
    /// The octets by which the client is larger than the program with a socket.
    #[must_use]
    pub fn added(&self) -> u64 {
        self.client.saturating_sub(self.socket)
    }

    /// The growth since the [recorded](RECORDED) value in percent; negative if it shrank.
    #[must_use]
    pub fn growth(&self) -> f64 {
        (self.added() as f64 / RECORDED as f64 - 1.0) * 100.0
    }
}

/// Builds both, for size: `opt-level = "z"`, link-time optimisation, `panic = "abort"`, stripped, the
/// smallest set of features.
pub(super) fn sizes(tree: &Path, out: &Path) -> Result<Minimum, LabError> {
    let folder = out.join("minimum");
    let manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"socket\", \"client\"]\n\n[profile.release]\nopt-level = \"z\"\nlto = true\ncodegen-units = 1\npanic = \"abort\"\nstrip = true\n";
    write(&folder.join("Cargo.toml"), manifest)?;
    let package = |name: &str, dependencies: &str| {
        format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}"
        )
    };
    write(&folder.join("socket/Cargo.toml"), &package("socket", ""))?;
    write(&folder.join("socket/src/main.rs"), SOCKET)?;
    let spandrel = format!("spandrel = {{ path = {:?}, default-features = false }}\n", tree.join("spandrel"));
    write(&folder.join("client/Cargo.toml"), &package("client", &spandrel))?;
    write(&folder.join("client/src/main.rs"), CLIENT)?;
    write(&folder.join("client/src/idl.rs"), &stub()?)?;
    write(&folder.join("Cargo.lock"), &fs::read_to_string(tree.join("Cargo.lock")).unwrap_or_default())?;
    cargo(&folder, &["build", "--release", "--quiet"], &remapped(tree))?;
    let octets = |name: &str| {
        let path = folder.join("target/release").join(name);
        let size = fs::metadata(&path).map(|file| file.len());
        size.map_err(|cause| LabError::Io { action: format!("find {}", path.display()), cause })
    };
    Ok(Minimum { socket: octets("socket")?, client: octets("client")? })
}

/// Flags that make the source paths in panic messages equally long, wherever the source tree and Cargo's
/// folder are.
fn remapped(tree: &Path) -> Vec<String> {
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let cargo = env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let flag = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    cargo.iter().map(|cargo| flag(cargo, "/cargo")).chain([flag(tree, "/spandrel")]).collect()
}

fn stub() -> Result<String, LabError> {
    let files = MemoryFiles::new().with("account.idl", IDL);
    let model = compile_with(&FrontEndOptions::default(), &files, "account.idl".as_ref());
    let model = model.map_err(|error| LabError::Settings(error.to_string()))?;
    Ok(generate(&model, &Options::new().sides(Sides::Client).asynchronous_client(false)))
}
