//! The definitions in memory, with their indices, and edits that can be undone.

use std::collections::{BTreeSet, HashMap};

use spandrel::net::sync::Arc;

use crate::records::records::{Body, Definition, InterfaceFlavor, Kind};

pub(crate) type Number = u64;

/// The number for no definition.
pub(crate) const NONE: Number = 0;
/// The number of the repository's own definition.
pub(crate) const ROOT: Number = 1;
/// The number of the first primitive type (`pk_null`). The others follow in the order of `PrimitiveKind`.
const FIRST_PRIMITIVE: Number = 2;
const PRIMITIVES: u32 = 22;
/// The first number of a created definition.
const FIRST_CREATED: Number = 64;

/// The number of a primitive type.
pub(crate) fn primitive(kind: u32) -> Number {
    FIRST_PRIMITIVE + Number::from(kind)
}

/// All definitions by number, with the indices that searches need.
#[derive(Debug)]
pub(crate) struct Model {
    definitions: HashMap<Number, Arc<Definition>>,
    by_id: HashMap<String, Number>,
    /// How often definitions refer to each one, other than as its container.
    uses: HashMap<Number, usize>,
    next: Number,
}

impl Model {
    /// The repository with the primitive types, and these definitions.
    pub(crate) fn new(stored: impl IntoIterator<Item = (Number, Definition)>, next: Number) -> Self {
        let mut model = Self {
            definitions: HashMap::new(),
            by_id: HashMap::new(),
            uses: HashMap::new(),
            next: next.max(FIRST_CREATED),
        };
        let root = Definition { content: Body::Unlisted(Kind::KindRepository), ..Definition::default() };
        model.set(ROOT, Some(Arc::new(root)));
        for kind in 0..PRIMITIVES {
            let built = Definition { content: Body::Primitive(kind), ..Definition::default() };
            model.set(primitive(kind), Some(Arc::new(built)));
        }
        for (number, definition) in stored {
            model.next = model.next.max(number + 1);
            model.set(number, Some(Arc::new(definition)));
        }
        model
    }

    pub(crate) fn get(&self, number: Number) -> Option<&Arc<Definition>> {
        self.definitions.get(&number)
    }

    /// The number of the next definition. A number is never used again.
    pub(crate) fn next(&self) -> Number {
        self.next
    }

    pub(crate) fn len(&self) -> usize {
        self.definitions.len()
    }

    /// The number of definitions besides the repository and the primitive types.
    pub(crate) fn created(&self) -> usize {
        self.definitions.keys().filter(|number| **number >= FIRST_CREATED).count()
    }

    pub(crate) fn by_id(&self, id: &str) -> Option<Number> {
        self.by_id.get(id).copied()
    }

    /// How many references to this definition there are.
    pub(crate) fn uses(&self, number: Number) -> usize {
        self.uses.get(&number).copied().unwrap_or_default()
    }

    /// Replaces a definition; returns the former one.
    fn set(&mut self, number: Number, definition: Option<Arc<Definition>>) -> Option<Arc<Definition>> {
        let former = match &definition {
            Some(definition) => self.definitions.insert(number, Arc::clone(definition)),
            None => self.definitions.remove(&number),
        };
        if let Some(former) = &former {
            if !former.id.is_empty() && self.by_id.get(&former.id) == Some(&number) {
                self.by_id.remove(&former.id);
            }
            for target in references(&former.content) {
                if let Some(count) = self.uses.get_mut(&target) {
                    *count -= 1;
                    if *count == 0 {
                        self.uses.remove(&target);
                    }
                }
            }
        }
        if let Some(definition) = &definition {
            if !definition.id.is_empty() {
                self.by_id.insert(definition.id.clone(), number);
            }
            for target in references(&definition.content) {
                *self.uses.entry(target).or_default() += 1;
            }
        }
        former
    }

    /// The absolute name: `::` before each component.
    pub(crate) fn absolute_name(&self, number: Number) -> String {
        let mut names = Vec::new();
        let mut at = number;
        while let Some(definition) = self.get(at).filter(|_| at != ROOT) {
            names.push(&*definition.name);
            at = definition.parent;
        }
        names.iter().rev().fold(String::new(), |text, name| text + "::" + name)
    }

    /// The path for policies: the scoped name with `/` between its components, empty for the repository. `None` for a
    /// definition without a name.
    pub(crate) fn path(&self, number: Number) -> Option<String> {
        let is_named = number == ROOT || self.get(number).is_some_and(|it| !it.name.is_empty());
        is_named.then(|| self.absolute_name(number).trim_start_matches(':').replace("::", "/"))
    }

    /// The direct and indirect bases of an interface or value, each once and after its own bases.
    pub(crate) fn all_bases(&self, number: Number) -> Vec<Number> {
        fn visit(model: &Model, number: Number, found: &mut Vec<Number>, visited: &mut BTreeSet<Number>) {
            for base in model.get(number).map(|it| bases(&it.content)).unwrap_or_default() {
                if visited.insert(base) {
                    visit(model, base, found, visited);
                    found.push(base);
                }
            }
        }
        let (mut found, mut visited) = (Vec::new(), BTreeSet::new());
        visit(self, number, &mut found, &mut visited);
        found
    }

    /// The contents of a container in order, those of its bases after its own.
    pub(crate) fn contents(&self, number: Number, with_inherited: bool) -> Vec<Number> {
        let own = |number| self.get(number).map(|it| it.contents.clone()).unwrap_or_default();
        let mut contents = own(number);
        if with_inherited {
            for base in self.all_bases(number) {
                contents.extend(own(base));
            }
        }
        contents
    }

    /// The definition of this name in a container. IDL compares names without regard to case for collisions only.
    pub(crate) fn find_in(&self, container: Number, name: &str) -> Option<Number> {
        let is_named = |number: &Number| self.get(*number).is_some_and(|it| it.name == name);
        self.contents(container, true).into_iter().find(is_named)
    }

    /// The definition with this name, relative to a container or with a leading `::` absolute.
    pub(crate) fn lookup(&self, container: Number, name: &str) -> Option<Number> {
        let (from, relative) = match name.strip_prefix("::") {
            Some(rest) => (ROOT, rest),
            None => (container, name),
        };
        relative.split("::").try_fold(from, |at, part| self.find_in(at, part))
    }

    /// A definition with all that it contains.
    pub(crate) fn subtree(&self, number: Number) -> Vec<Number> {
        let mut numbers = vec![number];
        let mut at = 0;
        while at < numbers.len() {
            if let Some(definition) = self.get(numbers[at]) {
                numbers.extend_from_slice(&definition.contents);
            }
            at += 1;
        }
        numbers
    }
}

/// The bases of an interface or a value, in order.
pub(crate) fn bases(content: &Body) -> Vec<Number> {
    match content {
        Body::AnInterface(body) => body.bases.clone(),
        Body::Value(body) => {
            let base = Some(body.base).filter(|base| *base != NONE);
            base.into_iter().chain(body.abstract_bases.iter().copied()).collect()
        }
        _ => Vec::new(),
    }
}

/// All definitions that this content refers to, once for each reference.
pub(crate) fn references(content: &Body) -> Vec<Number> {
    let mut used = Vec::new();
    match content {
        Body::Constant(body) => used.push(body.r#type),
        Body::Structure(members) | Body::AnException(members) => used.extend(members.iter().map(|it| it.r#type)),
        Body::AUnion(body) => {
            used.push(body.discriminator);
            used.extend(body.branches.iter().map(|it| it.r#type));
        }
        Body::Alias(original) | Body::ValueBox(original) => used.push(*original),
        Body::ASequence(body) | Body::AnArray(body) => used.push(body.r#type),
        Body::AnAttribute(body) => {
            used.push(body.r#type);
            used.extend(body.get_exceptions.iter().chain(&body.set_exceptions));
        }
        Body::Operation(body) => {
            used.push(body.result);
            used.extend(body.parameters.iter().map(|it| it.r#type));
            used.extend(&body.exceptions);
        }
        Body::AnInterface(body) => used.extend(&body.bases),
        Body::Value(body) => {
            used.push(body.base);
            used.extend(body.abstract_bases.iter().chain(&body.supported));
            for factory in &body.factories {
                used.extend(factory.members.iter().map(|it| it.r#type));
                used.extend(&factory.exceptions);
            }
        }
        Body::ValueMember(body) => used.push(body.r#type),
        Body::Enumeration(_)
        | Body::Primitive(_)
        | Body::Text(_)
        | Body::WideText(_)
        | Body::Decimal(_)
        | Body::Unlisted(_) => {}
    }
    used.retain(|number| *number != NONE && !(FIRST_PRIMITIVE..FIRST_CREATED).contains(number));
    used
}

/// Whether it is a type without a name of its own, which exists for its user only.
pub(crate) fn is_anonymous(content: &Body) -> bool {
    matches!(content, Body::Text(_) | Body::WideText(_) | Body::Decimal(_) | Body::ASequence(_) | Body::AnArray(_))
}

/// Whether it may contain definitions (`Container`).
pub(crate) fn is_container(content: &Body) -> bool {
    matches!(
        content,
        Body::Unlisted(Kind::KindRepository | Kind::KindModule)
            | Body::Structure(_)
            | Body::AnException(_)
            | Body::AUnion(_)
            | Body::AnInterface(_)
            | Body::Value(_)
    )
}

/// Whether a container of this kind may contain such a definition (the table of CORBA 3.3 Part 1, 14.4.4).
pub(crate) fn may_contain(container: &Body, content: &Body) -> bool {
    let is_type = matches!(
        content,
        Body::Structure(_) | Body::AUnion(_) | Body::Enumeration(_) | Body::Alias(_) | Body::Unlisted(Kind::KindNative)
    );
    match container {
        Body::Unlisted(_) => !matches!(
            content,
            Body::AnAttribute(_) | Body::Operation(_) | Body::ValueMember(_) | Body::Unlisted(Kind::KindRepository)
        ),
        Body::AnInterface(_) => {
            is_type
                || matches!(
                    content,
                    Body::Constant(_) | Body::AnException(_) | Body::AnAttribute(_) | Body::Operation(_)
                )
        }
        Body::Value(_) => {
            is_type
                || matches!(
                    content,
                    Body::Constant(_) | Body::AnException(_) | Body::AnAttribute(_) | Body::Operation(_)
                )
                || matches!(content, Body::ValueMember(_))
        }
        Body::Structure(_) | Body::AnException(_) | Body::AUnion(_) => {
            matches!(content, Body::Structure(_) | Body::AUnion(_) | Body::Enumeration(_))
        }
        _ => false,
    }
}

/// Whether it is an interface of this flavor.
pub(crate) fn is_flavor(content: &Body, flavor: InterfaceFlavor) -> bool {
    matches!(content, Body::AnInterface(body) if body.flavor == flavor)
}

/// Changes of a model, which are accepted or undone as a whole.
#[derive(Debug)]
pub(crate) struct Edit<'m> {
    model: &'m mut Model,
    former: Vec<(Number, Option<Arc<Definition>>)>,
}

impl<'m> Edit<'m> {
    pub(crate) fn new(model: &'m mut Model) -> Self {
        Self { model, former: Vec::new() }
    }

    pub(crate) fn model(&self) -> &Model {
        self.model
    }

    /// Adds a definition and returns its number. A number is never used again, also not after an undo.
    pub(crate) fn add(&mut self, definition: Definition) -> Number {
        let number = self.model.next;
        self.model.next += 1;
        self.set(number, Some(definition));
        number
    }

    /// Replaces or removes a definition.
    pub(crate) fn set(&mut self, number: Number, definition: Option<Definition>) {
        let former = self.model.set(number, definition.map(Arc::new));
        self.former.push((number, former));
    }

    /// The changed definitions as they are now; `None` for removed ones.
    pub(crate) fn changes(&self) -> Vec<(Number, Option<Arc<Definition>>)> {
        let changed: BTreeSet<Number> = self.former.iter().map(|(number, _)| *number).collect();
        changed.into_iter().map(|number| (number, self.model.get(number).cloned())).collect()
    }

    pub(crate) fn undo(self) {
        for (number, former) in self.former.into_iter().rev() {
            self.model.set(number, former);
        }
    }
}
