//! The parts of the JSON text, each as a type that `serde` serializes: the table in the module above
//! describes them.

use serde::Serialize;

use super::lines::Lines;
use crate::model::{
    self, AnnotationValue, ConstValue, DefId, Definition, DefinitionKind, Label, Model, ParameterMode, Primitive,
};
use crate::source::Span;

#[derive(Serialize)]
pub(super) struct Place {
    file: u32,
    line: usize,
    column: usize,
}

#[derive(Serialize)]
pub(super) struct Node<'m> {
    kind: &'static str,
    name: &'m str,
    scoped_name: &'m str,
    repository_id: &'m str,
    at: Place,
    in_main_file: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    doc: &'m [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<Annotation<'m>>,
    #[serde(flatten)]
    body: Body<'m>,
}

#[derive(Clone, Copy)]
pub(super) struct Context<'m, 'l> {
    pub(super) model: &'m Model,
    pub(super) lines: &'l Lines<'m>,
}

/// The additional keys of a definition's kind.
#[derive(Serialize)]
#[serde(untagged)]
enum Body<'m> {
    Container {
        contents: Vec<Node<'m>>,
    },
    Interface {
        bases: Names<'m>,
        all_bases: Names<'m>,
        r#abstract: bool,
        local: bool,
        forward_only: bool,
        contents: Vec<Node<'m>>,
    },
    Operation {
        oneway: bool,
        result: Option<Type<'m>>,
        parameters: Vec<Parameter<'m>>,
        raises: Names<'m>,
        context: &'m [String],
    },
    Attribute {
        readonly: bool,
        r#type: Type<'m>,
        get_raises: Names<'m>,
        set_raises: Names<'m>,
    },
    Struct {
        members: Vec<Member<'m>>,
        contents: Vec<Node<'m>>,
    },
    Union {
        discriminator: Type<'m>,
        branches: Vec<Branch<'m>>,
        unlisted: Option<Value<'m>>,
        contents: Vec<Node<'m>>,
    },
    Enumerator {
        ordinal: u32,
    },
    Typed {
        r#type: Type<'m>,
    },
    Const {
        r#type: Type<'m>,
        value: Value<'m>,
    },
    Value {
        custom: bool,
        r#abstract: bool,
        truncatable: bool,
        forward_only: bool,
        bases: Names<'m>,
        all_bases: Names<'m>,
        supports: Names<'m>,
        members: Vec<StateMember<'m>>,
        factories: Vec<Factory<'m>>,
        contents: Vec<Node<'m>>,
    },
    Nothing {},
}

/// Definitions by their scoped names.
type Names<'m> = Vec<&'m str>;

#[derive(Serialize)]
struct Parameter<'m> {
    mode: &'static str,
    name: &'m str,
    r#type: Type<'m>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<Annotation<'m>>,
}

#[derive(Serialize)]
struct Member<'m> {
    name: &'m str,
    r#type: Type<'m>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    doc: &'m [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<Annotation<'m>>,
}

#[derive(Serialize)]
struct Branch<'m> {
    /// The values that select the branch; `None` is `default`.
    labels: Vec<Option<Value<'m>>>,
    #[serde(flatten)]
    member: Member<'m>,
}

#[derive(Serialize)]
struct StateMember<'m> {
    public: bool,
    #[serde(flatten)]
    member: Member<'m>,
}

#[derive(Serialize)]
struct Factory<'m> {
    name: &'m str,
    parameters: Vec<Parameter<'m>>,
    raises: Names<'m>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    doc: &'m [String],
}

#[derive(Serialize)]
struct Annotation<'m> {
    name: &'m str,
    parameters: Vec<AnnotationParameter<'m>>,
}

#[derive(Serialize)]
struct AnnotationParameter<'m> {
    name: Option<&'m str>,
    #[serde(flatten)]
    value: AnnotationView<'m>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum AnnotationView<'m> {
    Value(Value<'m>),
    Word(&'m str),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Type<'m> {
    Basic { kind: &'static str },
    Bounded { kind: &'static str, bound: Option<u32> },
    Sequence { kind: &'static str, element: Box<Type<'m>>, bound: Option<u32> },
    Array { kind: &'static str, element: Box<Type<'m>>, dimensions: &'m [u32] },
    Fixed { kind: &'static str, digits: u16, scale: u16 },
    Named { kind: &'static str, name: &'m str, definition: &'static str },
}

#[derive(Serialize)]
#[serde(tag = "kind", content = "value", rename_all = "lowercase")]
enum Value<'m> {
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Char(char),
    WChar(char),
    String(&'m str),
    WString(&'m str),
    Fixed(String),
    Enumerator(&'m str),
}

/// The kind of a definition: its keyword, except for a boxed value.
fn kind(kind: &DefinitionKind) -> &'static str {
    match kind {
        DefinitionKind::ValueBox(_) => "valuebox",
        kind => kind.keyword(),
    }
}

impl<'m> Context<'m, '_> {
    /// Modules and types nest at most as deep as the parser permits, so recursion is safe.
    pub(super) fn nodes(self, ids: &[DefId]) -> Vec<Node<'m>> {
        ids.iter().map(|&id| self.node(&self.model[id])).collect()
    }

    fn node(self, definition: &'m Definition) -> Node<'m> {
        Node {
            kind: kind(&definition.kind),
            name: &definition.name,
            scoped_name: &definition.scoped_name,
            repository_id: &definition.repository_id,
            at: self.place(definition.span),
            in_main_file: definition.in_main_file,
            doc: &definition.doc,
            annotations: self.annotations(&definition.annotations),
            body: self.body(definition),
        }
    }

    pub(super) fn place(self, span: Span) -> Place {
        let (line, column) = self.lines.line_column(span);
        Place { file: span.file.0, line, column }
    }

    fn body(self, definition: &'m Definition) -> Body<'m> {
        let contents = || self.nodes(self.model.contents(definition.id));
        match &definition.kind {
            DefinitionKind::Module(_) | DefinitionKind::Enum(_) | DefinitionKind::Unmapped(_) => {
                Body::Container { contents: contents() }
            }
            DefinitionKind::Interface(body) => Body::Interface {
                bases: self.names(&body.bases),
                all_bases: self.names(&body.all_bases),
                r#abstract: body.is_abstract,
                local: body.is_local,
                forward_only: body.forward_only,
                contents: contents(),
            },
            DefinitionKind::Operation(body) => Body::Operation {
                oneway: body.oneway,
                result: body.result.as_ref().map(|ty| self.ty(ty)),
                parameters: self.parameters(&body.parameters),
                raises: self.names(&body.raises),
                context: &body.context,
            },
            DefinitionKind::Attribute(body) => Body::Attribute {
                readonly: body.readonly,
                r#type: self.ty(&body.ty),
                get_raises: self.names(&body.get_raises),
                set_raises: self.names(&body.set_raises),
            },
            DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => Body::Struct {
                members: body.members.iter().map(|member| self.member(member)).collect(),
                contents: contents(),
            },
            DefinitionKind::Union(body) => self.union(body, contents()),
            DefinitionKind::Enumerator(body) => Body::Enumerator { ordinal: body.ordinal },
            DefinitionKind::Typedef(body) => Body::Typed { r#type: self.ty(&body.ty) },
            DefinitionKind::ValueBox(body) => Body::Typed { r#type: self.ty(&body.ty) },
            DefinitionKind::Const(body) => Body::Const { r#type: self.ty(&body.ty), value: self.value(&body.value) },
            DefinitionKind::ValueType(body) => self.value_type(body, contents()),
            DefinitionKind::Native => Body::Nothing {},
        }
    }

    fn union(self, body: &'m model::Union, contents: Vec<Node<'m>>) -> Body<'m> {
        let label = |label: &'m Label| match label {
            Label::Value(value) => Some(self.value(value)),
            Label::Default => None,
        };
        let branches = body.branches.iter().map(|branch| Branch {
            labels: branch.labels.iter().map(label).collect(),
            member: self.member(&branch.member),
        });
        Body::Union {
            discriminator: self.ty(&body.discriminator),
            branches: branches.collect(),
            unlisted: body.unlisted.as_ref().map(|value| self.value(value)),
            contents,
        }
    }

    fn value_type(self, body: &'m model::ValueType, contents: Vec<Node<'m>>) -> Body<'m> {
        let members = body.members.iter();
        let members = members.map(|it| StateMember { public: it.is_public, member: self.member(&it.member) });
        let factories = body.factories.iter().map(|factory| Factory {
            name: &factory.name,
            parameters: self.parameters(&factory.parameters),
            raises: self.names(&factory.raises),
            doc: &factory.doc,
        });
        Body::Value {
            custom: body.is_custom,
            r#abstract: body.is_abstract,
            truncatable: body.is_truncatable,
            forward_only: body.forward_only,
            bases: self.names(&body.bases),
            all_bases: self.names(&body.all_bases),
            supports: self.names(&body.supports),
            members: members.collect(),
            factories: factories.collect(),
            contents,
        }
    }

    fn names(self, ids: &[DefId]) -> Names<'m> {
        ids.iter().map(|&id| &*self.model[id].scoped_name).collect()
    }

    fn parameters(self, parameters: &'m [model::Parameter]) -> Vec<Parameter<'m>> {
        let views = parameters.iter().map(|parameter| Parameter {
            mode: match parameter.mode {
                ParameterMode::In => "in",
                ParameterMode::Out => "out",
                ParameterMode::InOut => "inout",
            },
            name: &parameter.name,
            r#type: self.ty(&parameter.ty),
            annotations: self.annotations(&parameter.annotations),
        });
        views.collect()
    }

    fn member(self, member: &'m model::Member) -> Member<'m> {
        Member {
            name: &member.name,
            r#type: self.ty(&member.ty),
            doc: &member.doc,
            annotations: self.annotations(&member.annotations),
        }
    }

    fn annotations(self, annotations: &'m [model::Annotation]) -> Vec<Annotation<'m>> {
        let views = annotations.iter().map(|annotation| {
            let parameters = annotation.parameters.iter().map(|(name, value)| AnnotationParameter {
                name: name.as_deref(),
                value: match value {
                    AnnotationValue::Const(value) => AnnotationView::Value(self.value(value)),
                    AnnotationValue::Name(name) => AnnotationView::Word(name),
                },
            });
            Annotation { name: &annotation.name, parameters: parameters.collect() }
        });
        views.collect()
    }

    fn ty(self, ty: &'m model::Type) -> Type<'m> {
        let basic = |kind| Type::Basic { kind };
        match ty {
            model::Type::Primitive(primitive) => basic(Primitive::keyword(*primitive)),
            model::Type::Object => basic("Object"),
            model::Type::Any => basic("any"),
            model::Type::TypeCode => basic("TypeCode"),
            model::Type::ValueBase => basic("ValueBase"),
            model::Type::AbstractBase => basic("AbstractBase"),
            model::Type::String { bound } => Type::Bounded { kind: "string", bound: *bound },
            model::Type::WString { bound } => Type::Bounded { kind: "wstring", bound: *bound },
            model::Type::Sequence { element, bound } => {
                Type::Sequence { kind: "sequence", element: Box::new(self.ty(element)), bound: *bound }
            }
            model::Type::Array { element, dimensions } => {
                Type::Array { kind: "array", element: Box::new(self.ty(element)), dimensions }
            }
            model::Type::Fixed { digits, scale } => Type::Fixed { kind: "fixed", digits: *digits, scale: *scale },
            model::Type::Named(id) => {
                let named = &self.model[*id];
                Type::Named { kind: "named", name: &named.scoped_name, definition: kind(&named.kind) }
            }
        }
    }

    fn value(self, value: &'m ConstValue) -> Value<'m> {
        match value {
            ConstValue::Integer(value) => Value::Integer(*value),
            ConstValue::Float(value) => Value::Float(*value),
            ConstValue::Boolean(value) => Value::Boolean(*value),
            ConstValue::Char(value) => Value::Char(char::from(*value)),
            ConstValue::WideChar(value) => Value::WChar(*value),
            ConstValue::String(value) => Value::String(value),
            ConstValue::WideString(value) => Value::WString(value),
            ConstValue::Fixed(value) => Value::Fixed(value.to_string()),
            ConstValue::Enumerator(id) => Value::Enumerator(&self.model[*id].scoped_name),
        }
    }
}
