//! `#pragma ID` and `#pragma version` (CORBA 3.3 Part 1, 14.7.5).

use super::checker::Checker;
use crate::ast::ScopedName;
use crate::diagnostic::Diagnostic;
use crate::source::Span;

impl Checker<'_> {
    pub(super) fn pragma_id(&mut self, name: &ScopedName, id: &str, span: Span) {
        let Some(target) = self.resolve(name) else {
            return;
        };
        if !id.contains(':') {
            let warning = Diagnostic::warning(format!("`{id}` is not a repository id"))
                .at(span, "")
                .note("a repository id starts with its format, as in `IDL:omg.org/Bank/Account:1.0`");
            self.report(warning);
        }
        let facts = &self.facts[target.index()];
        let earlier = facts.id_set.or(facts.version_set);
        let current_id = &self[target].repository_id;
        if let Some(earlier) = earlier
            && current_id != id
        {
            let error = Diagnostic::error(format!("the repository id of `{}` is set twice", self[target].name))
                .at(span, format!("here to `{id}`"))
                .also(earlier, format!("before to `{current_id}`"));
            return self.report(error);
        }
        self.facts[target.index()].id_set = Some(span);
        id.clone_into(&mut self.definitions[target.index()].repository_id);
    }

    pub(super) fn pragma_version(&mut self, name: &ScopedName, version: &str, span: Span) {
        let Some(target) = self.resolve(name) else {
            return;
        };
        let id = &self[target].repository_id;
        let Some((stem, current_version)) = id.rsplit_once(':') else {
            return;
        };
        let facts = &self.facts[target.index()];
        let earlier = facts.id_set.or(facts.version_set);
        if let Some(earlier) = earlier
            && current_version != version
        {
            let error = Diagnostic::error(format!("the version of `{}` is set twice", self[target].name))
                .at(span, format!("here to {version}"))
                .also(earlier, format!("before the id was set to `{id}`"));
            return self.report(error);
        }
        let id = format!("{stem}:{version}");
        self.facts[target.index()].version_set = Some(span);
        self.definitions[target.index()].repository_id = id;
    }
}
