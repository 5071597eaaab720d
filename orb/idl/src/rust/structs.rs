//! Structs and exceptions: the type, and its codec, member by member.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::engines::Engine;
use super::interpreted;
use super::steps::sequence;
use super::types::Scope;
use super::{attributes, docs, fixed, lints, names, padded, typed};
use crate::model::{Definition, Struct, Type};

/// Structs with more members than this are coded by a call.
const MAX_INLINE: usize = 12;

/// The most terms in one sum.
const MAX_TERMS: usize = 64;

/// A struct with its codec.
pub(super) fn structure(scope: Scope<'_, '_>, definition: &Definition, body: &Struct) -> TokenStream {
    let traits = scope.cx.traits.of_definition(scope.cx.model, definition.id);
    let declared = declaration(scope, definition, body, &traits.derive());
    let typed = typed::structure(scope, definition, body);
    if scope.cx.is_local(definition.id) {
        lints::allow_no_debug(scope.cx, traits);
        return quote! { #declared #typed };
    }
    if interpreted::engine(scope, definition.id) == Engine::Interpretive {
        let table = interpreted::structure(scope, definition, body);
        return quote! { #declared #table #typed };
    }
    let layout = fixed::layout_of_struct(scope, definition.id);
    let codec = codec(scope, definition, body, layout.is_some());
    let fixed = layout.map(|layout| fixed::structure(scope, definition, &layout));
    let check = padded::check(scope, definition.id);
    quote! { #declared #check #codec #fixed #typed }
}

/// An exception: a struct that implements `Error`. Its repository id is not part of its value.
pub(super) fn exception(scope: Scope<'_, '_>, definition: &Definition, body: &Struct) -> TokenStream {
    let rt = scope.rt();
    let traits = scope.cx.traits.of_definition(scope.cx.model, definition.id).of_exception();
    let declared = declaration(scope, definition, body, &traits.derive());
    let ident = &scope.cx.names.place(definition.id).ident;
    let (name, id) = (&definition.scoped_name, &definition.repository_id);
    let debug = (!traits.has_debug()).then(|| {
        quote! {
            impl ::std::fmt::Debug for #ident {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    f.debug_struct(#name).finish_non_exhaustive()
                }
            }
        }
    });
    let display = display(scope, definition, body, traits.has_debug());
    let codec = (!scope.cx.is_local(definition.id)).then(|| {
        let codec = match interpreted::engine(scope, definition.id) {
            Engine::Interpretive => interpreted::structure(scope, definition, body),
            _ => codec(scope, definition, body, false),
        };
        quote! {
            #codec
            impl #rt::UserException for #ident {
                const REPOSITORY_ID: &'static str = #id;
            }
        }
    });
    let typed = typed::exception(scope, definition, body);
    quote! {
        #declared
        #debug
        impl ::std::fmt::Display for #ident {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                #display
            }
        }
        impl ::std::error::Error for #ident {}
        #codec
        #typed
    }
}

fn declaration(scope: Scope<'_, '_>, definition: &Definition, body: &Struct, derive: &TokenStream) -> TokenStream {
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
    quote! { #doc #derive #representation #further pub struct #ident { #( #members ),* } }
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

fn codec(scope: Scope<'_, '_>, definition: &Definition, body: &Struct, is_fixed: bool) -> TokenStream {
    let rt = scope.rt();
    let ident = &scope.cx.names.place(definition.id).ident;
    let fields = names::fields(&body.members);
    let (out, input) = (names::own("out"), names::own("input"));
    let encode = sequence(&fields, |field| quote! { #rt::Encode::encode(&self.#field, out) });
    let (out, input) = if fields.is_empty() { (names::own("_out"), names::own("_input")) } else { (out, input) };
    let types: Vec<TokenStream> = body.members.iter().map(|member| scope.owned(&member.ty)).collect();
    let least = min_octets(scope, &types);
    let inline = (is_fixed || fields.len() <= MAX_INLINE).then(|| quote! { #[inline] });
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

/// `Overdrawn: balance -3`, or `Failed: no such account` where a text is the only member.
fn display(scope: Scope<'_, '_>, definition: &Definition, body: &Struct, has_debug: bool) -> TokenStream {
    let (rt, name) = (scope.rt(), &definition.name);
    let fields: Vec<Ident> = names::fields(&body.members);
    match (&body.members[..], &fields[..]) {
        ([], _) => quote! { f.write_str(#name) },
        _ if !has_debug => quote! { f.write_str(#name) },
        ([member], [field]) if is_text(scope, &member.ty) => {
            quote! { #rt::describe_exception_text(f, #name, &self.#field) }
        }
        (members, fields) => {
            let members = members.iter().map(|member| &member.name);
            quote! { #rt::describe_exception(f, #name, &[ #( (#members, &self.#fields) ),* ]) }
        }
    }
}

fn is_text(scope: Scope<'_, '_>, ty: &Type) -> bool {
    matches!(scope.cx.model.resolve(ty), Type::String { .. } | Type::WString { .. })
}
