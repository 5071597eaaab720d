//! Uses between the parts of a crate, and the cycles in them.
//!
//! An edge leads from a module to the module that defines an item it uses. A module between them that only
//! re-exports the item has no part in the edge. Precisely:
//!
//! - A path in code, a macro call and a `use` are edges to each module that finally defines the item. A path
//!   that ends at a module is no edge; paths that go on from there are. An item of a crate outside of the
//!   workspace counts as defined by the module that re-exports it.
//! - A `use` that names a child module, or an item defined below the present module, is no edge, with `pub`
//!   or without: the parent only hands the item on. If code of the parent names the item, that path is an
//!   edge. The import of a trait without `pub` is an edge, because methods of a trait are called without its
//!   name.
//! - Any other `use` is an edge, with `pub` or without.
//! - A call of a method is no edge: `impl` blocks of a type may lie in any module, and no import names them.
//!
//! At the granularity of modules, a top-level module stands for everything inside it. The root is the node
//! `crate`, but only for items that the root file itself defines. At the granularity of files, parents and
//! children are nodes like any others; modules written out in a file belong to it. A child that uses an item
//! defined in its parent's file is an edge, and a parent whose code uses a child's item is one in the other
//! direction.

use std::collections::{BTreeMap, BTreeSet};

use super::resolve::{Definition, ModuleId, Resolver};
use super::tree::{Crate, PathNames, Role};

/// Names of items that one node uses of another, for each pair of nodes.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: BTreeSet<String>,
    pub(crate) edges: BTreeMap<(String, String), BTreeSet<String>>,
}

/// The two granularities of one crate.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    pub(crate) modules: Graph,
    pub(crate) files: Graph,
}

/// Builds the graphs of a crate.
pub(crate) fn graphs(crates: &[Crate], krate: usize) -> Graphs {
    let tree = &crates[krate];
    let mut resolver = Resolver::new(crates);
    let mut graphs = Graphs::default();
    for module in 0..tree.modules.len() {
        if !tree.modules[module].path.is_empty() {
            graphs.modules.nodes.insert(tree.top(module).to_owned());
        }
    }
    graphs.files.nodes = (0..tree.files.len()).map(|file| tree.file_label(file)).collect();
    for reference in &tree.references {
        let module_id = (krate, reference.module);
        let definitions = match reference.role {
            Role::MacroCall => resolver.macro_call(module_id, &reference.path),
            _ => resolver.path(module_id, &reference.path),
        };
        let from = tree.named(reference.module);
        let is_import = matches!(reference.role, Role::Import | Role::ReExport);
        let names_child = is_import && leads_below(tree, &mut resolver, module_id, &reference.path);
        for definition in definitions {
            let Some(((in_crate, to), name)) = definition.item() else { continue };
            if in_crate != krate {
                continue;
            }
            let is_handed_on = is_import && (names_child || tree.is_within(to, from));
            let is_import_of_trait = reference.role == Role::Import && definition.is_trait();
            if is_handed_on && !is_import_of_trait {
                continue;
            }
            graphs.modules.add(tree.top(from), tree.top(to), name);
            let (from, to) = (tree.modules[from].file, tree.modules[to].file);
            graphs.files.add(&tree.file_label(from), &tree.file_label(to), name);
        }
    }
    graphs
}

/// Whether a path goes through a module below that in which it stands.
fn leads_below(tree: &Crate, resolver: &mut Resolver<'_>, module_id: ModuleId, path: &PathNames) -> bool {
    let Some((_, modules)) = path.names.split_last() else { return false };
    let modules = PathNames { is_absolute: path.is_absolute, names: modules.to_vec() };
    let from = tree.named(module_id.1);
    resolver.path(module_id, &modules).iter().any(|definition| match definition {
        Definition::Module((krate, module)) => {
            *krate == module_id.0 && *module != from && tree.is_within(*module, from)
        }
        _ => false,
    })
}

impl Graph {
    fn add(&mut self, from: &str, to: &str, name: &str) {
        if from != to {
            self.edges.entry((from.to_owned(), to.to_owned())).or_default().insert(name.to_owned());
            self.nodes.extend([from.to_owned(), to.to_owned()]);
        }
    }

    fn successors(&self, node: &str) -> impl Iterator<Item = &String> {
        let first = (node.to_owned(), String::new());
        self.edges.range(first..).take_while(move |((from, _), _)| from == node).map(|((_, to), _)| to)
    }

    /// Strongly connected components, each after those that it uses.
    pub(crate) fn components(&self) -> Vec<BTreeSet<String>> {
        let mut search = Search { graph: self, numbers: BTreeMap::new(), open: Vec::new(), components: Vec::new() };
        for node in &self.nodes {
            if !search.numbers.contains_key(node) {
                search.visit(node);
            }
        }
        search.components
    }

    /// Components of two and more nodes, the largest first.
    pub(crate) fn cycles(&self) -> Vec<BTreeSet<String>> {
        let mut cycles = self.components();
        cycles.retain(|component| component.len() > 1);
        cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
        cycles
    }

    /// The number of nodes on the longest chain of uses, where a cycle counts as one.
    pub(crate) fn levels(&self) -> usize {
        let mut level: BTreeMap<&String, usize> = BTreeMap::new();
        let components = self.components();
        for component in &components {
            let below = component.iter().flat_map(|node| self.successors(node));
            let below = below.filter(|node| !component.contains(*node)).map(|node| level[node]).max().unwrap_or(0);
            level.extend(component.iter().map(|node| (node, below + 1)));
        }
        level.values().copied().max().unwrap_or(0)
    }

    /// Edges between these nodes, those with the fewest names first: they are the easiest to cut.
    pub(crate) fn edges_within(&self, nodes: &BTreeSet<String>) -> Vec<(&String, &String, &BTreeSet<String>)> {
        let inside = self.edges.iter().filter(|((from, to), _)| nodes.contains(from) && nodes.contains(to));
        let mut edges: Vec<_> = inside.map(|((from, to), names)| (from, to, names)).collect();
        edges.sort_by_key(|(from, to, names)| (names.len(), *from, *to));
        edges
    }
}

/// Tarjan's search for strongly connected components.
struct Search<'g> {
    graph: &'g Graph,
    /// The order in which nodes were reached.
    numbers: BTreeMap<&'g String, usize>,
    open: Vec<&'g String>,
    components: Vec<BTreeSet<String>>,
}

impl<'g> Search<'g> {
    fn visit(&mut self, node: &'g String) -> usize {
        let number = self.numbers.len();
        let mut lowest = number;
        self.numbers.insert(node, number);
        self.open.push(node);
        let graph = self.graph;
        for next in graph.successors(node) {
            match self.numbers.get(next) {
                None => lowest = lowest.min(self.visit(next)),
                Some(number) if self.open.contains(&next) => lowest = lowest.min(*number),
                Some(_) => {}
            }
        }
        if lowest == number {
            let first = self.open.iter().rposition(|open| *open == node).expect("the node is open");
            self.components.push(self.open.split_off(first).into_iter().cloned().collect());
        }
        lowest
    }
}
