//! Constants, typedefs and native types.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::types::{Passing, Scope};
use super::{docs, lints, typed};
use crate::model::{Const, ConstValue, Definition, FixedValue, Primitive, Type, Typedef};

/// Emits a `pub type` for each typedef.
pub(super) fn typedef(scope: Scope<'_, '_>, definition: &Definition, body: &Typedef) -> TokenStream {
    let ident = &scope.cx.names.place(definition.id).ident;
    let doc = docs::attributes(&definition.doc);
    // An alias of an interface is the reference itself; uses of it can be nil, as with the interface.
    let ty = scope.target(&body.ty);
    lints::allow_complex(scope.cx, &body.ty, 0);
    let any = (!scope.cx.is_local(definition.id)).then(|| any_content(scope, body));
    let typed = typed::typedef(scope, definition, body, any.as_ref());
    quote! { #doc pub type #ident = #ty; #typed }
}

/// The parameter of the function that makes an `any` with the alias's type code: the type of the value alone does
/// not name the alias.
fn any_content(scope: Scope<'_, '_>, body: &Typedef) -> TokenStream {
    match scope.cx.passing(&body.ty) {
        Passing::Text | Passing::Slice => scope.argument(&body.ty),
        _ => {
            let owned = scope.owned(&body.ty);
            quote! { &#owned }
        }
    }
}

/// The type of an IDL `native`: the one that an option names, or else any Rust type that threads may share. Its values
/// are never marshaled.
pub(super) fn native(scope: Scope<'_, '_>, definition: &Definition) -> TokenStream {
    let ident = &scope.cx.names.place(definition.id).ident;
    let doc = docs::attributes(&definition.doc);
    let ty = match scope.cx.natives.get(&definition.scoped_name) {
        Some(ty) => {
            let ty: syn::Type = syn::parse_str(ty).expect("the option was checked when it was set");
            quote! { #ty }
        }
        None => quote! { ::std::sync::Arc<dyn ::std::any::Any + Send + Sync> },
    };
    quote! { #doc pub type #ident = #ty; }
}

/// Emits a `pub const` for each constant.
pub(super) fn constant(scope: Scope<'_, '_>, definition: &Definition, body: &Const) -> TokenStream {
    let ident = &scope.cx.names.place(definition.id).ident;
    let doc = docs::attributes(&definition.doc);
    let ty = match scope.cx.model.resolve(&body.ty) {
        Type::String { .. } | Type::WString { .. } => quote! { &str },
        _ => scope.owned(&body.ty),
    };
    let value = literal(scope, &body.ty, &body.value);
    quote! { #doc pub const #ident: #ty = #value; }
}

/// A constant's value of a type; also a pattern, for types of discriminators.
pub(super) fn literal(scope: Scope<'_, '_>, ty: &Type, value: &ConstValue) -> TokenStream {
    let rt = scope.rt();
    match value {
        ConstValue::Integer(value) => signed(*value < 0, &Literal::u128_unsuffixed(value.unsigned_abs())),
        ConstValue::Float(value) => match scope.cx.model.resolve(ty) {
            Type::Primitive(Primitive::LongDouble) => {
                let bits = binary128(*value);
                quote! { #rt::LongDouble::from_bits(#bits) }
            }
            Type::Primitive(Primitive::Float) => {
                let value = *value as f32;
                float(scope, value.is_sign_negative(), value.is_finite(), || Literal::f32_unsuffixed(value.abs()))
            }
            _ => float(scope, value.is_sign_negative(), value.is_finite(), || Literal::f64_unsuffixed(value.abs())),
        },
        ConstValue::Boolean(value) => quote! { #value },
        ConstValue::Char(octet) => {
            let octet = Literal::byte_character(*octet);
            quote! { #rt::Char(#octet) }
        }
        ConstValue::WideChar(value) => quote! { #value },
        ConstValue::String(text) | ConstValue::WideString(text) => quote! { #text },
        ConstValue::Fixed(value) => {
            let owned = turbofish(scope, ty);
            let unscaled = rescaled(value, scope.cx.model.resolve(ty));
            let unscaled = signed(unscaled < 0, &Literal::u128_unsuffixed(unscaled.unsigned_abs()));
            quote! { #owned::from_unscaled(#unscaled) }
        }
        ConstValue::Enumerator(id) => {
            let variant = &scope.cx.names.place(*id).ident;
            let ty = scope.target(ty);
            quote! { #ty::#variant }
        }
    }
}

/// The type in an expression: a generic type is in angle brackets.
fn turbofish(scope: Scope<'_, '_>, ty: &Type) -> TokenStream {
    let target = scope.target(ty);
    if matches!(ty, Type::Named(_)) {
        target
    } else {
        quote! { <#target> }
    }
}

/// The digits of a decimal with the scale of its type. The front end has checked that they fit.
fn rescaled(value: &FixedValue, ty: &Type) -> i128 {
    let scale = if let Type::Fixed { scale, .. } = ty { *scale } else { value.scale.into() };
    let (target_scale, value_scale) = (u32::from(scale), u32::from(value.scale));
    let factor = |digits: u32| 10_i128.checked_pow(digits).unwrap_or(i128::MAX);
    match target_scale.checked_sub(value_scale) {
        Some(more) => value.unscaled.saturating_mul(factor(more)),
        None => value.unscaled / factor(value_scale - target_scale),
    }
}

fn signed(negative: bool, literal: &Literal) -> TokenStream {
    if negative {
        quote! { -#literal }
    } else {
        quote! { #literal }
    }
}

fn float(scope: Scope<'_, '_>, negative: bool, finite: bool, literal: impl Fn() -> Literal) -> TokenStream {
    // IDL may contain 3.14 literally.
    scope.cx.allow("clippy::approx_constant");
    if finite {
        signed(negative, &literal())
    } else {
        // An overflow, which the front end reports; a literal cannot represent it.
        let one = signed(negative, &Literal::f64_unsuffixed(1.0));
        quote! { #one / 0.0 }
    }
}

/// The bits of the IEEE 754 binary128 with the value of a finite `f64`.
fn binary128(value: f64) -> Literal {
    const FRACTION: u32 = 52;
    const MORE_FRACTION: u32 = 112 - FRACTION;
    const MORE_BIAS: u64 = 16383 - 1023;
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> FRACTION) & 0x7ff, bits & ((1 << FRACTION) - 1));
    let (exponent, fraction) = match (exponent, fraction) {
        (0, 0) => (0, 0),
        (0, _) => {
            // Subnormal: the leading one becomes implicit.
            let shift = fraction.leading_zeros() - (63 - FRACTION);
            (MORE_BIAS + 1 - u64::from(shift), (fraction << shift) & ((1 << FRACTION) - 1))
        }
        _ => (exponent + MORE_BIAS, fraction),
    };
    let magnitude = (u128::from(exponent) << 112) | (u128::from(fraction) << MORE_FRACTION);
    Literal::u128_unsuffixed(u128::from(bits >> 63) << 127 | magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_becomes_the_same_quadruple() {
        for (value, bits) in [
            (1.0, 0x3fff_u128 << 112),
            (-2.0, 0xc000 << 112),
            (0.0, 0),
            (0.5, 0x3ffe << 112),
            (1.5, (0x3fff << 112) | (1 << 111)),
            (5e-324, (0x3fff_u128 - 1074) << 112),
        ] {
            assert_eq!(binary128(value).to_string(), bits.to_string(), "{value}");
        }
    }
}
