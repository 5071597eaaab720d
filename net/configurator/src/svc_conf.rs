//! The language of configuration files: ACE's `svc.conf`, its XML form, and `include`.
//!
//! ```text
//! dynamic  NAME TYPE * LIBRARY:FACTORY() [active|inactive] ["PARAMETERS"]
//! static   NAME ["PARAMETERS"]
//! suspend  NAME
//! resume   NAME
//! remove   NAME
//! stream   dynamic … | static … | NAME  { MODULE … }
//! include  "FILE"
//! ```
//!
//! TYPE is `Service_Object`, `Module` or `STREAM`. `#` begins a comment. `include` is an addition to ACE's language: the
//! directives of a file, whose name is relative to that of the file that includes it.

mod arguments;
mod directive;
mod lexer;
mod parser;
mod syntax_error;
#[cfg(test)]
mod tests;
mod xml;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use arguments::arguments;
#[cfg(test)]
pub(crate) use arguments::arguments_with;
pub use directive::{
    Directive, DirectiveKind, Dynamic, Location, Origin, Position, ServiceKind, Static, StreamDirective, StreamHead,
};
use parser::Entry;
pub use syntax_error::SyntaxError;

/// The maximum size of a file, in octets.
const MAX_OCTETS: u64 = 1 << 20;
/// The maximum number of files that include each other.
const MAX_DEPTH: usize = 16;
/// The maximum number of directives.
const MAX_DIRECTIVES: usize = 10_000;

/// The reason for which a configuration cannot be read.
#[derive(thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read {}", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// An included file cannot be read; the place of its directive, and the cause.
    #[error("{0}: {1}")]
    Included(Origin, #[source] Box<ReadError>),
    /// The texts of directives are wrong.
    #[error("{}", lines(.0, .1))]
    Syntax(PathBuf, Vec<SyntaxError>),
    /// Files include each other in a circle, or too deeply.
    #[error("{} is included more than {MAX_DEPTH} files deep", .0.display())]
    Depth(PathBuf),
    /// There are too many directives.
    #[error("there are more than {MAX_DIRECTIVES} directives")]
    TooMany,
}

spandrel_error::debug_as_report!(ReadError);

fn lines(file: &Path, errors: &[SyntaxError]) -> String {
    let prefix = if file.as_os_str().is_empty() { "directive".into() } else { file.display().to_string() };
    errors.iter().map(|error| format!("{prefix}:{error}")).collect::<Vec<_>>().join("\n")
}

/// Reads directives from a text, in the form of ACE's language or in XML. Without a file, `include` is relative to the
/// current folder.
///
/// # Errors
/// [`ReadError`].
pub fn parse(text: &str) -> Result<Vec<Directive>, ReadError> {
    let mut directives = Vec::new();
    let mut files = Vec::new();
    add(text, Path::new(""), 0, &mut directives, &mut files)?;
    Ok(directives)
}

/// The directives of a file and of those that it includes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The directives, in the order of the files; those of an included file stand in place of its directive.
    pub directives: Vec<Directive>,
    /// All files that were read.
    pub files: Vec<PathBuf>,
}

/// Reads a file in the format `svc.conf`, and all files that it includes.
///
/// # Errors
/// [`ReadError`].
pub fn read(file: &Path) -> Result<Configuration, ReadError> {
    let mut configuration = Configuration::default();
    read_into(file, 0, &mut configuration.directives, &mut configuration.files)?;
    Ok(configuration)
}

fn read_into(
    file: &Path,
    depth: usize,
    directives: &mut Vec<Directive>,
    files: &mut Vec<PathBuf>,
) -> Result<(), ReadError> {
    if depth >= MAX_DEPTH {
        return Err(ReadError::Depth(file.to_owned()));
    }
    let failed = |error| ReadError::File(file.to_owned(), error);
    files.push(file.to_owned());
    let metadata = fs::metadata(file).map_err(failed)?;
    if !metadata.is_file() || metadata.len() > MAX_OCTETS {
        let text = format!("it is no file of at most {MAX_OCTETS} octets");
        return Err(failed(io::Error::new(io::ErrorKind::InvalidData, text)));
    }
    let text = fs::read_to_string(file).map_err(failed)?;
    add(&text, file, depth, directives, files)
}

fn add(
    text: &str,
    file: &Path,
    depth: usize,
    directives: &mut Vec<Directive>,
    files: &mut Vec<PathBuf>,
) -> Result<(), ReadError> {
    let entries = if xml::is_xml(text) { xml::parse(text) } else { parser::parse(text) };
    for entry in entries.map_err(|errors| ReadError::Syntax(file.to_owned(), errors))? {
        match entry {
            Entry::Directive(mut directive) => {
                set_file(&mut directive, file);
                directives.push(directive);
                if directives.len() > MAX_DIRECTIVES {
                    return Err(ReadError::TooMany);
                }
            }
            Entry::Include(path, position) => {
                let path = file.parent().unwrap_or(Path::new("")).join(path);
                read_into(&path, depth + 1, directives, files).map_err(|error| match error {
                    ReadError::File(..) | ReadError::Depth(_) => {
                        ReadError::Included(Origin { file: file.to_owned(), position }, Box::new(error))
                    }
                    error => error,
                })?;
            }
        }
    }
    Ok(())
}

fn set_file(directive: &mut Directive, file: &Path) {
    directive.origin.file = file.to_owned();
    if let DirectiveKind::Stream(stream) = &mut directive.kind {
        stream.modules.iter_mut().for_each(|module| set_file(module, file));
    }
}
