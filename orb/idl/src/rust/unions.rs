//! Unions as enums: a variant for each branch, and one for discriminators that select none.
//!
//! A variant with a single label implies its discriminator, so it holds the member alone. A variant with
//! several labels or `default` also holds its discriminator, which must select it; encoding refuses any other
//! value. On the wire the discriminator comes first, then the selected member (CORBA 3.3 Part 2, 9.3.2.2).

use std::collections::HashSet;
use std::ops::RangeInclusive;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::types::Scope;
use super::{attributes, consts, docs, labels, lints, names, prelude, typed};
use crate::model::{ConstValue, Definition, Label, Member, Model, Primitive, Type, Union};

/// A union with its codec.
pub(super) fn union(scope: Scope<'_, '_>, definition: &Definition, body: &Union) -> TokenStream {
    let plan = Plan::new(scope, definition, body);
    let (declaration, accessor, default) = (plan.declaration(), plan.accessor(), plan.default());
    let codec = (!scope.cx.is_local(definition.id)).then(|| {
        let (encode, decode) = (plan.encode(), plan.decode());
        quote! { #encode #decode }
    });
    let typed = typed::union(scope, definition, body);
    quote! { #declaration #accessor #default #codec #typed }
}

/// The data needed to write a union.
struct Plan<'s, 'm> {
    scope: Scope<'s, 'm>,
    definition: &'s Definition,
    body: &'s Union,
    ident: &'s Ident,
    /// The discriminator's Rust type.
    discriminator: TokenStream,
    variants: Vec<Variant<'s>>,
    /// The variant for discriminators that select nothing, if such values exist.
    unlisted: Option<Ident>,
}

struct Variant<'s> {
    ident: Ident,
    member: &'s Member,
    /// The labels that are values, as patterns and as expressions.
    labels: Vec<TokenStream>,
    /// Selected by all values without a label.
    is_default: bool,
}

impl Variant<'_> {
    /// The only value that selects it, if there is just one.
    fn only_label(&self) -> Option<&TokenStream> {
        match &self.labels[..] {
            [only] if !self.is_default => Some(only),
            _ => None,
        }
    }
}

impl<'s, 'm> Plan<'s, 'm> {
    fn new(scope: Scope<'s, 'm>, definition: &'s Definition, body: &'s Union) -> Self {
        let (idents, unlisted) = names::branches(body);
        let literal = |label: &Label| match label {
            Label::Value(value) => Some(consts::literal(scope, &body.discriminator, value)),
            Label::Default => None,
        };
        let variants = idents.into_iter().zip(&body.branches).map(|(ident, branch)| Variant {
            ident,
            member: &branch.member,
            labels: branch.labels.iter().filter_map(literal).collect(),
            is_default: branch.labels.contains(&Label::Default),
        });
        Self {
            scope,
            definition,
            body,
            ident: &scope.cx.names.place(definition.id).ident,
            discriminator: scope.owned(&body.discriminator),
            variants: variants.collect(),
            unlisted,
        }
    }

    fn declaration(&self) -> TokenStream {
        let Self { scope, definition, body, ident, discriminator, .. } = self;
        lints::allow_variants(scope.cx, self.variants.len());
        lints::allow_large_variants(scope.cx, body);
        self.allow_matches();
        let doc = docs::attributes(&definition.doc);
        let traits = scope.cx.traits.of_definition(scope.cx.model, definition.id).without_default();
        lints::allow_no_debug(scope.cx, traits);
        let derive = traits.derive();
        let variants = self.variants.iter().map(|variant| {
            let (name, ty) = (&variant.ident, scope.owned(&variant.member.ty));
            lints::allow_complex(scope.cx, &variant.member.ty, 0);
            let doc = docs::attributes(&variant.member.doc);
            if variant.only_label().is_some() {
                quote! { #doc #name(#ty) }
            } else {
                quote! {
                    #doc
                    #name {
                        #[doc = " One of the values that select this branch."]
                        discriminator: #discriminator,
                        #[doc = " The member."]
                        value: #ty
                    }
                }
            }
        });
        let unlisted = self.unlisted.iter().map(|name| {
            quote! {
                #[doc = " No member: the discriminator selects none."]
                #name(#discriminator)
            }
        });
        let variants = variants.chain(unlisted);
        let further = attributes::further(*scope, definition);
        quote! { #doc #derive #further pub enum #ident { #( #variants ),* } }
    }

    /// All unions use the same form of match, also where a shorter one is possible.
    fn allow_matches(&self) {
        let cx = self.scope.cx;
        if self.is_of(Primitive::Boolean) {
            cx.allow("clippy::match_like_matches_macro");
            cx.allow("clippy::redundant_pattern_matching");
        }
        let is_number = matches!(cx.model.resolve(&self.body.discriminator), Type::Primitive(_));
        if is_number && self.variants.iter().map(|variant| variant.labels.len()).sum::<usize>() > 2 {
            cx.allow("clippy::manual_range_patterns");
        }
        if self.variants.len() == 1 && self.variants[0].is_default {
            cx.allow("clippy::match_single_binding");
        }
    }

    /// Emits the method `discriminator()`.
    fn accessor(&self) -> TokenStream {
        let Self { ident, discriminator, .. } = self;
        let arms = self.variants.iter().map(|variant| {
            let name = &variant.ident;
            match variant.only_label() {
                Some(label) => quote! { #ident::#name(_) => #label },
                None => quote! { #ident::#name { discriminator, .. } => *discriminator },
            }
        });
        let unlisted = self.unlisted.iter().map(|name| quote! { #ident::#name(discriminator) => *discriminator });
        let arms = arms.chain(unlisted);
        quote! {
            impl #ident {
                #[doc = " The discriminator, which selects the union's member."]
                #[must_use]
                pub fn discriminator(&self) -> #discriminator {
                    match self { #( #arms ),* }
                }
            }
        }
    }

    /// The default: a union without a member if possible, otherwise with its first.
    fn default(&self) -> Option<TokenStream> {
        let Self { scope, body, ident, .. } = self;
        if !scope.cx.traits.of_definition(scope.cx.model, self.definition.id).has_default() {
            return None;
        }
        let literal = |value: &ConstValue| consts::literal(*scope, &body.discriminator, value);
        let value = match (&self.unlisted, &body.unlisted) {
            (Some(name), Some(value)) => {
                let value = literal(value);
                quote! { #ident::#name(#value) }
            }
            _ => {
                let first = self.variants.first()?;
                let name = &first.ident;
                if first.only_label().is_some() {
                    quote! { #ident::#name(Default::default()) }
                } else {
                    let free = || unlabeled_value(scope.cx.model, body).map(|value| literal(&value));
                    let discriminator = first.labels.first().cloned().or_else(free)?;
                    quote! { #ident::#name { discriminator: #discriminator, value: Default::default() } }
                }
            }
        };
        Some(quote! {
            impl Default for #ident {
                fn default() -> Self {
                    #value
                }
            }
        })
    }

    fn encode(&self) -> TokenStream {
        let rt = self.scope.rt();
        let Self { ident, discriminator, .. } = self;
        let arms = self.variants.iter().map(|variant| {
            let name = &variant.ident;
            match variant.only_label() {
                Some(label) => quote! {
                    #ident::#name(value) => {
                        <#discriminator as #rt::Encode>::encode(&#label, out)?;
                        #rt::Encode::encode(value, out)
                    }
                },
                None => {
                    let check = self.check(variant);
                    quote! {
                        #ident::#name { discriminator, value } => {
                            #check
                            #rt::Encode::encode(discriminator, out)?;
                            #rt::Encode::encode(value, out)
                        }
                    }
                }
            }
        });
        let unlisted = self.unlisted.iter().map(|name| {
            let listed: Vec<&TokenStream> = self.variants.iter().flat_map(|variant| &variant.labels).collect();
            let check = self.refuse(quote! { matches!(discriminator, #( #listed )|*) });
            quote! {
                #ident::#name(discriminator) => {
                    #check
                    #rt::Encode::encode(discriminator, out)
                }
            }
        });
        let arms = arms.chain(unlisted);
        quote! {
            impl #rt::Encode for #ident {
                fn encode<'a>(&'a self, out: &mut #rt::Encoder<'a>) -> Result<(), #rt::CdrError> {
                    match self { #( #arms )* }
                }
            }
        }
    }

    /// The check that refuses a discriminator of another variant; `None` if every value selects this one.
    fn check(&self, variant: &Variant<'_>) -> Option<TokenStream> {
        let labels = &variant.labels;
        if !variant.is_default {
            let selects_all = self.variants.len() == 1 && self.unlisted.is_none();
            return (!selects_all).then(|| self.refuse(quote! { !matches!(discriminator, #( #labels )|*) }));
        }
        let others = self.variants.iter().filter(|other| !other.is_default).flat_map(|other| &other.labels);
        let others: Vec<&TokenStream> = others.collect();
        (!others.is_empty()).then(|| self.refuse(quote! { matches!(discriminator, #( #others )|*) }))
    }

    fn refuse(&self, condition: TokenStream) -> TokenStream {
        let rt = self.scope.rt();
        let name = prelude::plain(&self.ident.to_string()).to_owned();
        quote! {
            if #condition {
                return Err(#rt::CdrError::BadDiscriminator { name: #name });
            }
        }
    }

    fn decode(&self) -> TokenStream {
        let rt = self.scope.rt();
        let Self { ident, discriminator, .. } = self;
        let listed = self.variants.iter().filter(|variant| !variant.is_default).map(|variant| {
            let (name, labels) = (&variant.ident, &variant.labels);
            match variant.only_label() {
                Some(label) => quote! { #label => #ident::#name(#rt::Decode::decode(input)?) },
                None => quote! {
                    discriminator @ ( #( #labels )|* ) => {
                        #ident::#name { discriminator, value: #rt::Decode::decode(input)? }
                    }
                },
            }
        });
        // With all values listed, `default` selects nothing.
        let is_open = unlabeled_value(self.scope.cx.model, self.body).is_some();
        let default = self.variants.iter().filter(|variant| variant.is_default && is_open).map(|variant| {
            let name = &variant.ident;
            quote! { discriminator => #ident::#name { discriminator, value: #rt::Decode::decode(input)? } }
        });
        let unlisted = self.unlisted.iter().map(|name| quote! { discriminator => #ident::#name(discriminator) });
        let arms = listed.chain(default).chain(unlisted);
        quote! {
            impl #rt::Decode for #ident {
                const MIN_OCTETS: usize = <#discriminator as #rt::Decode>::MIN_OCTETS;
                fn decode(input: &mut #rt::Decoder<'_>) -> Result<Self, #rt::CdrError> {
                    Ok(match <#discriminator as #rt::Decode>::decode(input)? { #( #arms ),* })
                }
            }
        }
    }

    fn is_of(&self, primitive: Primitive) -> bool {
        *self.scope.cx.model.resolve(&self.body.discriminator) == Type::Primitive(primitive)
    }
}

/// The least value without a label, which selects the `default` branch. `None` if all values have one.
fn unlabeled_value(model: &Model, body: &Union) -> Option<ConstValue> {
    let labels = body.branches.iter().flat_map(|branch| &branch.labels);
    let named: HashSet<i128> = labels.filter_map(|label| labels::number(model, label)).collect();
    let number = |range: RangeInclusive<i128>| {
        let negative = *range.start()..0;
        (0..=*range.end()).chain(negative).find(|number| !named.contains(number))
    };
    let integer = |range| number(range).map(ConstValue::Integer);
    match model.resolve(&body.discriminator) {
        Type::Primitive(primitive) => match primitive {
            Primitive::Boolean => number(0..=1).map(|number| ConstValue::Boolean(number == 1)),
            Primitive::Char => number(0..=0xff).and_then(|number| u8::try_from(number).ok()).map(ConstValue::Char),
            Primitive::WChar => {
                // More values exist below the surrogates than any IDL lists.
                let code = number(0..=0xd7ff).and_then(|number| u32::try_from(number).ok());
                code.and_then(char::from_u32).map(ConstValue::WideChar)
            }
            Primitive::Octet => integer(0..=0xff),
            Primitive::Short => integer(i16::MIN.into()..=i16::MAX.into()),
            Primitive::UnsignedShort => integer(0..=u16::MAX.into()),
            _ => integer(0..=i32::MAX.into()),
        },
        Type::Named(id) => {
            let enumerators = &model[*id].as_enum()?.enumerators;
            let last = enumerators.len() as i128 - 1;
            number(0..=last).map(|number| ConstValue::Enumerator(enumerators[number as usize]))
        }
        _ => None,
    }
}
