//! Local interfaces, and types that contain them: their values never leave their process (IDL 4.2, 7.4.6.4.3;
//! CORBA 3.3 Part 1, 7.8.8).
//!
//! The back end treats an interface that uses native types as local (`rust::local`); here such a use is only
//! a warning.

use super::checker::Checker;
use super::names::named;
use crate::ast::Flavour;
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefinitionKind, Interface, Type};
use crate::source::Span;

impl Checker<'_> {
    /// Whether values of the type stay inside their process.
    pub(super) fn is_local(&self, ty: &Type) -> bool {
        match ty {
            Type::Named(id) => match &self[*id].kind {
                DefinitionKind::Typedef(typedef) => self.is_local(&typedef.ty),
                _ => self.facts[id.index()].local,
            },
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.is_local(element),
            _ => false,
        }
    }

    /// Records that a struct or union is local, and so are types that have waited for it.
    pub(super) fn mark_local(&mut self, id: DefId) {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if !std::mem::replace(&mut self.facts[id.index()].local, true) {
                let waiting = self.waits.iter().filter(|(_, awaited)| *awaited == id);
                open.extend(waiting.map(|(waiting, _)| waiting));
            }
        }
    }

    /// Reports a local type in an interface that is not local; `what` is its position, as in "the parameter
    /// `a`".
    pub(super) fn check_not_local(&mut self, ty: &Type, subject: &str, span: Span) {
        if !self.in_remote_interface() {
            return;
        } else if !self.is_local(ty) {
            return self.check_not_native(ty, subject, span);
        }
        let mut heart = ty;
        while let Type::Sequence { element, .. } | Type::Array { element, .. } = heart {
            heart = element;
        }
        let mut error = Diagnostic::error(format!("{subject} has a local type")).at(span, "cannot be sent");
        if let Type::Named(id) = heart {
            error = error.also(self[*id].span, named(&self[*id].kind));
        }
        self.report(error.note("only a `local interface` may use local types or types that contain them"));
    }

    /// Warns of a native type in a remote position (IDL 4.2, 7.4.6.4.4). omniidl does not.
    fn check_not_native(&mut self, ty: &Type, subject: &str, span: Span) {
        let Type::Named(id) = ty else {
            return;
        };
        if let DefinitionKind::Native = self[self.unaliased(*id)].kind {
            let warning = Diagnostic::warning(format!("{subject} has a native type"))
                .at(span, "cannot be sent")
                .note("native types are for local interfaces and value types");
            self.report(warning);
        }
    }

    /// Reports an exception with local members that a remote operation raises.
    pub(super) fn check_exception_not_local(&mut self, exception: DefId, span: Span) {
        self.check_not_local(&Type::Named(exception), "the raised exception", span);
    }

    /// Whether the innermost enclosing interface can be called from another process.
    fn in_remote_interface(&self) -> bool {
        let owners = self.open.iter().rev().filter_map(|&scope| self.scope(scope).owner);
        let kinds = owners.map(|owner| &self[owner].kind);
        kinds
            .filter_map(|kind| match kind {
                DefinitionKind::Interface(interface) => Some(!interface.is_local),
                DefinitionKind::ValueType(_) => Some(false),
                _ => None,
            })
            .next()
            .unwrap_or(false)
    }

    /// Whether an interface of this flavour may inherit from the other; reports an error otherwise (IDL 4.2,
    /// 7.4.3.4.3.2 and 7.4.6).
    pub(super) fn check_flavours(&mut self, flavour: Flavour, base: DefId, span: Span) -> bool {
        let DefinitionKind::Interface(interface) = &self[base].kind else {
            return true;
        };
        let (rule, problem) = match flavour {
            Flavour::Abstract if !interface.is_abstract => ("an abstract interface", "is not abstract"),
            Flavour::Unconstrained if interface.is_local => ("an interface that is not local", "is local"),
            _ => return true,
        };
        let text = &self[base].name;
        let error = Diagnostic::error(format!("{rule} cannot inherit from `{text}`, which {problem}"))
            .at(span, "used as a base")
            .also(self[base].span, "defined here");
        self.report(error);
        false
    }

    /// Reports an interface that was declared with another flavour before.
    pub(super) fn check_same_flavour(&mut self, flavour: Flavour, id: DefId, span: Span) {
        let DefinitionKind::Interface(interface) = &self[id].kind else {
            return;
        };
        let before = flavour_of(interface);
        if before == flavour {
            return;
        }
        let error = Diagnostic::error(format!("interface `{}` is declared in two ways", self[id].name))
            .at(span, format!("here {}", word(flavour)))
            .also(self[id].span, format!("here {}", word(before)));
        self.report(error);
    }
}

fn flavour_of(interface: &Interface) -> Flavour {
    match (interface.is_abstract, interface.is_local) {
        (true, _) => Flavour::Abstract,
        (_, true) => Flavour::Local,
        _ => Flavour::Unconstrained,
    }
}

fn word(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::Unconstrained => "neither `abstract` nor `local`",
        Flavour::Abstract => "`abstract`",
        Flavour::Local => "`local`",
    }
}
