//! Sizes of single functions: the stub and the skeleton of each operation by each engine and as they are without
//! generated marshaling, and the functions that write and read each type (paper 001, figure 7.2 and tables 7.5 to 7.8).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use spandrel_idl::rust::Sides;

use super::calls::Operation;
use super::crates::{self, Workspace, generated, write};
use super::fixtures::{self, Fixture};
use super::object::{Roots, sizes};
use super::settings::{Engine, Optimisation, Side};
use super::sizes::Sizes;
use crate::LabError;

/// The greatest number of libraries beside the executable that are tried.
const MOST_LIBRARIES: usize = 16;

/// A function, or several of one role, whose size is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The stub or the skeleton that the IDL compiler generates for an engine.
    Generated(Engine, Side),
    /// Code without generated marshaling: a dynamic request in place of the stub, and a dynamic skeleton that
    /// fills a list of named values.
    Dynamic(Side),
    /// The function that writes a value of the operation's type.
    Writes,
    /// The function that reads a value of the operation's type.
    Reads,
}

/// The size of some code of an operation of appendix C.
#[derive(Clone, Copy, Debug)]
pub struct CodeSize {
    /// The operation, or that whose type is written and read.
    pub operation: Operation,
    /// The stub, skeleton or function of which these are the sizes.
    pub code: Code,
    /// The octets of its functions, their helpers and their constants.
    pub sizes: Sizes,
}

/// The libraries that measured code is compiled against.
#[derive(Clone, Copy, Debug)]
pub enum Libraries<'p> {
    /// Cargo builds those of a source tree, in a folder.
    Built {
        /// The folder of the source tree.
        tree: &'p Path,
        /// The folder of everything that is built.
        out: &'p Path,
    },
    /// Those beside this executable, from its own build. Only the measured code is compiled, in a folder.
    Beside {
        /// The folder of the measured code.
        out: &'p Path,
    },
}

/// A crate, and what is measured in it.
struct Measured {
    name: String,
    text: String,
    parts: Vec<(Operation, Code, Roots<'static>)>,
}

/// The octets of all code of these operations.
///
/// # Errors
/// If something cannot be compiled or analysed.
pub fn code_sizes(
    operations: &[Operation],
    optimisation: Optimisation,
    libraries: Libraries<'_>,
) -> Result<Vec<CodeSize>, LabError> {
    let fixtures = fixtures::operations();
    let mut crates = Vec::new();
    for operation in operations {
        let fixture = fixtures.iter().find(|fixture| fixture.name == operation.name());
        let fixture = fixture.ok_or_else(|| LabError::Settings(format!("{} has no IDL", operation.name())))?;
        for engine in Engine::ALL {
            for side in Side::ALL {
                crates.push(Measured {
                    name: crates::crate_name(fixture, engine, side),
                    text: crates::library(fixture, engine, side)?,
                    parts: vec![(*operation, Code::Generated(engine, side), Roots::Side(side))],
                });
            }
        }
        crates.push(dynamic(*operation, fixture)?);
        crates.push(marshaling(*operation, fixture)?);
    }
    let archives = match libraries {
        Libraries::Built { tree, out } => built(&crates, optimisation, tree, out)?,
        Libraries::Beside { out } => beside(&crates, optimisation, out)?,
    };
    let mut measured = Vec::new();
    for (one, archive) in crates.iter().zip(archives) {
        for (operation, code, roots) in &one.parts {
            measured.push(CodeSize { operation: *operation, code: *code, sizes: sizes(&archive, *roots)? });
        }
    }
    Ok(measured)
}

/// The crates' archives, which Cargo builds with all libraries.
fn built(crates: &[Measured], optimisation: Optimisation, tree: &Path, out: &Path) -> Result<Vec<PathBuf>, LabError> {
    let workspace = Workspace::new(tree, &out.join(optimisation.name()), optimisation);
    workspace.write(crates.iter().map(|one| (one.name.as_str(), one.text.as_str())))?;
    workspace.build()?;
    Ok(crates.iter().map(|one| workspace.archive(&one.name)).collect())
}

/// The crates' archives, each compiled against the newest library of this build that has what it needs.
fn beside(crates: &[Measured], optimisation: Optimisation, out: &Path) -> Result<Vec<PathBuf>, LabError> {
    let mut libraries = libraries_beside()?;
    let mut archives = Vec::new();
    for one in crates {
        let source = out.join(format!("{}.rs", one.name));
        write(&source, &one.text)?;
        let archive = out.join(format!("lib{}.rlib", one.name));
        loop {
            let Some(library) = libraries.first() else {
                return Err(LabError::Settings("no library beside this executable has servers and clients".to_owned()));
            };
            match compile(&source, &archive, optimisation, library) {
                Ok(()) => break,
                // Builds with fewer features lie beside the others.
                Err(_) if libraries.len() > 1 => _ = libraries.remove(0),
                Err(error) => return Err(error),
            }
        }
        archives.push(archive);
    }
    Ok(archives)
}

/// The libraries `spandrel` of the build that this executable comes from, the newest first.
fn libraries_beside() -> Result<Vec<PathBuf>, LabError> {
    let program = env::current_exe().map_err(LabError::io("find this executable"))?;
    let folder = program.with_file_name("deps");
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libspandrel-") && name.ends_with(".rlib")
    };
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut libraries: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_library).collect();
    let age = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    libraries.sort_by_key(|path| std::cmp::Reverse(age(path)));
    libraries.truncate(MOST_LIBRARIES);
    if libraries.is_empty() {
        let reason = format!("{} has no libraries of the build of this executable", folder.display());
        return Err(LabError::Settings(reason));
    }
    Ok(libraries)
}

fn compile(source: &Path, archive: &Path, optimisation: Optimisation, library: &Path) -> Result<(), LabError> {
    let mut command = Command::new("rustc");
    command.args(["--edition=2024", "--crate-type=rlib", "--cap-lints=allow", "-Ccodegen-units=1"]);
    command.args(["-Csymbol-mangling-version=v0", &format!("-Copt-level={}", optimisation.level().trim_matches('"'))]);
    let folder = library.parent().unwrap_or(Path::new("."));
    command.arg("-L").arg(format!("dependency={}", folder.display()));
    command.arg("--extern").arg(format!("spandrel={}", library.display()));
    command.arg("-o").arg(archive).arg(source).stdin(Stdio::null());
    let output = command.output().map_err(LabError::io("start the compiler"))?;
    if output.status.success() {
        return Ok(());
    }
    let detail: String = String::from_utf8_lossy(&output.stderr).lines().take(8).collect::<Vec<&str>>().join("\n");
    Err(LabError::Peer { role: format!("compiler of {}", source.display()), detail })
}

/// The types of an operation's `in` parameter and of its others, in a crate of generated code.
fn types(operation: Operation) -> [&'static str; 2] {
    match operation {
        Operation::Short => ["&i16", "i16"],
        Operation::String => ["&str", "String"],
        Operation::FixedStruct => ["&crate::param_test::FixedStruct", "crate::param_test::FixedStruct"],
        Operation::StrSeq => ["&[String]", "crate::param_test::StrSeq"],
        Operation::VarStruct => ["&crate::param_test::VarStruct", "crate::param_test::VarStruct"],
        Operation::NestedStruct => ["&crate::param_test::NestedStruct", "crate::param_test::NestedStruct"],
        Operation::StructSeq => ["&[crate::param_test::VarStruct]", "crate::param_test::StructSeq"],
    }
}

/// The stub as a dynamic request, and the skeleton with a list of named values.
fn dynamic(operation: Operation, fixture: &Fixture) -> Result<Measured, LabError> {
    let rust = generated(fixture, Engine::Compiled, Sides::Both)?;
    let ([argument, owned], name) = (types(operation), operation.name());
    // The servant takes what the list has: its own value, borrowed.
    let passed = if operation == Operation::Short { "s1" } else { "&s1" };
    let text = format!(
        r#"#![allow(warnings)]
{rust}
pub mod unoptimised {{
    use ::spandrel::dynamic::{{ArgMode, NamedValue, NvList, Request, RequestError, ServerRequest}};
    use ::spandrel::types::Typed;
    use ::spandrel::{{ObjectRef, SystemException}};

    #[inline(never)]
    pub fn stub(object: &ObjectRef, s1: {argument}, s2: &mut {owned}) -> Result<({owned}, {owned}), RequestError> {{
        let mut request = Request::new(object, "{name}");
        request.add_in_arg_named("s1", s1)?;
        request.add_inout_arg_named("s2", &*s2)?;
        request.add_out_arg_named("s3", <{owned} as Typed>::type_code());
        request.set_return_type(<{owned} as Typed>::type_code());
        request.invoke()?;
        *s2 = request.argument(1)?;
        Ok((request.return_value()?, request.argument(2)?))
    }}

    #[inline(never)]
    pub fn skeleton(
        servant: &dyn crate::ParamTestServant,
        request: &mut ServerRequest<'_>,
    ) -> Result<(), SystemException> {{
        let mut list = NvList::new();
        list.add(NamedValue::of_type("s1", ArgMode::In, <{owned} as Typed>::type_code()));
        list.add(NamedValue::of_type("s2", ArgMode::InOut, <{owned} as Typed>::type_code()));
        list.add(NamedValue::of_type("s3", ArgMode::Out, <{owned} as Typed>::type_code()));
        let list = request.arguments(list)?;
        let s1: {owned} = list.extract(0)?;
        let mut s2: {owned} = list.extract(1)?;
        let (result, s3) = servant.{name}({passed}, &mut s2)?;
        list.set(1, &s2)?;
        list.set(2, &s3)?;
        request.set_result(&result)
    }}
}}
"#
    );
    Ok(Measured {
        name: format!("{name}_dynamic"),
        text,
        parts: vec![
            (operation, Code::Dynamic(Side::Stub), Roots::Function("::unoptimised::stub")),
            (operation, Code::Dynamic(Side::Skeleton), Roots::Function("::unoptimised::skeleton")),
        ],
    })
}

/// A function that writes a value of the operation's type, and one that reads it.
fn marshaling(operation: Operation, fixture: &Fixture) -> Result<Measured, LabError> {
    let rust = generated(fixture, Engine::Compiled, Sides::Both)?;
    let [_, owned] = types(operation);
    let text = format!(
        r#"#![allow(warnings)]
{rust}
pub mod marshaling {{
    use ::spandrel::generated::{{CdrError, Decode, Decoder, Encode, Encoder}};

    #[inline(never)]
    pub fn write<'a>(value: &'a {owned}, out: &mut Encoder<'a>) -> Result<(), CdrError> {{
        Encode::encode(value, out)
    }}

    #[inline(never)]
    pub fn read(input: &mut Decoder<'_>) -> Result<{owned}, CdrError> {{
        Decode::decode(input)
    }}
}}
"#
    );
    Ok(Measured {
        name: format!("{}_marshaling", operation.name()),
        text,
        parts: vec![
            (operation, Code::Writes, Roots::Function("::marshaling::write")),
            (operation, Code::Reads, Roots::Function("::marshaling::read")),
        ],
    })
}
