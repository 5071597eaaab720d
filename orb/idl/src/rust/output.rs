//! The frame around generated code: modules, the attributes at the top, the first line, and formatting.

use std::path::PathBuf;

use proc_macro2::{Ident, Spacing, TokenStream, TokenTree};
use quote::quote;
use syn::{Attribute, Item, parse_quote};

use super::prelude::{self, OutsideModules};
use super::split::{self, Modules, SourceFile};
use super::types::{Context, Scope};
use crate::model::DefinitionKind;

/// Lints that do not suit code made from somebody else's declarations: it is seldom used whole, and documented as far as
/// the IDL is.
const ALLOWED: &[&str] = &["dead_code", "missing_docs", "unreachable_pub"];

/// `pub mod`, with the runtime imported if it is used.
pub(super) fn module(scope: Scope<'_, '_>, ident: &Ident, doc: TokenStream, inner: TokenStream) -> TokenStream {
    let runtime = &scope.cx.runtime;
    let import = uses_runtime(inner.clone()).then(|| quote! { use #runtime as rt; });
    // A root module too: `mod bank { include_idl!("bank"); }` is what people write.
    if scope.module.last().is_none_or(|around| around == ident) {
        scope.cx.allow("clippy::module_inception");
    }
    let inner = prelude::unmark(inner);
    quote! { #doc pub mod #ident { #import #inner } }
}

/// Whether tokens begin a path with `rt`, not counting modules inside, which have their own import.
fn uses_runtime(tokens: TokenStream) -> bool {
    let mut groups = OutsideModules::default();
    let mut behind_rt = false;
    for token in tokens {
        let uses = match &token {
            TokenTree::Punct(punct) => behind_rt && punct.as_char() == ':' && punct.spacing() == Spacing::Joint,
            TokenTree::Group(group) => groups.is_outside() && uses_runtime(group.stream()),
            _ => false,
        };
        if uses {
            return true;
        }
        behind_rt = matches!(&token, TokenTree::Ident(ident) if ident == "rt");
        groups.pass(&token);
    }
    false
}

/// The file's text.
///
/// # Panics
/// If what was written is not Rust, which would be a fault of this back end.
pub(super) fn file(cx: &Context<'_>, tokens: TokenStream) -> String {
    text(cx, &parsed(cx, tokens))
}

/// The texts of `stem`.rs and of the files for its modules.
///
/// # Panics
/// As [`file`].
pub(super) fn files(cx: &Context<'_>, tokens: TokenStream, stem: &str) -> Vec<SourceFile> {
    let mut file = parsed(cx, tokens);
    let modules = split::split(&mut file, stem, &Modules::of(cx));
    let first = (PathBuf::from(stem).with_added_extension("rs"), file);
    let all = [first].into_iter().chain(modules);
    all.map(|(path, file)| SourceFile { path, text: text(cx, &file) }).collect()
}

fn text(cx: &Context<'_>, file: &syn::File) -> String {
    format!("{}{}", header(cx), spaced(&prettyplease::unparse(file)))
}

fn parsed(cx: &Context<'_>, tokens: TokenStream) -> syn::File {
    let wrap = |inner: TokenStream, module: &String| {
        let module: syn::Ident = syn::parse_str(module).expect("checked when it was set");
        quote! { pub mod #module { #inner } }
    };
    let tokens = cx.prefix.iter().rev().fold(prelude::unmark(tokens), wrap);
    let mut file: syn::File = syn::parse2(tokens).expect("generated code is Rust");
    let allowed = cx.lints.borrow();
    let lints = ALLOWED.iter().chain(allowed.iter()).map(|lint| syn::parse_str(lint).expect("a lint is a path"));
    let lints: Vec<syn::Path> = lints.collect();
    for item in &mut file.items {
        if let Some(attributes) = attributes(item) {
            let allow: Attribute = parse_quote! { #[allow( #( #lints ),* )] };
            let behind_docs = attributes.iter().take_while(|attribute| attribute.path().is_ident("doc")).count();
            attributes.insert(behind_docs, allow);
        }
    }
    file
}

/// With a blank line between items, which the formatter does not leave.
fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + text.len() / 8);
    let mut before = "";
    for line in text.lines() {
        let line_start = line.trim_start();
        let is_table = line_start.ends_with("::interpret! {");
        let begins = is_table || ["///", "#[", "pub ", "impl", "fn "].iter().any(|start| line_start.starts_with(start));
        let one_liners =
            before.ends_with(';') && !["///", "#[", "fn "].iter().any(|start| line_start.starts_with(start));
        let ended = before.ends_with('}') || (before.ends_with(';') && !before.trim_start().starts_with("out"));
        if begins && ended && !(one_liners && line.ends_with(';')) {
            spaced.push('\n');
        }
        if before.ends_with("::interpret! {") {
            // The formatter takes a macro's tokens for an expression at best.
            spaced.push_str(&line.replace(" : ", ": "));
        } else {
            spaced.push_str(line);
        }
        spaced.push('\n');
        before = line;
    }
    spaced
}

/// The attributes of items that define something; not those of trait implementations.
fn attributes(item: &mut Item) -> Option<&mut Vec<Attribute>> {
    match item {
        Item::Mod(item) => Some(&mut item.attrs),
        Item::Struct(item) => Some(&mut item.attrs),
        Item::Enum(item) => Some(&mut item.attrs),
        Item::Trait(item) => Some(&mut item.attrs),
        Item::Type(item) => Some(&mut item.attrs),
        Item::Fn(item) => Some(&mut item.attrs),
        Item::Const(item) => Some(&mut item.attrs),
        Item::Impl(item) if item.trait_.is_none() => Some(&mut item.attrs),
        _ => None,
    }
}

fn header(cx: &Context<'_>) -> String {
    let main = cx.model.sources().files().first();
    let name = main.and_then(|file| file.path.file_name()).unwrap_or_default().to_string_lossy();
    let version = env!("CARGO_PKG_VERSION");
    let mut header = format!("// @generated by spandrel {version} from {name}. Do not edit.\n");
    for name in cx.padding.refused() {
        header.push_str(&format!(
            "// Its padding is not explicit, because memory and encoding cannot agree: struct {name}\n"
        ));
    }
    let left_out = cx.model.definitions().filter(|definition| cx.left_out.contains(&definition.id));
    for definition in left_out {
        if !matches!(definition.kind, DefinitionKind::Operation(_) | DefinitionKind::Attribute(_)) {
            let (kind, name) = (definition.kind.keyword(), &definition.scoped_name);
            header.push_str(&format!("// Left out, because it has no Rust form yet: {kind} {name}\n"));
        }
    }
    header
}
