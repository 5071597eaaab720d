//! Annotations (IDL 4.2, 7.4.15): all are kept; standard ones (clause 8) are checked.

use super::checker::Checker;
use super::constants::Target;
use crate::ast::{self, Bodiless, Expression, Item, NewName, Step, StepKind};
use crate::diagnostic::Diagnostic;
use crate::model::{Annotation, AnnotationValue, ConstValue, DefinitionKind};
use crate::source::Span;
use spandrel_error::closest;

/// The kind of a standard annotation's parameter.
#[derive(Clone, Copy)]
enum Takes {
    Boolean,
    Text,
    /// An integer from 0 to this limit.
    Natural(i128),
    /// One of these words.
    Word(&'static [&'static str]),
    Constant,
}

/// A parameter: its name, its kind, and whether it is required.
type Parameter = (&'static str, Takes, bool);

const FLAG: &[Parameter] = &[("value", Takes::Boolean, false)];
const CONSTANT: &[Parameter] = &[("value", Takes::Constant, true)];
const SHORT: &[Parameter] = &[("value", Takes::Natural(u16::MAX as i128), true)];

/// The annotations of IDL 4.2, clause 8.3, with their parameters.
const STANDARD: [(&str, &[Parameter]); 24] = [
    ("id", &[("value", Takes::Natural(u32::MAX as i128), true)]),
    ("autoid", &[("value", Takes::Word(&["SEQUENTIAL", "HASH"]), false)]),
    ("optional", FLAG),
    ("position", SHORT),
    ("value", CONSTANT),
    ("extensibility", &[("value", Takes::Word(&["FINAL", "APPENDABLE", "MUTABLE"]), true)]),
    ("final", &[]),
    ("appendable", &[]),
    ("mutable", &[]),
    ("key", FLAG),
    ("must_understand", FLAG),
    ("default_literal", &[]),
    ("default", CONSTANT),
    ("range", &[("min", Takes::Constant, true), ("max", Takes::Constant, true)]),
    ("min", CONSTANT),
    ("max", CONSTANT),
    ("unit", &[("value", Takes::Text, true)]),
    ("bit_bound", SHORT),
    ("external", FLAG),
    ("nested", FLAG),
    (
        "verbatim",
        &[("language", Takes::Text, false), ("placement", Takes::Word(PLACES), false), ("text", Takes::Text, true)],
    ),
    ("service", &[("platform", Takes::Text, false)]),
    ("oneway", FLAG),
    ("ami", FLAG),
];

const PLACES: &[&str] =
    &["BEGIN_FILE", "BEFORE_DECLARATION", "BEGIN_DECLARATION", "END_DECLARATION", "AFTER_DECLARATION", "END_FILE"];

impl Checker<'_> {
    /// Checks annotated items, and attaches the annotations to each name that they define.
    pub(super) fn annotated(&mut self, written: &[ast::Annotation], items: &[Item]) {
        let annotations = self.annotations(written);
        for item in items {
            match item {
                // `@oneway` is equivalent to the keyword (IDL 4.2, 8.3.6.2).
                Item::Operation(operation) => {
                    let mut operation = operation.clone();
                    operation.oneway = operation.oneway.or_else(|| oneway(written, &annotations));
                    self.operation(&operation);
                }
                item => self.item(item),
            }
            for name in names(item) {
                self.annotate(name, &annotations);
            }
            self.bit_bound(written, &annotations, item);
        }
    }

    /// Checks `@bit_bound` (IDL 4.2, 8.3): of an enum at most 32, and enough for the values of its enumerators.
    fn bit_bound(&mut self, written: &[ast::Annotation], annotations: &[Annotation], item: &Item) {
        let Some(at) = written.iter().find(|it| it.name == "bit_bound") else {
            return;
        };
        let value = |annotations: &[Annotation], name: &str| {
            let annotation = annotations.iter().find(|it| it.name == name)?;
            annotation.parameters.iter().find_map(|(_, value)| match value {
                AnnotationValue::Const(ConstValue::Integer(value)) => Some(*value),
                _ => None,
            })
        };
        let Some(bits) = value(annotations, "bit_bound") else {
            return;
        };
        let Item::Enum(body) = item else {
            if !(1..=64).contains(&bits) {
                let error = Diagnostic::error("`@bit_bound` is out of range").at(at.span, "expected 1 to 64");
                self.report(error);
            }
            return;
        };
        if !(1..=32).contains(&bits) {
            let error = Diagnostic::error("`@bit_bound` of an enum is out of range").at(at.span, "expected 1 to 32");
            return self.report(error);
        }
        for (ordinal, enumerator) in body.enumerators.iter().enumerate() {
            let own = self.declared_before(&enumerator.name);
            let own = own.and_then(|id| value(&self[id].annotations, "value"));
            if own.unwrap_or(ordinal as i128) >= 1 << bits {
                let error = Diagnostic::error(format!("`@bit_bound({bits})` is too small for the enumerators"))
                    .at(enumerator.name.name.span, "this value needs more bits")
                    .also(at.span, "the limit");
                return self.report(error);
            }
        }
    }

    /// Reports a second `@default_literal` in an enum (IDL 4.2, 8.3).
    pub(super) fn one_default_literal(&mut self, item: &ast::EnumItem) {
        let literals = item.enumerators.iter().flat_map(|it| &it.annotations);
        let mut literals = literals.filter(|it| it.name == "default_literal");
        if let (Some(first), Some(second)) = (literals.next(), literals.next()) {
            let error = Diagnostic::error("an enum has two default literals")
                .at(second.span, "the second one")
                .also(first.span, "the first one");
            self.report(error);
        }
    }

    fn annotate(&mut self, name: &NewName, annotations: &[Annotation]) {
        let Some(id) = self.declared_before(name) else {
            return;
        };
        let copies = self.copied(annotations, name.name.span);
        self.definitions[id.index()].annotations.extend(copies);
    }

    /// A copy of the annotations for a further name in a list, within the budget of copies.
    pub(super) fn copied(&mut self, annotations: &[Annotation], span: Span) -> Vec<Annotation> {
        let octets: usize = annotations.iter().map(cost).sum();
        match self.pay(octets, span) {
            Some(()) => annotations.to_vec(),
            None => Vec::new(),
        }
    }

    /// The annotations, computed and checked.
    pub(super) fn annotations(&mut self, written: &[ast::Annotation]) -> Vec<Annotation> {
        written.iter().filter_map(|it| self.annotation(it)).collect()
    }

    fn annotation(&mut self, written: &ast::Annotation) -> Option<Annotation> {
        let standard = STANDARD.iter().find(|(name, _)| *name == written.name);
        if standard.is_none()
            && let Some(near) = closest(&written.name, STANDARD.iter().map(|it| it.0))
        {
            let warning = Diagnostic::warning(format!("unknown annotation `@{}`", written.name))
                .at(written.span, "kept without a check")
                .help(format!("did you mean `@{near}`?"));
            self.report(warning);
        }
        let mut parameters = Vec::new();
        for (name, value) in &written.parameters {
            let name = name.map(|name| self.text(name.symbol).to_string());
            let parameter_kind = match standard {
                Some((_, declared_parameters)) => {
                    Some(self.parameter(written, declared_parameters, name.as_deref(), value.span)?)
                }
                None => None,
            };
            parameters.push((name, self.annotation_value(value, parameter_kind)?));
        }
        if let Some((_, declared_parameters)) = standard {
            self.missing_parameters(written, declared_parameters, &parameters)?;
        }
        Some(Annotation { name: written.name.clone(), parameters })
    }

    /// The kind of the parameter with this name; without a name it is the only one.
    fn parameter(
        &mut self,
        written: &ast::Annotation,
        declared_parameters: &[Parameter],
        name: Option<&str>,
        span: Span,
    ) -> Option<Takes> {
        let annotation = &written.name;
        let problem = match (name, declared_parameters) {
            (None, [(_, takes, _)]) if written.parameters.len() == 1 => return Some(*takes),
            (_, []) => format!("`@{annotation}` takes no parameter"),
            (None, _) => format!("the parameters of `@{annotation}` must be named"),
            (Some(name), _) => {
                let named =
                    |it: &&(Option<ast::Name>, Expression)| it.0.is_some_and(|it| &*self.text(it.symbol) == name);
                let times = written.parameters.iter().filter(named).count();
                match declared_parameters.iter().find(|it| it.0 == name) {
                    Some((_, takes, _)) if times == 1 => return Some(*takes),
                    Some(_) => format!("`{name}` is given twice"),
                    None => format!("`@{annotation}` has no parameter `{name}`"),
                }
            }
        };
        let names: Vec<&str> = declared_parameters.iter().map(|it| it.0).collect();
        let mut error = Diagnostic::error(problem).at(span, "");
        if !names.is_empty() {
            error = error.note(format!("its parameters: {}", names.join(", ")));
        }
        self.report(error);
        None
    }

    fn missing_parameters(
        &mut self,
        written: &ast::Annotation,
        declared_parameters: &[Parameter],
        arguments: &[(Option<String>, AnnotationValue)],
    ) -> Option<()> {
        let has_argument =
            |parameter: &str| arguments.iter().any(|(name, _)| name.as_deref().is_none_or(|name| name == parameter));
        let mut missing = declared_parameters.iter().filter(|(name, _, required)| *required && !has_argument(name));
        let Some((name, ..)) = missing.next() else {
            return Some(());
        };
        let message = format!("`@{}` needs the parameter `{name}`", written.name);
        self.report(Diagnostic::error(message).at(written.span, ""));
        None
    }

    fn annotation_value(&mut self, value: &Expression, takes: Option<Takes>) -> Option<AnnotationValue> {
        let target = match takes {
            None | Some(Takes::Constant) => return self.free_value(value),
            Some(Takes::Word(words)) => return self.word(value, words),
            Some(Takes::Boolean) => Target::Boolean,
            Some(Takes::Text) => Target::String { bound: None },
            Some(Takes::Natural(most)) => Target::natural(most),
        };
        self.evaluate(value, target).map(AnnotationValue::Const)
    }

    fn word(&mut self, value: &Expression, words: &[&str]) -> Option<AnnotationValue> {
        if let Some(text) = self.bare_name(value).filter(|it| words.contains(&it.as_str())) {
            return Some(AnnotationValue::Name(text));
        }
        let error = Diagnostic::error(format!("expected one of {}", words.join(", "))).at(value.span, "");
        self.report(error);
        None
    }

    /// A value of any type, determined by its first operand, or a name that is not a constant.
    fn free_value(&mut self, value: &Expression) -> Option<AnnotationValue> {
        let first = value.steps.first()?;
        let target = match &first.kind {
            StepKind::Name(name) => match self.try_resolve(name) {
                Ok(None) => return None,
                Ok(Some(id)) => match &self[id].kind {
                    DefinitionKind::Const(constant) => self.target(&constant.ty.clone())?,
                    DefinitionKind::Enumerator(enumerator) => Target::Enum(enumerator.of),
                    _ => return self.bare_name(value).map(AnnotationValue::Name),
                },
                Err(not_found) => match self.bare_name(value) {
                    Some(name) => return Some(AnnotationValue::Name(name)),
                    None => {
                        self.report_not_found(name, &not_found);
                        return None;
                    }
                },
            },
            _ => literal_target(first)?,
        };
        self.evaluate(value, target).map(AnnotationValue::Const)
    }

    /// The name, if the expression consists of one.
    fn bare_name(&self, value: &Expression) -> Option<String> {
        let [Step { kind: StepKind::Name(name), .. }] = &value.steps[..] else {
            return None;
        };
        let parts: Vec<_> = name.parts.iter().map(|it| self.text(it.symbol)).collect();
        Some(parts.join("::"))
    }
}

/// The widest type of a literal.
fn literal_target(literal: &Step) -> Option<Target> {
    let target = match &literal.kind {
        StepKind::Integer(_) => Target::any_integer(),
        StepKind::Float(_) => Target::Float { single: false },
        StepKind::Boolean(_) => Target::Boolean,
        StepKind::Char(_) => Target::Char,
        StepKind::WideChar(_) => Target::WideChar,
        StepKind::String(_) => Target::String { bound: None },
        StepKind::WideString(_) => Target::WideString { bound: None },
        StepKind::Fixed(_) => Target::Fixed { size: None },
        StepKind::Name(_) | StepKind::Malformed | StepKind::Unary(_) | StepKind::Binary(_) => return None,
    };
    Some(target)
}

/// The position of `@oneway` among the annotations, unless its value is `FALSE`.
fn oneway(written: &[ast::Annotation], annotations: &[Annotation]) -> Option<Span> {
    let annotation = annotations.iter().find(|it| it.name == "oneway")?;
    let off = annotation.parameters.iter().any(|it| it.1 == AnnotationValue::Const(ConstValue::Boolean(false)));
    written.iter().find(|it| it.name == "oneway" && !off).map(|it| it.span)
}

/// The approximate octets of a copy.
fn cost(annotation: &Annotation) -> usize {
    let value = |value: &AnnotationValue| match value {
        AnnotationValue::Const(ConstValue::String(text) | ConstValue::WideString(text)) => text.len(),
        AnnotationValue::Name(name) => name.len(),
        AnnotationValue::Const(_) => 0,
    };
    let parameters = annotation.parameters.iter();
    64 + annotation.name.len()
        + parameters.map(|it| 64 + it.0.as_ref().map_or(0, String::len) + value(&it.1)).sum::<usize>()
}

/// The names that an item defines.
fn names(item: &Item) -> Vec<&NewName> {
    match item {
        Item::Module { name, .. }
        | Item::Interface { name, .. }
        | Item::StructForward { name }
        | Item::UnionForward { name }
        | Item::Native { name }
        | Item::Const { name, .. } => vec![name],
        Item::Operation(operation) => vec![&operation.name],
        Item::Attribute { names, .. } => names.iter().collect(),
        Item::Struct(body) => vec![&body.name],
        Item::Union(body) => vec![&body.name],
        Item::Enum(body) => vec![&body.name],
        Item::Typedef { declarators, .. } => declarators.iter().map(|it| &it.name).collect(),
        Item::Value(value) => vec![&value.name],
        Item::Bodiless(Bodiless::Forward { name, .. } | Bodiless::Boxed { name, .. }) => vec![name],
        Item::State { .. }
        | Item::Factory(_)
        | Item::Annotated { .. }
        | Item::Broken { .. }
        | Item::PragmaId { .. }
        | Item::PragmaVersion { .. }
        | Item::Port(_)
        | Item::Declaration(_) => Vec::new(),
        Item::Unmapped(item) => vec![&item.name],
    }
}
