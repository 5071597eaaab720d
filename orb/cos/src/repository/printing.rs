//! A repository as IDL.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use spandrel_cdr::{Any, TcKind, TypeCode};
use spandrel_giop::SystemException;
use spandrel_orb::ObjectRef;

use super::client::{call, is_unknown_operation};
use super::constants;
use super::identifier::identifier;
use crate::repository::corba::{
    self, AttributeMode, DefinitionKind, OperationMode, ParameterMode, container,
    ext_value_def::ExtFullValueDescription, value_def::FullValueDescription,
};
use crate::repository::interface_repository::PartDocumentation;

/// The deepest nesting of definitions that is printed.
const MAX_DEPTH: usize = 64;

/// The reason why definitions of a repository cannot be printed as IDL.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrintError {
    /// The repository raised an exception.
    #[error("cannot read the interface repository")]
    Call(#[from] SystemException),
    /// A definition has no form in IDL.
    #[error("`{name}` cannot be printed as IDL: {reason}")]
    Unsupported {
        /// The absolute name of the definition.
        name: String,
        /// The cause, worded to end the error message.
        reason: String,
    },
    /// No definition has the name of the scope.
    #[error("the interface repository has no definition `{0}`")]
    Unknown(String),
}

/// Prints the definitions of a repository, or of one scope with all that it needs, as IDL. The IDL compiles to the same
/// repository ids and types. A scope is an absolute name, such as `Bank` or `::Bank::Account`.
///
/// # Errors
/// [`PrintError`].
pub fn print(repository: &ObjectRef, scope: Option<&str>) -> Result<String, PrintError> {
    let mut printer = Printer { is_documented: true, ..Printer::default() };
    printer.collect(repository, "", 0)?;
    let scoped_name = scope.map(|scope| format!("::{}", scope.trim_start_matches("::")));
    let mut order = Vec::new();
    for (index, unit) in printer.units.iter().enumerate() {
        let is_wanted =
            |scoped_name: &String| unit.defines(scoped_name) || unit.path.starts_with(&format!("{scoped_name}::"));
        if scoped_name.as_ref().is_none_or(is_wanted) {
            order.push(index);
        }
    }
    match scope {
        Some(scope) if order.is_empty() => return Err(PrintError::Unknown(scope.to_owned())),
        _ => {}
    }
    for index in order {
        printer.emit(index)?;
    }
    printer.complete()?;
    Ok(printer.finish())
}

/// A definition directly in a module or in no module.
#[derive(Debug)]
struct Unit {
    /// Its absolute name, such as `::Bank::Account`.
    path: String,
    id: String,
    object: ObjectRef,
    kind: DefinitionKind,
    value: Any,
    /// The definitions inside it, in order.
    nested: Vec<Unit>,
}

impl Unit {
    /// Whether it or a definition inside it has this absolute name.
    fn defines(&self, path: &str) -> bool {
        self.path == path || self.nested.iter().any(|nested| nested.defines(path))
    }
}

/// A piece of output in a module.
#[derive(Debug)]
struct Piece {
    modules: Vec<String>,
    text: String,
    prefix: String,
    ids: Vec<(String, String)>,
}

#[derive(Debug, Default)]
struct Printer {
    units: Vec<Arc<Unit>>,
    /// The absolute name of each repository id.
    names: HashMap<String, String>,
    /// The unit that defines a repository id.
    owners: HashMap<String, usize>,
    /// The ids and documentation of modules.
    modules: BTreeMap<String, (String, String)>,
    documented_modules: HashSet<String>,
    is_documented: bool,
    emitted: HashSet<usize>,
    in_progress: HashSet<usize>,
    /// The units with a forward declaration, in order.
    forward: Vec<usize>,
    is_forward: HashSet<usize>,
    pieces: Vec<Piece>,
}

type Printed<T> = Result<T, PrintError>;

impl Printer {
    /// Reads the contents of a module or of the repository.
    fn collect(&mut self, container: &ObjectRef, path: &str, depth: usize) -> Printed<()> {
        for unit in read(container, path, depth)? {
            if unit.kind != DefinitionKind::DkModule {
                let index = self.units.len();
                self.register(&unit, index);
                self.units.push(Arc::new(unit));
                continue;
            }
            let documentation = self.documentation(&unit.object)?;
            self.modules.insert(unit.path.clone(), (unit.id.clone(), documentation));
            self.collect(&unit.object, &unit.path, depth + 1)?;
        }
        Ok(())
    }

    fn register(&mut self, unit: &Unit, index: usize) {
        self.names.insert(unit.id.clone(), unit.path.clone());
        self.owners.insert(unit.id.clone(), index);
        unit.nested.iter().for_each(|nested| self.register(nested, index));
    }

    fn documentation(&mut self, object: &ObjectRef) -> Printed<String> {
        if !self.is_documented {
            return Ok(String::new());
        }
        match call(object, "_get_documentation", &[]) {
            Err(error) if is_unknown_operation(&error) => {
                self.is_documented = false;
                Ok(String::new())
            }
            other => Ok(other?),
        }
    }

    fn parts(&self, object: &ObjectRef) -> Printed<HashMap<String, String>> {
        if !self.is_documented {
            return Ok(HashMap::new());
        }
        let parts: Vec<PartDocumentation> = call(object, "_get_part_documentation", &[])?;
        Ok(parts.into_iter().map(|it| (it.name, it.text)).collect())
    }

    /// Prints a unit after those that it needs.
    fn emit(&mut self, index: usize) -> Printed<()> {
        if self.emitted.contains(&index) || !self.in_progress.insert(index) {
            return Ok(());
        }
        let mut needs = Vec::new();
        needs_of(&self.units[index], &mut needs)?;
        let mut following = Vec::new();
        for (id, is_whole) in needs {
            let Some(&owner) = self.owners.get(&id) else { continue };
            if owner == index || self.emitted.contains(&owner) {
                continue;
            }
            let is_direct = self.units[owner].id == id;
            let may_wait = matches!(
                self.units[owner].kind,
                DefinitionKind::DkInterface
                    | DefinitionKind::DkAbstractInterface
                    | DefinitionKind::DkLocalInterface
                    | DefinitionKind::DkValue
            );
            // An alias of a sequence, within which it occurs itself: the struct or union follows.
            let follows = self.units[index].kind == DefinitionKind::DkAlias
                && matches!(self.units[owner].kind, DefinitionKind::DkStruct | DefinitionKind::DkUnion)
                && extracted::<corba::TypeDescription>(&self.units[owner])
                    .is_ok_and(|it| mentions(&it.r#type, &self.units[index].id, &mut HashSet::new()));
            if is_direct && (self.in_progress.contains(&owner) || follows || may_wait && !is_whole) {
                self.declare_forward(owner);
                following.extend(Some(owner).filter(|_| follows));
            } else {
                self.emit(owner)?;
            }
        }
        let unit = Arc::clone(&self.units[index]);
        let text = self.definition(&unit, 0);
        let mut ids = Vec::new();
        collect_ids(&unit, &mut ids);
        let (modules, prefix) = self.place(index);
        self.pieces.push(Piece { modules, text: text?, prefix, ids });
        self.in_progress.remove(&index);
        self.emitted.insert(index);
        // The alias can be used once its struct or union is complete.
        following.into_iter().try_for_each(|owner| self.emit(owner))
    }

    /// Prints what has only a forward declaration yet: its state and its bases belong to what others need.
    fn complete(&mut self) -> Printed<()> {
        let mut at = 0;
        while let Some(&index) = self.forward.get(at) {
            self.emit(index)?;
            at += 1;
        }
        Ok(())
    }

    fn declare_forward(&mut self, index: usize) {
        if !self.is_forward.insert(index) {
            return;
        }
        self.forward.push(index);
        let unit = &self.units[index];
        let name = identifier(simple(&unit.path));
        let keyword = match unit.kind {
            DefinitionKind::DkInterface => "interface",
            DefinitionKind::DkAbstractInterface => "abstract interface",
            DefinitionKind::DkLocalInterface => "local interface",
            DefinitionKind::DkValue => match unit.value.extract::<corba::ValueDescription>() {
                Ok(it) if it.is_abstract => "abstract valuetype",
                _ => "valuetype",
            },
            DefinitionKind::DkUnion => "union",
            DefinitionKind::DkStruct => "struct",
            _ => return,
        };
        let text = format!("{keyword} {name};\n");
        let ids = vec![(unit.path.clone(), unit.id.clone())];
        let (modules, prefix) = self.place(index);
        self.pieces.push(Piece { modules, text, prefix, ids });
    }

    /// The modules around a unit, and the prefix of its repository id. An id of another form has that of its modules.
    fn place(&self, index: usize) -> (Vec<String>, String) {
        let unit = &self.units[index];
        let mut modules: Vec<String> = unit.path.split("::").skip(1).map(str::to_owned).collect();
        modules.pop();
        let prefix = prefix_of(&unit.id, &unit.path).or_else(|| {
            let outer = format!("::{}", modules.first()?);
            prefix_of(&self.modules.get(&outer)?.0, &outer)
        });
        (modules, prefix.unwrap_or_default())
    }

    fn finish(&mut self) -> String {
        let mut out = String::new();
        let mut open: Vec<String> = Vec::new();
        let mut prefix = String::new();
        let mut ids: HashSet<String> = HashSet::new();
        for piece in std::mem::take(&mut self.pieces) {
            let shared = open.iter().zip(&piece.modules).take_while(|(one, other)| one == other).count();
            let shared = if prefix == piece.prefix { shared } else { 0 };
            while open.len() > shared {
                open.pop();
                out.push_str(&"  ".repeat(open.len()));
                out.push_str("};\n");
            }
            if prefix != piece.prefix {
                _ = writeln!(out, "#pragma prefix \"{}\"", piece.prefix);
                prefix.clone_from(&piece.prefix);
            }
            for module in &piece.modules[shared..] {
                let indent = "  ".repeat(open.len());
                open.push(module.clone());
                let path = format!("::{}", open.join("::"));
                let (id, documentation) = self.modules.get(&path).cloned().unwrap_or_default();
                if self.documented_modules.insert(path.clone()) {
                    out.push_str(&comment(&documentation, &indent));
                }
                _ = writeln!(out, "{indent}module {} {{", identifier(module));
                if ids.insert(id.clone()) && id != expected_id(&prefix, &path) {
                    _ = writeln!(out, "#pragma ID {path} \"{id}\"");
                }
            }
            let indent = "  ".repeat(open.len());
            for line in piece.text.lines() {
                _ = writeln!(out, "{indent}{line}");
            }
            for (path, id) in piece.ids {
                if id != expected_id(&prefix, &path) {
                    _ = writeln!(out, "#pragma ID {path} \"{id}\"");
                }
            }
        }
        while open.pop().is_some() {
            out.push_str(&"  ".repeat(open.len()));
            out.push_str("};\n");
        }
        out
    }

    /// A definition with its comments, without the indentation of its modules.
    fn definition(&mut self, unit: &Unit, depth: usize) -> Printed<String> {
        let documentation = self.documentation(&unit.object)?;
        Ok(comment(&documentation, &"  ".repeat(depth)) + &self.body(unit, depth)?)
    }

    /// A definition without the comment before it.
    fn body(&mut self, unit: &Unit, depth: usize) -> Printed<String> {
        let indent = "  ".repeat(depth);
        let mut out = String::new();
        let name = identifier(simple(&unit.path));
        match unit.kind {
            DefinitionKind::DkConstant => {
                let it: corba::ConstantDescription = extracted(unit)?;
                let enumerator = |type_code: &TypeCode, ordinal| self.enumerator(type_code, ordinal);
                let value =
                    constants::to_idl(&it.value, &enumerator).map_err(|error| unsupported(unit, error.to_string()))?;
                let spec = match it.r#type.kind() {
                    // The digits of a constant are those of its value (IDL 4.2, 7.4.13.4.4).
                    TcKind::Fixed => "fixed".to_owned(),
                    _ => self.spec(&it.r#type),
                };
                _ = writeln!(out, "{indent}const {spec} {name} = {value};");
            }
            DefinitionKind::DkException => {
                let it: corba::ExceptionDescription = extracted(unit)?;
                self.structure(&mut out, unit, "exception", &name, &it.r#type, depth)?;
            }
            DefinitionKind::DkAttribute => out.push_str(&self.attribute(unit, &indent)?),
            DefinitionKind::DkOperation => out.push_str(&self.operation(unit, &indent)?),
            DefinitionKind::DkInterface | DefinitionKind::DkAbstractInterface | DefinitionKind::DkLocalInterface => {
                let it: corba::InterfaceDescription = extracted(unit)?;
                let keyword = match unit.kind {
                    DefinitionKind::DkAbstractInterface => "abstract interface",
                    DefinitionKind::DkLocalInterface => "local interface",
                    _ => "interface",
                };
                let bases = self.listed(" : ", &it.base_interfaces);
                _ = writeln!(out, "{indent}{keyword} {name}{bases} {{");
                for nested in &unit.nested {
                    out.push_str(&self.definition(nested, depth + 1)?);
                }
                _ = writeln!(out, "{indent}}};");
            }
            DefinitionKind::DkValue => self.value(&mut out, unit, &name, depth)?,
            DefinitionKind::DkValueMember => {}
            _ => {
                let it: corba::TypeDescription = extracted(unit)?;
                self.named_type(&mut out, unit, &name, &it.r#type, depth)?;
            }
        }
        Ok(out)
    }

    fn named_type(
        &mut self,
        out: &mut String,
        unit: &Unit,
        name: &str,
        type_code: &TypeCode,
        depth: usize,
    ) -> Printed<()> {
        let indent = &"  ".repeat(depth);
        let broken = |error: spandrel_cdr::TypeCodeError| unsupported(unit, error.to_string());
        match type_code.kind() {
            TcKind::Struct => self.structure(out, unit, "struct", name, type_code, depth)?,
            TcKind::Enum => {
                let parts = self.parts(&unit.object)?;
                _ = writeln!(out, "{indent}enum {name} {{");
                let count = type_code.member_count().map_err(broken)?;
                for index in 0..count {
                    let member = type_code.member_name(index).map_err(broken)?;
                    out.push_str(&comment(parts.get(member).map_or("", |it| it), &format!("{indent}  ")));
                    let comma = if index + 1 < count { "," } else { "" };
                    _ = writeln!(out, "{indent}  {}{comma}", identifier(member));
                }
                _ = writeln!(out, "{indent}}};");
            }
            TcKind::Union => self.union(out, unit, name, type_code, depth)?,
            TcKind::Alias => {
                let content = type_code.content_type().map_err(broken)?;
                _ = writeln!(out, "{indent}typedef {};", self.declared(&content, simple(&unit.path)));
            }
            TcKind::ValueBox => {
                let content = type_code.content_type().map_err(broken)?;
                _ = writeln!(out, "{indent}valuetype {name} {};", self.spec(&content));
            }
            TcKind::Native => _ = writeln!(out, "{indent}native {name};"),
            other => return Err(unsupported(unit, format!("it is a type of kind {other:?}"))),
        }
        Ok(())
    }

    fn union(&mut self, out: &mut String, unit: &Unit, name: &str, type_code: &TypeCode, depth: usize) -> Printed<()> {
        let broken = |error: spandrel_cdr::TypeCodeError| unsupported(unit, error.to_string());
        let indent = "  ".repeat(depth);
        let parts = self.parts(&unit.object)?;
        let mut inner = InnerTypes::new(unit);
        let discriminator = type_code.discriminator_type().map_err(broken)?;
        let switch = self.spec_within(&discriminator, &mut inner, depth)?;
        _ = writeln!(out, "{indent}union {name} switch ({switch}) {{");
        let count = type_code.member_count().map_err(broken)?;
        for index in 0..count {
            let member = type_code.member_name(index).map_err(broken)?;
            if index == 0 || type_code.member_name(index - 1).ok() != Some(member) {
                out.push_str(&comment(parts.get(member).map_or("", |it| it), &format!("{indent}  ")));
            }
            let enumerator = |type_code: &TypeCode, ordinal| self.enumerator(type_code, ordinal);
            let label =
                constants::label_to_idl(type_code.member_label(index).map_err(broken)?, &discriminator, &enumerator);
            let label = label.map_or("default:".to_owned(), |label| format!("case {label}:"));
            // Consecutive members of one name are the labels of one branch.
            if index + 1 < count && type_code.member_name(index + 1).ok() == Some(member) {
                _ = writeln!(out, "{indent}  {label}");
            } else {
                let ty = type_code.member_type(index).map_err(broken)?;
                let declared = self.declared_within(&ty, member, &mut inner, depth + 1)?;
                _ = writeln!(out, "{indent}  {label} {declared};");
            }
        }
        _ = writeln!(out, "{indent}}};");
        inner.finish()
    }

    fn structure(
        &mut self,
        out: &mut String,
        unit: &Unit,
        keyword: &str,
        name: &str,
        type_code: &TypeCode,
        depth: usize,
    ) -> Printed<()> {
        let broken = |error: spandrel_cdr::TypeCodeError| unsupported(unit, error.to_string());
        let indent = "  ".repeat(depth);
        let parts = self.parts(&unit.object)?;
        let mut inner = InnerTypes::new(unit);
        _ = writeln!(out, "{indent}{keyword} {name} {{");
        for index in 0..type_code.member_count().map_err(broken)? {
            let (member, ty) =
                (type_code.member_name(index).map_err(broken)?, type_code.member_type(index).map_err(broken)?);
            out.push_str(&comment(parts.get(member).map_or("", |it| it), &format!("{indent}  ")));
            let declared = self.declared_within(&ty, member, &mut inner, depth + 1)?;
            _ = writeln!(out, "{indent}  {declared};");
        }
        _ = writeln!(out, "{indent}}};");
        inner.finish()
    }

    fn attribute(&self, unit: &Unit, indent: &str) -> Printed<String> {
        let it = match call::<corba::ExtAttributeDescription>(&unit.object, "describe_attribute", &[]) {
            Err(error) if is_unknown_operation(&error) => {
                let it: corba::AttributeDescription = extracted(unit)?;
                let (r#type, mode) = (it.r#type, it.mode);
                corba::ExtAttributeDescription { r#type, mode, ..corba::ExtAttributeDescription::default() }
            }
            other => other?,
        };
        let is_readonly = it.mode == AttributeMode::AttrReadonly;
        let ids =
            |exceptions: &[corba::ExceptionDescription]| exceptions.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
        let get = self.raised(if is_readonly { " raises" } else { " getraises" }, &ids(&it.get_exceptions));
        let set = self.raised(" setraises", &ids(&it.put_exceptions));
        let readonly = if is_readonly { "readonly " } else { "" };
        let (spec, name) = (self.spec(&it.r#type), identifier(simple(&unit.path)));
        Ok(format!("{indent}{readonly}attribute {spec} {name}{get}{set};\n"))
    }

    fn operation(&self, unit: &Unit, indent: &str) -> Printed<String> {
        let it: corba::OperationDescription = extracted(unit)?;
        let oneway = if it.mode == OperationMode::OpOneway { "oneway " } else { "" };
        let parameters = it.parameters.iter().map(|parameter| {
            let mode = match parameter.mode {
                ParameterMode::ParamIn => "in",
                ParameterMode::ParamOut => "out",
                ParameterMode::ParamInout => "inout",
            };
            format!("{mode} {} {}", self.spec(&parameter.r#type), identifier(&parameter.name))
        });
        let parameters = parameters.collect::<Vec<_>>().join(", ");
        let raises = self.raised(" raises", &it.exceptions.iter().map(|it| it.id.clone()).collect::<Vec<_>>());
        let contexts = it.contexts.iter().map(|it| format!("\"{it}\"")).collect::<Vec<_>>().join(", ");
        let context = if contexts.is_empty() { String::new() } else { format!(" context ({contexts})") };
        let (result, name) = (self.spec(&it.result), identifier(simple(&unit.path)));
        Ok(format!("{indent}{oneway}{result} {name}({parameters}){raises}{context};\n"))
    }

    fn value(&mut self, out: &mut String, unit: &Unit, name: &str, depth: usize) -> Printed<()> {
        let it = described_value(&unit.object)?;
        let indent = "  ".repeat(depth);
        let keyword = match (it.is_abstract, it.is_custom) {
            (true, _) => "abstract valuetype",
            (_, true) => "custom valuetype",
            _ => "valuetype",
        };
        let mut bases: Vec<String> = Some(it.base_value).filter(|base| !base.is_empty()).into_iter().collect();
        bases.extend(it.abstract_base_values);
        let truncatable = if it.is_truncatable { " : truncatable " } else { " : " };
        let inherited = self.listed(truncatable, &bases);
        let supported = self.listed(" supports ", &it.supported_interfaces);
        let parts = self.parts(&unit.object)?;
        _ = writeln!(out, "{indent}{keyword} {name}{inherited}{supported} {{");
        for nested in &unit.nested {
            out.push_str(&self.definition(nested, depth + 1)?);
        }
        for member in &it.members {
            out.push_str(&comment(parts.get(&member.name).map_or("", |it| it), &format!("{indent}  ")));
            let access = if member.access == 1 { "public" } else { "private" };
            _ = writeln!(out, "{indent}  {access} {};", self.declared(&member.r#type, &member.name));
        }
        for factory in &it.initializers {
            out.push_str(&comment(parts.get(&factory.name).map_or("", |it| it), &format!("{indent}  ")));
            let parameters = factory.members.iter();
            let parameters = parameters.map(|it| format!("in {} {}", self.spec(&it.r#type), identifier(&it.name)));
            let parameters = parameters.collect::<Vec<_>>().join(", ");
            let raises = self.raised(" raises", &factory.exceptions.iter().map(|it| it.id.clone()).collect::<Vec<_>>());
            _ = writeln!(out, "{indent}  factory {}({parameters}){raises};", identifier(&factory.name));
        }
        _ = writeln!(out, "{indent}}};");
        Ok(())
    }

    /// The absolute name of the definition with this id.
    fn name(&self, id: &str) -> String {
        match self.names.get(id) {
            Some(path) => path.split("::").map(identifier).collect::<Vec<_>>().join("::"),
            None => id.to_owned(),
        }
    }

    fn listed(&self, lead: &str, ids: &[String]) -> String {
        let names: Vec<String> = ids.iter().map(|id| self.name(id)).collect();
        if names.is_empty() { String::new() } else { format!("{lead}{}", names.join(", ")) }
    }

    fn raised(&self, lead: &str, ids: &[String]) -> String {
        let names = self.listed("", ids);
        if names.is_empty() { names } else { format!("{lead} ({names})") }
    }

    /// An enumerator: it is in the scope around its enum.
    fn enumerator(&self, type_code: &TypeCode, ordinal: u32) -> String {
        let path = type_code.id().ok().and_then(|id| self.names.get(id)).map_or("", |path| path);
        let scope = path.rsplit_once("::").map_or("", |(scope, _)| scope);
        let name = type_code.member_name(ordinal as usize).unwrap_or_default();
        let scope = scope.split("::").map(identifier).collect::<Vec<_>>().join("::");
        format!("{scope}::{}", identifier(name))
    }

    /// A type as IDL, other than an array.
    fn spec(&self, type_code: &TypeCode) -> String {
        let content = || type_code.content_type().map(|content| self.spec(&content)).unwrap_or_default();
        match type_code.kind() {
            TcKind::Sequence => match type_code.length() {
                Ok(bound) if bound > 0 => format!("sequence<{}, {bound}>", content()),
                _ => format!("sequence<{}>", content()),
            },
            _ => match type_code.id().ok().and_then(|id| self.names.get(id)) {
                Some(_) => self.name(type_code.id().unwrap_or_default()),
                None => type_code.type_spec().to_string(),
            },
        }
    }

    /// A declaration of this type and name, with the dimensions of an array.
    fn declared(&self, type_code: &TypeCode, name: &str) -> String {
        let (element, dimensions) = element_and_dimensions(type_code);
        format!("{} {}{dimensions}", self.spec(&element), identifier(name))
    }

    /// As [`Self::declared`], with the definition of a type that is declared by this member.
    fn declared_within(
        &mut self,
        type_code: &TypeCode,
        name: &str,
        inner: &mut InnerTypes<'_>,
        depth: usize,
    ) -> Printed<String> {
        let (element, dimensions) = element_and_dimensions(type_code);
        Ok(format!("{} {}{dimensions}", self.spec_within(&element, inner, depth)?, identifier(name)))
    }

    /// As [`Self::spec`], with the definition at the first use of a type that the struct, union or exception declares.
    fn spec_within(&mut self, type_code: &TypeCode, inner: &mut InnerTypes<'_>, depth: usize) -> Printed<String> {
        match type_code.id().ok().and_then(|id| inner.take(id)) {
            Some(unit) => Ok(self.body(unit, depth)?.trim().trim_end_matches(';').to_owned()),
            None => Ok(self.spec(type_code)),
        }
    }
}

/// The types that are declared in a struct, union or exception, and not printed yet.
struct InnerTypes<'u> {
    waiting: Vec<&'u Unit>,
}

impl<'u> InnerTypes<'u> {
    fn new(unit: &'u Unit) -> Self {
        Self { waiting: unit.nested.iter().collect() }
    }

    fn take(&mut self, id: &str) -> Option<&'u Unit> {
        let index = self.waiting.iter().position(|it| it.id == id)?;
        Some(self.waiting.remove(index))
    }

    fn finish(self) -> Printed<()> {
        match self.waiting.first() {
            Some(unit) => {
                Err(unsupported(unit, "no member has this type, and IDL declares it with a member".to_owned()))
            }
            None => Ok(()),
        }
    }
}

fn unsupported(unit: &Unit, reason: String) -> PrintError {
    PrintError::Unsupported { name: unit.path.clone(), reason }
}

fn element_and_dimensions(type_code: &TypeCode) -> (TypeCode, String) {
    let (mut type_code, mut dimensions) = (type_code.clone(), String::new());
    while type_code.kind() == TcKind::Array {
        _ = write!(dimensions, "[{}]", type_code.length().unwrap_or_default());
        let Ok(content) = type_code.content_type() else { break };
        type_code = content;
    }
    (type_code, dimensions)
}

fn extracted<T: spandrel_cdr::Decode + spandrel_cdr::Typed>(unit: &Unit) -> Printed<T> {
    unit.value.extract().map_err(|error| unsupported(unit, error.to_string()))
}

/// The contents of a container with their descriptions.
fn read(container: &ObjectRef, path: &str, depth: usize) -> Printed<Vec<Unit>> {
    if depth > MAX_DEPTH {
        let reason = format!("definitions are nested more than {MAX_DEPTH} deep");
        return Err(PrintError::Unsupported { name: path.to_owned(), reason });
    }
    let arguments: [&dyn spandrel_cdr::Encode; 3] = [&DefinitionKind::DkAll, &true, &-1_i32];
    let described: Vec<container::Description> = match call(container, "describe_contents", &arguments) {
        // Structs, unions and exceptions are containers since CORBA 2.3.
        Err(error) if depth > 0 && is_unknown_operation(&error) => Vec::new(),
        other => other?,
    };
    let mut units = Vec::new();
    for container::Description { contained_object, kind, value } in described {
        let Some(object) = contained_object else { continue };
        let object = ObjectRef::from(object);
        // The first two members of each description are the name and the id (14.5).
        let mut input = value.members();
        let name = input.str().map_err(SystemException::from)?.into_owned();
        let id = input.str().map_err(SystemException::from)?.into_owned();
        let path = format!("{path}::{name}");
        let has_contents = matches!(
            kind,
            DefinitionKind::DkInterface
                | DefinitionKind::DkAbstractInterface
                | DefinitionKind::DkLocalInterface
                | DefinitionKind::DkValue
                | DefinitionKind::DkStruct
                | DefinitionKind::DkUnion
                | DefinitionKind::DkException
        );
        let nested = if has_contents { read(&object, &path, depth + 1)? } else { Vec::new() };
        units.push(Unit { path, id, object, kind, value, nested });
    }
    Ok(units)
}

fn described_value(object: &ObjectRef) -> Printed<ExtFullValueDescription> {
    match call::<ExtFullValueDescription>(object, "describe_ext_value", &[]) {
        Err(error) if is_unknown_operation(&error) => {
            let it: FullValueDescription = call(object, "describe_value", &[])?;
            let initializers = it.initializers.into_iter();
            Ok(ExtFullValueDescription {
                name: it.name,
                id: it.id,
                is_abstract: it.is_abstract,
                is_custom: it.is_custom,
                members: it.members,
                initializers: initializers
                    .map(|it| corba::ExtInitializer { members: it.members, exceptions: Vec::new(), name: it.name })
                    .collect(),
                supported_interfaces: it.supported_interfaces,
                abstract_base_values: it.abstract_base_values,
                is_truncatable: it.is_truncatable,
                base_value: it.base_value,
                r#type: it.r#type,
                ..ExtFullValueDescription::default()
            })
        }
        other => Ok(other?),
    }
}

/// The ids that a unit refers to; whether the whole definition has to come first.
fn needs_of(unit: &Unit, found: &mut Vec<(String, bool)>) -> Printed<()> {
    let mut of_type = |type_code: &TypeCode| named_types(type_code, found);
    match unit.kind {
        DefinitionKind::DkConstant => of_type(&extracted::<corba::ConstantDescription>(unit)?.r#type),
        DefinitionKind::DkException => {
            inner_types(&extracted::<corba::ExceptionDescription>(unit)?.r#type, &mut of_type)
        }
        DefinitionKind::DkAttribute => {
            of_type(&extracted::<corba::AttributeDescription>(unit)?.r#type);
            if let Ok(it) = call::<corba::ExtAttributeDescription>(&unit.object, "describe_attribute", &[]) {
                found.extend(it.get_exceptions.into_iter().chain(it.put_exceptions).map(|it| (it.id, true)));
            }
        }
        DefinitionKind::DkOperation => {
            let it: corba::OperationDescription = extracted(unit)?;
            of_type(&it.result);
            it.parameters.iter().for_each(|it| of_type(&it.r#type));
            found.extend(it.exceptions.into_iter().map(|it| (it.id, true)));
        }
        DefinitionKind::DkInterface | DefinitionKind::DkAbstractInterface | DefinitionKind::DkLocalInterface => {
            let it: corba::InterfaceDescription = extracted(unit)?;
            found.extend(it.base_interfaces.into_iter().map(|id| (id, true)));
        }
        DefinitionKind::DkValue => {
            let it = described_value(&unit.object)?;
            it.members.iter().for_each(|it| of_type(&it.r#type));
            it.initializers.iter().flat_map(|it| &it.members).for_each(|it| of_type(&it.r#type));
            let exceptions = it.initializers.iter().flat_map(|it| &it.exceptions).map(|it| it.id.clone());
            let bases = it.supported_interfaces.into_iter().chain(it.abstract_base_values).chain([it.base_value]);
            found.extend(exceptions.chain(bases).map(|id| (id, true)));
        }
        DefinitionKind::DkValueMember => {}
        _ => inner_types(&extracted::<corba::TypeDescription>(unit)?.r#type, &mut of_type),
    }
    unit.nested.iter().try_for_each(|nested| needs_of(nested, found))
}

/// The types that a named type consists of.
fn inner_types(type_code: &TypeCode, take: &mut dyn FnMut(&TypeCode)) {
    if let Ok(content) = type_code.content_type() {
        take(&content);
    }
    if let Ok(discriminator) = type_code.discriminator_type() {
        take(&discriminator);
    }
    for index in 0..type_code.member_count().unwrap_or_default() {
        if let Ok(member) = type_code.member_type(index) {
            take(&member);
        }
    }
}

/// The named types in a type, not those within these.
fn named_types(type_code: &TypeCode, found: &mut Vec<(String, bool)>) {
    match type_code.kind() {
        TcKind::Sequence | TcKind::Array => {
            if let Ok(content) = type_code.content_type() {
                named_types(&content, found);
            }
        }
        _ => {
            if let Ok(id) = type_code.id() {
                let is_enough = matches!(
                    type_code.kind(),
                    TcKind::ObjRef
                        | TcKind::AbstractInterface
                        | TcKind::LocalInterface
                        | TcKind::Value
                        | TcKind::Recursive
                );
                found.push((id.to_owned(), !is_enough));
            }
        }
    }
}

/// Whether a type contains the type with this id.
fn mentions(type_code: &TypeCode, id: &str, seen: &mut HashSet<String>) -> bool {
    let own = type_code.id().unwrap_or_default();
    if own == id {
        return true;
    }
    if !own.is_empty() && !seen.insert(own.to_owned()) {
        return false;
    }
    let mut is_found = false;
    inner_types(type_code, &mut |inner| is_found = is_found || mentions(inner, id, seen));
    is_found
}

fn collect_ids(unit: &Unit, found: &mut Vec<(String, String)>) {
    // The id of a state member is that of its value with its name.
    if unit.kind != DefinitionKind::DkValueMember {
        found.push((unit.path.clone(), unit.id.clone()));
    }
    unit.nested.iter().for_each(|nested| collect_ids(nested, found));
}

/// The prefix in a repository id of the OMG's form that has the definition's absolute name; `None` for other ids.
fn prefix_of(id: &str, path: &str) -> Option<String> {
    let (id, _) = id.strip_prefix("IDL:")?.rsplit_once(':')?;
    let rest = id.strip_suffix(&*path.trim_start_matches("::").replace("::", "/"))?;
    if rest.is_empty() { Some(String::new()) } else { rest.strip_suffix('/').map(str::to_owned) }
}

/// The repository id of a definition without a pragma of its own.
fn expected_id(prefix: &str, path: &str) -> String {
    let path = path.trim_start_matches("::").replace("::", "/");
    let slash = if prefix.is_empty() { "" } else { "/" };
    format!("IDL:{prefix}{slash}{path}:1.0")
}

fn simple(path: &str) -> &str {
    path.rsplit_once("::").map_or(path, |(_, name)| name)
}

/// A comment with these lines.
fn comment(text: &str, indent: &str) -> String {
    text.lines().fold(String::new(), |mut out, line| {
        _ = writeln!(out, "{indent}///{line}");
        out
    })
}
