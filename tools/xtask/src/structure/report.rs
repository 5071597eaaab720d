//! The report as text, 110 columns wide at most.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::graph::{Graph, Graphs};
use super::layers;
use super::measures::{HUGE, LARGE, Measures, SMALL, median};
use crate::metadata::Package;

const WIDTH: usize = 110;

/// The figures of a package.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) folder: String,
    pub(crate) package: String,
    pub(crate) measures: Measures,
    /// The library and the binaries by name.
    pub(crate) targets: Vec<(String, Graphs)>,
}

impl Row {
    /// The largest of a figure among the targets.
    fn most(&self, figure: impl Fn(&Graphs) -> usize) -> usize {
        self.targets.iter().map(|(_, graphs)| figure(graphs)).max().unwrap_or(0)
    }

    /// Top-level modules, without the root.
    fn modules(&self) -> usize {
        let modules = |graphs: &Graphs| graphs.modules.nodes.iter().filter(|node| *node != "crate").count();
        self.targets.iter().map(|(_, graphs)| modules(graphs)).sum()
    }
}

fn largest_cycle(graph: &Graph) -> usize {
    graph.cycles().first().map_or(0, BTreeSet::len)
}

/// A row for each package, and totals if there are several.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let _ =
        writeln!(text, "{:<18}|     modules      | largest cycle |    gates    |{:^32}| vague", "", "files below src/");
    let _ = writeln!(
        text,
        "{:<18}| number   levels  | modules files | all   other | num  mid  <{SMALL} >{LARGE} >{HUGE} longest | docs",
        "crate"
    );
    let mut total = Measures::default();
    let mut modules = 0;
    let mut beside = Vec::new();
    for row in rows {
        let levels = row.most(|graphs| graphs.modules.levels());
        let cycle = row.most(|graphs| largest_cycle(&graphs.modules));
        let file_cycle = row.most(|graphs| largest_cycle(&graphs.files));
        let graphs = [row.modules(), levels, cycle, file_cycle].map(or_dash);
        line(&mut text, &row.folder, &graphs, &row.measures);
        total.add(&row.measures);
        modules += row.modules();
        beside.extend(&row.measures.other_lengths);
    }
    let cycles =
        |graph: fn(&Graphs) -> &Graph| rows.iter().map(move |row| row.most(|graphs| largest_cycle(graph(graphs))));
    let cycle = cycles(|graphs| &graphs.modules).max().unwrap_or(0);
    let file_cycle = cycles(|graphs| &graphs.files).max().unwrap_or(0);
    if rows.len() < 2 {
        return text;
    }
    line(&mut text, "all", &[modules, 0, cycle, file_cycle].map(or_dash), &total);
    let all = |test: fn(&usize) -> bool| beside.iter().filter(|length| test(length)).count();
    let _ = writeln!(
        text,
        "{} Rust files beside src/: median {} lines, {} below {SMALL}, {} above {LARGE}, {} above {HUGE}, longest {}.",
        beside.len(),
        median(&beside),
        all(|length| *length < SMALL),
        all(|length| *length > LARGE),
        all(|length| *length > HUGE),
        beside.iter().max().unwrap_or(&0)
    );
    text
}

fn line(text: &mut String, name: &str, [modules, levels, cycle, file_cycle]: &[String; 4], measures: &Measures) {
    let lengths = &measures.lengths;
    let many = |test: fn(usize) -> bool| or_dash(lengths.iter().filter(|length| test(**length)).count());
    let (gates, others) = (or_dash(measures.gates.all), or_dash(measures.gates.on_others()));
    let (small, large, huge) = (many(|lines| lines < SMALL), many(|lines| lines > LARGE), many(|lines| lines > HUGE));
    let (middle, longest) = (median(lengths), lengths.iter().max().unwrap_or(&0));
    let (files, docs) = (lengths.len(), or_dash(measures.vague_docs));
    let _ = writeln!(
        text,
        "{name:<18}| {modules:>6}  {levels:>6}  | {cycle:>7} {file_cycle:>5} | {gates:>4}  {others:>5} | \
         {files:>3} {middle:>4} {small:>4} {large:>4} {huge:>4} {longest:>7} | {docs:>4}"
    );
}

fn or_dash(figure: usize) -> String {
    if figure == 0 { "-".to_owned() } else { figure.to_string() }
}

/// Cycles of modules with their edges, and members of cycles of files. With `all_edges`, every edge of both
/// kinds.
pub(crate) fn cycles(row: &Row, all_edges: bool) -> String {
    let mut text = String::new();
    for (target, graphs) in &row.targets {
        for (kind, graph) in [("modules", &graphs.modules), ("files", &graphs.files)] {
            for cycle in graph.cycles() {
                let members: Vec<&str> = cycle.iter().map(String::as_str).collect();
                let _ = writeln!(text, "\n{} ({target}): a cycle of {} {kind}", row.folder, cycle.len());
                wrapped(&mut text, "  ", &members.join(" "));
                if kind == "modules" {
                    edges(&mut text, graph.edges_within(&cycle), graph);
                }
            }
            if all_edges {
                let _ = writeln!(text, "\n{} ({target}): all edges between {kind}", row.folder);
                edges(&mut text, graph.edges_within(&graph.nodes), graph);
            }
        }
    }
    text
}

/// Edges with the names of items; `<->` marks those that have an edge in the other direction.
fn edges(text: &mut String, edges: Vec<(&String, &String, &BTreeSet<String>)>, graph: &Graph) {
    for (from, to, names) in edges {
        let is_mutual = graph.edges.contains_key(&(to.clone(), from.clone()));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let arrow = if is_mutual { "<->" } else { "-->" };
        wrapped(text, "    ", &format!("{from} {arrow} {to}: {}", names.join(" ")));
    }
}

/// Dependencies of each package on others, from top to bottom; those of tests alone in brackets.
pub(crate) fn dependencies(packages: &[Package]) -> String {
    let mut text = String::new();
    let folder =
        |name: &str| packages.iter().find(|package| package.name == name).map(|package| package.folder.as_str());
    for package in in_layers(packages) {
        let of = |is_for_tests: bool| -> BTreeSet<&str> {
            let chosen = package.dependencies.iter().filter(|dependency| dependency.is_for_tests == is_for_tests);
            chosen.filter_map(|dependency| folder(&dependency.package)).collect()
        };
        let built = of(false);
        let mut words: Vec<String> = built.iter().map(|name| (*name).to_owned()).collect();
        words.extend(of(true).difference(&built).map(|name| format!("[{name}]")));
        wrapped(&mut text, "", &format!("{:<18}  {}", package.folder, words.join(" ")));
    }
    text
}

/// Packages from top to bottom, and from left to right inside a layer.
fn in_layers(packages: &[Package]) -> Vec<&Package> {
    let mut packages: Vec<&Package> = packages.iter().collect();
    packages.sort_by_key(|package| {
        let position = layers::position(&package.folder).unwrap_or((usize::MAX, 0));
        (std::cmp::Reverse(position.0), position.1, package.folder.clone())
    });
    packages
}

/// Writes words in lines of the report's width; those after the first are indented by six more columns.
fn wrapped(text: &mut String, indent: &str, words: &str) {
    let mut line = indent.to_owned();
    let mut is_empty = true;
    for word in words.split(' ') {
        if !is_empty && line.len() + 1 + word.len() > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = format!("{indent}      ");
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_report() {
        let measures = Measures { lengths: vec![12_345; 9999], ..Measures::default() };
        let row =
            |measures| Row { folder: "tests/conformance".into(), package: "p".into(), measures, targets: Vec::new() };
        let mut text = table(&[row(measures), row(Measures::default())]);
        assert_eq!(text.lines().count(), 6, "two heads, two rows, totals, and files elsewhere");
        wrapped(&mut text, "    ", &"word ".repeat(100));
        assert!(text.lines().count() > 10);
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
    }
}
