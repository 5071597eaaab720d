//! The servant of all definitions. An object's id is its definition's number.

mod contained;
mod container;
mod parts;
mod repository;
mod typed;

use spandrel::SystemException;
use spandrel::dynamic::{DynamicImplementation, ServerRequest};
use spandrel::net::sync::Arc;
use spandrel::types::Interface as _;

use crate::core::{Core, interfaces, is_contained, kind, parse};
use crate::errors::not_exist;
use crate::model::{Model, NONE, Number, is_container};
use crate::records::records::{Body, Kind};

#[derive(Debug)]
pub(crate) struct Definitions(pub(crate) Arc<Core>);

/// Whether an operation was one of a group.
type Handled = Result<bool, SystemException>;

/// Reads the arguments of a request into variables of these types.
macro_rules! arguments {
    ($request:expr $(, $name:ident: $of:ty)* $(,)?) => {
        let list: NvList = [$(NamedValue::of_type(stringify!($name), ArgMode::In, <$of as Typed>::type_code())),*]
            .into_iter()
            .collect();
        #[allow(unused_variables)]
        let list = $request.arguments(list)?;
        #[allow(unused_mut, unused_variables)]
        let mut indices = 0_usize..;
        $(let $name: $of = list.extract(indices.next().unwrap_or_default())?;)*
    };
}
use arguments;

impl DynamicImplementation for Definitions {
    fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let number = parse(request.object_id()).ok_or_else(not_exist)?;
        let content = self.content(number).ok_or_else(not_exist)?;
        self.0.check_path(request.operation(), number)?;
        let is_done = self.any_object(request, number, &content)?
            || is_contained(&content) && self.contained(request, number)?
            || is_container(&content) && self.container(request, number)?
            || matches!(content, Body::Unlisted(Kind::KindRepository)) && self.repository(request)?
            || self.typed(request, number, &content)?
            || self.parts(request, number, &content)?;
        if is_done { Ok(()) } else { Err(request.unknown_operation()) }
    }

    fn primary_interface(&self, object_id: &[u8]) -> String {
        let content = parse(object_id).and_then(|number| self.content(number));
        content.map_or(crate::generated::corba::IrObject::REPOSITORY_ID, |content| interfaces(&content)[0]).to_owned()
    }

    fn is_a(&self, object_id: &[u8], repository_id: &str) -> bool {
        let content = parse(object_id).and_then(|number| self.content(number));
        content.is_some_and(|content| interfaces(&content).contains(&repository_id))
    }

    fn non_existent(&self, object_id: &[u8]) -> bool {
        parse(object_id).and_then(|number| self.content(number)).is_none()
    }
}

impl Definitions {
    fn content(&self, number: Number) -> Option<Body> {
        self.0.model.read().get(number).filter(|_| number != NONE).map(|it| it.content.clone())
    }

    /// The operations of `IRObject` (14.5.2).
    fn any_object(&self, request: &mut ServerRequest<'_>, number: Number, content: &Body) -> Handled {
        use spandrel::dynamic::NvList;
        match request.operation() {
            "_get_def_kind" => {
                request.arguments(NvList::new())?;
                request.set_result(&kind(content))?;
            }
            "destroy" => {
                request.arguments(NvList::new())?;
                self.0.change(|edit| self.0.destroy(edit, number))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read<T>(&self, read: impl FnOnce(&Model) -> Result<T, SystemException>) -> Result<T, SystemException> {
        read(&self.0.model.read())
    }
}
