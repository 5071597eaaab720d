//! Several files of one build, with each definition in the Rust of one of them.
//!
//! A definition belongs to the Rust file of the IDL file that declares it, if that is one of the build, and
//! otherwise to that of the first file that includes it. A module that several files open belongs as a whole
//! to the first of them, whether they include each other or not. All Rust files are included in the same module of the program, where they find each
//! other's definitions by relative paths.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use spandrel_error::{escape, excerpt};

use super::output;
use super::types::Context;
use super::{Options, SourceFile};
use crate::model::{DefId, Definition, DefinitionKind, Model};
use crate::source::{FileId, SourceMap};

/// One of several IDL files that a build compiles together.
#[derive(Clone, Copy, Debug)]
pub struct Input<'i> {
    /// The path, as it was given to the front end.
    pub file: &'i Path,
    /// The name of its Rust file, without `.rs`.
    pub stem: &'i str,
    /// The model of this file alone, with its includes.
    pub model: &'i Model,
}

/// Whether the outputs of files for the same Rust module refer to each other or collide: the files read a source file
/// in common, or their outputs have a name in common, such as an IDL module that both open.
#[must_use]
pub fn shares_definitions(inputs: &[Input<'_>], options: &Options) -> bool {
    let (mut all_files, mut all_names) = (HashSet::new(), HashSet::new());
    inputs.iter().any(|input| {
        let sources = input.model.sources();
        let definitions = input.model.definitions().filter(|it| !matches!(it.kind, DefinitionKind::Module(_)));
        let files = definitions.map(|definition| sources.file(definition.span.file).path.as_path());
        let files: HashSet<&Path> = files.filter(|path| options.external_module(path).is_none()).collect();
        let names: HashSet<String> = match options.prefix.first() {
            Some(module) => [module.clone()].into(),
            None => Context::new(input.model, options).names.top_level().clone(),
        };
        files.into_iter().any(|path| !all_files.insert(path)) || names.into_iter().any(|name| !all_names.insert(name))
    })
}

/// Generates the Rust of several files: `stem`.rs for each of them, with a file for each IDL module if
/// `per_module`. `together` is their common model ([`compile_together`](crate::compile_together)).
///
/// # Errors
/// The first definition that the common model does not have as one of the files has it.
pub fn generate_together(
    inputs: &[Input<'_>],
    together: &Model,
    options: &Options,
    per_module: bool,
) -> Result<Vec<SourceFile>, Disagreement> {
    if let Some(disagreement) = inputs.iter().find_map(|input| disagreement(input, inputs, together)) {
        return Err(disagreement);
    }
    let owners = Owners::new(inputs, together.sources());
    let owner = |id: DefId| owners.of_file(together[id].span.file);
    let files: Vec<(&Path, &str)> = inputs.iter().map(|input| (input.file, input.stem)).collect();
    Ok(output::files_of_build(together, options, per_module, &files, owner))
}

/// A definition that two files of one build see differently, such as by macros defined before an include.
/// Displayed in one line, which names the definition, the files, and the first difference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` ({location}) {difference}")]
pub struct Disagreement {
    name: String,
    /// Source file and line.
    location: String,
    difference: String,
}

/// The first definition of a file that the common model has in another form.
fn disagreement<'i>(input: &Input<'i>, inputs: &[Input<'i>], together: &Model) -> Option<Disagreement> {
    let model = input.model;
    let differs = |ours: &&Definition| {
        let common = together.lookup(&ours.scoped_name);
        common.is_none_or(|common| !agrees(model, ours, together, common))
    };
    let ours = model.definitions().find(differs)?;
    let (file, line) = (&model.sources().file(ours.span.file).path, model.sources().line_column(ours.span).0);
    let lookup = |input: &Input<'i>| input.model.lookup(&ours.scoped_name);
    let view = |input: &Input<'i>| lookup(input).filter(|it| !it.is_forward_only()).map(|it| parts(input.model, it));
    let own = parts(model, ours);
    let reads = |input: &Input<'i>| input.model.sources().files().iter().any(|source| source.path == *file);
    let mut others = inputs.iter().filter(|other| other.file != input.file);
    let other = others.clone().find(|other| view(other).is_some_and(|other| other != own));
    let other = other.or_else(|| others.find(|other| reads(other) && lookup(other).is_none()));
    let path = |file: &Path| escape(&file.to_string_lossy()).to_string();
    let here = path(input.file);
    let difference = match other {
        None => format!("exists for {here} only"),
        Some(other) => {
            let there = path(other.file);
            match view(other) {
                None => format!("exists for {here} and not for {there}"),
                Some(theirs) => {
                    let common = own.iter().zip(&theirs).take_while(|(one, other)| one == other).count();
                    let part = |parts: &[String]| match parts.get(common) {
                        Some(part) => format!("`{}`", excerpt(part)),
                        None => "nothing more".to_owned(),
                    };
                    format!("has {} for {here} and {} for {there}", part(&own), part(&theirs))
                }
            }
        }
    };
    Some(Disagreement {
        name: excerpt(&ours.scoped_name).to_string(),
        location: format!("{}:{line}", path(file)),
        difference,
    })
}

/// Whether a definition may be generated in the form of the common model.
fn agrees(model: &Model, ours: &Definition, together: &Model, common: &Definition) -> bool {
    match (&ours.kind, &common.kind) {
        // Other files may add to it, and open it under another prefix: its id is in no generated code.
        (DefinitionKind::Module(_), DefinitionKind::Module(_)) => true,
        // Another file may define what this one only declares.
        (DefinitionKind::Interface(one), DefinitionKind::Interface(other)) if one.forward_only => {
            ours.repository_id == common.repository_id
                && (one.is_abstract, one.is_local) == (other.is_abstract, other.is_local)
        }
        (DefinitionKind::ValueType(one), DefinitionKind::ValueType(_)) if one.forward_only => {
            ours.repository_id == common.repository_id
        }
        _ => parts(model, ours) == parts(together, common),
    }
}

/// A definition in comparable parts, as an IDL-like text: kind, name and repository id, then each member, value or
/// parameter list, then the names of its contents.
fn parts(model: &Model, definition: &Definition) -> Vec<String> {
    let line = model.line_of(definition);
    let parts = line.split_inclusive([';', '{']).map(|part| part.trim().to_owned());
    let contents =
        model.contents(definition.id).iter().map(|&id| format!("{} {}", model[id].kind.keyword(), model[id].name));
    parts.chain(contents).collect()
}

/// The input to which each source file belongs.
struct Owners(HashMap<FileId, usize>);

impl Owners {
    fn new(inputs: &[Input<'_>], sources: &SourceMap) -> Self {
        let mut owners = HashMap::new();
        // A file is listed after the one that includes it; the main file includes the inputs.
        for (nth, file) in sources.files().iter().enumerate() {
            let own = inputs.iter().position(|input| input.file == file.path);
            let includer = file.included_from.and_then(|span| owners.get(&span.file).copied());
            owners.insert(FileId(nth as u32), own.or(includer).unwrap_or(0));
        }
        Self(owners)
    }

    fn of_file(&self, file: FileId) -> usize {
        self.0.get(&file).copied().unwrap_or(0)
    }
}
