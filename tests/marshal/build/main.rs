//! Makes random IDL, has it compiled once for each marshaling engine, and lists the types for the tests.
//!
//! Seeds are fixed, so that everybody tests the same types. `SPANDREL_MARSHAL_SEEDS=100..120` takes others.

mod idl;

use std::{
    env,
    fmt::Write as _,
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
};

use idl::{Definition, Kind};

/// What the generated code is called, and how it is asked for. The engine of each type is chosen anew for `mixed`.
const CONTENDERS: [&str; 5] = ["compiled", "interpretive", "adaptive", "padded", "mixed"];

/// The seeds of the ordinary test run: a module each.
const SEEDS: Range<u64> = 0..6;

const TYPES_PER_SEED: usize = 40;

fn main() -> Result<(), spandrel_build::Error> {
    println!("cargo:rerun-if-env-changed=SPANDREL_MARSHAL_SEEDS");
    println!("cargo:rerun-if-changed=build");
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it"));
    let mut definitions = Vec::new();
    let mut text = String::from("// Random types.\n");
    for module in seeds().map(|seed| idl::module(seed, TYPES_PER_SEED)).chain([idl::found()]) {
        text.push_str(&module.text);
        definitions.extend(module.definitions);
    }
    let file = out_dir.join("random.idl");
    write(&file, &text).map_err(|source| spandrel_build::Error::Write { path: file.clone(), source })?;
    for contender in CONTENDERS {
        let folder = out_dir.join(contender);
        let made = fs::create_dir_all(&folder);
        made.map_err(|source| spandrel_build::Error::Write { path: folder.clone(), source })?;
        settings(contender, &definitions).out_dir(folder).compile(&[&file])?;
    }
    let list = out_dir.join("subjects.rs");
    write(&list, &subjects(&definitions)).map_err(|source| spandrel_build::Error::Write { path: list, source })
}

/// From the environment, or the usual ones.
fn seeds() -> Range<u64> {
    let Ok(text) = env::var("SPANDREL_MARSHAL_SEEDS") else { return SEEDS };
    let number = |text: &str| text.trim().parse().unwrap_or_else(|_| panic!("`{text}` is no seed"));
    match text.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => number(&text)..number(&text) + 1,
    }
}

/// Leaves a file alone that says the same already: what Cargo watches would seem to have changed.
fn write(file: &Path, text: &str) -> io::Result<()> {
    if fs::read(file).is_ok_and(|old| old == text.as_bytes()) { Ok(()) } else { fs::write(file, text) }
}

fn settings(contender: &str, definitions: &[Definition]) -> spandrel_build::Builder {
    let settings = spandrel_build::configure().asynchronous_client(false);
    match contender {
        "padded" => settings.pad_all(),
        "mixed" => {
            let mut rng = fastrand::Rng::with_seed(definitions.len() as u64);
            definitions.iter().fold(settings, |settings, definition| {
                let engine = ["compiled", "interpretive", "adaptive"][rng.usize(..3)];
                settings.marshal(&format!("{}={engine}", definition.scoped_name()))
            })
        }
        engine => settings.marshal(engine),
    }
}

/// A list of all types, each with what every contender makes of it.
fn subjects(definitions: &[Definition]) -> String {
    let mut list = String::from("[\n");
    for definition in definitions {
        let (name, path) = (definition.scoped_name(), definition.rust_path());
        let contenders = CONTENDERS.map(|contender| {
            let ty = format!("{contender}::{path}");
            let alias = format!("{contender}::{}", definition.rust_type_code());
            let (ty, type_code) = match definition.kind {
                Kind::Alias => (ty, alias),
                Kind::Reference => (format!("Option<{ty}>"), alias),
                Kind::Other => (ty.clone(), format!("<{ty} as Typed>::type_code")),
            };
            format!("Contender::new::<{ty}>(\"{contender}\", {type_code})")
        });
        _ = writeln!(list, "    Subject {{ name: \"{name}\", contenders: [{}] }},", contenders.join(", "));
    }
    list.push(']');
    list
}
