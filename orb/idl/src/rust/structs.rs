//! Structs and exceptions: the type, and its codec, member by member.

use proc_macro2::TokenStream;
use quote::quote;

use super::derives::{Comparison, Traits};
use super::engines::Engine;
use super::interpreted;
use super::steps::sequence;
use super::types::Scope;
use super::{attributes, docs, fixed, lints, names, padded, typed};
use crate::model::{DefId, Definition, Struct, Type};

/// Structs with more members than this are coded by a call.
const MAX_INLINE: usize = 12;

/// The most terms in one sum.
const MAX_TERMS: usize = 64;

/// A struct with its codec.
pub(super) fn structure(scope: Scope<'_, '_>, definition: &Definition, body: &Struct) -> TokenStream {
    let traits = scope.cx.traits.of_definition(scope.cx.model, definition.id);
    let declared = declaration(scope, definition, body, traits, Derives::All);
    let (rt, id, name) = (scope.rt(), &definition.repository_id, &definition.name);
    let members = typed::members(scope, &body.members);
    let ident = &scope.cx.names.place(definition.id).ident;
    if scope.cx.is_local(definition.id) {
        lints::allow_no_debug(scope.cx, traits);
        return quote! { #declared #rt::local_structure! { #ident, #id, #name #(, #members)* } };
    }
    let layout = fixed::layout_of_struct(scope, definition.id);
    if has_own_codec(scope, definition.id) {
        let codec = own_codec(scope, definition, body, layout.is_some());
        let fixed = layout.map(|layout| fixed::structure(scope, definition, &layout));
        let check = padded::check(scope, definition.id);
        return quote! {
            #declared #check #codec #fixed
            #rt::local_structure! { #ident, #id, #name #(, #members)* }
        };
    }
    let inline = inline(body, layout.is_some());
    let is_fixed = layout.as_ref().map(|_| quote! { ; fixed });
    let fixed = layout.map(|layout| fixed::structure(scope, definition, &layout));
    quote! {
        #declared
        #rt::structure! { #inline #ident, #id, #name #(, #members)* #is_fixed }
        #fixed
    }
}

/// An exception: a struct that implements `Error`. Its repository id is not part of its value.
pub(super) fn exception(scope: Scope<'_, '_>, definition: &Definition, body: &Struct) -> TokenStream {
    let rt = scope.rt();
    let traits = scope.cx.traits.of_definition(scope.cx.model, definition.id).of_exception();
    let is_derived = scope.cx.is_local(definition.id) || has_own_codec(scope, definition.id);
    let derives = if is_derived { Derives::All } else { Derives::None };
    let declared = declaration(scope, definition, body, traits, derives);
    let ident = &scope.cx.names.place(definition.id).ident;
    let (scoped_name, id, name) = (&definition.scoped_name, &definition.repository_id, &definition.name);
    let debug = (!traits.has_debug()).then(|| {
        quote! {
            impl ::std::fmt::Debug for #ident {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    f.debug_struct(#scoped_name).finish_non_exhaustive()
                }
            }
        }
    });
    let form = form(scope, body, traits.has_debug());
    let members = typed::members(scope, &body.members);
    let contents = quote! { #form #ident, #id, #name #(, #members)* };
    if scope.cx.is_local(definition.id) {
        return quote! { #declared #debug #rt::local_exception! { #contents } };
    }
    if has_own_codec(scope, definition.id) {
        let codec = own_codec(scope, definition, body, false);
        return quote! {
            #declared
            #debug
            #codec
            impl #rt::UserException for #ident {
                const REPOSITORY_ID: &'static str = #id;
            }
            #rt::local_exception! { #contents }
        };
    }
    let inline = inline(body, false);
    quote! { #declared #debug #rt::exception! { #inline #contents } }
}

/// Whether the codec is more than one step for each member: it has a table, or its padding is explicit.
fn has_own_codec(scope: Scope<'_, '_>, id: DefId) -> bool {
    interpreted::engine(scope, id) != Engine::Compiled || scope.cx.padding.is_padded(id)
}

/// Structs of few members are coded where they are used.
fn inline(body: &Struct, is_fixed: bool) -> Option<TokenStream> {
    (is_fixed || body.members.len() <= MAX_INLINE).then(|| quote! { #[inline] })
}

/// The standard traits that a type derives.
#[derive(Clone, Copy, PartialEq)]
enum Derives {
    All,
    /// None of them: a macro of the runtime implements them.
    None,
}

/// The type, and its comparison.
fn declaration(
    scope: Scope<'_, '_>,
    definition: &Definition,
    body: &Struct,
    traits: Traits,
    derives: Derives,
) -> TokenStream {
    let ident = &scope.cx.names.place(definition.id).ident;
    let doc = docs::attributes(&definition.doc);
    let fields = names::fields(&body.members);
    let members = fields.iter().zip(&body.members).map(|(field, member)| {
        let doc = docs::attributes(&member.doc);
        let ty = scope.owned(&member.ty);
        lints::allow_complex(scope.cx, &member.ty, 0);
        quote! { #doc pub #field: #ty }
    });
    let members = padded::declare(scope, definition.id, &fields, members.collect());
    let representation = interpreted::representation(interpreted::engine(scope, definition.id));
    let further = attributes::further(scope, definition);
    let (derived, comparison) = traits.split_comparison(fields.len());
    let derive = (derives == Derives::All).then(|| derived.derive());
    let rt = scope.rt();
    let comparison = match comparison {
        Comparison::Derived => TokenStream::new(),
        Comparison::Equal => quote! { #rt::equal! { #ident } },
        Comparison::Ordered => quote! { #rt::ordered! { #ident #(, #fields)* } },
    };
    quote! { #doc #derive #representation #further pub struct #ident { #( #members ),* } #comparison }
}

/// The minimum encoded size of a value with members of these types, in octets. Long sums are split into
/// groups, because compilers recurse once per term.
pub(super) fn min_octets(scope: Scope<'_, '_>, types: &[TokenStream]) -> TokenStream {
    let rt = scope.rt();
    let terms: Vec<TokenStream> = types.iter().map(|ty| quote! { <#ty as #rt::Decode>::MIN_OCTETS }).collect();
    sum(terms)
}

fn sum(mut terms: Vec<TokenStream>) -> TokenStream {
    while terms.len() > MAX_TERMS {
        terms = terms.chunks(MAX_TERMS).map(|group| quote! { ( #( #group )+* ) }).collect();
    }
    // An empty struct still counts as an element.
    if terms.is_empty() {
        quote! { 1 }
    } else {
        quote! { #( #terms )+* }
    }
}

/// The codec of a struct with a table or explicit padding.
fn own_codec(scope: Scope<'_, '_>, definition: &Definition, body: &Struct, is_fixed: bool) -> TokenStream {
    if interpreted::engine(scope, definition.id) == Engine::Interpretive {
        return interpreted::structure(scope, definition, body);
    }
    let rt = scope.rt();
    let ident = &scope.cx.names.place(definition.id).ident;
    let fields = names::fields(&body.members);
    let (out, input) = (names::own("out"), names::own("input"));
    let encode = sequence(&fields, |field| quote! { #rt::Encode::encode(&self.#field, out) });
    let (out, input) = if fields.is_empty() { (names::own("_out"), names::own("_input")) } else { (out, input) };
    let types: Vec<TokenStream> = body.members.iter().map(|member| scope.owned(&member.ty)).collect();
    let least = min_octets(scope, &types);
    let inline = inline(body, is_fixed);
    let (encode_slice, decode_vec) = if is_fixed { fixed::forwards(scope) } else { Default::default() };
    let is_block = scope.cx.padding.is_block(definition.id);
    let (encode_slice, lend) = if is_block { padded::forwards(scope) } else { (encode_slice, TokenStream::new()) };
    let values = fields.iter().map(|field| quote! { #field: #rt::Decode::decode(input)? });
    let values = values.chain(padded::zeros(scope, definition.id, &fields));
    let encode = quote! {
        #inline
        fn encode<'a>(&'a self, #out: &mut #rt::Encoder<'a>) -> Result<(), #rt::CdrError> {
            #encode
        }
        #encode_slice
    };
    let decode = quote! {
        #inline
        fn decode(#input: &mut #rt::Decoder<'_>) -> Result<Self, #rt::CdrError> {
            Ok(Self { #( #values ),* })
        }
        #decode_vec
        #lend
    };
    if interpreted::engine(scope, definition.id) == Engine::Adaptive {
        let table = interpreted::structure(scope, definition, body);
        return quote! { impl #rt::Compiled for #ident { #encode #decode } #table };
    }
    quote! {
        impl #rt::Encode for #ident {
            #encode
        }
        impl #rt::Decode for #ident {
            const MIN_OCTETS: usize = #least;
            #decode
        }
    }
}

/// The form of its text: `Overdrawn: balance -3`, or `Failed: no such account` where a text is the only member.
fn form(scope: Scope<'_, '_>, body: &Struct, has_debug: bool) -> TokenStream {
    match &body.members[..] {
        [_, ..] if !has_debug => quote! { opaque },
        [member] if is_text(scope, &member.ty) => quote! { text },
        _ => quote! { members },
    }
}

fn is_text(scope: Scope<'_, '_>, ty: &Type) -> bool {
    matches!(scope.cx.model.resolve(ty), Type::String { .. } | Type::WString { .. })
}
