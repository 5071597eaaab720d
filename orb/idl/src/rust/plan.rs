//! The Rust modules of a file and their contents, in order.

use std::cell::Cell;
use std::rc::Rc;

use proc_macro2::Ident;

use super::contents::flatten_structs;
use super::docs;
use super::file_homes::Home;
use super::names::ModulePath;
use super::types::Context;
use crate::model::{DefId, DefinitionKind};

/// A part of the output.
#[derive(Debug)]
pub(super) enum Part {
    /// A unit of writing.
    Piece(Piece),
    /// A module with its parts.
    Module(Module),
}

/// A definition without its nested definitions, or the errors of its operations.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) id: DefId,
    pub(super) is_errors: bool,
    /// Its index among all pieces.
    pub(super) nth: usize,
    /// The module that contains it.
    pub(super) path: Rc<ModulePath>,
    /// The number of enclosing modules in its file.
    pub(super) depth: usize,
}

/// A Rust module: of an IDL module, of the contents of an interface or value type, or of the option `prefix`.
#[derive(Debug)]
pub(super) struct Module {
    /// Its module, interface or value type; `None` for a module given by the option `prefix`.
    pub(super) definition: Option<DefId>,
    pub(super) ident: Ident,
    /// Its documentation in lines, without `///`.
    pub(super) doc: Vec<String>,
    pub(super) parts: Vec<Part>,
    /// The number of enclosing modules in its file.
    pub(super) depth: usize,
    /// Written to a file of its own.
    pub(super) has_file: bool,
    /// Written even if it is empty.
    pub(super) may_be_empty: bool,
    /// Not written, because it is empty; decided after all pieces are written, like the next field.
    pub(super) is_left_out: bool,
    /// Its contents use the runtime.
    pub(super) imports_runtime: bool,
    /// May have the name of the enclosing module, possibly of the one that includes the file: a clippy lint.
    pub(super) may_repeat_name: bool,
}

/// The plan for a model, inside the modules of the option `prefix`; `split` gives IDL modules their own
/// files.
pub(super) fn plan(cx: &Context<'_>, split: bool) -> Vec<Part> {
    let around = if split { 0 } else { cx.prefix.len() };
    let planning = Planner { cx, split, pieces: Cell::new(0) };
    let inner = planning.parts(cx.model.roots(), &Rc::default(), around);
    cx.prefix.iter().enumerate().rev().fold(inner, |parts, (nth, name)| {
        let ident = syn::parse_str(name).expect("checked when it was set");
        let depth = if split { 0 } else { nth };
        vec![Part::Module(Module {
            definition: None,
            ident,
            doc: Vec::new(),
            parts,
            depth,
            has_file: split,
            may_be_empty: true,
            is_left_out: false,
            imports_runtime: false,
            may_repeat_name: false,
        })]
    })
}

struct Planner<'c, 'm> {
    cx: &'c Context<'m>,
    split: bool,
    /// The number of pieces so far.
    pieces: Cell<usize>,
}

impl Planner<'_, '_> {
    fn parts(&self, contents: &[DefId], path: &Rc<ModulePath>, depth: usize) -> Vec<Part> {
        let cx = self.cx;
        let written = flatten_structs(cx.model, contents).into_iter().filter(|&id| cx.externals.is_in(Home::Own, id));
        let mut parts = Vec::new();
        for id in written {
            match &cx.model[id].kind {
                DefinitionKind::Module(body) => parts.push(self.module(id, &body.contents, depth)),
                DefinitionKind::Interface(_) | DefinitionKind::ValueType(_) => {
                    parts.push(self.piece(id, false, path, depth));
                    parts.push(self.inside(id, depth));
                }
                DefinitionKind::Operation(_)
                | DefinitionKind::Attribute(_)
                | DefinitionKind::Enumerator(_)
                | DefinitionKind::Unmapped(_) => {}
                _ => parts.push(self.piece(id, false, path, depth)),
            }
        }
        parts
    }

    fn piece(&self, id: DefId, is_errors: bool, path: &Rc<ModulePath>, depth: usize) -> Part {
        let nth = self.pieces.replace(self.pieces.get() + 1);
        Part::Piece(Piece { id, is_errors, nth, path: path.clone(), depth })
    }

    fn module(&self, id: DefId, contents: &[DefId], depth: usize) -> Part {
        let cx = self.cx;
        let names = cx.names.place(id);
        let mut path = names.module.clone();
        path.push(names.ident.clone());
        Part::Module(Module {
            definition: Some(id),
            ident: names.ident.clone(),
            doc: docs::lines(&cx.model[id].doc),
            parts: self.parts(contents, &Rc::new(path), if self.split { 0 } else { depth + 1 }),
            depth,
            has_file: self.split,
            may_be_empty: true,
            is_left_out: false,
            imports_runtime: false,
            may_repeat_name: may_repeat(&names.module, &names.ident),
        })
    }

    /// The module of an interface or value type.
    fn inside(&self, id: DefId, depth: usize) -> Part {
        let cx = self.cx;
        let path = Rc::new(cx.names.interface_module(id));
        let mut parts = self.parts(cx.model.contents(id), &path, depth + 1);
        parts.push(self.piece(id, true, &path, depth + 1));
        let name = &cx.model[id].scoped_name;
        let line = format!(" Definitions nested in `{name}`, and the errors of its operations.");
        let ident = cx.names.interface(id).module.clone();
        Part::Module(Module {
            definition: Some(id),
            may_repeat_name: may_repeat(&cx.names.place(id).module, &ident),
            ident,
            doc: vec![line],
            parts,
            depth,
            has_file: false,
            may_be_empty: false,
            is_left_out: false,
            imports_runtime: false,
        })
    }
}

/// All pieces, in order.
pub(super) fn pieces<'p>(parts: &'p [Part], pieces_in_order: &mut Vec<&'p Piece>) {
    for part in parts {
        match part {
            Part::Piece(piece) => pieces_in_order.push(piece),
            Part::Module(module) => pieces(&module.parts, pieces_in_order),
        }
    }
}

/// Whether a module has the name of the enclosing one, as far as is known.
fn may_repeat(around: &ModulePath, ident: &Ident) -> bool {
    around.last().is_none_or(|around| around == ident)
}
