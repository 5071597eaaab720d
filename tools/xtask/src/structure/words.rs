//! Words that tell a reader nothing: short doc comments, and names that do not say what a value is.
//!
//! Generated files are left out. Names among the arguments of macros are not read.

use std::ops::AddAssign;
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;
use syn::visit::{self, Visit};

/// A doc comment of as many words or fewer repeats the name below it more often than not.
const SHORT: usize = 3;

/// Participles and pronouns, which name no value. The thing itself has a noun: `connection`, `index`.
const VAGUE_NAMES: &[&str] = &[
    "asked", "done", "found", "given", "how", "kept", "known", "lead", "made", "noted", "of", "place", "said", "seen",
    "taken", "told", "wanted", "what", "which", "who", "why",
];

/// Numbers of such words in a package, or the bounds of the whole repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct WordCounts {
    pub(crate) short_docs: usize,
    /// Variables, parameters, fields, functions and modules with a vague name.
    pub(crate) vague_names: usize,
    /// `match () { () if … }`, which is a chain of `if`.
    pub(crate) unit_matches: usize,
}

impl WordCounts {
    /// The count with this name in the list of bounds.
    pub(crate) fn figure(&self, key: &str) -> Option<usize> {
        match key {
            "short-docs" => Some(self.short_docs),
            "vague-names" => Some(self.vague_names),
            "unit-matches" => Some(self.unit_matches),
            _ => None,
        }
    }
}

impl AddAssign for WordCounts {
    fn add_assign(&mut self, other: Self) {
        self.short_docs += other.short_docs;
        self.vague_names += other.vague_names;
        self.unit_matches += other.unit_matches;
    }
}

/// The words of one package, with their locations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    pub(crate) counts: WordCounts,
    /// Lines of the report: file, line number if known, and the words.
    pub(crate) locations: Vec<String>,
}

impl Words {
    pub(crate) fn add_file(&mut self, path: &Path, text: &str) -> Result<()> {
        if text.lines().take(5).any(|line| line.starts_with("// @generated")) {
            return Ok(());
        }
        let path = path.display();
        for (line, doc) in short_docs(text) {
            self.counts.short_docs += 1;
            self.locations.push(format!("{path}:{line}: short doc: {doc}"));
        }
        let mut names = Names::default();
        names.visit_file(&syn::parse_file(text)?);
        self.counts.vague_names += names.vague.len();
        self.counts.unit_matches += names.unit_matches;
        self.locations.extend(names.vague.iter().map(|name| format!("{path}: vague name: {name}")));
        if names.unit_matches > 0 {
            self.locations.push(format!("{path}: {} of `match ()`", names.unit_matches));
        }
        Ok(())
    }
}

/// The short doc comments of a file, each with the number of its first line.
fn short_docs(text: &str) -> Vec<(usize, String)> {
    let mut docs: Vec<(usize, String)> = Vec::new();
    let mut open = None; // the marker of the comment that the line before belongs to
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let marker = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker) && !line.starts_with("////"));
        if let Some(marker) = marker {
            let content = line[marker.len()..].trim();
            match docs.last_mut() {
                Some((_, doc)) if open == Some(marker) => *doc = format!("{doc} {content}"),
                _ => docs.push((number, content.to_owned())),
            }
        }
        open = marker;
    }
    docs.retain(|(_, doc)| doc.split_whitespace().count() <= SHORT);
    docs
}

#[derive(Default)]
struct Names {
    vague: Vec<String>,
    unit_matches: usize,
}

impl Names {
    fn check(&mut self, name: &syn::Ident) {
        let name = name.to_string();
        if VAGUE_NAMES.contains(&name.as_str()) {
            self.vague.push(name);
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.check(&pattern.ident);
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        field.ident.iter().for_each(|name| self.check(name));
        visit::visit_field(self, field);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.check(&signature.ident);
        visit::visit_signature(self, signature);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.check(&module.ident);
        visit::visit_item_mod(self, module);
    }

    fn visit_expr_match(&mut self, expression: &'ast syn::ExprMatch) {
        if matches!(&*expression.expr, syn::Expr::Tuple(tuple) if tuple.elems.is_empty()) {
            self.unit_matches += 1;
        }
        visit::visit_expr_match(self, expression);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> WordCounts {
        let mut words = Words::default();
        words.add_file(Path::new("a.rs"), text).unwrap();
        words.counts
    }

    #[test]
    fn a_doc_comment_is_short_by_the_words_of_all_its_lines() {
        let text = "//! The file.\n\n/// The reason.\n///\n/// More of it.\nfn f() {}\n/// At\n/// once.\nfn g() {}\n//// a\n// b\n";
        assert_eq!(short_docs(text), [(1, "The file.".to_owned()), (7, "At once.".to_owned())]);
    }

    #[test]
    fn names_are_those_of_variables_parameters_fields_functions_and_modules() {
        let text = "mod lead {} struct S { kept: u8 } impl S { fn of(found: u8) { let Some(place) = x else { y }; } }
            fn f(many: u8) { many.map(|known| known); match () { () if a => b, () => c } }";
        assert_eq!(counts(text), WordCounts { short_docs: 0, vague_names: 6, unit_matches: 1 });
    }

    #[test]
    fn generated_files_are_left_out() {
        assert_eq!(counts("// @generated by a tool\n/// Short.\nfn of() {}"), WordCounts::default());
    }
}
