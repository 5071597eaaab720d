//! Name resolution (IDL 4.2, 7.5.1).

use super::checker::{Checker, Entry, ScopeId};
use crate::ast::{Name, ScopedName};
use crate::diagnostic::Diagnostic;
use crate::intern::{Keyword, Symbol};
use crate::model::{DefId, DefinitionKind};
use spandrel_error::closest;

/// The maximum number of names of a scope considered for a suggestion.
const MOST_CANDIDATES: usize = 2000;

/// The result of a search in one scope.
enum Found {
    Nothing,
    /// The entry, and whether it is inherited.
    One(Entry, bool),
    Ambiguous(Vec<Entry>),
}

/// The failure of a lookup: the index of the part at which the search ended, and the scope in which it ended.
pub(super) struct NotFound {
    part: usize,
    scope: Option<ScopeId>,
}

impl Checker<'_> {
    /// The definition of a name. `None` if there is none or it is broken; both have been reported.
    pub(super) fn resolve(&mut self, name: &ScopedName) -> Option<DefId> {
        match self.try_resolve(name) {
            Ok(lookup) => lookup,
            Err(not_found) => {
                self.report_not_found(name, &not_found);
                None
            }
        }
    }

    /// As [`resolve`](Self::resolve), but an unknown name is left to the caller to report.
    pub(super) fn try_resolve(&mut self, name: &ScopedName) -> Result<Option<DefId>, NotFound> {
        let mut scope = None;
        let mut meaning = None;
        for (part, &simple) in name.parts.iter().enumerate() {
            let lookup = match scope {
                None if name.absolute => self.find(ScopeId::GLOBAL, simple.symbol),
                None => self.find_outwards(simple),
                Some(scope) => self.find(scope, simple.symbol),
            };
            let entry = match lookup {
                Found::Nothing => return Err(NotFound { part, scope }),
                Found::One(entry, _) => entry,
                Found::Ambiguous(entries) => {
                    self.ambiguous(simple, &entries);
                    return Ok(None);
                }
            };
            self.check_case(simple, entry);
            let Some(id) = entry.definition else {
                self.not_a_definition(simple, entry);
                return Ok(None);
            };
            if self.facts[id.index()].broken {
                return Ok(None);
            }
            meaning = Some(id);
            if part + 1 < name.parts.len() {
                let Some(inner) = self.inner_scope(id, simple) else {
                    return Ok(None);
                };
                scope = Some(inner);
            }
        }
        Ok(meaning)
    }

    /// Records a name that was looked up in the module CORBA, or that a reopened module CORBA uses.
    fn record_missing(&mut self, name: Name, scope: Option<ScopeId>) {
        let is_corba = |scope: ScopeId| self.scope(scope).owner.is_some_and(|owner| self[owner].scoped_name == "CORBA");
        if scope.map_or_else(|| self.open.iter().any(|&scope| is_corba(scope)), is_corba) {
            let text = self.text(name.symbol).to_string();
            self.missing_in_corba.insert(text);
        }
    }

    /// Whether a simple name is defined here.
    pub(super) fn is_visible(&mut self, name: Name) -> bool {
        !matches!(self.find_outwards(name), Found::Nothing)
    }

    /// Searches the enclosing scopes, innermost first, and records the use of the name here.
    fn find_outwards(&mut self, name: Name) -> Found {
        for (steps, scope) in self.open.clone().into_iter().rev().enumerate() {
            match self.find(scope, name.symbol) {
                Found::Nothing => {}
                Found::One(entry, inherited) => {
                    if steps > 0 || inherited {
                        self.use_name(Name { symbol: entry.symbol, span: name.span });
                    }
                    return Found::One(entry, inherited);
                }
                ambiguous @ Found::Ambiguous(_) => return ambiguous,
            }
        }
        Found::Nothing
    }

    /// Searches one scope, and for an interface also those of its bases.
    fn find(&mut self, scope: ScopeId, symbol: Symbol) -> Found {
        let folded = self.interner.folded(symbol);
        if let Some(&entry) = self.scope(scope).names.get(&folded) {
            return Found::One(entry, false);
        }
        let bases = &self.scope(scope).bases;
        let inherited = bases.iter().filter_map(|&base| {
            let entry = self.scope(base).names.get(&folded)?;
            Some((base, *entry))
        });
        let mut inherited: Vec<(ScopeId, Entry)> = inherited.collect();
        if inherited.len() > 1 {
            // A redefinition in a base hides the inherited definition.
            let all = inherited.clone();
            inherited.retain(|(scope, _)| {
                let hides = |(other, _): &(ScopeId, Entry)| self.scope(*other).bases.contains(scope);
                !all.iter().any(hides)
            });
        }
        match inherited[..] {
            [] => Found::Nothing,
            [(_, entry)] => Found::One(entry, true),
            _ => Found::Ambiguous(inherited.into_iter().map(|(_, entry)| entry).collect()),
        }
    }

    /// The scope for the next part of a scoped name.
    fn inner_scope(&mut self, id: DefId, name: Name) -> Option<ScopeId> {
        if let Some(scope) = self.facts[id.index()].scope {
            return Some(scope);
        }
        let text = self.text(name.symbol);
        let definition = &self[id];
        let mut error = Diagnostic::error(format!("`{text}` has no names inside it"))
            .at(name.span, named(&definition.kind))
            .also(definition.span, "defined here");
        match definition.kind {
            DefinitionKind::Enum(_) => {
                error = error.help("enumerators are in the scope of their enum: use them without its name");
            }
            DefinitionKind::Interface(_)
            | DefinitionKind::Struct(_)
            | DefinitionKind::Union(_)
            | DefinitionKind::ValueType(_) => {
                error = error.note("only declared so far");
            }
            _ => {}
        }
        self.report(error);
        None
    }

    fn check_case(&mut self, name: Name, entry: Entry) {
        if entry.symbol == name.symbol {
            return;
        }
        let (text, defined) = (self.text(name.symbol), self.text(entry.symbol));
        let error = Diagnostic::error(format!("`{text}` is written `{defined}` where it is defined"))
            .at(name.span, "")
            .also(entry.span, "defined here")
            .note("all uses of a name must be written in the same case (IDL 4.2, 7.2.3)");
        self.report(error);
    }

    fn not_a_definition(&mut self, name: Name, entry: Entry) {
        let text = self.text(name.symbol);
        let error = Diagnostic::error(format!("`{text}` is a member or parameter"))
            .at(name.span, "expected a type, constant, exception or interface")
            .also(entry.span, "defined here");
        self.report(error);
    }

    fn ambiguous(&mut self, name: Name, entries: &[Entry]) {
        let text = self.text(name.symbol);
        let mut error = Diagnostic::error(format!("`{text}` is inherited from several bases"))
            .at(name.span, "ambiguous")
            .help(format!("qualify it with its interface, as in `Base::{text}`"));
        for entry in entries.iter().take(4) {
            error = error.also(entry.span, "this is one");
        }
        self.report(error);
    }

    pub(super) fn report_not_found(&mut self, name: &ScopedName, not_found: &NotFound) {
        let part = name.parts[not_found.part];
        self.record_missing(part, not_found.scope);
        if self.reporter.is_full() {
            return;
        }
        let text = self.text(part.symbol);
        let mut error = match not_found.part.checked_sub(1) {
            None => {
                Diagnostic::error(format!("`{text}` is not defined")).at(part.span, "not found in any enclosing scope")
            }
            Some(before) => {
                let outer = self.text(name.parts[before].symbol);
                Diagnostic::error(format!("`{outer}` has no `{text}`")).at(part.span, "not found there")
            }
        };
        let keyword = Keyword::colliding(&text).filter(|_| not_found.part == 0);
        if let Some(keyword) = keyword {
            error = error.help(format!("did you mean `{}`?", keyword.text()));
        } else if &*text == "TypeCode" && not_found.part == 0 {
            error = error.help("did you mean `CORBA::TypeCode`?");
        } else if let Some(similar) = self.similar(&text, not_found.scope) {
            error = error.help(format!("did you mean `{similar}`?"));
        }
        self.report(error);
    }

    /// A similar name, in one scope or in the enclosing ones.
    fn similar(&self, text: &str, scope: Option<ScopeId>) -> Option<String> {
        let searched = match scope {
            Some(scope) => vec![scope],
            None => self.open.iter().rev().copied().collect(),
        };
        for scope in searched {
            let scopes = std::iter::once(scope).chain(self.scope(scope).bases.iter().copied());
            let entries = scopes.flat_map(|it| self.scope(it).names.values());
            let entries = entries.filter(|it| it.definition.is_some());
            let mut candidates: Vec<_> = entries.take(MOST_CANDIDATES).map(|it| self.text(it.symbol)).collect();
            candidates.sort_unstable(); // the map is unordered
            if let Some(similar) = closest(text, candidates.iter().map(|it| &**it)) {
                return Some(similar.to_owned());
            }
        }
        None
    }
}

/// "this is the name of a struct", and so on.
pub(super) fn named(kind: &DefinitionKind) -> String {
    format!("this is the name of {}", with_article(kind.keyword()))
}

/// "a struct", "an interface". "union" takes "a" too.
pub(super) fn with_article(word: &str) -> String {
    let article = if word.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {word}")
}
