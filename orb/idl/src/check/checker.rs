//! The state of the checker: definitions, scopes, and budgets that bound the cost of hostile input.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::ast::Name;
use crate::diagnostic::{Diagnostic, Reporter};
use crate::intern::{Interner, Symbol};
use crate::model::{DefId, Definition};
use crate::portability::Portability;
use crate::preprocess::Context;
use crate::source::{FileId, Span};

/// The budget of octets for the scoped names and repository ids of one run: each repeats prefixes and names
/// of modules.
pub(super) const NAME_BUDGET: usize = 256 << 20;

/// The budget of octets that string constants copy from each other in one run.
pub(super) const TEXT_BUDGET: usize = 16 << 20;

/// The budget of compared inherited operations in one run, which bounds the cost of complex inheritance.
pub(super) const COMPARISON_BUDGET: usize = 4_000_000;

/// The state of one run.
pub(super) struct Checker<'a> {
    pub(super) definitions: Vec<Definition>,
    /// Additional properties of each definition that the model does not need.
    pub(super) facts: Vec<Facts>,
    pub(super) roots: Vec<DefId>,
    pub(super) by_name: HashMap<String, DefId>,
    pub(super) scopes: Vec<Scope>,
    /// The enclosing scopes, innermost last.
    pub(super) open: Vec<ScopeId>,
    /// The enclosing structs and unions.
    pub(super) open_structs: Vec<DefId>,
    /// Whether resolving a name counts as a use in the enclosing scope.
    pub(super) remember_uses: bool,
    /// The prefixes set by `typeprefix`, with their positions.
    pub(super) type_prefixes: HashMap<DefId, (String, Span)>,
    pub(super) inheritance_budget: usize,
    /// Pairs of a struct or union and another that it waited for.
    pub(super) waits: Vec<(DefId, DefId)>,
    /// The remaining budget of octets that string constants copy from each other.
    pub(super) text_budget: usize,
    /// The remaining budget of octets for scoped names and repository ids.
    pub(super) name_budget: usize,
    /// Interfaces and value types that are declared forward, with each file that does so.
    pub(super) forward_declarations: BTreeSet<(DefId, FileId)>,
    pub(super) missing_in_corba: HashSet<String>,
    pub(super) imports_corba: bool,
    pub(super) interner: &'a mut Interner,
    pub(super) reporter: &'a mut Reporter,
    portability: &'a mut Portability,
}

/// Properties of a definition beyond the model.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) symbol: Symbol,
    /// Whether an error was reported: its uses are ignored.
    pub(super) broken: bool,
    /// For structs, unions and interfaces: whether the body is complete.
    pub(super) complete: bool,
    /// For structs and unions: other definitions needed for their completion.
    pub(super) awaits: Vec<DefId>,
    /// For types other than typedefs, and for exceptions: whether values stay inside their process.
    pub(super) local: bool,
    /// Its scope, if it has one.
    pub(super) scope: Option<ScopeId>,
    /// The shape of its values, if it is a type.
    pub(super) shape: Shape,
    /// The position of a `#pragma ID` for it.
    pub(super) id_set: Option<Span>,
    /// The position of a `#pragma version` for it.
    pub(super) version_set: Option<Span>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// The depth of nested types.
    pub(super) depth: u32,
    /// The octets of its smallest value in CDR, without padding.
    pub(super) octets: u64,
    /// Whether all values have the same size.
    pub(super) fixed: bool,
    /// The innermost struct or union, below arrays, sequences and typedefs.
    pub(super) heart: Option<DefId>,
    /// Whether a sequence is between the type and its innermost struct or union.
    pub(super) by_sequence: bool,
}

/// A position in [`Checker::scopes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScopeId(pub(super) u32);

impl ScopeId {
    pub(super) const GLOBAL: ScopeId = ScopeId(0);
}

/// A region of names. Keys are spellings in lower case, since names that differ only in case collide.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// The definition with this scope; `None` for the global scope.
    pub(super) owner: Option<DefId>,
    pub(super) names: HashMap<Symbol, Entry>,
    /// Names of other scopes used here: they may not be redefined here any more.
    pub(super) used: HashMap<Symbol, Name>,
    /// For an interface: the scopes of all its bases.
    pub(super) bases: Vec<ScopeId>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) symbol: Symbol,
    /// `None` for members and parameters.
    pub(super) definition: Option<DefId>,
    pub(super) span: Span,
}

impl Scope {
    pub(super) fn global() -> Self {
        Scope::default()
    }
}

impl<'a> Checker<'a> {
    pub(super) fn new(context: Context<'a>) -> Self {
        Self {
            definitions: Vec::new(),
            facts: Vec::new(),
            roots: Vec::new(),
            by_name: HashMap::new(),
            scopes: vec![Scope::global()],
            open: vec![ScopeId::GLOBAL],
            open_structs: Vec::new(),
            remember_uses: true,
            type_prefixes: HashMap::new(),
            inheritance_budget: COMPARISON_BUDGET,
            waits: Vec::new(),
            text_budget: TEXT_BUDGET,
            name_budget: NAME_BUDGET,
            forward_declarations: BTreeSet::new(),
            missing_in_corba: HashSet::new(),
            imports_corba: false,
            interner: context.interner,
            reporter: context.reporter,
            portability: context.portability,
        }
    }

    pub(super) fn in_main(&self, span: Span) -> bool {
        span.file == FileId(0)
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.reporter.report(diagnostic);
    }

    /// Warns of a construct that other compilers do not read, if such warnings are wanted.
    pub(super) fn not_portable(&mut self, construct: &'static str, since: &str, span: Span) {
        if let Some(warning) = self.portability.check(construct, since, span) {
            self.report(warning);
        }
    }
}

impl std::ops::Index<DefId> for Checker<'_> {
    type Output = Definition;

    fn index(&self, id: DefId) -> &Definition {
        &self.definitions[id.index()]
    }
}
