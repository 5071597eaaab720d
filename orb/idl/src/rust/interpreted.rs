//! Which engine marshals which type, and the line that stands for the code of one with a table.

use std::collections::BTreeMap;
use std::str::FromStr;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::types::Scope;
use super::{BadOption, names};
use crate::model::{DefId, Definition, DefinitionKind, Struct, Type};

pub(super) mod operations;

/// A marshaling engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Straight-line code for each type: the fastest, and the largest.
    #[default]
    Compiled,
    /// A table for each type, and one interpreter for all.
    Interpretive,
    /// Both: a type begins with its table, and goes over to its code once it has been used often.
    Adaptive,
}

impl FromStr for Engine {
    type Err = BadOption;

    fn from_str(name: &str) -> Result<Self, BadOption> {
        match name {
            "compiled" => Ok(Self::Compiled),
            "interpretive" => Ok(Self::Interpretive),
            "adaptive" => Ok(Self::Adaptive),
            _ => Err(BadOption {
                given: name.to_owned(),
                expected: "a marshaling engine: compiled, interpretive or adaptive",
            }),
        }
    }
}

/// The engine of everything, and those of some modules, interfaces and types by their scoped names.
#[derive(Clone, Debug, Default)]
pub(super) struct Engines {
    default: Engine,
    named: BTreeMap<String, Engine>,
}

impl Engines {
    /// Takes `ENGINE` or `Scoped::Name=ENGINE`.
    pub(super) fn choose(&mut self, choice: &str) -> Result<(), BadOption> {
        match choice.split_once('=') {
            None => self.default = choice.parse()?,
            Some((name, engine)) => {
                let name = name.trim_start_matches("::").to_owned();
                self.named.insert(name, engine.parse()?);
            }
        }
        Ok(())
    }

    /// The engine of what has this scoped name: that of the innermost scope around it for which one was chosen.
    pub(super) fn of(&self, scoped_name: &str) -> Engine {
        let mut name = scoped_name;
        loop {
            if let Some(&engine) = self.named.get(name) {
                return engine;
            }
            match name.rsplit_once("::") {
                Some((around, _)) => name = around,
                None => return self.default,
            }
        }
    }
}

/// The engine of a definition.
pub(super) fn engine(scope: Scope<'_, '_>, id: DefId) -> Engine {
    if scope.cx.padding.is_padded(id) {
        return Engine::Compiled;
    }
    scope.cx.engines.of(&scope.cx.model[id].scoped_name)
}

/// Whether the runtime knows a table for the type: for its own and Rust's, and for those that are not compiled.
fn has_table(scope: Scope<'_, '_>, ty: &Type) -> bool {
    match scope.cx.model.resolve(ty) {
        Type::Sequence { element, .. } | Type::Array { element, .. } => has_table(scope, element),
        Type::Named(id) => match &scope.cx.model[*id].kind {
            DefinitionKind::Enum(_) | DefinitionKind::Struct(_) => engine(scope, *id) != Engine::Compiled,
            DefinitionKind::Interface(body) => !body.is_abstract,
            _ => false,
        },
        Type::ValueBase | Type::AbstractBase => false,
        _ => true,
    }
}

/// Keeps members in CDR's order, so that the engine can move them in blocks.
pub(super) fn representation(engine: Engine) -> Option<TokenStream> {
    (engine != Engine::Compiled).then(|| quote! { #[repr(C)] })
}

/// The line that makes a struct's table and marshals by it.
pub(super) fn structure(scope: Scope<'_, '_>, definition: &Definition, body: &Struct) -> TokenStream {
    let rt = scope.rt();
    let ident = &scope.cx.names.place(definition.id).ident;
    let fields = names::fields(&body.members);
    let types = body.members.iter().map(|member| scope.owned(&member.ty));
    let adaptive = (engine(scope, definition.id) == Engine::Adaptive).then(|| quote! { adaptive });
    quote! { #rt::interpret! { #adaptive struct #ident { #( #fields: #types ),* } } }
}

/// The line that makes an enum's table and marshals by it.
pub(super) fn enumeration(scope: Scope<'_, '_>, ident: &Ident, variants: &[&Ident]) -> TokenStream {
    let rt = scope.rt();
    quote! { #rt::interpret! { enum #ident { #( #variants ),* } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_choice_holds() {
        let mut engines = Engines::default();
        for choice in ["interpretive", "Bank::Account=adaptive", "::Bank::Account::Entry=compiled"] {
            engines.choose(choice).expect("an engine");
        }
        assert_eq!(engines.of("Bank"), Engine::Interpretive);
        assert_eq!(engines.of("Bank::AccountBook"), Engine::Interpretive);
        assert_eq!(engines.of("Bank::Account"), Engine::Adaptive);
        assert_eq!(engines.of("Bank::Account::Kind"), Engine::Adaptive);
        assert_eq!(engines.of("Bank::Account::Entry"), Engine::Compiled);
        let error = engines.choose("Bank=fast").expect_err("no engine");
        assert_eq!(error.to_string(), "`fast` is not a marshaling engine: compiled, interpretive or adaptive");
    }
}
