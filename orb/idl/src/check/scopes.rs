//! Scopes: their names, and the checks of new names (IDL 4.2, 7.5.2).

use super::checker::{Checker, Entry, Facts, NAME_BUDGET, Scope, ScopeId, Shape};
use std::rc::Rc;

use crate::ast::{Name, NewName};
use crate::diagnostic::Diagnostic;
use crate::intern::Symbol;
use crate::model::{DefId, Definition, DefinitionKind};
use crate::parse::{LONGEST_NAME, join};
use crate::source::Span;

impl Checker<'_> {
    pub(super) fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.0 as usize]
    }

    pub(super) fn scope_mut(&mut self, id: ScopeId) -> &mut Scope {
        &mut self.scopes[id.0 as usize]
    }

    pub(super) fn current(&self) -> ScopeId {
        self.open.last().copied().unwrap_or(ScopeId::GLOBAL)
    }

    /// The entry of `scope` itself for this name in any case.
    pub(super) fn own(&mut self, scope: ScopeId, symbol: Symbol) -> Option<Entry> {
        let folded = self.interner.folded(symbol);
        self.scope(scope).names.get(&folded).copied()
    }

    /// Opens the scope of a definition, a new one unless it was open before.
    pub(super) fn enter(&mut self, owner: DefId) -> ScopeId {
        let scope = match self.facts[owner.index()].scope {
            Some(scope) => scope,
            None => {
                let scope = self.new_scope(Some(owner));
                self.facts[owner.index()].scope = Some(scope);
                scope
            }
        };
        self.open.push(scope);
        scope
    }

    pub(super) fn new_scope(&mut self, owner: Option<DefId>) -> ScopeId {
        self.scopes.push(Scope { owner, ..Scope::default() });
        ScopeId((self.scopes.len() - 1) as u32)
    }

    pub(super) fn leave(&mut self) {
        self.open.pop();
    }

    /// Enters a new definition into the current scope, after the checks for collisions.
    pub(super) fn define(&mut self, new: &NewName, kind: DefinitionKind) -> DefId {
        let parent = self.scope(self.current()).owner;
        let id = self.define_below(new, kind, parent);
        match parent.map(|parent| &mut self.definitions[parent.index()].kind) {
            None => self.roots.push(id),
            Some(DefinitionKind::Module(body)) => body.contents.push(id),
            Some(DefinitionKind::Interface(body)) => body.contents.push(id),
            Some(DefinitionKind::Struct(body) | DefinitionKind::Exception(body)) => {
                body.contents.push(id);
            }
            Some(DefinitionKind::Union(body)) => body.contents.push(id),
            Some(DefinitionKind::ValueType(body)) => body.contents.push(id),
            Some(DefinitionKind::Unmapped(body)) => body.contents.push(id),
            Some(_) => {}
        }
        id
    }

    /// As [`define`](Self::define), for a definition that its parent lists itself.
    pub(super) fn define_below(&mut self, new: &NewName, kind: DefinitionKind, parent: Option<DefId>) -> DefId {
        let id = DefId(self.definitions.len() as u32);
        let name = self.interner.text(new.name.symbol);
        let (scoped_name, repository_id) = self.full_names(&name, &new.prefix, new.name.span);
        let is_new = self.enter_name(new.name, Some(id), kind.keyword());
        if is_new {
            self.by_name.insert(scoped_name.clone(), id);
        }
        self.definitions.push(Definition {
            annotations: Vec::new(),
            id,
            name: name.to_string(),
            scoped_name,
            repository_id,
            parent,
            doc: new.doc.clone(),
            span: new.name.span,
            in_main_file: self.in_main(new.name.span),
            kind,
        });
        self.facts.push(Facts {
            symbol: new.name.symbol,
            broken: false,
            complete: false,
            awaits: Vec::new(),
            local: false,
            scope: None,
            shape: Shape::default(),
            id_set: None,
            version_set: None,
        });
        id
    }

    /// The scoped name and the repository id. An excessive length is reported and truncated, since every
    /// nested name repeats it.
    fn full_names(&mut self, name: &str, prefix: &str, span: Span) -> (String, String) {
        let owner = self.scope(self.current()).owner;
        let outer = owner.map_or("", |owner| &self[owner].scoped_name);
        let scoped_name = match outer {
            "" => name.to_owned(),
            outer => format!("{outer}::{name}"),
        };
        if scoped_name.len() > LONGEST_NAME {
            let message = format!("a name with its scopes has at most {LONGEST_NAME} characters");
            self.report(Diagnostic::error(message).at(span, "this is longer"));
            return (String::new(), String::new());
        }
        let id = self.repository_id(name, prefix);
        match self.charge_names(2 * scoped_name.len() + id.len(), span) {
            true => (scoped_name, id),
            false => (String::new(), String::new()),
        }
    }

    /// Charges the budget for names; if it is exhausted, the run ends with an error.
    pub(super) fn charge_names(&mut self, octets: usize, span: Span) -> bool {
        if let Some(rest) = self.name_budget.checked_sub(octets) {
            self.name_budget = rest;
            return true;
        }
        let error = Diagnostic::error("scoped names and repository ids take too much memory")
            .at(span, "the limit is exceeded here")
            .note(format!("they may take {} MiB", NAME_BUDGET >> 20))
            .help("use a shorter prefix or shorter names of modules");
        self.name_budget = 0;
        self.reporter.give_up(error);
        false
    }

    /// `IDL:prefix/name:1.0` (CORBA 3.3 Part 1, 14.7.1).
    pub(super) fn repository_id(&self, name: &str, prefix: &str) -> String {
        format!("IDL:{}:1.0", join(prefix, name))
    }

    /// Enters a name into the current scope; returns whether that was possible. `described_as` describes it in an
    /// error.
    pub(super) fn enter_name(&mut self, name: Name, definition: Option<DefId>, described_as: &str) -> bool {
        let scope = self.current();
        let folded = self.interner.folded(name.symbol);
        if let Some(earlier) = self.scope(scope).names.get(&folded).copied() {
            self.collision(name, earlier, described_as);
            return false;
        }
        self.check_enclosing(scope, name, described_as);
        self.check_used(scope, name, described_as);
        let entry = Entry { symbol: name.symbol, definition, span: name.span };
        self.scope_mut(scope).names.insert(folded, entry);
        true
    }

    fn collision(&mut self, name: Name, earlier: Entry, described_as: &str) {
        if earlier.definition.is_some_and(|id| self.facts[id.index()].broken) {
            return;
        }
        let (text, before) = (self.text(name.symbol), self.text(earlier.symbol));
        let kind = earlier.definition.map_or("member or parameter", |id| self[id].kind.keyword());
        let mut error = if text == before {
            Diagnostic::error(format!("`{text}` is defined twice in this scope"))
        } else {
            Diagnostic::error(format!("`{text}` and `{before}` differ only in case"))
                .note("identifiers that differ only in case collide (IDL 4.2, 7.2.3)")
        };
        error = error
            .at(name.span, format!("this {described_as} collides"))
            .also(earlier.span, format!("with this {kind}"));
        self.report(error);
    }

    /// Reports a name equal to that of its own scope (IDL 4.2, 7.5.2).
    fn check_enclosing(&mut self, scope: ScopeId, name: Name, described_as: &str) {
        let Some(owner) = self.scope(scope).owner else {
            return;
        };
        let (text, around) = (self.text(name.symbol), self.text(self.facts[owner.index()].symbol));
        if !text.eq_ignore_ascii_case(&around) {
            return;
        }
        let kind = self[owner].kind.keyword();
        let mut error = Diagnostic::error(format!("`{text}` is the name of the enclosing {kind}"))
            .at(name.span, format!("this {described_as} needs another name"))
            .also(self[owner].span, "defined here");
        if text != around {
            error = error.note("names that differ only in case collide (IDL 4.2, 7.2.3)");
        }
        self.report(error);
    }

    /// Reports a redefinition of a name that has been used in the scope (IDL 4.2, 7.5.3).
    fn check_used(&mut self, scope: ScopeId, name: Name, described_as: &str) {
        let folded = self.interner.folded(name.symbol);
        let Some(used) = self.scope(scope).used.get(&folded).copied() else {
            return;
        };
        let text = self.text(name.symbol);
        let diagnostic = if used.symbol == name.symbol {
            Diagnostic::error(format!("`{text}` is redefined after it was used here"))
                .at(name.span, format!("this {described_as} comes too late"))
                .also(used.span, "used here with its earlier meaning")
        } else {
            let before = self.text(used.symbol);
            Diagnostic::warning(format!("`{text}` differs only in case from `{before}`, which is used in this scope"))
                .at(name.span, format!("this {described_as}"))
                .also(used.span, "used here")
                .note("other IDL compilers reject this; writing the type as a scoped name such as `::Scope::Type` avoids it")
        };
        self.report(diagnostic);
    }

    /// Records the use of an outer name in the current scope. It also counts for the enclosing scopes, up to
    /// the innermost definition that is not a module (IDL 4.2, 7.5.3: the name's potential scope).
    pub(super) fn use_name(&mut self, name: Name) {
        if !self.remember_uses {
            return;
        }
        let folded = self.interner.folded(name.symbol);
        let innermost = self.open.len().saturating_sub(1);
        for depth in (0..self.open.len()).rev() {
            let scope = self.open[depth];
            let owner = self.scope(scope).owner;
            let in_module = owner.is_none_or(|owner| matches!(self[owner].kind, DefinitionKind::Module(_)));
            if depth < innermost && (in_module || self.scope(scope).names.contains_key(&folded)) {
                break;
            }
            self.scope_mut(scope).used.entry(folded).or_insert(name);
        }
    }

    pub(super) fn text(&self, symbol: Symbol) -> Rc<str> {
        self.interner.text(symbol)
    }
}
