//! Figures of source files: gates, lengths, and openings of doc lines.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::visit::{self, Visit};

use super::conditions::features;
use super::words::Words;
use crate::workspace;

/// Words that say nothing about the subject of a sentence that they begin.
const VAGUE: &[&str] = &["what", "who", "whoever", "nobody", "somebody", "everybody", "whose", "that which"];

/// Files below this number of lines are small.
pub(crate) const SMALL: usize = 50;
/// Files above this number of lines are large.
pub(crate) const LARGE: usize = 450;
/// Files above this number of lines are huge.
pub(crate) const HUGE: usize = 600;

/// Figures of a package, or of several.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measures {
    pub(crate) gates: Gates,
    pub(crate) vague_docs: usize,
    pub(crate) words: Words,
    /// Lines of each file below `src/`.
    pub(crate) lengths: Vec<usize>,
    /// Lines of each file beside `src/`: tests, examples, build scripts.
    pub(crate) other_lengths: Vec<usize>,
}

/// Counts of `feature = "` in the sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gates {
    pub(crate) all: usize,
    /// Gates in conditions of whole files, of `mod`, of `use` and of `extern crate`.
    pub(crate) on_modules: usize,
}

impl Gates {
    /// Gates on fields, statements, functions and the like.
    pub(crate) fn on_others(self) -> usize {
        self.all - self.on_modules
    }
}

impl Measures {
    /// Measures all Rust files of a package.
    pub(crate) fn of_package(folder: &Path) -> Result<Measures> {
        // A package may have a folder of Cargo's output.
        let is_output =
            |file: &Path| file.strip_prefix(folder).is_ok_and(|file| file.iter().any(|name| name == "target"));
        let is_own = |file: &PathBuf| workspace::is_rust(file) && !is_output(file);
        let source = folder.join("src");
        let mut measures = Measures::default();
        for file in workspace::files(folder)?.into_iter().filter(is_own) {
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            measures.add_file(&text, file.starts_with(&source)).with_context(|| format!("in {}", file.display()))?;
            measures.words.add_file(&file, &text).with_context(|| format!("in {}", file.display()))?;
        }
        Ok(measures)
    }

    fn add_file(&mut self, text: &str, is_source: bool) -> Result<()> {
        let gates = gates(text)?;
        self.gates.all += gates.all;
        self.gates.on_modules += gates.on_modules;
        self.vague_docs += text.lines().filter(|line| is_vague_doc(line)).count();
        let lengths = if is_source { &mut self.lengths } else { &mut self.other_lengths };
        lengths.push(text.lines().count());
        Ok(())
    }

    pub(crate) fn add(&mut self, other: &Measures) {
        self.gates.all += other.gates.all;
        self.gates.on_modules += other.gates.on_modules;
        self.vague_docs += other.vague_docs;
        self.lengths.extend(&other.lengths);
        self.other_lengths.extend(&other.other_lengths);
    }
}

fn gates(text: &str) -> Result<Gates> {
    let all = text.matches("feature = \"").count();
    if all == 0 {
        return Ok(Gates::default());
    }
    let file = syn::parse_file(text)?;
    let mut gates_on_modules = GatesOnModules(features(&file.attrs));
    gates_on_modules.visit_file(&file);
    Ok(Gates { all, on_modules: gates_on_modules.0.min(all) })
}

struct GatesOnModules(usize);

impl<'ast> Visit<'ast> for GatesOnModules {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.0 += features(&item.attrs);
        visit::visit_item_mod(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.0 += features(&item.attrs);
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        self.0 += features(&item.attrs);
    }
}

/// Whether a doc line, or a sentence in it, begins with a vague word.
fn is_vague_doc(line: &str) -> bool {
    let line = line.trim_start();
    let Some(text) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else { return false };
    if text.starts_with('/') {
        return false; // a rule, not a doc comment
    }
    let text = text.trim_start_matches([' ', '#', '*', '-', '>']);
    begins_vaguely(text) || text.match_indices(['.', '?', '!']).any(|(at, _)| begins_a_vague_sentence(&text[at + 1..]))
}

/// The rest of a line behind a full stop; `e.g. what` does not begin a sentence.
fn begins_a_vague_sentence(rest: &str) -> bool {
    rest.strip_prefix(' ').is_some_and(|rest| rest.starts_with(char::is_uppercase) && begins_vaguely(rest))
}

fn begins_vaguely(text: &str) -> bool {
    VAGUE.iter().any(|word| {
        let begins = text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        begins && !text[word.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
    })
}

/// The middle one of these lengths; the lower of the two middle ones of an even number.
pub(crate) fn median(lengths: &[usize]) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_on_statements_and_on_modules_are_distinguished() {
        let text = r#"
            #![cfg(feature = "all")]
            #[cfg(any(feature = "a", feature = "b"))]
            pub use x::Y;
            #[cfg(not(feature = "a"))]
            mod absent;
            struct S {
                #[cfg(feature = "a")]
                field: u8,
            }
            fn f() {
                #[cfg(all(unix, feature = "a"))]
                call();
                if cfg!(feature = "b") {}
            }
        "#;
        let gates = gates(text).unwrap();
        assert_eq!((gates.all, gates.on_modules, gates.on_others()), (7, 4, 3));
    }

    #[test]
    fn a_doc_line_is_vague_by_the_first_word_of_a_sentence() {
        for line in [
            "/// What is sent.",
            "    //! Closes it. Nobody reads.",
            "/// - whose",
            "/// that which is kept",
            "/// WHO",
        ] {
            assert!(is_vague_doc(line), "{line}");
        }
        for line in [
            "// What is sent.",
            "/// Whatever",
            "/// The peer who calls, e.g. what",
            "/// That connection",
            "let what = 1;",
        ] {
            assert!(!is_vague_doc(line), "{line}");
        }
    }

    #[test]
    fn the_median_of_an_even_number_is_the_lower_one() {
        assert_eq!((median(&[]), median(&[7]), median(&[9, 1]), median(&[3, 1, 2])), (0, 7, 1, 2));
    }
}
