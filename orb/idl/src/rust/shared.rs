//! Several files of one build, with each definition in the Rust of one of them.
//!
//! A definition belongs to the Rust file of the IDL file that declares it, if that is one of the build, and
//! otherwise to that of the first file that includes it. A module that several files reopen belongs as a whole
//! to the first of them. All Rust files are included in the same module of the program, where they find each
//! other's definitions by relative paths.

use std::collections::{HashMap, HashSet};
use std::mem::discriminant;
use std::path::Path;

use super::output;
use super::{Options, SourceFile};
use crate::model::{ConstValue, DefId, Definition, DefinitionKind, Model};
use crate::source::{FileId, SourceMap};

/// An IDL file of a build.
#[derive(Clone, Copy, Debug)]
pub struct Input<'i> {
    /// Its path, as given to the front end.
    pub file: &'i Path,
    /// The name of its Rust file, without `.rs`.
    pub stem: &'i str,
    /// Its own model.
    pub model: &'i Model,
}

/// Whether several files would generate code for a definition of the same source file.
#[must_use]
pub fn shares_definitions(inputs: &[Input<'_>], options: &Options) -> bool {
    let is_external = |path: &Path| options.externals.iter().any(|(file, _)| path.ends_with(file));
    // The code of such a file is included in a module of its own.
    if inputs.iter().any(|input| is_external(input.file)) {
        return false;
    }
    let mut all = HashSet::new();
    inputs.iter().any(|input| {
        let sources = input.model.sources();
        let written = input.model.definitions().filter(|it| !matches!(it.kind, DefinitionKind::Module(_)));
        let files = written.map(|it| sources.file(it.span.file).path.as_path());
        let files: HashSet<&Path> = files.filter(|path| !is_external(path)).collect();
        files.into_iter().any(|path| !all.insert(path))
    })
}

/// Generates the Rust of several files: `stem`.rs for each of them, with a file for each IDL module if
/// `per_module`. `together` is their common model ([`compile_together`](crate::compile_together)).
///
/// Returns `None` if the common model has other definitions than the models of the files.
#[must_use]
pub fn generate_together(
    inputs: &[Input<'_>],
    together: &Model,
    options: &Options,
    per_module: bool,
) -> Option<Vec<SourceFile>> {
    if !inputs.iter().all(|input| is_part_of(input.model, together)) {
        return None;
    }
    let owners = Owners::new(inputs, together.sources());
    let owner = |id: DefId| owners.of_file(together[id].span.file);
    let files: Vec<(&Path, &str)> = inputs.iter().map(|input| (input.file, input.stem)).collect();
    Some(output::files_of_build(together, options, per_module, &files, owner))
}

/// Whether all definitions of a model are in another, too.
fn is_part_of(model: &Model, together: &Model) -> bool {
    model.definitions().all(|ours| {
        together.lookup(&ours.scoped_name).is_some_and(|common| {
            ours.repository_id == common.repository_id
                && discriminant(&ours.kind) == discriminant(&common.kind)
                && shape(model, ours) == shape(together, common)
        })
    })
}

/// The contents of a definition, as far as a macro may easily change them: members, values, operations.
fn shape(model: &Model, definition: &Definition) -> Vec<String> {
    let contents = model.contents(definition.id).iter().map(|&id| model[id].name.clone());
    match &definition.kind {
        // Other files may add to it.
        DefinitionKind::Module(_) => Vec::new(),
        DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => {
            body.members.iter().map(|member| member.name.clone()).collect()
        }
        DefinitionKind::Union(body) => body.branches.iter().map(|branch| branch.member.name.clone()).collect(),
        DefinitionKind::Enum(body) => body.enumerators.iter().map(|&id| model[id].name.clone()).collect(),
        DefinitionKind::Const(body) if !matches!(body.value, ConstValue::Enumerator(_)) => {
            vec![format!("{:?}", body.value)]
        }
        _ => contents.collect(),
    }
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
