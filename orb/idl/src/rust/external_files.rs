//! The option `external`: names of IDL files, and the Rust modules with their definitions.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use super::bad_option::BadOption;
use crate::model::Model;
use crate::source::SourceFile;

/// The files with Rust modules of their own, in the order in which they were given.
#[derive(Clone, Debug, Default)]
pub(super) struct ExternalFiles {
    /// Names, which are the last components of paths, and modules.
    files: Vec<(PathBuf, String)>,
}

impl ExternalFiles {
    pub(super) fn add(&mut self, name: &Path, module: &str) {
        self.files.push((name.to_owned(), module.to_owned()));
    }

    /// The Rust module given for a file. Of several fitting names the longest applies.
    pub(super) fn module(&self, file: &Path) -> Option<&str> {
        self.index(file).map(|nth| self.files[nth].1.as_str())
    }

    /// The option that names a file, as it was given.
    pub(super) fn option_text(&self, file: &Path) -> Option<String> {
        self.index(file).map(|nth| format!("{}={}", self.files[nth].0.display(), self.files[nth].1))
    }

    fn index(&self, file: &Path) -> Option<usize> {
        let fitting = self.files.iter().enumerate().filter(|(_, (name, _))| names(name, file));
        fitting.max_by_key(|(nth, (name, _))| (name.components().count(), usize::MAX - nth)).map(|(nth, _)| nth)
    }

    /// Checks that each option `external` names one file of those that were read for `model`, or none.
    ///
    /// # Errors
    /// If one of them names different files, such as `types.idl` both `a/types.idl` and `b/types.idl`.
    pub(super) fn check(&self, model: &Model) -> Result<(), BadOption> {
        let mut claimed: HashMap<usize, &SourceFile> = HashMap::new();
        for file in model.sources().files() {
            let Some(nth) = self.index(&file.path) else { continue };
            let first = *claimed.entry(nth).or_insert(file);
            // One file has several paths where it is included from several folders.
            if first.text != file.text {
                let (one, other) = (first.path.display(), file.path.display());
                return Err(BadOption {
                    value: self.option_text(&file.path).unwrap_or_default(),
                    expected: format!("the name of one file: it names {one} and {other}, so give more of the path")
                        .into(),
                });
            }
        }
        Ok(())
    }
}

/// Whether a name of an option is that of a file: the last components of its path, or all of them after `./`.
fn names(name: &Path, file: &Path) -> bool {
    match name.strip_prefix(Component::CurDir) {
        Ok(name) => name == file.strip_prefix(Component::CurDir).unwrap_or(file),
        Err(_) => file.ends_with(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_fitting_name_applies() {
        let mut files = ExternalFiles::default();
        for (file, module) in
            [("types.idl", "all"), ("a/types.idl", "a"), ("./types.idl", "top"), ("types.idl", "late")]
        {
            files.add(Path::new(file), module);
        }
        for (file, module) in [
            ("b/types.idl", Some("all")),
            ("b/a/types.idl", Some("a")),
            ("types.idl", Some("top")),
            ("./types.idl", Some("top")),
            ("mytypes.idl", None),
        ] {
            assert_eq!(files.module(Path::new(file)), module, "{file}");
        }
    }
}
