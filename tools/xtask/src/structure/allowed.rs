//! The committed list of allowed figures: bounds that may only become tighter.
//!
//! A measured figure above its bound is a failure, and so is one below: the bound has to follow. `--record`
//! lowers all bounds to the present figures and raises none.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::words::WordCounts;

/// The list's path below the root.
pub(crate) const PATH: &str = "tools/xtask/structure.toml";

/// As many pairs of modules may be cycles for good.
const MAX_PAIRS: usize = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Allowed {
    gates: usize,
    /// Short doc comments and vague names of all packages.
    #[serde(default)]
    words: WordCounts,
    /// Cycles of modules, by package.
    #[serde(default)]
    cycles: BTreeMap<String, Bound>,
    /// The files of the largest cycle of files, by package.
    #[serde(default, rename = "file-cycles")]
    file_cycles: BTreeMap<String, usize>,
    #[serde(default)]
    pair: Vec<Pair>,
}

/// Numbers of modules in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bound {
    /// The modules of the largest cycle.
    largest: usize,
    /// The modules of all cycles together.
    all: usize,
}

/// Two modules that may use each other for good.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    package: String,
    modules: [String; 2],
    reason: String,
}

/// Figures of the present tree that have bounds.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) gates: usize,
    pub(crate) words: WordCounts,
    /// By package, the modules of each cycle.
    pub(crate) cycles: BTreeMap<String, Vec<Vec<String>>>,
    /// By package, the files of each cycle of files.
    pub(crate) file_cycles: BTreeMap<String, Vec<Vec<String>>>,
}

impl Allowed {
    pub(crate) fn parse(text: &str) -> Result<Allowed> {
        toml::from_str(text).with_context(|| format!("cannot read {PATH}"))
    }

    /// Returns a complaint for each figure that is not its bound, and for each entry that is no longer
    /// needed.
    pub(crate) fn complaints(&self, figures: &Figures) -> Vec<String> {
        let mut complaints = self.complaints_about_pairs(figures);
        complaints.extend(compare("gates in orb/ and spandrel/", figures.gates, self.gates));
        complaints.extend(self.complaints_about_words(&figures.words));
        let packages: BTreeSet<&String> = figures.cycles.keys().chain(self.cycles.keys()).collect();
        for package in packages {
            let cycles = self.unlisted(package, figures);
            let (present, bound) = (Bound::of(&cycles), self.cycles.get(package).copied().unwrap_or_default());
            let mut of_package = Vec::from_iter(compare(
                &format!("modules in the largest cycle of {package}"),
                present.largest,
                bound.largest,
            ));
            of_package.extend(compare(&format!("modules in all cycles of {package}"), present.all, bound.all));
            if present.largest > bound.largest || present.all > bound.all {
                of_package.push(format!("    cycles of {package}: {}", members(&cycles)));
                of_package.push(format!("    their edges: cargo xtask structure --crate {package}"));
            }
            complaints.extend(of_package);
        }
        complaints.extend(self.complaints_about_files(figures));
        complaints
    }

    fn complaints_about_words(&self, words: &WordCounts) -> Vec<String> {
        let bounds = &self.words;
        let mut complaints = Vec::from_iter(compare("short doc comments", words.short_docs, bounds.short_docs));
        complaints.extend(compare("vague names", words.vague_names, bounds.vague_names));
        complaints.extend(compare("matches on `()`", words.unit_matches, bounds.unit_matches));
        if words.short_docs > bounds.short_docs
            || words.vague_names > bounds.vague_names
            || words.unit_matches > bounds.unit_matches
        {
            complaints.push("    their locations: cargo xtask structure --words".to_owned());
        }
        complaints
    }

    fn complaints_about_files(&self, figures: &Figures) -> Vec<String> {
        let mut complaints = Vec::new();
        let packages: BTreeSet<&String> = figures.file_cycles.keys().chain(self.file_cycles.keys()).collect();
        for package in packages {
            let cycles = figures.file_cycles(package);
            let (present, bound) = (Bound::of(&cycles).largest, self.file_cycles.get(package).copied().unwrap_or(0));
            complaints.extend(compare(&format!("files in the largest cycle of files of {package}"), present, bound));
            if present > bound {
                complaints.push(format!("    cycles of files of {package}: {}", members(&cycles)));
                complaints.push(format!("    their edges: cargo xtask structure --crate {package} --edges"));
            }
        }
        complaints
    }

    /// The list's text with all bounds lowered to these figures.
    pub(crate) fn tightened(&self, text: &str, figures: &Figures) -> String {
        let mut lines = Vec::new();
        let mut table = "";
        for line in text.lines() {
            if line.starts_with('[') {
                table = line;
            }
            let Some((key, value)) = line.split_once('=') else {
                lines.push(line.to_owned());
                continue;
            };
            let key = key.trim();
            let comment = value.find('#').map_or(String::new(), |at| format!(" {}", &value[at..]));
            if key == "gates" {
                lines.push(format!("gates = {}{comment}", self.gates.min(figures.gates)));
            } else if let Some(figure) = figures.words.figure(key).filter(|_| table.starts_with("[words]")) {
                let bound = self.words.figure(key).unwrap_or(0).min(figure);
                lines.push(format!("{key} = {bound}{comment}"));
            } else if let Some(bound) = self.cycles.get(key).filter(|_| table.starts_with("[cycles]")) {
                let present = Bound::of(&self.unlisted(key, figures));
                let (largest, all) = (bound.largest.min(present.largest), bound.all.min(present.all));
                if all > 0 {
                    lines.push(format!("{key} = {{ largest = {largest}, all = {all} }}{comment}"));
                }
            } else if let Some(bound) = self.file_cycles.get(key).filter(|_| table.starts_with("[file-cycles]")) {
                let largest = Bound::of(&figures.file_cycles(key)).largest.min(*bound);
                if largest > 0 {
                    lines.push(format!("{key} = {largest}{comment}"));
                }
            } else {
                lines.push(line.to_owned());
            }
        }
        lines.join("\n") + "\n"
    }

    /// The cycles of a package that are no allowed pairs.
    fn unlisted<'f>(&self, package: &str, figures: &'f Figures) -> Vec<&'f [String]> {
        let cycles = figures.cycles.get(package).into_iter().flatten().map(Vec::as_slice);
        cycles.filter(|cycle| !self.pair.iter().any(|pair| pair.is(package, cycle))).collect()
    }

    fn complaints_about_pairs(&self, figures: &Figures) -> Vec<String> {
        let mut complaints = Vec::new();
        if self.pair.len() > MAX_PAIRS {
            complaints.push(format!("{} pairs are listed, {MAX_PAIRS} at most are allowed", self.pair.len()));
        }
        for pair in &self.pair {
            let mut cycles = figures.cycles.get(&pair.package).into_iter().flatten();
            let [one, two] = &pair.modules;
            if !cycles.any(|cycle| pair.is(&pair.package, cycle)) {
                complaints.push(format!("{one} and {two} of {} are not a cycle: remove their entry", pair.package));
            }
            if pair.reason.trim().is_empty() {
                complaints.push(format!("the entry of {one} and {two} of {} has no reason", pair.package));
            }
        }
        complaints
    }
}

impl Figures {
    fn file_cycles(&self, package: &str) -> Vec<&[String]> {
        self.file_cycles.get(package).into_iter().flatten().map(Vec::as_slice).collect()
    }
}

impl Bound {
    fn of(cycles: &[&[String]]) -> Bound {
        let lengths = cycles.iter().map(|cycle| cycle.len());
        Bound { largest: lengths.clone().max().unwrap_or(0), all: lengths.sum() }
    }
}

impl Pair {
    fn is(&self, package: &str, cycle: &[String]) -> bool {
        self.package == package && cycle.len() == 2 && self.modules.iter().all(|module| cycle.contains(module))
    }
}

/// The members of each cycle.
fn members(cycles: &[&[String]]) -> String {
    let members: Vec<String> = cycles.iter().map(|cycle| cycle.join(" ")).collect();
    members.join("; ")
}

fn compare(name: &str, figure: usize, bound: usize) -> Option<String> {
    match figure.cmp(&bound) {
        std::cmp::Ordering::Greater => Some(format!("{name}: {figure}, at most {bound} are allowed")),
        std::cmp::Ordering::Less => Some(format!(
            "{name}: {figure}, fewer than the bound {bound}: lower it with cargo xtask structure --record"
        )),
        std::cmp::Ordering::Equal => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"# Comment = 1
gates = 10 # shrinks

[cycles]
large = { largest = 3, all = 5 }
small = { largest = 2, all = 2 }

[[pair]]
package = "large"
modules = ["x", "y"]
reason = "for good"
"#;
    const ABC: &[&str] = &["a", "b", "c"];
    const DE: &[&str] = &["d", "e"];
    const XY: &[&str] = &["x", "y"];

    fn figures(gates: usize, cycles: &[(&str, &[&str])]) -> Figures {
        let mut figures = Figures { gates, ..Figures::default() };
        for (package, cycle) in cycles {
            let cycle = cycle.iter().map(|module| (*module).to_owned()).collect();
            figures.cycles.entry((*package).to_owned()).or_default().push(cycle);
        }
        figures
    }

    #[test]
    fn figures_at_their_bounds_are_allowed() {
        let allowed = Allowed::parse(LIST).unwrap();
        let figures = figures(10, &[("large", ABC), ("large", DE), ("large", XY), ("small", DE)]);
        assert_eq!(allowed.complaints(&figures), [""; 0]);
        assert_eq!(allowed.tightened(LIST, &figures), LIST);
    }

    #[test]
    fn larger_figures_and_unlisted_cycles_are_failures_that_record_does_not_allow() {
        let allowed = Allowed::parse(LIST).unwrap();
        let large: &[&str] = &["a", "b", "c", "f"];
        let figures = figures(11, &[("large", large), ("large", XY), ("small", DE), ("small", XY), ("new", DE)]);
        let complaints = allowed.complaints(&figures).join("\n");
        for expected in [
            "gates in orb/ and spandrel/: 11, at most 10",
            "largest cycle of large: 4, at most 3",
            "all cycles of small: 4, at most 2",
            "largest cycle of new: 2, at most 0",
            "cycles of small: d e; x y\n",
            "cargo xtask structure --crate new",
        ] {
            assert!(complaints.contains(expected), "{expected}: {complaints}");
        }
        let tightened = allowed.tightened(LIST, &figures);
        assert_eq!(tightened, LIST.replace("largest = 3, all = 5", "largest = 3, all = 4"));
        assert!(!Allowed::parse(&tightened).unwrap().complaints(&figures).is_empty());
    }

    #[test]
    fn smaller_figures_are_failures_until_the_list_is_tightened() {
        let allowed = Allowed::parse(LIST).unwrap();
        let figures = figures(9, &[("large", DE), ("large", XY)]);
        assert_eq!(allowed.complaints(&figures).len(), 5, "gates, and both figures of both packages");
        let tightened = allowed.tightened(LIST, &figures);
        let expected = LIST.replace("10", "9").replace("largest = 3, all = 5", "largest = 2, all = 2");
        assert_eq!(tightened, expected.replace("small = { largest = 2, all = 2 }\n", ""));
        assert_eq!(Allowed::parse(&tightened).unwrap().complaints(&figures), [""; 0]);
    }

    #[test]
    fn bounds_of_words_are_lowered_and_never_raised() {
        let list = "gates = 0\n[words]\nshort-docs = 5 # shrinks\nvague-names = 5\nunit-matches = 0\n";
        let allowed = Allowed::parse(list).unwrap();
        let words = WordCounts { short_docs: 4, vague_names: 6, unit_matches: 1 };
        let tightened = allowed.tightened(list, &Figures { words, ..Figures::default() });
        assert_eq!(tightened, list.replace("short-docs = 5", "short-docs = 4"));
    }

    const FILES: &str = r"gates = 0

[cycles]
both = { largest = 2, all = 2 }

[file-cycles]
both = 3 # shrinks
files = 2
";

    /// Cycles of files, and one of modules in the package `both`.
    fn files(cycles: &[(&str, &[&str])]) -> Figures {
        let file_cycles = figures(0, cycles).cycles;
        Figures { file_cycles, ..figures(0, &[("both", DE)]) }
    }

    #[test]
    fn cycles_of_files_have_a_bound_for_the_largest() {
        let allowed = Allowed::parse(FILES).unwrap();
        let present = files(&[("both", ABC), ("both", DE), ("files", XY), ("files", DE)]);
        assert_eq!(allowed.complaints(&present), [""; 0], "the number of cycles has no bound");
        assert_eq!(allowed.tightened(FILES, &present), FILES);

        let larger = files(&[("both", ABC), ("files", ABC), ("new", DE)]);
        let complaints = [
            "files in the largest cycle of files of files: 3, at most 2 are allowed",
            "    cycles of files of files: a b c",
            "    their edges: cargo xtask structure --crate files --edges",
            "files in the largest cycle of files of new: 2, at most 0 are allowed",
            "    cycles of files of new: d e",
            "    their edges: cargo xtask structure --crate new --edges",
        ];
        assert_eq!(allowed.complaints(&larger), complaints);
        assert_eq!(allowed.tightened(FILES, &larger), FILES, "a bound is never raised");
    }

    #[test]
    fn bounds_of_files_are_lowered_apart_from_those_of_modules() {
        let allowed = Allowed::parse(FILES).unwrap();
        let smaller = files(&[("both", DE)]);
        assert_eq!(allowed.complaints(&smaller).len(), 2);
        let tightened = allowed.tightened(FILES, &smaller);
        assert_eq!(tightened, FILES.replace("both = 3", "both = 2").replace("files = 2\n", ""));
        assert_eq!(Allowed::parse(&tightened).unwrap().complaints(&smaller), [""; 0]);
    }

    #[test]
    fn an_entry_for_a_pair_without_a_cycle_is_rejected() {
        let allowed = Allowed::parse(LIST).unwrap();
        let figures = figures(10, &[("large", ABC), ("large", DE), ("small", DE)]);
        let complaints = allowed.complaints(&figures);
        assert_eq!(complaints, ["x and y of large are not a cycle: remove their entry"]);
    }
}
