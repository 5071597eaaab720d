//! The checked model: the input of back ends.
//!
//! A [`Model`] exists only for IDL without errors, so a back end has no checks to make: every name is
//! resolved, every constant is computed, every bound is positive, every inheritance graph is acyclic. The
//! model is independent of the target language.
//!
//! All definitions sit in one arena and refer to each other by [`DefId`]. A module that is reopened has **one** entry,
//! whose contents are those of all its openings in source order; a forward declaration and its definition also share
//! one entry. Operations, attributes and enumerators are definitions too, because they have repository ids.
//!
//! Terms are those of OMG IDL 4.2 (formal/18-01-05).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::diagnostic::Diagnostics;
use crate::source::{FileId, SourceMap, Span};

mod dump;
mod queries;
mod types;

pub use types::{ConstValue, DefId, FixedValue, Primitive, Type};

/// A checked IDL specification: the main file and all that it includes.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) sources: Arc<SourceMap>,
    pub(crate) definitions: Vec<Definition>,
    pub(crate) roots: Vec<DefId>,
    pub(crate) by_name: HashMap<String, DefId>,
    pub(crate) fixed: Vec<bool>,
    /// Interfaces and value types that are declared forward, with each file that does so.
    pub(crate) forward_declarations: BTreeSet<(DefId, FileId)>,
    pub(crate) warnings: Diagnostics,
}

/// A definition with a name and, for most kinds, a repository id.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The index by which other definitions of the model refer to it.
    pub id: DefId,
    /// The simple name, without the `_` of an escaped identifier.
    pub name: String,
    /// The full name without a leading `::`, such as `Bank::Account`.
    pub scoped_name: String,
    /// The repository id, such as `IDL:Bank/Account:1.0` (CORBA 3.3 Part 1, 14.7).
    pub repository_id: String,
    /// The definition whose contents list this one; `None` at the top level. An enumerator's is its enum, although its
    /// scoped name is that of the scope around the enum.
    pub parent: Option<DefId>,
    /// The comment directly before the definition, line by line, without comment marks and decoration. The
    /// blank after the mark is kept, as in Rust's own `#[doc]`.
    pub doc: Vec<String>,
    /// The position of its name: of a module at its first opening, of a forward declaration at its
    /// definition.
    pub span: Span,
    /// The annotations before it, as written, standard and other ones.
    pub annotations: Vec<Annotation>,
    /// Whether it is in the main file; for a module, whether any of its openings is. Otherwise it was
    /// included.
    pub in_main_file: bool,
    /// The IDL construct that it is, with the contents of its body.
    pub kind: DefinitionKind,
}

/// The IDL construct of a definition, with what is particular to it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DefinitionKind {
    /// `module`, with its definitions in the order of the source.
    Module(Module),
    /// `interface`, also `abstract` and `local` ones.
    Interface(Interface),
    /// An operation of an interface.
    Operation(Operation),
    /// An attribute of an interface; a list of attributes is one definition each.
    Attribute(Attribute),
    /// `struct`, with its members in order.
    Struct(Struct),
    /// `exception`, which has members as a struct has.
    Exception(Struct),
    /// `enum`, with its enumerators in order.
    Enum(Enum),
    /// One name in an `enum`.
    Enumerator(Enumerator),
    /// `typedef`; a list of declarators is one definition each.
    Typedef(Typedef),
    /// `const`, with its value after evaluation.
    Const(Const),
    /// `union`, with its discriminator and cases.
    Union(Union),
    /// `valuetype` with a body or declared forward: concrete, `abstract` or `custom`.
    ValueType(ValueType),
    /// `valuetype` with a type in place of a body: a boxed value.
    ValueBox(ValueBox),
    /// `native`: a type defined by the language mapping only.
    Native,
    /// A component, home, event type, port type or connector: parsed, its names checked, and no code generated.
    Unmapped(Unmapped),
}

/// An annotation, such as `@key` or `@range(min = 0, max = 9)` (IDL 4.2, 7.4.15 and 8).
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// Its name as written, without `@`.
    pub name: String,
    /// Its parameters: name, if written, and value.
    pub parameters: Vec<(Option<String>, AnnotationValue)>,
}

/// The value of an annotation's parameter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AnnotationValue {
    /// The result of a constant expression.
    Const(ConstValue),
    /// A name that is not a constant: in an unknown annotation it may mean anything.
    Name(String),
}

/// A union: a value of the discriminator's type, and the branch that it selects.
#[derive(Clone, Debug)]
pub struct Union {
    /// The discriminator's type: an integer type, `char`, `wchar`, `boolean`, `octet`, an enum, or a typedef of one.
    pub discriminator: Type,
    /// The branches in order, each with at least one label. Labels differ; at most one branch has [`Label::Default`].
    pub branches: Vec<Branch>,
    /// The least discriminator value that selects no branch, used by a union without a member. `None` if
    /// every value selects one.
    pub unlisted: Option<ConstValue>,
    /// Definitions nested in the discriminator's or a member's type (an `enum`, `struct` or `union` in place
    /// of a type name).
    pub contents: Vec<DefId>,
}

/// A member of a union with the labels that select it.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The labels (`case`) that select it, at least one.
    pub labels: Vec<Label>,
    /// The name and the type of the branch.
    pub member: Member,
}

/// A value of the discriminator for which the branch is active.
#[derive(Clone, Debug, PartialEq)]
pub enum Label {
    /// `case` and a value of the discriminator's type.
    Value(ConstValue),
    /// `default`, for the values without a label.
    Default,
}

/// A value type (CORBA 3.3 Part 1, clause 9).
#[derive(Clone, Debug, Default)]
pub struct ValueType {
    /// `custom`: with marshaling code written by its implementer.
    pub is_custom: bool,
    /// `abstract`: has no state members.
    pub is_abstract: bool,
    /// Declared forward, and not defined in any file that was read.
    pub forward_only: bool,
    /// The direct base values, as written; a concrete one comes first.
    pub bases: Vec<DefId>,
    /// All bases as in [`Interface::all_bases`].
    pub all_bases: Vec<DefId>,
    /// `truncatable`: may be received as its concrete base.
    pub is_truncatable: bool,
    /// The supported interfaces, as written.
    pub supports: Vec<DefId>,
    /// Its own state, in order, without that of its base.
    pub members: Vec<StateMember>,
    /// Its initializers (`factory`), in source order.
    pub factories: Vec<Factory>,
    /// Operations, attributes and nested definitions of this value itself, in source order.
    pub contents: Vec<DefId>,
}

/// A member of a value type's state.
#[derive(Clone, Debug)]
pub struct StateMember {
    /// `public` rather than `private`.
    pub is_public: bool,
    /// The name and the type of the member.
    pub member: Member,
}

/// An initializer of a value type: `factory name(in …) raises (…)`.
#[derive(Clone, Debug)]
pub struct Factory {
    /// The name after `factory`, without the `_` of an escaped identifier.
    pub name: String,
    /// `in` parameters, in order.
    pub parameters: Vec<Parameter>,
    /// The user exceptions it may raise.
    pub raises: Vec<DefId>,
    /// The comment directly before it, as [`Definition::doc`].
    pub doc: Vec<String>,
    /// The position of its name.
    pub span: Span,
}

/// A boxed value: a value type with one member that has no name.
#[derive(Clone, Debug)]
pub struct ValueBox {
    /// The type of its only member, as written.
    pub ty: Type,
}

/// A definition that the front end parses and no back end generates code for (CORBA 3.3 Part 3).
#[derive(Clone, Debug)]
pub struct Unmapped {
    /// Its IDL keyword, such as `component`.
    pub keyword: &'static str,
    /// Ordinary definitions inside it.
    pub contents: Vec<DefId>,
}

/// A module. Its openings in several places and files are one definition.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Its direct contents, in source order.
    pub contents: Vec<DefId>,
}

/// An interface that is defined, or only declared forward.
#[derive(Clone, Debug, Default)]
pub struct Interface {
    /// The direct bases, as written.
    pub bases: Vec<DefId>,
    /// All bases, direct and indirect, each once: depth first, left to right, every interface after its own bases.
    pub all_bases: Vec<DefId>,
    /// Operations, attributes and nested definitions of this interface itself, in source order.
    pub contents: Vec<DefId>,
    /// Declared forward, and not defined in any file that was read; references to it are possible.
    pub forward_only: bool,
    /// `abstract interface`: a reference or a value.
    pub is_abstract: bool,
    /// `local interface`: its objects stay inside the process.
    pub is_local: bool,
}

/// A structure's or exception's members.
#[derive(Clone, Debug, Default)]
pub struct Struct {
    /// The members in order; `long x, y;` is two.
    pub members: Vec<Member>,
    /// Definitions nested in its member types (`enum`, `struct` or `union` in place of a type name). Always
    /// empty in IDL 4.2.
    pub contents: Vec<DefId>,
}

/// A named part of a structure, exception, union or value.
#[derive(Clone, Debug)]
pub struct Member {
    /// The name, without the `_` of an escaped identifier.
    pub name: String,
    /// Its type, with the array dimensions of its declarator.
    pub ty: Type,
    /// The comment directly before its declaration, as [`Definition::doc`].
    pub doc: Vec<String>,
    /// The annotations before its declaration, as [`Definition::annotations`].
    pub annotations: Vec<Annotation>,
    /// The position of its name.
    pub span: Span,
}

/// An enumeration. Its values are numbered from zero.
#[derive(Clone, Debug, Default)]
pub struct Enum {
    /// Its enumerators in order; each is a [`DefinitionKind::Enumerator`].
    pub enumerators: Vec<DefId>,
}

/// A name that an enumeration lists; its value is its position there.
#[derive(Clone, Copy, Debug)]
pub struct Enumerator {
    /// The enumeration that lists it.
    pub of: DefId,
    /// Its number in the enumeration, from zero, as on the wire.
    pub ordinal: u32,
}

/// A further name of a type, from one declarator of a `typedef`.
#[derive(Clone, Debug)]
pub struct Typedef {
    /// The aliased type, with the array dimensions of its declarator.
    pub ty: Type,
}

/// A constant with its computed value.
#[derive(Clone, Debug)]
pub struct Const {
    /// The type as written, possibly a typedef; it resolves to an enum, a primitive or a string.
    pub ty: Type,
    /// The value, within the range of its type.
    pub value: ConstValue,
}

/// An operation that clients may call.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// `oneway`: returns nothing, has only `in` parameters, raises nothing.
    pub oneway: bool,
    /// The type of the result; `None` for `void`.
    pub result: Option<Type>,
    /// The parameters in order, with distinct names.
    pub parameters: Vec<Parameter>,
    /// The user exceptions it may raise, each once; each is a [`DefinitionKind::Exception`].
    pub raises: Vec<DefId>,
    /// The names of the context properties that callers send.
    pub context: Vec<String>,
}

/// A parameter of an operation.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Whether client, server or both send a value for it.
    pub mode: ParameterMode,
    /// The type as written, possibly a typedef.
    pub ty: Type,
    /// The name, without the `_` of an escaped identifier.
    pub name: String,
    /// The annotations before it, as [`Definition::annotations`].
    pub annotations: Vec<Annotation>,
    /// The position of its name.
    pub span: Span,
}

/// The direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ParameterMode {
    /// From client to server.
    In,
    /// From server to client.
    Out,
    /// From client to server, and with the reply back.
    InOut,
}

/// An attribute of an interface or value type: one name of a declaration.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// `readonly`: has a getter and no setter.
    pub readonly: bool,
    /// The type of its value, as written.
    pub ty: Type,
    /// The exceptions of its getter (`raises` when readonly, otherwise `getraises`).
    pub get_raises: Vec<DefId>,
    /// The exceptions of its setter (`setraises`).
    pub set_raises: Vec<DefId>,
}
