//! Conditions of `#[cfg(…)]`: code that only tests compile, and files in `#[path]`.

use proc_macro2::TokenTree;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Token};

/// Whether these attributes leave an item out of every build but that of tests.
pub(crate) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            attribute.parse_args::<Meta>().is_ok_and(|condition| value(&condition) == Some(false))
        }
        _ => false,
    })
}

/// The value of a condition outside tests; `None` where it depends on more than that.
fn value(condition: &Meta) -> Option<bool> {
    match condition {
        Meta::Path(path) if path.is_ident("test") => Some(false),
        Meta::List(list) => {
            let parts = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(list.tokens.clone()).ok()?;
            let mut values = parts.iter().map(value);
            if list.path.is_ident("not") {
                values.next().flatten().map(|value| !value)
            } else if list.path.is_ident("all") {
                let values: Vec<Option<bool>> = values.collect();
                let is_false = values.contains(&Some(false));
                if is_false { Some(false) } else { values.iter().all(Option::is_some).then_some(true) }
            } else {
                let values: Vec<Option<bool>> = values.collect();
                let is_true = values.contains(&Some(true));
                if is_true { Some(true) } else { values.iter().all(Option::is_some).then_some(false) }
            }
        }
        _ => None,
    }
}

/// Files that `#[path = "…"]` names, also inside `#[cfg_attr(…)]`.
pub(crate) fn path_attributes(attributes: &[Attribute]) -> Vec<String> {
    let mut paths = Vec::new();
    for attribute in attributes {
        match &attribute.meta {
            Meta::List(list) if list.path.is_ident("cfg_attr") => {
                let parts = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(list.tokens.clone());
                paths.extend(parts.iter().flatten().skip(1).filter_map(path_value));
            }
            meta => paths.extend(path_value(meta)),
        }
    }
    paths
}

fn path_value(meta: &Meta) -> Option<String> {
    match meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// The number of `feature = "…"` in the conditions of these attributes.
pub(crate) fn features(attributes: &[Attribute]) -> usize {
    let conditions = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") || list.path.is_ident("cfg_attr") => Some(list),
        _ => None,
    });
    conditions.map(|list| features_in(list.tokens.clone())).sum()
}

fn features_in(tokens: proc_macro2::TokenStream) -> usize {
    let mut count = 0;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => count += features_in(group.stream()),
            TokenTree::Ident(name) if name == "feature" => {
                let is_gate = matches!(tokens.peek(), Some(TokenTree::Punct(sign)) if sign.as_char() == '=');
                count += usize::from(is_gate);
            }
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(text: &str) -> Vec<Attribute> {
        Attribute::parse_outer.parse_str(text).unwrap()
    }

    #[test]
    fn a_condition_that_needs_a_test_build_is_found_in_any_nesting() {
        for text in ["#[test]", "#[cfg(test)]", "#[cfg(all(test, feature = \"x\"))]", "#[cfg(not(any(not(test))))]"] {
            assert!(is_test_only(&attributes(text)), "{text}");
        }
        for text in
            ["#[cfg(not(test))]", "#[cfg(any(test, feature = \"x\"))]", "#[cfg(feature = \"test\")]", "#[inline]"]
        {
            assert!(!is_test_only(&attributes(text)), "{text}");
        }
    }

    #[test]
    fn paths_are_found_in_conditional_attributes() {
        let paths =
            path_attributes(&attributes("#[path = \"a.rs\"] #[cfg_attr(windows, path = \"b.rs\")] #[doc = \"c\"]"));
        assert_eq!(paths, ["a.rs", "b.rs"]);
    }

    #[test]
    fn each_feature_of_a_condition_counts() {
        assert_eq!(
            features(&attributes("#[cfg(any(feature = \"a\", not(feature = \"b\")))] #[doc = \"feature = \"]")),
            2
        );
    }
}
