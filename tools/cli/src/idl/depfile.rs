//! The source files of each output, in the syntax of make (and of Ninja's `depfile`).

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use spandrel_idl::source::SourceMap;

/// Rules for make, one for each output.
#[derive(Debug, Default)]
pub(super) struct Depfile {
    rules: String,
    /// Included files, each with an empty rule, so that make continues when one is deleted and no longer
    /// included.
    included: BTreeSet<String>,
}

impl Depfile {
    /// Adds `output: source source …`.
    pub(super) fn rule(&mut self, output: &Path, sources: &SourceMap) {
        let mut names_before = BTreeSet::new();
        let files = sources.files().iter().filter(|file| !file.built_in);
        let names = files.map(|file| (escaped(&file.path), file.included_from.is_some()));
        _ = write!(self.rules, "{}:", escaped(output));
        for (name, included) in names {
            if names_before.insert(name.clone()) {
                _ = write!(self.rules, " \\\n  {name}");
            }
            if included {
                self.included.insert(name);
            }
        }
        self.rules.push('\n');
    }

    pub(super) fn text(&self) -> String {
        let empty = self.included.iter().map(|name| format!("\n{name}:\n"));
        self.rules.clone() + &empty.collect::<String>()
    }
}

/// A path escaped for make.
fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.to_string_lossy().chars() {
        match letter {
            '$' => text.push('$'),
            ' ' | '#' => text.push('\\'),
            _ => {}
        }
        text.push(letter);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_of_make_are_escaped() {
        assert_eq!(escaped(Path::new("a b/c#d$e.idl")), "a\\ b/c\\#d$$e.idl");
    }
}
