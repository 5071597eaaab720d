//! The Rust name and module of each definition, decided before any code is written.
//!
//! All names within one Rust module differ, in any namespace. Names declared in the IDL are assigned before
//! generated ones, so that only the latter gain a `_` on a collision.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

use super::error_sets::ErrorSets;
use super::external::Externals;
use super::file_homes::Home;
use super::prelude;
use super::scope::Scope;
use super::value_links::lineage;
use super::words::{pascal, screaming, snake};
use crate::model::{DefId, DefinitionKind, Label, Member, Model, Parameter, Union};

/// A Rust module: the names of the enclosing modules and its own; the file's root has none.
pub(super) type ModulePath = Vec<Ident>;

/// Modules may not hide Rust's primitive types, which are found by the same names, nor those of the runtime.
const NOT_FOR_MODULES: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "rt", "str", "u8", "u16", "u32", "u64",
    "u128", "usize",
];

/// Methods that every reference has.
const NOT_FOR_METHODS: &[&str] = &["as_object", "narrow", "narrow_async", "unchecked_narrow"];

/// The module and name of a definition.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) module: ModulePath,
    pub(super) ident: Ident,
}

/// The names generated for an interface beside its reference type.
#[derive(Clone, Debug)]
pub(super) struct InterfaceNames {
    /// The servant trait; of a local interface, the interface itself.
    pub(super) servant: Ident,
    /// Local interfaces have none.
    pub(super) skeleton: Ident,
    /// The servant composed of several objects, and the trait of the operations that the interface adds to
    /// its bases.
    pub(super) tie: Ident,
    pub(super) delegate: Ident,
    /// The asynchronous forms of servant and skeleton; local interfaces have none.
    pub(super) async_servant: Ident,
    pub(super) async_skeleton: Ident,
    /// The AMI reply handler, and the AMI poller.
    pub(super) ami_handler: Ident,
    pub(super) ami_poller: Ident,
    /// The module with the nested definitions of the interface, and its operations' errors.
    pub(super) module: Ident,
}

/// The methods of an operation or an attribute.
#[derive(Clone, Debug)]
pub(super) struct MethodNames {
    /// The operation, or the getter.
    pub(super) call: Ident,
    pub(super) setter: Option<Ident>,
    /// The alias of the error enum in the interface's module, where exceptions are raised: of the operation, or
    /// the getter.
    pub(super) error: Option<Ident>,
    pub(super) setter_error: Option<Ident>,
}

/// The names generated for a value type beside its trait; the module is that of [`InterfaceNames`].
#[derive(Clone, Debug)]
pub(super) struct ValueNames {
    /// The struct of its members.
    pub(super) state: Ident,
    /// The trait of its initializers.
    pub(super) factory: Ident,
    /// The method that returns its state.
    pub(super) state_method: Ident,
    /// The methods that return its members; private members have names, too, and no method.
    pub(super) accessors: Vec<Ident>,
    /// The method that writes a custom value.
    pub(super) marshal: Option<Ident>,
    /// Its initializers, and the alias of the error enum of each that raises exceptions.
    pub(super) initializers: Vec<(Ident, Option<Ident>)>,
}

/// The names of all definitions of a model, and of the items generated beside them.
#[derive(Debug, Default)]
pub(super) struct Names {
    values: HashMap<DefId, ValueNames>,
    places: HashMap<DefId, Place>,
    interfaces: HashMap<DefId, InterfaceNames>,
    methods: HashMap<DefId, MethodNames>,
    /// The type code functions of typedefs.
    type_codes: HashMap<DefId, Ident>,
    /// The functions of typedefs that make an `any`.
    any_functions: HashMap<DefId, Ident>,
    error_sets: ErrorSets,
    /// Names of Rust's own prelude that a module of the generated code redefines.
    hidden: HashMap<ModulePath, Vec<&'static str>>,
    /// All names of the code being generated that are outside modules.
    top_level: HashSet<String>,
}

impl Names {
    pub(super) fn new(model: &Model, local: &HashSet<DefId>, externals: &Externals, left_out: &HashSet<DefId>) -> Self {
        let (names, named_interfaces) = (Self::default(), HashSet::new());
        let mut naming = Namer { model, local, externals, home: Home::Own, left_out, names, named_interfaces };
        for home in externals.homes() {
            naming.home = home;
            naming.module(model.roots(), &Vec::new());
        }
        for definition in model.definitions() {
            naming.methods(definition.id);
        }
        naming.names
    }

    /// A name for a type parameter: neither it nor it followed by a number is used by a definition.
    pub(super) fn type_parameter(&self) -> Ident {
        let is_numbered = |name: &str, stem: &str| {
            name.strip_prefix(stem).is_some_and(|rest| rest.bytes().all(|octet| octet.is_ascii_digit()))
        };
        let used_names: Vec<String> = self.places.values().map(|path| super::scope::plain(&path.ident)).collect();
        let is_free = |stem: &String| !used_names.iter().any(|name| is_numbered(name, stem));
        let names = (0..).map(|more| format!("S{}", "x".repeat(more)));
        own(&names.into_iter().find(is_free).expect("there are more names than definitions"))
    }

    /// The module and name of a module of the generated code, or of an interface, struct, exception, enum, typedef or constant. For an
    /// enumerator: its variant.
    pub(super) fn place(&self, id: DefId) -> &Place {
        &self.places[&id]
    }

    pub(super) fn interface(&self, id: DefId) -> &InterfaceNames {
        &self.interfaces[&id]
    }

    pub(super) fn method(&self, id: DefId) -> &MethodNames {
        &self.methods[&id]
    }

    /// Names of Rust's own prelude that have another meaning in a module.
    pub(super) fn hidden(&self, module: &ModulePath) -> &[&'static str] {
        self.hidden.get(module).map_or(&[], Vec::as_slice)
    }

    /// The function that returns a typedef's type code, in the typedef's module.
    pub(super) fn type_code(&self, typedef: DefId) -> &Ident {
        &self.type_codes[&typedef]
    }

    /// The function that makes an `any` of a typedef, in the typedef's module.
    pub(super) fn any_function(&self, typedef: DefId) -> &Ident {
        &self.any_functions[&typedef]
    }

    /// The names of the code being generated that are outside modules, without `r#`, and those that other options
    /// would add.
    pub(super) fn top_level(&self) -> &HashSet<String> {
        &self.top_level
    }

    /// The error enums of all modules.
    pub(super) fn error_sets(&self) -> &ErrorSets {
        &self.error_sets
    }

    pub(super) fn value(&self, id: DefId) -> &ValueNames {
        &self.values[&id]
    }

    /// The module of an interface.
    pub(super) fn interface_module(&self, id: DefId) -> ModulePath {
        let mut module = self.place(id).module.clone();
        module.push(self.interface(id).module.clone());
        module
    }
}

/// The path from one module to a name in another: only `super` and names, so that it is valid wherever the
/// file is included.
pub(super) fn path(from: &[Ident], module: &[Ident], ident: &Ident) -> TokenStream {
    let shared = from.iter().zip(module).take_while(|(ours, theirs)| ours == theirs).count();
    let up = from[shared..].iter().map(|_| format_ident!("super"));
    let down = module[shared..].iter().cloned();
    let steps = up.chain(down);
    quote! { #( #steps:: )* #ident }
}

/// The field names of a struct or exception.
pub(super) fn fields(members: &[Member]) -> Vec<Ident> {
    fields_in(&mut Scope::default(), members)
}

/// The names of fields, in a scope for further ones.
pub(super) fn fields_in<'m>(scope: &mut Scope, members: impl IntoIterator<Item = &'m Member>) -> Vec<Ident> {
    members.into_iter().map(|member| scope.take(&snake(&member.name))).collect()
}

/// The variants of a union's branches, and the one for discriminators that select none, if such values exist.
pub(super) fn branches(body: &Union) -> (Vec<Ident>, Option<Ident>) {
    let mut scope = Scope::default();
    let names = body.branches.iter().map(|branch| scope.take(&pascal(&branch.member.name))).collect();
    let has_default = body.branches.iter().any(|branch| branch.labels.contains(&Label::Default));
    let unlisted = (body.unlisted.is_some() && !has_default).then(|| scope.take("Unlisted"));
    (names, unlisted)
}

/// The parameter names of an operation, and the scope for further local names.
pub(super) fn parameters(parameters: &[Parameter]) -> (Vec<Ident>, Scope) {
    let mut scope = Scope::default();
    let names = parameters.iter().map(|parameter| scope.take(&snake(&parameter.name))).collect();
    (names, scope)
}

struct Namer<'m> {
    model: &'m Model,
    /// The definitions that never leave the process.
    local: &'m HashSet<DefId>,
    externals: &'m Externals,
    /// The Rust code whose definitions are being named.
    home: Home,
    /// The definitions without a Rust form.
    left_out: &'m HashSet<DefId>,
    names: Names,
    /// Interfaces whose methods are named.
    named_interfaces: HashSet<DefId>,
}

impl Namer<'_> {
    /// Names the direct definitions of a Rust module, then the generated items beside them, then descends. Later
    /// kinds of generated items come last, so that the names of the others stay as they were. Only definitions of the
    /// current home count.
    fn module(&mut self, contents: &[DefId], path: &ModulePath) {
        let mut contents = self.with_nested(contents);
        contents.retain(|&id| self.externals.is_in(self.home, id));
        let mut scope = Scope::reserving(NOT_FOR_MODULES);
        for &id in &contents {
            self.declared(id, path, &mut scope);
        }
        for &id in &contents {
            match &self.model[id].kind {
                DefinitionKind::Interface(_) | DefinitionKind::ValueType(_) => self.interface(id, &mut scope),
                DefinitionKind::Typedef(_) => {
                    let function = scope.take(&format!("{}_tc", snake(&self.model[id].name)));
                    self.names.type_codes.insert(id, function);
                }
                _ => {}
            }
        }
        for &id in &contents {
            match &self.model[id].kind {
                DefinitionKind::Interface(_) | DefinitionKind::ValueType(_) if !self.left_out.contains(&id) => {
                    self.names.error_sets.add(self.model, id, self.home, path, &mut scope);
                }
                DefinitionKind::Typedef(_) => {
                    let function = scope.take(&format!("{}_any", snake(&self.model[id].name)));
                    self.names.any_functions.insert(id, function);
                }
                _ => {}
            }
        }
        let hidden: Vec<&str> = prelude::used().filter(|name| scope.has(name)).collect();
        if !hidden.is_empty() && self.home == Home::Own {
            self.names.hidden.insert(path.clone(), hidden);
        }
        if path.is_empty() && self.home == Home::Own {
            self.names.top_level = scope.into_taken(NOT_FOR_MODULES);
        }
        for &id in &contents {
            match &self.model[id].kind {
                DefinitionKind::Module(module) => {
                    let inner = self.inside(path, self.names.place(id).ident.clone());
                    self.module(&module.contents, &inner);
                }
                DefinitionKind::Interface(_) | DefinitionKind::ValueType(_) => {
                    let inner = self.names.interface_module(id);
                    self.module(self.model.contents(id), &inner);
                }
                _ => {}
            }
        }
    }

    /// The definitions, each followed by its definitions nested in a struct: in Rust they are siblings.
    fn with_nested(&self, contents: &[DefId]) -> Vec<DefId> {
        super::contents::flatten_structs(self.model, contents)
    }

    fn inside(&self, path: &ModulePath, ident: Ident) -> ModulePath {
        path.iter().cloned().chain([ident]).collect()
    }

    fn declared(&mut self, id: DefId, path: &ModulePath, scope: &mut Scope) {
        let name = &self.model[id].name;
        let ident = match &self.model[id].kind {
            DefinitionKind::Module(_) => scope.take(&snake(name)),
            DefinitionKind::Const(_) => scope.take(&screaming(name)),
            DefinitionKind::Operation(_) | DefinitionKind::Attribute(_) | DefinitionKind::Enumerator(_) => return,
            DefinitionKind::Enum(body) => {
                let ident = scope.take(&pascal(name));
                let mut variants = Scope::default();
                for &enumerator in &body.enumerators {
                    let ident = variants.take(&pascal(&self.model[enumerator].name));
                    self.names.places.insert(enumerator, Place { module: path.clone(), ident });
                }
                ident
            }
            _ => scope.take(&pascal(name)),
        };
        self.names.places.insert(id, Place { module: path.clone(), ident });
    }

    fn interface(&mut self, id: DefId, scope: &mut Scope) {
        let name = &self.model[id].name;
        let beside = |scope: &mut Scope, suffix: &str| scope.take(&format!("{}{suffix}", pascal(name)));
        let is_value = self.model[id].as_value_type().is_some();
        let (servant, skeleton) = if is_value || self.local.contains(&id) {
            let ident = &self.names.place(id).ident;
            (ident.clone(), ident.clone())
        } else {
            (beside(scope, "Servant"), beside(scope, "Skeleton"))
        };
        let (tie, delegate) = (beside(scope, "Tie"), beside(scope, "Delegate"));
        if is_value {
            let (state, factory) = (beside(scope, "State"), beside(scope, "Factory"));
            let state_method = own(&format!("{}_state", snake(name)));
            let (accessors, initializers) = (Vec::new(), Vec::new());
            let names = ValueNames { state, factory, state_method, accessors, marshal: None, initializers };
            self.names.values.insert(id, names);
        }
        let module = scope.take(&snake(name));
        let (async_servant, async_skeleton) = (beside(scope, "AsyncServant"), beside(scope, "AsyncSkeleton"));
        let mut implied = |suffix: &str| scope.take(&format!("Ami{}{suffix}", pascal(name)));
        let (ami_handler, ami_poller) = (implied("Handler"), implied("Poller"));
        let names = InterfaceNames {
            servant,
            skeleton,
            tie,
            delegate,
            async_servant,
            async_skeleton,
            ami_handler,
            ami_poller,
            module,
        };
        self.names.interfaces.insert(id, names);
    }

    /// Names the methods of an interface or value type after those of its bases, and the errors in its
    /// module.
    fn methods(&mut self, id: DefId) {
        let is_value = self.model[id].as_value_type().is_some();
        if !(is_value || self.model[id].as_interface().is_some()) || !self.named_interfaces.insert(id) {
            return;
        }
        let mut method_scope = Scope::reserving(NOT_FOR_METHODS);
        for base in lineage(self.model, id) {
            self.methods(base);
            if let Some(names) = self.names.values.get(&base) {
                let own = names.accessors.iter().chain(&names.marshal).chain([&names.state_method]);
                own.for_each(|method| method_scope.reserve(method));
            }
            for inherited in self.own_methods(base) {
                let names = self.names.method(inherited);
                method_scope.reserve(&names.call);
                names.setter.iter().for_each(|setter| method_scope.reserve(setter));
            }
        }
        let mut errors = self.names_in(id);
        for method in self.own_methods(id) {
            let names = self.method(method, &mut method_scope, &mut errors);
            self.names.methods.insert(method, names);
        }
        if let Some(body) = self.model[id].as_value_type() {
            let members = body.members.iter().map(|state| &state.member);
            let accessors = fields_in(&mut method_scope, members);
            let state_method = method_scope.take(&format!("{}_state", snake(&self.model[id].name)));
            let marshal = body.is_custom.then(|| method_scope.take("marshal"));
            let mut initializers = Scope::default();
            let initializers = body.factories.iter().map(|factory| {
                let name = pascal(&factory.name);
                let error = (!factory.raises.is_empty()).then(|| errors.take(&format!("{name}Error")));
                (initializers.take(&snake(&factory.name)), error)
            });
            let initializers = initializers.collect();
            if let Some(names) = self.names.values.get_mut(&id) {
                *names = ValueNames { accessors, state_method, marshal, initializers, ..names.clone() };
            }
        }
    }

    fn own_methods(&self, interface: DefId) -> Vec<DefId> {
        let contents = self.model.contents(interface).iter().copied();
        contents.filter(|&id| super::contents::is_method(&self.model[id])).collect()
    }

    /// The names declared inside an interface, which errors may not take.
    fn names_in(&self, interface: DefId) -> Scope {
        let mut scope = Scope::default();
        for id in self.with_nested(self.model.contents(interface)) {
            if let Some(path) = self.names.places.get(&id) {
                scope.reserve(&path.ident);
            }
            let functions = self.names.type_codes.get(&id).into_iter().chain(self.names.any_functions.get(&id));
            functions.for_each(|function| scope.reserve(function));
        }
        scope
    }

    fn method(&self, id: DefId, method_scope: &mut Scope, errors: &mut Scope) -> MethodNames {
        let name = &self.model[id].name;
        let mut error = |prefix: &str, raises: &[DefId]| {
            (!raises.is_empty()).then(|| errors.take(&format!("{prefix}{}Error", pascal(name))))
        };
        match &self.model[id].kind {
            DefinitionKind::Attribute(attribute) => MethodNames {
                call: method_scope.take(&snake(name)),
                setter: (!attribute.readonly).then(|| method_scope.take(&format!("set_{}", snake(name)))),
                error: error("", &attribute.get_raises),
                setter_error: error("Set", &attribute.set_raises),
            },
            DefinitionKind::Operation(operation) => MethodNames {
                call: method_scope.take(&snake(name)),
                setter: None,
                error: error("", &operation.raises),
                setter_error: None,
            },
            other => unreachable!("{} is no method", other.keyword()),
        }
    }
}

/// An identifier chosen by the generator.
pub(super) fn own(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}
