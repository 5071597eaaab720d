//! Reads the modules of a crate, following `mod` declarations as the compiler does.
//!
//! Conditions are not evaluated: all alternatives of a module are read, except code that only tests compile.
//! Attributes and visibilities are not read; arguments of macros are, by [`super::tokens`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Stmt, Type, UseTree, Visibility};

use super::conditions::{is_test_only, path_attributes};
use super::tokens;
use super::tree::{Binding, Crate, Glob, Impl, ItemKind, Meaning, Module, PathNames, Reference, Role};

/// The text of a source file, or `None` if there is no such file.
pub(crate) type Sources<'s> = &'s dyn Fn(&Path) -> Option<String>;

/// Reads a crate from its root file.
pub(crate) fn read(name: &str, root: &Path, sources: Sources<'_>) -> Result<Crate> {
    let folder = root.parent().context("a root file lies in a folder")?.to_owned();
    let mut krate = Crate { name: name.to_owned(), folder: folder.clone(), ..Crate::default() };
    krate.modules.push(Module::default());
    let mut reader = Reader { krate: &mut krate, sources, module: 0, children: folder.clone(), folder, error: None };
    reader.file(root)?;
    Ok(krate)
}

struct Reader<'r> {
    krate: &'r mut Crate,
    sources: Sources<'r>,
    module: usize,
    /// The folder of the present file.
    folder: PathBuf,
    /// The folder in which files of child modules lie.
    children: PathBuf,
    error: Option<anyhow::Error>,
}

impl Reader<'_> {
    /// Reads a file into the present module.
    fn file(&mut self, path: &Path) -> Result<()> {
        let text = (self.sources)(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))?;
        self.krate.modules[self.module].file = self.krate.files.len();
        self.krate.files.push(path.to_owned());
        if !is_test_only(&file.attrs) {
            self.items(&file.items);
        }
        self.error.take().map_or(Ok(()), Err)
    }

    fn items(&mut self, items: &[Item]) {
        for item in items {
            self.visit_item(item);
        }
    }

    fn declare(&mut self, name: String, meaning: Meaning, visibility: &Visibility) {
        let is_public = !matches!(visibility, Visibility::Inherited);
        let bindings = &mut self.krate.modules[self.module].bindings;
        bindings.entry(name).or_default().push(Binding { meaning, is_public });
    }

    fn refer(&mut self, path: PathNames, role: Role) {
        self.krate.references.push(Reference { module: self.module, path, role });
    }

    /// Creates a module below the present one; the file is that of the present one until another is read.
    fn new_module(&mut self, name: Option<&str>) -> usize {
        let parent = &self.krate.modules[self.module];
        let path = parent.path.iter().cloned().chain(name.map(str::to_owned)).collect();
        let (parent, file) = (Some(self.module), parent.file);
        self.krate.modules.push(Module { path, parent, is_block: name.is_none(), file, ..Module::default() });
        self.krate.modules.len() - 1
    }

    /// Reads a module that is written out, or all files that may be it.
    fn module(&mut self, item: &ItemMod) -> Result<()> {
        let name = name_of(&item.ident);
        let paths = path_attributes(&item.attrs);
        if let Some((_, items)) = &item.content {
            let module = self.new_module(Some(&name));
            self.declare(name.clone(), Meaning::Module(module), &item.vis);
            let children = self.children.join(paths.first().unwrap_or(&name));
            // A `#[path]` of a module inside this one counts from the folder of its children.
            return self.inside(module, children.clone(), children, |reader| {
                reader.items(items);
                Ok(())
            });
        }
        let mut files: Vec<(PathBuf, PathBuf)> = Vec::new(); // each with the folder of its children
        for path in &paths {
            let file = self.folder.join(path);
            files.push((file.clone(), file.parent().expect("joined to a folder").to_owned()));
        }
        let has_plain_path = item.attrs.iter().any(|attribute| attribute.path().is_ident("path"));
        if !has_plain_path {
            files.push((self.children.join(format!("{name}.rs")), self.children.join(&name)));
            files.push((self.children.join(&name).join("mod.rs"), self.children.join(&name)));
        }
        files.retain(|(file, _)| (self.sources)(file).is_some());
        if files.is_empty() {
            bail!("no file for module `{name}` declared below {}", self.folder.display());
        }
        for (file, children) in files {
            let module = self.new_module(Some(&name));
            self.declare(name.clone(), Meaning::Module(module), &item.vis);
            let folder = file.parent().expect("joined to a folder").to_owned();
            self.inside(module, folder, children, |reader| reader.file(&file))?;
        }
        Ok(())
    }

    fn inside(
        &mut self,
        module: usize,
        folder: PathBuf,
        children: PathBuf,
        read: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let outer = (self.module, self.folder.clone(), self.children.clone());
        (self.module, self.folder, self.children) = (module, folder, children);
        let result = read(self);
        (self.module, self.folder, self.children) = outer;
        result
    }

    fn import(&mut self, item: &ItemUse) {
        let is_public = !matches!(item.vis, Visibility::Inherited);
        let role = if is_public { Role::ReExport } else { Role::Import };
        let prefix = PathNames { is_absolute: item.leading_colon.is_some(), names: Vec::new() };
        let mut imports = Vec::new();
        flatten(&item.tree, prefix, &mut imports);
        for (path, name) in imports {
            match name {
                ImportName::Glob => self.krate.modules[self.module].globs.push(Glob { path, is_public }),
                ImportName::Underscore => self.refer(path, role),
                ImportName::Name(name) => {
                    self.declare(name, Meaning::Import(path.clone()), &item.vis);
                    self.refer(path, role);
                }
            }
        }
    }

    /// Declares the name of an item. Modules and imports are handled elsewhere.
    fn declare_item(&mut self, item: &Item) {
        let (name, kind, visibility) = match item {
            Item::Struct(item) => (&item.ident, ItemKind::Type, &item.vis),
            Item::Union(item) => (&item.ident, ItemKind::Type, &item.vis),
            Item::Type(item) => (&item.ident, ItemKind::Type, &item.vis),
            Item::Trait(item) => (&item.ident, ItemKind::Trait, &item.vis),
            Item::TraitAlias(item) => (&item.ident, ItemKind::Trait, &item.vis),
            Item::Fn(item) => (&item.sig.ident, ItemKind::Value, &item.vis),
            Item::Const(item) => (&item.ident, ItemKind::Value, &item.vis),
            Item::Static(item) => (&item.ident, ItemKind::Value, &item.vis),
            Item::Enum(item) => {
                let variants: BTreeSet<String> = item.variants.iter().map(|variant| name_of(&variant.ident)).collect();
                return self.declare(name_of(&item.ident), Meaning::Enum(variants), &item.vis);
            }
            Item::Macro(item) => {
                let Some(name) = &item.ident else {
                    let names = &mut self.krate.modules[self.module].macro_names;
                    return tokens::names(item.mac.tokens.clone(), names);
                };
                let binding = Binding { meaning: Meaning::Item(ItemKind::Macro), is_public: false };
                let module = &mut self.krate.modules[self.module];
                module.bindings.entry(name_of(name)).or_default().push(binding);
                if item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) && self.module != 0 {
                    let names = self.krate.modules[self.module].path.iter().cloned();
                    let names = ["crate".to_owned()].into_iter().chain(names).chain([name_of(name)]).collect();
                    let meaning = Meaning::Import(PathNames { is_absolute: false, names });
                    let root = &mut self.krate.modules[0].bindings;
                    root.entry(name_of(name)).or_default().push(Binding { meaning, is_public: true });
                }
                return;
            }
            _ => return,
        };
        self.declare(name_of(name), Meaning::Item(kind), visibility);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test_only(attributes_of(item)) {
            return;
        }
        match item {
            Item::Mod(item) => {
                if let Err(error) = self.module(item) {
                    self.error.get_or_insert(error);
                }
            }
            Item::Use(item) => self.import(item),
            Item::ExternCrate(item) => {
                let name = name_of(item.rename.as_ref().map_or(&item.ident, |(_, name)| name));
                let is_absolute = item.ident != "self";
                let first = if is_absolute { name_of(&item.ident) } else { "crate".to_owned() };
                self.declare(name, Meaning::Import(PathNames { is_absolute, names: vec![first] }), &item.vis);
            }
            item => {
                self.declare_item(item);
                if let Item::Impl(item) = item {
                    let is_of_trait = item.trait_.is_some();
                    if let Some(path) = type_path(&item.self_ty) {
                        self.krate.impls.push(Impl { module: self.module, path, is_of_trait });
                    }
                }
                visit::visit_item(self, item);
            }
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        if !block.stmts.iter().any(|statement| matches!(statement, Stmt::Item(_))) {
            return visit::visit_block(self, block);
        }
        let module = self.new_module(None);
        let (folder, children) = (self.folder.clone(), self.children.clone());
        let read = self.inside(module, folder, children, |reader| {
            visit::visit_block(reader, block);
            Ok(())
        });
        if let Err(error) = read {
            self.error.get_or_insert(error);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.refer(path_names(path), Role::Path);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let path = path_names(&call.path);
        let is_definition = path.names == ["macro_rules"];
        if !is_definition {
            self.refer(path, Role::MacroCall);
        }
        for path in tokens::paths(call.tokens.clone()) {
            // In the body of a macro, all names but these belong to the place of the call.
            if !is_definition || path.names[0] == "crate" {
                self.refer(path, Role::Path);
            }
        }
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Const(item) => &item.attrs,
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            syn::ImplItem::Macro(item) => &item.attrs,
            _ => return visit::visit_impl_item(self, item),
        };
        if !is_test_only(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_test_only(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !is_test_only(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let attributes: &[Attribute] = match statement {
            Stmt::Local(local) => &local.attrs,
            Stmt::Macro(call) => &call.attrs,
            _ => &[],
        };
        if !is_test_only(attributes) {
            visit::visit_stmt(self, statement);
        }
    }
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name behind a path's last import.
enum ImportName {
    Name(String),
    Underscore,
    Glob,
}

fn flatten(tree: &UseTree, mut prefix: PathNames, imports: &mut Vec<(PathNames, ImportName)>) {
    // `use a::{self as b}` imports `a`.
    let extend = |mut prefix: PathNames, name: String| {
        if name != "self" || prefix.names.is_empty() {
            prefix.names.push(name);
        }
        prefix
    };
    match tree {
        UseTree::Path(tree) => {
            prefix.names.push(name_of(&tree.ident));
            flatten(&tree.tree, prefix, imports);
        }
        UseTree::Name(tree) => {
            let path = extend(prefix, name_of(&tree.ident));
            let name = path.names.last().expect("extended").clone();
            imports.push((path, ImportName::Name(name)));
        }
        UseTree::Rename(tree) => {
            let name = name_of(&tree.rename);
            let name = if name == "_" { ImportName::Underscore } else { ImportName::Name(name) };
            imports.push((extend(prefix, name_of(&tree.ident)), name));
        }
        UseTree::Glob(_) => imports.push((prefix, ImportName::Glob)),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, prefix.clone(), imports)),
    }
}

/// An identifier without `r#`.
fn name_of(name: &syn::Ident) -> String {
    let text = name.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

fn path_names(path: &syn::Path) -> PathNames {
    let names = path.segments.iter().map(|segment| name_of(&segment.ident)).collect();
    PathNames { is_absolute: path.leading_colon.is_some(), names }
}

/// The path of a type, also behind references and parentheses.
fn type_path(self_type: &Type) -> Option<PathNames> {
    match self_type {
        Type::Path(path) if path.qself.is_none() => Some(path_names(&path.path)),
        Type::Group(inner) => type_path(&inner.elem),
        Type::Paren(inner) => type_path(&inner.elem),
        Type::Reference(inner) => type_path(&inner.elem),
        _ => None,
    }
}
