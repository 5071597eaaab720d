//! Structs and unions used before the end of their definitions (IDL 4.2, 7.4.1.4.4.4.4).
//!
//! Such a type may only be the element of a sequence, and that sequence the element of another or a member of
//! a struct or union. A struct or union with such a member is incomplete until the member's type is complete,
//! unless it is defined inside that type. (omniidl permits sequences of an incomplete type as members inside
//! the type itself only.)

use super::checker::Checker;
use std::collections::HashSet;

use super::types::Place;
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefinitionKind, Type};
use crate::source::Span;

/// The limit of structs and unions that wait for others in one run. Each wait may make types one level deeper
/// than was known at their definition.
const MOST_WAITS: usize = 256;

impl Checker<'_> {
    /// Reports a struct or union that is used before its end where that is not permitted.
    pub(super) fn check_complete(&mut self, ty: &Type, span: Span, use_site: Place) -> bool {
        let shape = self.shape(ty);
        let Some(heart) = shape.heart else {
            return true;
        };
        let missing = self.missing(heart);
        let inside = missing.iter().all(|it| self.open_structs.contains(it));
        let is_defined = self.facts[heart.index()].complete;
        let allowed = match use_site {
            Place::Element => true,
            _ if missing.is_empty() || (is_defined && inside) => true,
            Place::Typedef => shape.by_sequence,
            Place::Member => shape.by_sequence && (inside || self.wait_for(&missing, span)),
            Place::Call => false,
        };
        if !allowed {
            self.report_incomplete(heart, missing, shape.by_sequence, span);
        }
        allowed
    }

    /// The types to be defined before this one is complete.
    fn missing(&mut self, id: DefId) -> Vec<DefId> {
        if !self.facts[id.index()].complete {
            return vec![id];
        }
        let mut open = std::mem::take(&mut self.facts[id.index()].awaits);
        let mut visited = HashSet::new();
        let mut missing = Vec::new();
        while let Some(next) = open.pop() {
            if !visited.insert(next) {
                continue;
            } else if self.facts[next.index()].complete {
                open.extend(&self.facts[next.index()].awaits);
            } else {
                missing.push(next);
            }
        }
        self.facts[id.index()].awaits.clone_from(&missing);
        missing
    }

    /// Makes the struct or union being defined wait for others; returns whether that is possible.
    fn wait_for(&mut self, missing: &[DefId], span: Span) -> bool {
        let Some(&waiting) = self.open_structs.last() else {
            return false;
        };
        if !matches!(self[waiting].kind, DefinitionKind::Struct(_) | DefinitionKind::Union(_)) {
            return false;
        }
        let outside: Vec<DefId> = missing.iter().copied().filter(|it| !self.open_structs.contains(it)).collect();
        for id in outside {
            if self.facts[waiting.index()].awaits.contains(&id) {
                continue;
            }
            if self.waits.len() == MOST_WAITS {
                let error = Diagnostic::error("too many structs and unions wait for others to be defined")
                    .at(span, "the limit is exceeded here");
                self.report(error);
                break;
            }
            self.waits.push((waiting, id));
            self.facts[waiting.index()].awaits.push(id);
        }
        true
    }

    fn report_incomplete(&mut self, heart: DefId, missing: Vec<DefId>, by_sequence: bool, span: Span) {
        let definition = &self[heart];
        let (kind, text) = (definition.kind.keyword(), &definition.name);
        let mut error = if self.open_structs.contains(&heart) && !by_sequence {
            Diagnostic::error(format!("{kind} `{text}` contains itself"))
                .at(span, "a value would never end")
                .also(definition.span, format!("the {kind} is defined here"))
                .help(format!("contain a `sequence<{text}>` instead"))
        } else {
            Diagnostic::error(format!("{kind} `{text}` is used before it is defined"))
                .at(span, "needs the whole definition")
        };
        for id in missing.into_iter().take(4).filter(|id| !self.open_structs.contains(id)) {
            error = match id == heart {
                true => error.also(self[id].span, "only declared so far"),
                false => error.also(self[id].span, "contains sequences of this type, which is only declared so far"),
            };
        }
        self.report(error);
    }
}
