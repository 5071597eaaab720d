//! Generates random IDL, compiles it for each marshaling engine, and lists the types for the tests.
//!
//! The seeds are fixed, so that all runs test the same types. `SPANDREL_MARSHAL_SEEDS=100..120` selects others.

mod idl;

use std::{
    env,
    fmt::Write as _,
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
    time::SystemTime,
};

use idl::{Definition, Kind};

/// The variants of the generated code. `mixed` selects an engine for each type.
const VARIANTS: [&str; 5] = ["compiled", "interpretive", "adaptive", "padded", "mixed"];

/// The default seeds; each gives a module.
const SEEDS: Range<u64> = 0..6;

const TYPES_PER_SEED: usize = 40;

fn main() -> Result<(), spandrel_build::Error> {
    println!("cargo:rerun-if-env-changed=SPANDREL_MARSHAL_SEEDS");
    println!("cargo:rerun-if-changed=build");
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    let mut definitions = Vec::new();
    let mut text = String::from("// Random types.\n");
    for module in seeds().map(|seed| idl::module(seed, TYPES_PER_SEED)).chain([idl::regressions()]) {
        text.push_str(&module.text);
        definitions.extend(module.definitions);
    }
    let file = out_dir.join("random.idl");
    write(&file, &text).map_err(|source| spandrel_build::Error::Write { path: file.clone(), source })?;
    age(&file).map_err(|source| spandrel_build::Error::Write { path: file.clone(), source })?;
    for variant in VARIANTS {
        let folder = out_dir.join(variant);
        let created = fs::create_dir_all(&folder);
        created.map_err(|source| spandrel_build::Error::Write { path: folder.clone(), source })?;
        settings(variant, &definitions).out_dir(folder).compile(&[&file])?;
    }
    let list = out_dir.join("subjects.rs");
    write(&list, &subjects(&definitions)).map_err(|source| spandrel_build::Error::Write { path: list, source })
}

/// The seeds from the environment, or the default ones.
fn seeds() -> Range<u64> {
    let Ok(text) = env::var("SPANDREL_MARSHAL_SEEDS") else { return SEEDS };
    let number = |text: &str| text.trim().parse().unwrap_or_else(|_| panic!("`{text}` is not a seed"));
    match text.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => number(&text)..number(&text) + 1,
    }
}

/// Writes a file unless it has this content already, so that Cargo does not see a change.
fn write(file: &Path, text: &str) -> io::Result<()> {
    if fs::read(file).is_ok_and(|old| old == text.as_bytes()) { Ok(()) } else { fs::write(file, text) }
}

/// Makes a file older than this run. Cargo takes a file that is younger than the run that read it for a later change,
/// and would compile all types once more in its next call.
fn age(file: &Path) -> io::Result<()> {
    fs::File::options().append(true).open(file)?.set_modified(SystemTime::UNIX_EPOCH)
}

fn settings(variant: &str, definitions: &[Definition]) -> spandrel_build::Builder {
    let settings = spandrel_build::configure().asynchronous_client(false).portability_warnings(false);
    match variant {
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

/// The source of a list of all types with their variants.
fn subjects(definitions: &[Definition]) -> String {
    let mut list = String::from("[\n");
    for definition in definitions {
        let (name, path) = (definition.scoped_name(), definition.rust_path());
        let variants = VARIANTS.map(|variant| {
            let ty = format!("{variant}::{path}");
            let alias = format!("{variant}::{}", definition.rust_type_code());
            let (ty, type_code) = match definition.kind {
                Kind::Alias => (ty, alias),
                Kind::Reference => (format!("Option<{ty}>"), alias),
                Kind::Other => (ty.clone(), format!("<{ty} as Typed>::type_code")),
            };
            format!("Variant::new::<{ty}>(\"{variant}\", {type_code})")
        });
        _ = writeln!(list, "    Subject {{ name: \"{name}\", variants: [{}] }},", variants.join(", "));
    }
    list.push(']');
    list
}
