//! The syntax tree: the source before name resolution.
//!
//! Its depth is bounded by the parser, so that recursion over it is safe; expressions, which may be long, are
//! flat.

use std::rc::Rc;

use crate::intern::Symbol;
use crate::model::{FixedValue, ParameterMode, Primitive};
use crate::source::Span;

/// A simple name; an escaped identifier has lost its `_`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) symbol: Symbol,
    pub(crate) span: Span,
}

/// `A::B`, `::A::B` or `B`.
#[derive(Clone, Debug)]
pub(crate) struct ScopedName {
    pub(crate) absolute: bool,
    /// The names between `::`; at least one.
    pub(crate) parts: Vec<Name>,
    pub(crate) span: Span,
}

/// A name being defined, with the parser's context.
#[derive(Clone, Debug)]
pub(crate) struct NewName {
    pub(crate) name: Name,
    /// The prefix of repository ids at this position.
    pub(crate) prefix: Rc<str>,
    pub(crate) doc: Vec<String>,
}

/// An item of a scope.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Module {
        name: NewName,
        body: Vec<Item>,
    },
    Interface {
        flavour: Flavour,
        name: NewName,
        bases: Vec<ScopedName>,
        /// `None` for a forward declaration.
        body: Option<Vec<Item>>,
    },
    Operation(Operation),
    Attribute {
        readonly: bool,
        ty: TypeSpec,
        names: Vec<NewName>,
        get_raises: Vec<ScopedName>,
        set_raises: Vec<ScopedName>,
    },
    Struct(StructItem),
    /// `struct Name;`, a declaration without members.
    StructForward {
        name: NewName,
    },
    Union(UnionItem),
    /// `union Name;`, a declaration without members.
    UnionForward {
        name: NewName,
    },
    Native {
        name: NewName,
    },
    Enum(EnumItem),
    Typedef {
        ty: TypeSpec,
        declarators: Vec<Declarator>,
    },
    Const {
        ty: TypeSpec,
        name: NewName,
        value: Expression,
    },
    Value(ValueItem),
    Bodiless(Bodiless),
    /// A state member of a value type.
    State {
        is_public: bool,
        member: Member,
    },
    /// An initializer of a value type.
    Factory(FactoryItem),
    /// Items, and the annotations before the first of them.
    Annotated {
        annotations: Vec<Annotation>,
        items: Vec<Item>,
    },
    /// A component or similar construct.
    Unmapped(UnmappedItem),
    /// A port of a component or similar construct.
    Port(Port),
    Declaration(Declaration),
    /// A name whose definition was reported as incorrect or unsupported; its uses are ignored.
    Broken {
        name: NewName,
    },
    PragmaId {
        name: ScopedName,
        id: String,
        span: Span,
    },
    PragmaVersion {
        name: ScopedName,
        version: String,
        span: Span,
    },
}

/// The kind of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    Unconstrained,
    Abstract,
    Local,
}

/// An annotation as written: `@name` or `@name(…)`.
#[derive(Clone, Debug)]
pub(crate) struct Annotation {
    /// As written, with its scopes.
    pub(crate) name: String,
    pub(crate) parameters: Vec<(Option<Name>, Expression)>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct StructItem {
    pub(crate) name: NewName,
    pub(crate) is_exception: bool,
    pub(crate) members: Vec<Member>,
}

#[derive(Clone, Debug)]
pub(crate) struct UnionItem {
    pub(crate) name: NewName,
    pub(crate) discriminator: TypeSpec,
    pub(crate) branches: Vec<BranchItem>,
}

/// `case 1: case 2: type a;`
#[derive(Clone, Debug)]
pub(crate) struct BranchItem {
    /// The `case` and `default` labels of the branch; at least one.
    pub(crate) labels: Vec<LabelItem>,
    /// It has one declarator.
    pub(crate) member: Member,
}

#[derive(Clone, Debug)]
pub(crate) enum LabelItem {
    Case(Expression),
    Default(Span),
}

/// Members of one type: `type a, b[2];`.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) ty: TypeSpec,
    pub(crate) declarators: Vec<Declarator>,
}

#[derive(Clone, Debug)]
pub(crate) struct Declarator {
    pub(crate) name: NewName,
    pub(crate) dimensions: Vec<Expression>,
}

#[derive(Clone, Debug)]
pub(crate) struct EnumItem {
    pub(crate) name: NewName,
    pub(crate) enumerators: Vec<EnumeratorItem>,
}

#[derive(Clone, Debug)]
pub(crate) struct EnumeratorItem {
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) name: NewName,
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) name: NewName,
    pub(crate) oneway: Option<Span>,
    /// The type of the result; `None` for `void`.
    pub(crate) result: Option<TypeSpec>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) raises: Vec<ScopedName>,
    pub(crate) context: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) mode: ParameterMode,
    pub(crate) mode_span: Span,
    pub(crate) ty: TypeSpec,
    pub(crate) name: Name,
}

#[derive(Clone, Debug)]
pub(crate) struct TypeSpec {
    pub(crate) kind: TypeKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum TypeKind {
    Primitive(Primitive),
    String(Option<Expression>),
    WString(Option<Expression>),
    /// Digits and scale; absent only in a constant's type.
    Fixed(Option<Box<(Expression, Expression)>>),
    Any,
    ValueBase,
    Sequence(Box<TypeSpec>, Option<Expression>),
    Object,
    Scoped(ScopedName),
    Struct(Box<StructItem>),
    Union(Box<UnionItem>),
    Enum(Box<EnumItem>),
}

/// A constant expression, operands before their operators: evaluated with a stack, without recursion.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    pub(crate) steps: Vec<Step>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    /// Position of the operand or operator.
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum StepKind {
    Integer(u128),
    Float(f64),
    Boolean(bool),
    Char(char),
    String(String),
    WideChar(char),
    WideString(String),
    Fixed(FixedValue),
    Name(ScopedName),
    /// A literal that was reported already.
    Malformed,
    Unary(Unary),
    Binary(Binary),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Plus,
    Minus,
    Complement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    Xor,
    And,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// `valuetype` with a body.
#[derive(Clone, Debug)]
pub(crate) struct ValueItem {
    pub(crate) name: NewName,
    pub(crate) is_custom: bool,
    pub(crate) is_abstract: bool,
    pub(crate) truncatable: Option<Span>,
    pub(crate) bases: Vec<ScopedName>,
    pub(crate) supports: Vec<ScopedName>,
    /// State members and initializers besides the items of an interface.
    pub(crate) body: Vec<Item>,
}

/// `valuetype` without a body.
#[derive(Clone, Debug)]
pub(crate) enum Bodiless {
    Forward { name: NewName, is_abstract: bool },
    Boxed { name: NewName, ty: TypeSpec },
}

/// `factory name(in …) raises (…);`
#[derive(Clone, Debug)]
pub(crate) struct FactoryItem {
    pub(crate) name: NewName,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) raises: Vec<ScopedName>,
}

/// A component, home, event type, port type or connector.
#[derive(Clone, Debug)]
pub(crate) struct UnmappedItem {
    pub(crate) keyword: &'static str,
    pub(crate) name: NewName,
    /// The bases, whose names are inherited.
    pub(crate) bases: Vec<Reference>,
    /// Other names in the head.
    pub(crate) others: Vec<Reference>,
    /// `None` for a forward declaration.
    pub(crate) body: Option<Vec<Item>>,
}

/// A name that must refer to a definition of this role.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) name: ScopedName,
    pub(crate) role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Component,
    Home,
    Interface,
    /// A value type or an event type.
    Value,
    Event,
    PortType,
    Connector,
}

/// A name in the body of a component or similar construct, such as that of a port.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) name: Name,
    /// The type to which the port connects; `None` for `Object`.
    pub(crate) target: Option<Reference>,
}

/// A declaration that concerns names only.
#[derive(Clone, Debug)]
pub(crate) enum Declaration {
    /// `typeprefix name "prefix";`, for the ids of a scope.
    TypePrefix { name: ScopedName, prefix: String },
    /// `import name;`, with the name of a scope.
    Import(ScopedName),
    /// `import "repository id";`, with the id of a scope.
    ImportId { id: String, span: Span },
}
