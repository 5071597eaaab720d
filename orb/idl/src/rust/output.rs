//! The frame of generated code: modules, the attributes at the top, the first line, and formatting.
//!
//! Each piece of the plan is written, parsed and formatted separately, as if inside its modules; only its
//! text is kept. So memory use is that of the text, and several threads can write.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use proc_macro2::{Spacing, TokenStream, TokenTree};
use quote::quote;
use syn::{Attribute, Item, parse_quote};

use super::Options;
use super::definition::{definition, own_errors};
use super::invocations;
use super::lints::{AGAINST_LISTS, has_continued_list};
use super::plan::{self, Module, Part, Piece};
use super::prelude::{self, OutsideModules};
use super::spacing::SpacedText;
use super::split::{Location, SourceFile};
use super::types::{Context, Scope};
use crate::model::{DefId, DefinitionKind, Model};

/// Lints that do not suit code generated from declarations: programs seldom use all of it, and only
/// documented IDL gives documentation.
const ALLOWED: &[&str] = &["dead_code", "missing_docs", "unreachable_pub"];

/// Placeholder for the lints of a trait implementation: those that it may trip itself.
const IMPL_LINTS: &str = "#[allow(lints_of_impls)]";

/// Placeholder for the list of allowed lints, which is known when all pieces are written.
const LINTS: &str = "#[allow(lints)]";

/// In octets; unused stack takes no memory.
const STACK: usize = 64 << 20;

/// Lints that trait implementations may trip; they get no others.
const TRIPPED_BY_IMPLS: &[&str] = &[
    "clippy::manual_range_patterns",
    "clippy::match_like_matches_macro",
    "clippy::match_single_binding",
    "clippy::redundant_pattern_matching",
];

/// Below this number of definitions a thread is not worthwhile.
const DEFINITIONS_PER_THREAD: usize = 200;

/// The file's text.
///
/// # Panics
/// If the written tokens are not Rust, which would be a bug of this back end.
pub(super) fn file(model: &Model, options: &Options) -> String {
    with_enough_stack(|| Joiner::new(model, options, false).first(""))
}

/// The texts of `stem`.rs and of the files for its modules.
///
/// # Panics
/// As [`file`].
pub(super) fn files(model: &Model, options: &Options, stem: &str) -> Vec<SourceFile> {
    with_enough_stack(|| {
        let mut joining = Joiner::new(model, options, true);
        let text = joining.first(stem);
        let first = SourceFile { path: PathBuf::from(stem).with_added_extension("rs"), text };
        [first].into_iter().chain(joining.files).collect()
    })
}

/// The texts of the files of one build: `stem`.rs for each of `inputs`, which are IDL files with their stems, and
/// those for modules if `split`. `owner` returns the input to which a top-level definition belongs.
///
/// # Panics
/// As [`file`].
pub(super) fn files_of_build(
    model: &Model,
    options: &Options,
    split: bool,
    inputs: &[(&Path, &str)],
    owner: impl Fn(DefId) -> usize + Sync,
) -> Vec<SourceFile> {
    with_enough_stack(|| {
        let mut joining = Joiner::new(model, options, split);
        let mut outputs: Vec<Vec<Part>> = inputs.iter().map(|_| Vec::new()).collect();
        for part in std::mem::take(&mut joining.parts) {
            let id = match &part {
                Part::Piece(piece) => Some(piece.id),
                Part::Module(module) => module.definition,
            };
            outputs[id.map_or(0, &owner)].push(part);
        }
        let firsts = inputs.iter().zip(&outputs).map(|((file, stem), parts)| {
            let text = joining.text(parts, stem, file);
            SourceFile { path: PathBuf::from(stem).with_added_extension("rs"), text }
        });
        let firsts: Vec<SourceFile> = firsts.collect();
        firsts.into_iter().chain(joining.files).collect()
    })
}

/// Runs `work` with enough stack for the deepest nesting that the front end accepts: parser and formatter
/// recurse per level.
fn with_enough_stack<T: Send>(work: impl Fn() -> T + Sync) -> T {
    thread::scope(|scope| match with_stack().spawn_scoped(scope, &work) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(_) => work(), // no thread is to be had; most types do not nest
    })
}

fn with_stack() -> thread::Builder {
    thread::Builder::new().name("spandrel-idl".to_owned()).stack_size(STACK)
}

/// A piece as text.
#[derive(Debug, Default)]
struct WrittenPiece {
    text: String,
    uses_runtime: bool,
}

impl WrittenPiece {
    /// Whether it has a doc comment with a list that lints may refuse.
    fn has_continued_list(&self) -> bool {
        let lines: Vec<Option<&str>> = self.text.lines().map(|line| line.trim_start().strip_prefix("///")).collect();
        lines.split(Option::is_none).any(|doc| has_continued_list(doc.iter().copied().flatten()))
    }
}

/// The text of all pieces, in order, and the lints that they trip.
fn write_all(model: &Model, options: &Options, split: bool) -> (Vec<WrittenPiece>, BTreeSet<&'static str>) {
    let next = AtomicUsize::new(0);
    // Tokens and names are not `Send`: each thread has its own.
    let work = || {
        let cx = Context::new(model, options);
        let parts = plan::plan(&cx, split);
        let mut pieces = Vec::new();
        plan::pieces(&parts, &mut pieces);
        let claim = || pieces.get(next.fetch_add(1, Ordering::Relaxed));
        let mut written = Vec::new();
        while let Some(piece) = claim() {
            written.push((piece.nth, write(&cx, piece)));
        }
        (written, cx.lints.take())
    };
    let most = model.definitions().len() / DEFINITIONS_PER_THREAD;
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(most);
    let results: Vec<_> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).filter_map(|_| with_stack().spawn_scoped(scope, work).ok()).collect();
        let own = work();
        let others = others.into_iter().map(|other| other.join());
        let others = others.map(|results| results.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        [own].into_iter().chain(others).collect()
    });
    let (mut all, mut lints) = (Vec::new(), BTreeSet::new());
    for (written, tripped) in results {
        all.extend(written);
        lints.extend(tripped);
    }
    all.sort_unstable_by_key(|(nth, _)| *nth);
    (all.into_iter().map(|(_, written)| written).collect(), lints)
}

fn write(cx: &Context<'_>, piece: &Piece) -> WrittenPiece {
    let scope = Scope { cx, module: &piece.path };
    let body = &cx.model[piece.id];
    let tokens = if piece.is_errors { own_errors(scope, body) } else { definition(scope, body) };
    if tokens.is_empty() {
        return WrittenPiece::default();
    }
    let tokens = prelude::unmark(tokens, cx.names.hidden(&piece.path));
    let uses_runtime = uses_runtime(tokens.clone());
    let mut items = syn::parse2::<syn::File>(tokens).expect("generated code is Rust").items;
    if is_first(cx, piece) {
        items.iter_mut().for_each(mark);
    }
    WrittenPiece { text: text_of_piece(items, piece.depth), uses_runtime }
}

/// Whether a piece is at the top of the first file.
fn is_first(cx: &Context<'_>, piece: &Piece) -> bool {
    piece.path.is_empty() && cx.prefix.is_empty()
}

/// Marks an item for the allowed lints, if it defines something.
fn mark(item: &mut Item) {
    if let Item::Impl(item) = item
        && item.trait_.is_some()
    {
        item.attrs.push(parse_quote! { #[allow(lints_of_impls)] });
    } else if let Some(attributes) = attributes(item) {
        let behind_docs = attributes.iter().take_while(|attribute| attribute.path().is_ident("doc")).count();
        attributes.insert(behind_docs, parse_quote! { #[allow(lints)] });
    }
}

/// The text of the items of a piece inside `depth` modules.
fn text_of_piece(items: Vec<Item>, depth: usize) -> String {
    let (mut text, mut others) = (String::new(), Vec::new());
    for item in items {
        match invocations::text(&item, depth) {
            Some(invocation) => {
                text.push_str(&formatted(std::mem::take(&mut others), depth));
                text.push_str(&invocation);
            }
            None => others.push(item),
        }
    }
    text.push_str(&formatted(others, depth));
    text
}

/// The text of items inside `depth` modules, as the formatter writes them.
fn formatted(items: Vec<Item>, depth: usize) -> String {
    if items.is_empty() {
        return String::new();
    }
    let items = (0..depth).fold(items, |inner, _| {
        let mut around: syn::ItemMod = parse_quote! { mod around {} };
        around.content = around.content.map(|(brace, _)| (brace, inner));
        vec![Item::Mod(around)]
    });
    let text = prettyplease::unparse(&syn::File { shebang: None, frontmatter: None, attrs: Vec::new(), items });
    let lines = || text.split_inclusive('\n').map(str::len);
    let (start, end): (usize, usize) = (lines().take(depth).sum(), lines().rev().take(depth).sum());
    text[start..text.len() - end].to_owned()
}

/// Joins pieces into files.
struct Joiner<'m> {
    cx: Context<'m>,
    parts: Vec<Part>,
    written: Vec<WrittenPiece>,
    /// The attribute that allows lints.
    attribute: String,
    /// The attribute for trait implementations; empty if they trip none.
    impl_attribute: String,
    /// The first lines of a first file and of those of its modules.
    header: String,
    /// The files of modules.
    files: Vec<SourceFile>,
}

impl<'m> Joiner<'m> {
    fn new(model: &'m Model, options: &'m Options, split: bool) -> Self {
        let (written, mut lints) = write_all(model, options, split);
        let cx = Context::new(model, options);
        let mut parts = plan::plan(&cx, split);
        derive_module_properties(&mut parts, &written, &mut lints);
        if written.iter().any(WrittenPiece::has_continued_list) {
            lints.extend(AGAINST_LISTS);
        }
        let attribute = allow(ALLOWED.iter().chain(&lints));
        let tripped: Vec<&&str> = lints.iter().filter(|lint| TRIPPED_BY_IMPLS.contains(lint)).collect();
        let impl_attribute = if tripped.is_empty() { String::new() } else { allow(tripped) };
        Self { cx, parts, written, attribute, impl_attribute, header: String::new(), files: Vec::new() }
    }

    /// The text of the first file; `files` receives those of modules.
    fn first(&mut self, stem: &str) -> String {
        let parts = std::mem::take(&mut self.parts);
        self.text(&parts, stem, main_file(self.cx.model))
    }

    /// The text of a first file with these parts, generated from the IDL file `source`.
    fn text(&mut self, parts: &[Part], stem: &str, source: &Path) -> String {
        self.header = header(&self.cx, source);
        let mut text = SpacedText::new(self.header.clone());
        self.parts(parts, &Location::first(stem), true, &mut text);
        text.finish()
    }

    fn parts(&mut self, parts: &[Part], location: &Location, is_first: bool, text: &mut SpacedText) {
        for part in parts {
            match part {
                Part::Piece(piece) => {
                    let written = std::mem::take(&mut self.written[piece.nth].text);
                    self.push(&written, is_first, text);
                }
                Part::Module(module) if module.is_left_out => {}
                Part::Module(module) => self.module(module, location, is_first, text),
            }
        }
    }

    /// Adds lines, and replaces the placeholders by the allowed lints.
    fn push(&self, lines: &str, is_first: bool, text: &mut SpacedText) {
        for line in lines.lines() {
            text.push(match line {
                LINTS if is_first => &self.attribute,
                IMPL_LINTS if is_first => &self.impl_attribute,
                line => line,
            });
        }
    }

    fn module(&mut self, module: &Module, location: &Location, is_first: bool, text: &mut SpacedText) {
        let (ident, doc) = (&module.ident, &module.doc);
        let lints = is_first.then(|| quote! { #[allow(lints)] });
        let (path, file, inside) = location.module(ident);
        let header = if module.has_file {
            quote! { #( #[doc = #doc] )* #lints #[path = #path] pub mod #ident; }
        } else {
            quote! { #( #[doc = #doc] )* #lints pub mod #ident {} }
        };
        let header = formatted(vec![parse_quote! { #header }], module.depth);
        let header = header.strip_suffix("{}\n").map_or(header.clone(), |open| format!("{open}{{\n"));
        self.push(&header, is_first, text);
        if module.has_file {
            let mut text = SpacedText::new(self.header.clone());
            self.contents(module, &inside, 0, &mut text);
            self.files.push(SourceFile { path: file, text: text.finish() });
        } else {
            self.contents(module, location, module.depth + 1, text);
            text.push(&format!("{}}}\n", " ".repeat(4 * module.depth)));
        }
    }

    fn contents(&mut self, module: &Module, location: &Location, depth: usize, text: &mut SpacedText) {
        if module.imports_runtime {
            let runtime = &self.cx.runtime;
            text.push(&formatted(vec![parse_quote! { use #runtime as rt; }], depth));
        }
        self.parts(&module.parts, location, false, text);
    }
}

/// The attribute that allows lints.
fn allow<'l>(lints: impl IntoIterator<Item = &'l &'static str>) -> String {
    let lints = lints.into_iter().map(|lint| syn::parse_str::<syn::Path>(lint).expect("a lint is a path"));
    let below = formatted(vec![parse_quote! { #[allow( #( #lints ),* )] mod below; }], 0);
    below.trim_end_matches("mod below;\n").to_owned()
}

/// Derives properties of modules from their contents: whether they are written at all, their imports, the
/// lints that they trip. Returns whether these parts are all empty.
fn derive_module_properties(parts: &mut [Part], written: &[WrittenPiece], lints: &mut BTreeSet<&'static str>) -> bool {
    let mut is_empty = true;
    for part in parts {
        is_empty &= match part {
            Part::Piece(piece) => written[piece.nth].text.is_empty(),
            Part::Module(module) => {
                let is_empty = derive_module_properties(&mut module.parts, written, lints);
                let is_user = |part: &Part| matches!(part, Part::Piece(piece) if written[piece.nth].uses_runtime);
                module.imports_runtime = module.definition.is_some() && module.parts.iter().any(is_user);
                module.is_left_out = is_empty && !module.may_be_empty;
                if has_continued_list(module.doc.iter().map(String::as_str)) {
                    lints.extend(AGAINST_LISTS);
                }
                if !module.is_left_out && module.may_repeat_name {
                    lints.insert("clippy::module_inception");
                }
                module.is_left_out
            }
        };
    }
    is_empty
}

/// Whether tokens begin a path with `rt`, outside nested modules, which have their own import.
fn uses_runtime(tokens: TokenStream) -> bool {
    let mut groups = OutsideModules::default();
    let mut behind_rt = false;
    for token in tokens {
        let uses = match &token {
            TokenTree::Punct(punct) => behind_rt && punct.as_char() == ':' && punct.spacing() == Spacing::Joint,
            TokenTree::Group(group) => groups.is_outside() && uses_runtime(group.stream()),
            _ => false,
        };
        if uses {
            return true;
        }
        behind_rt = matches!(&token, TokenTree::Ident(ident) if ident == "rt");
        groups.pass(&token);
    }
    false
}

/// The attributes of an item that defines something; `None` for trait implementations.
fn attributes(item: &mut Item) -> Option<&mut Vec<Attribute>> {
    match item {
        Item::Mod(item) => Some(&mut item.attrs),
        Item::Struct(item) => Some(&mut item.attrs),
        Item::Enum(item) => Some(&mut item.attrs),
        Item::Trait(item) => Some(&mut item.attrs),
        Item::Type(item) => Some(&mut item.attrs),
        Item::Fn(item) => Some(&mut item.attrs),
        Item::Const(item) => Some(&mut item.attrs),
        Item::Impl(item) if item.trait_.is_none() => Some(&mut item.attrs),
        _ => None,
    }
}

/// The path of the main IDL file.
fn main_file(model: &Model) -> &Path {
    model.sources().files().first().map_or(Path::new(""), |file| &file.path)
}

/// The first lines of a file generated from the IDL file `source`.
fn header(cx: &Context<'_>, source: &Path) -> String {
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    // A line feed would end the comment.
    let name = spandrel_error::escape(&name);
    let version = env!("CARGO_PKG_VERSION");
    let mut header = format!("// @generated by spandrel {version} from {name}. Do not edit.\n");
    for name in cx.padding.refused() {
        header.push_str(&format!(
            "// Its padding is not explicit, because memory and encoding cannot agree: struct {name}\n"
        ));
    }
    let left_out = cx.model.definitions().filter(|definition| cx.left_out.contains(&definition.id));
    for definition in left_out {
        if !matches!(definition.kind, DefinitionKind::Operation(_) | DefinitionKind::Attribute(_)) {
            let (kind, name) = (definition.kind.keyword(), &definition.scoped_name);
            header.push_str(&format!("// Left out, because it has no Rust form yet: {kind} {name}\n"));
        }
    }
    header
}
