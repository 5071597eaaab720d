//! The operations that all definitions, and those with a name, have in common (`IRObject` and `Contained`, CORBA 3.3
//! Part 1, 14.5.2 and 14.5.3, and our `Documented`).

use spandrel::types::Interface as _;

use super::object::{Object, Outcome};
use crate::core::{check_place, kind, update};
use crate::errors::{bad_param, limit, not_exist};
use crate::generated::corba::{
    ContainedServant, Container, DefinitionKind, IrObjectServant, ModuleDefServant, NativeDefServant, Repository,
    TypedefDefServant, contained,
};
use crate::generated::interface_repository::{DocumentedServant, PartDocumentation};
use crate::model::ROOT;
use crate::records::records::{Definition, Part};

impl IrObjectServant for Object<'_> {
    fn def_kind(&self) -> Outcome<DefinitionKind> {
        Ok(kind(&self.definition.content))
    }

    fn destroy(&self) -> Outcome<()> {
        self.core.change(|edit| self.core.destroy(edit, self.number))
    }
}

impl ContainedServant for Object<'_> {
    fn id(&self) -> Outcome<String> {
        Ok(self.definition.id.clone())
    }

    fn set_id(&self, value: &str) -> Outcome<()> {
        self.core.change(|edit| {
            self.core.check_id(edit.model(), value, self.number)?;
            update(edit, self.number, |it| it.id = value.to_owned())
        })
    }

    fn name(&self) -> Outcome<String> {
        Ok(self.definition.name.clone())
    }

    fn set_name(&self, value: &str) -> Outcome<()> {
        let Definition { parent, content, .. } = self.definition;
        self.core.change(|edit| {
            check_place(edit.model(), *parent, value, content, self.number)?;
            update(edit, self.number, |it| it.name = value.to_owned())
        })
    }

    fn version(&self) -> Outcome<String> {
        Ok(self.definition.version.clone())
    }

    fn set_version(&self, value: &str) -> Outcome<()> {
        check_length(value, self.core.limits.max_name, "version")?;
        self.core.change(|edit| update(edit, self.number, |it| it.version = value.to_owned()))
    }

    fn defined_in(&self) -> Outcome<Option<Container>> {
        self.reference(self.definition.parent)
    }

    fn absolute_name(&self) -> Outcome<String> {
        self.read(|model| Ok(model.absolute_name(self.number)))
    }

    fn containing_repository(&self) -> Outcome<Option<Repository>> {
        self.reference(ROOT)
    }

    fn describe(&self) -> Outcome<contained::Description> {
        let value = Object::describe(self, |describer| describer.description(self.number))?;
        Ok(contained::Description { kind: kind(&self.definition.content), value })
    }

    fn r#move(&self, new_container: Option<&Container>, new_name: &str, new_version: &str) -> Outcome<()> {
        let (core, number) = (self.core, self.number);
        check_length(new_version, core.limits.max_name, "version")?;
        let target = self.read(|model| core.number(model, new_container.map(|container| container.as_object())))?;
        core.check_path("move", target)?;
        core.change(|edit| {
            let former = edit.model().get(number).ok_or_else(not_exist)?.parent;
            check_place(edit.model(), target, new_name, &self.definition.content, number)?;
            if edit.model().subtree(number).contains(&target) {
                return Err(bad_param(0, "a definition cannot be moved into itself".to_owned()));
            }
            update(edit, former, |it| it.contents.retain(|content| *content != number))?;
            update(edit, target, |it| it.contents.push(number))?;
            let (name, version) = (new_name.to_owned(), new_version.to_owned());
            update(edit, number, |it| (it.name, it.version, it.parent) = (name, version, target))
        })
    }
}

impl DocumentedServant for Object<'_> {
    fn documentation(&self) -> Outcome<String> {
        Ok(self.definition.documentation.clone())
    }

    fn set_documentation(&self, value: &str) -> Outcome<()> {
        check_length(value, self.core.limits.max_documentation, "documentation")?;
        self.core.change(|edit| update(edit, self.number, |it| it.documentation = value.to_owned()))
    }

    fn part_documentation(&self) -> Outcome<Vec<PartDocumentation>> {
        let parts = self.definition.part_documentation.iter().cloned();
        Ok(parts.map(|Part { name, text }| PartDocumentation { name, text }).collect())
    }

    fn set_part_documentation(&self, value: &[PartDocumentation]) -> Outcome<()> {
        let total = value.iter().map(|it| it.name.len() + it.text.len()).sum::<usize>();
        if total > self.core.limits.max_documentation {
            return Err(limit(format!("the documentation of parts has {total} octets")));
        }
        let parts = value.iter().cloned().map(|PartDocumentation { name, text }| Part { name, text }).collect();
        self.core.change(|edit| update(edit, self.number, |it| it.part_documentation = parts))
    }
}

impl ModuleDefServant for Object<'_> {}
impl TypedefDefServant for Object<'_> {}
impl NativeDefServant for Object<'_> {}

fn check_length(text: &str, max: usize, what: &str) -> Outcome<()> {
    if text.len() > max { Err(limit(format!("the {what} has more than {max} octets"))) } else { Ok(()) }
}
