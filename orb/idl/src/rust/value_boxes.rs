//! Boxed values: a value type around any other type, so that it can be nil and shared (CORBA 3.3 Part 1, 9.6).

use proc_macro2::TokenStream;
use quote::quote;

use super::types::Scope;
use super::{docs, lints, typed};
use crate::model::{Definition, ValueBox};

/// The struct of a boxed value.
pub(super) fn value_box(scope: Scope<'_, '_>, definition: &Definition, body: &ValueBox) -> TokenStream {
    let rt = scope.rt();
    let cx = scope.cx;
    let ident = &cx.names.place(definition.id).ident;
    let doc = docs::attributes(&definition.doc);
    let derive = cx.traits.of_state(cx.model, [&body.ty]).derive();
    let id = &definition.repository_id;
    lints::allow_complex(cx, &body.ty, 0);
    let owned = scope.owned(&body.ty);
    let content = if cx.values.holds_values(cx.model, &body.ty) {
        quote! { #rt::Linked<#owned> }
    } else {
        owned
    };
    let typed = typed::value_box(scope, definition, body);
    quote! {
        #doc
        #derive
        pub struct #ident(pub #content);
        impl #rt::Encode for #ident {
            fn encode<'a>(&'a self, out: &mut #rt::Encoder<'a>) -> Result<(), #rt::CdrError> {
                #rt::Encode::encode(&self.0, out)
            }
        }
        impl #rt::Decode for #ident {
            const MIN_OCTETS: usize = <#content as #rt::Decode>::MIN_OCTETS;
            fn decode(input: &mut #rt::Decoder<'_>) -> Result<Self, #rt::CdrError> {
                #rt::Decode::decode(input).map(Self)
            }
        }
        impl #rt::ValueType for #ident {
            const REPOSITORY_ID: &'static str = #id;
            fn known(repository_id: &str) -> Option<&'static dyn #rt::ValueFactory> {
                match repository_id {
                    #id => Some(&#rt::PlainFactory::<#ident>::NEW),
                    _ => None,
                }
            }
        }
        impl #rt::ConcreteValue for #ident {
            type State = Self;
            const IDS: &'static [&'static str] = &[#id];
        }
        impl #rt::ImplementedBy<#ident> for #ident {
            fn offer(value: &#rt::Arc<#ident>, cast: &mut #rt::Cast<'_>) {
                cast.offer::<#ident>(|| value.clone());
            }
            fn encode_state<'a>(value: &'a #ident, out: &mut #rt::Encoder<'a>) -> Result<(), #rt::CdrError> {
                #rt::Encode::encode(value, out)
            }
        }
        #typed
    }
}
