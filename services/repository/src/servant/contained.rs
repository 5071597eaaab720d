//! The operations of definitions with a name (`Contained`, CORBA 3.3 Part 1, 14.5.3, and our `Documented`).

use crate::generated::corba::{Container, Repository, contained};
use crate::generated::interface_repository::PartDocumentation;
use spandrel::SystemException;
use spandrel::dynamic::{ArgMode, NamedValue, NvList, ServerRequest};
use spandrel::types::Typed;

use super::{Definitions, Handled, arguments};
use crate::core::{check_place, kind, update};
use crate::describe::Describer;
use crate::errors::{bad_param, limit, not_exist};
use crate::model::{Number, ROOT};
use crate::records::records::Part;

impl Definitions {
    pub(super) fn contained(&self, request: &mut ServerRequest<'_>, number: Number) -> Handled {
        let core = &*self.0;
        let definition = self.read(|model| model.get(number).cloned().ok_or_else(not_exist))?;
        match request.operation() {
            "_get_id" => {
                request.arguments(NvList::new())?;
                request.set_result(&definition.id)?;
            }
            "_set_id" => {
                arguments!(request, id: String);
                core.change(|edit| {
                    core.check_id(edit.model(), &id, number)?;
                    update(edit, number, |it| it.id = id)
                })?;
            }
            "_get_name" => {
                request.arguments(NvList::new())?;
                request.set_result(&definition.name)?;
            }
            "_set_name" => {
                arguments!(request, name: String);
                core.change(|edit| {
                    check_place(edit.model(), definition.parent, &name, &definition.content, number)?;
                    update(edit, number, |it| it.name = name)
                })?;
            }
            "_get_version" => {
                request.arguments(NvList::new())?;
                request.set_result(&definition.version)?;
            }
            "_set_version" => {
                arguments!(request, version: String);
                self.check_length(&version, core.limits.max_name, "version")?;
                core.change(|edit| update(edit, number, |it| it.version = version))?;
            }
            "_get_defined_in" => {
                request.arguments(NvList::new())?;
                request.set_result(&self.read(|model| core.typed::<Container>(model, definition.parent))?)?;
            }
            "_get_absolute_name" => {
                request.arguments(NvList::new())?;
                request.set_result(&self.read(|model| Ok(model.absolute_name(number)))?)?;
            }
            "_get_containing_repository" => {
                request.arguments(NvList::new())?;
                request.set_result(&self.read(|model| core.typed::<Repository>(model, ROOT))?)?;
            }
            "describe" => {
                request.arguments(NvList::new())?;
                let value = self.read(|model| Describer::new(core, model).description(number))?;
                request.set_result(&contained::Description { kind: kind(&definition.content), value })?;
            }
            "move" => {
                arguments!(request, container: Option<Container>, name: String, version: String);
                self.check_length(&version, core.limits.max_name, "version")?;
                let target =
                    core.number(&core.model.read(), container.as_ref().map(|container| container.as_object()))?;
                core.check_path(request.operation(), target)?;
                core.change(|edit| {
                    let former = edit.model().get(number).ok_or_else(not_exist)?.parent;
                    check_place(edit.model(), target, &name, &definition.content, number)?;
                    if edit.model().subtree(number).contains(&target) {
                        return Err(bad_param(0, "a definition cannot be moved into itself".to_owned()));
                    }
                    update(edit, former, |it| it.contents.retain(|content| *content != number))?;
                    update(edit, target, |it| it.contents.push(number))?;
                    update(edit, number, |it| (it.name, it.version, it.parent) = (name, version, target))
                })?;
            }
            "_get_documentation" => {
                request.arguments(NvList::new())?;
                request.set_result(&definition.documentation)?;
            }
            "_set_documentation" => {
                arguments!(request, text: String);
                self.check_length(&text, core.limits.max_documentation, "documentation")?;
                core.change(|edit| update(edit, number, |it| it.documentation = text))?;
            }
            "_get_part_documentation" => {
                request.arguments(NvList::new())?;
                let parts = definition.part_documentation.iter().cloned();
                let parts: Vec<_> = parts.map(|Part { name, text }| PartDocumentation { name, text }).collect();
                request.set_result(&parts)?;
            }
            "_set_part_documentation" => {
                arguments!(request, parts: Vec<PartDocumentation>);
                let total = parts.iter().map(|it| it.name.len() + it.text.len()).sum::<usize>();
                if total > core.limits.max_documentation {
                    return Err(limit(format!("the documentation of parts has {total} octets")));
                }
                let parts = parts.into_iter().map(|PartDocumentation { name, text }| Part { name, text }).collect();
                core.change(|edit| update(edit, number, |it| it.part_documentation = parts))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn check_length(&self, text: &str, max: usize, what: &str) -> Result<(), SystemException> {
        if text.len() > max { Err(limit(format!("the {what} has more than {max} octets"))) } else { Ok(()) }
    }
}
